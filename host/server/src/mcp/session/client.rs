//! The client of one request: sends it notifications and questions while the request runs.
//!
//! The handler of requests (`mcp/handler.rs`), and an extension of the embedder (the program that
//! uses this library), get a [`Client`] with each request. [`Client::notify`] sends a notification
//! and never waits; it is dropped if the client reads too slowly. [`Client::ask`] sends a request
//! to the client and waits for its answer. Messages about a request go to the stream of that
//! request; if the request has none, a notification goes to the common stream of its session.
//! Without a session no questions are sent, because servers send no requests in the protocol's
//! revision without sessions.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientResult, ErrorData, JsonRpcNotification, JsonRpcRequest,
    JsonRpcVersion2_0, ServerNotification, ServerRequest,
};
use serde::Serialize;
use serde_json::json;

use super::outbox::Outbox;
use super::{PendingQuestion, Session};
use crate::mcp::message::raw::Raw;

/// The most bytes of a client's capabilities, which are stored as long as its session is open.
pub(in crate::mcp) const MAX_CAPABILITIES: usize = 64 << 10;

/// The client that sent a request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    /// The stream of the request. `None` if the client reads none.
    stream: Option<Arc<Outbox>>,
    session: Option<Arc<Session>>,
    /// The capabilities that the client declared, an object.
    capabilities: Option<Raw>,
}

impl Client {
    /// Creates a client with a session.
    pub(in crate::mcp) fn of_session(session: &Arc<Session>, stream: Option<Arc<Outbox>>) -> Self {
        let capabilities = Some(session.capabilities.clone());
        Self { stream, session: Some(Arc::clone(session)), capabilities }
    }

    /// Creates a client without a session.
    pub(in crate::mcp) fn alone(capabilities: Option<Raw>, stream: Option<Arc<Outbox>>) -> Self {
        Self { stream, session: None, capabilities }
    }

    /// Returns the session, in the era of sessions.
    pub(in crate::mcp) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Returns true if the client can show a form to its user, and can be asked to.
    pub(in crate::mcp) fn has_forms(&self) -> bool {
        let declared = self.capabilities.as_ref().and_then(|all| all.member("elicitation"));
        // A declaration without a mode means forms.
        declared.filter(Raw::is_object).is_some_and(|elicitation| {
            elicitation.member("form").is_some() || elicitation.member("url").is_none()
        }) && (self.session.is_none() || self.stream.is_some())
    }

    /// Returns true if the client reads messages before the answer.
    pub(in crate::mcp) fn can_receive(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns the capabilities that the client declared.
    #[must_use]
    pub fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.as_ref().and_then(Raw::read).unwrap_or_default()
    }

    /// Sends a notification to the client. It is dropped if the client does not read, or reads too
    /// slowly.
    pub fn notify(&self, notification: ServerNotification) {
        self.send_notification(&notification);
    }

    pub(in crate::mcp) fn send_notification(&self, content: &impl Serialize) {
        let message = JsonRpcNotification { jsonrpc: JsonRpcVersion2_0, notification: content };
        let Ok(text) = serde_json::to_vec(&message) else { return };
        let is_told = self.stream.as_ref().is_some_and(|stream| stream.notify(text.clone()));
        if let (false, Some(session)) = (is_told, &self.session) {
            session.common.notify(text);
        }
    }

    /// Sends a request to the client, and waits for its answer.
    ///
    /// # Errors
    /// In the era without sessions, in which servers send no requests; if the client reads no
    /// stream, or has too many open questions; the client's own error; and if it does not answer.
    ///
    /// # Cancel safety
    /// Cancel safe: a later answer is ignored.
    pub async fn ask(&self, request: ServerRequest) -> Result<ClientResult, ErrorData> {
        let mut pending = self.open(&request)?;
        let failed = |text: &str| {
            ErrorData::internal_error(format!("the client did not answer: {text}"), None)
        };
        let reply = pending.reply().await.map_err(failed)?;
        match reply.answer {
            Ok(result) => result.read().ok_or_else(|| failed("its answer has another form")),
            Err(error) => Err(error.read().unwrap_or_else(|| failed("its error has another form"))),
        }
    }

    /// Sends a question, and returns it as a pending one.
    pub(in crate::mcp) fn open(
        &self,
        content: &impl Serialize,
    ) -> Result<PendingQuestion, ErrorData> {
        let (Some(session), Some(stream)) = (&self.session, &self.stream) else {
            let text = "this client cannot be asked while its request runs";
            return Err(ErrorData::invalid_request(text, None));
        };
        let pending = session.ask().ok_or_else(|| too_many_questions("session"))?;
        let text = serde_json::to_vec(&JsonRpcRequest::new(pending.id.clone(), content))
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        stream.send(text);
        Ok(pending)
    }
}

/// The code of a question over the limit.
pub(in crate::mcp) const TOO_MANY_QUESTIONS: &str = "too_many_questions";

/// Returns the error of a question over the limit of a tenant or a session.
pub(in crate::mcp) fn too_many_questions(whose: &str) -> ErrorData {
    let data = json!({"code": TOO_MANY_QUESTIONS, "hint": "answer the open questions first"});
    let text = format!("the {whose} has as many open questions as it may");
    ErrorData::internal_error(text, Some(data))
}
