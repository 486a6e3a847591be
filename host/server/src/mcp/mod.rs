//! The Model Context Protocol, over HTTP and over lines of standard input and output.
//!
//! [`routes`] takes a [`Service`](crate::Service) and [`McpOptions`], and returns the route `/mcp`
//! for [`router`](crate::http::router), which checks Host, Origin and credentials. [`serve_stdio`]
//! serves one client on standard input and output instead. One endpoint serves both eras of the
//! protocol: the revisions 2025-06-18 and 2025-11-25, in which a client opens a session, and
//! 2026-07-28, in which every request is self-contained. An embedder (the program that uses this
//! library) adds prompts, resources and tools of its own with an [`McpExtension`].
//!
//! Every message is decoded strictly, and without a JSON tree. The service's tools are called only
//! through [`Service::call`](crate::Service::call), so that its quotas and limits apply. A session
//! is used only by the principal (the authenticated sender: a key or user of a tenant) that opened
//! it.
//!
//! Source: docs/mcp.md; docs/threat-model.md, rows 72 to 77 and 106 to 108.

mod extension;
mod handler;
mod message;
mod request;
mod session;
mod transport;

use std::sync::Arc;
use std::time::Duration;

/// The SDK whose message types [`McpExtension`] uses.
pub use rmcp;

pub use extension::{AnswerFuture, ExtensionRequest, McpExtension};
pub use session::client::Client;
pub use transport::endpoint::routes;
pub use transport::stdio::{StdioError, serve_lines, serve_stdio};

/// Options of a [`Service`](crate::Service) over MCP.
///
/// # Defaults
/// The name `toolcell`, no instructions, no extension; 32 sessions of a tenant, which end after 30
/// minutes without a message; 64 open streams of a tenant; 16 open questions of a session, 64 of a
/// tenant; 1 s for a tool to end by itself after a cancel; on standard input, lines of 4 MiB and 64
/// requests at once.
#[derive(Clone)]
pub struct McpOptions {
    /// The name of the server, which clients show.
    pub name: String,
    /// Text about this server that a client gives to its model.
    pub instructions: Option<String>,
    /// Prompts, resources, completion and further tools.
    pub extension: Arc<dyn McpExtension>,
    /// The most open sessions of one tenant. One more ends the session that was unused for longest,
    /// if that is at least a minute.
    pub sessions: usize,
    /// The most open streams of one tenant over HTTP: `GET` of a session, and
    /// `subscriptions/listen`.
    pub streams: usize,
    /// The most questions of one session that wait for an answer of its client.
    pub session_questions: usize,
    /// The most such questions of all sessions of one tenant.
    pub questions: usize,
    /// Time without a message after which a session ends, even if its requests wait for answers of
    /// its client. A session without a request does not end while a stream that `GET` opened is
    /// open.
    pub session_idle: Duration,
    /// Time that a tool has to end by itself after a cancel.
    pub stop_grace: Duration,
    /// The most bytes of one line on standard input.
    pub line: usize,
    /// The most requests on standard input that run at once.
    pub in_flight: usize,
}

impl std::fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpOptions").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            name: "toolcell".into(),
            instructions: None,
            extension: Arc::new(extension::NoExtension),
            sessions: 32,
            streams: 64,
            session_questions: 16,
            questions: 64,
            session_idle: Duration::from_secs(30 * 60),
            stop_grace: Duration::from_secs(1),
            line: 4 << 20,
            in_flight: 64,
        }
    }
}
