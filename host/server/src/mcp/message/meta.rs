//! Reads the metadata of a request: the member `_meta` of its params.
//!
//! The decoder calls [`Meta::of`] with the JSON text of that member. It returns the members that
//! the server uses: the revision and the client's capabilities (in the era without sessions,
//! revision 2026-07-28), the progress token, the log level, an answer to a tool's question, and the
//! trace that the request continues. A member of a wrong type counts as absent. Unknown members are
//! skipped and take no memory.
#![expect(deprecated, reason = "clients name the level of the log of the protocol")]

use rmcp::model::{LoggingLevel, ProgressToken, ProtocolVersion};

use super::raw::{Raw, read_id};
use crate::observe::trace::TraceContext;

/// The member with the revision, in the stateless era.
pub(in crate::mcp) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The member with an answer from a client to which no question can be sent: `{"answer", "state"}`.
pub(in crate::mcp) const RESUME: &str = "toolcell/resume";
/// The members that carry a trace context.
const TRACE: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// The metadata of one request.
#[derive(Debug, Clone, Default)]
pub(in crate::mcp) struct Meta {
    /// The revision that the request names.
    pub(in crate::mcp) version: Option<String>,
    pub(in crate::mcp) capabilities: Option<Raw>,
    pub(in crate::mcp) progress: Option<ProgressToken>,
    /// The least severe log level that the client asks for.
    pub(in crate::mcp) level: Option<LoggingLevel>,
    pub(in crate::mcp) resume: Option<Raw>,
    trace: [Option<String>; 3],
}

impl Meta {
    pub(in crate::mcp) fn of(meta: Raw) -> Self {
        let [parent, state, baggage] = TRACE;
        let names = [VERSION, CAPABILITIES, "progressToken", LEVEL, RESUME, parent, state, baggage];
        let [version, capabilities, progress, level, resume, trace @ ..] = meta.members(names);
        Self {
            version: version.and_then(|version| version.text()),
            capabilities: capabilities.filter(Raw::is_object),
            progress: progress.and_then(|token| read_id(token.as_str())).map(ProgressToken),
            level: level.and_then(|level| level.read()),
            resume,
            trace: trace.map(|value| value.and_then(|value| value.text())),
        }
    }

    /// Returns true if the request names a protocol revision of the era without sessions. Members
    /// that it needs can be [`missing`](Self::missing).
    pub(in crate::mcp) fn is_modern(&self) -> bool {
        self.version.as_deref() >= Some(ProtocolVersion::V_2026_07_28.as_str())
    }

    /// Returns the required members of the era without sessions that are missing.
    pub(in crate::mcp) fn missing(&self) -> Vec<&'static str> {
        let needed =
            [(VERSION, self.version.is_some()), (CAPABILITIES, self.capabilities.is_some())];
        needed.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name).collect()
    }

    /// Returns the trace that the request continues.
    pub(in crate::mcp) fn trace(&self) -> Option<TraceContext<'_>> {
        let [parent, state, _] = &self.trace;
        TraceContext::parse(parent.as_deref()?, state.as_deref())
    }

    /// Returns the trace members that the tool can see.
    pub(in crate::mcp) fn trace_members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let members = TRACE.into_iter().zip(&self.trace);
        members.filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}
