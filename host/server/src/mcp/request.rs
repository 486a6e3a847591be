//! One request of a client, with or without a session and over any transport, and the writing of
//! its answer.
//!
//! The transports create a [`Request`] from a decoded message and give it to the handler of
//! requests (`mcp/handler.rs`). It has the id, method, params and metadata, the client, a token
//! that is cancelled with the request, and over HTTP the resources that the request holds.
//! [`Request::tree`] parses the params into a type; large params wait up to 10 seconds for a turn,
//! because the memory of trees is bounded, and the caller holds the returned room as long as the
//! tree lives. [`message`] writes an answer as one line of JSON-RPC.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    ErrorData, JsonRpcError, JsonRpcResponse, JsonRpcVersion2_0, RequestId, RequestMetaObject,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolcell::call::JsonReservation;

use super::extension::ExtensionRequest;
use super::message::meta::Meta;
use super::message::raw::Raw;
use super::session::client::Client;
use crate::http::body::RequestResources;
use crate::tenants::principal::Principal;

/// Time that a request waits for its turn to be parsed into a tree.
const TREE_TIME: Duration = Duration::from_secs(10);

/// The result of a request, as JSON.
pub(super) type Answer = Box<RawValue>;

/// One request.
pub(super) struct Request {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Raw,
    pub(super) meta: Meta,
    pub(super) client: Client,
    /// Cancelled when the client cancels the request, or its session ends.
    pub(super) cancelled: CancellationToken,
    /// The resources of the request until it has ended and its answer was sent. `None` over lines.
    pub(super) resources: Option<Arc<RequestResources>>,
}

impl Request {
    /// Returns true if the request is of the era without sessions.
    pub(super) fn is_modern(&self) -> bool {
        self.client.session().is_none()
    }

    /// Parses the params into a tree, which is counted as long as the room is held. Large params
    /// wait for their turn.
    ///
    /// # Errors
    /// If the params do not fit, or the server's limit of trees is reached.
    pub(super) async fn tree<T: DeserializeOwned>(
        &self,
        principal: &Principal,
    ) -> Result<(T, JsonReservation), ErrorData> {
        let mut room = tree_room(principal, self.params.as_str()).await?;
        let tree = self.params.read().ok_or_else(|| self.invalid_params())?;
        room.end_parsing();
        Ok((tree, room))
    }

    /// Returns the request as an extension sees it, counted as long as the room is held.
    pub(super) async fn extension_request(
        &self,
        principal: &Principal,
    ) -> Result<(ExtensionRequest, JsonReservation), ErrorData> {
        let meta = self.params.member("_meta").unwrap_or_else(Raw::empty);
        let mut room = tree_room(principal, meta.as_str()).await?;
        let meta: RequestMetaObject = meta.read().unwrap_or_default();
        room.end_parsing();
        let (id, client) = (self.id.clone(), self.client.clone());
        Ok((ExtensionRequest { principal: principal.clone(), id, meta, client }, room))
    }

    /// Reserves room for `bytes` more, until the request has ended and its answer was sent. Returns
    /// true if there was room.
    pub(super) fn take(&self, bytes: usize) -> bool {
        self.resources.as_ref().is_none_or(|held| held.take(bytes))
    }

    /// Reads a param that the method requires.
    pub(super) fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, ErrorData> {
        let param = self.params.member(name).and_then(|param| param.read());
        param.ok_or_else(|| self.invalid_params())
    }

    /// Returns the error of params that do not fit the method.
    pub(super) fn invalid_params(&self) -> ErrorData {
        ErrorData::invalid_params(format!("the params do not fit `{}`", self.method), None)
    }
}

/// Reserves room for the tree of a client's text.
pub(super) async fn tree_room(
    principal: &Principal,
    text: &str,
) -> Result<JsonReservation, ErrorData> {
    let room = JsonReservation::take(principal.tenant(), text, Instant::now() + TREE_TIME).await;
    room.ok_or_else(busy_error)
}

/// Returns the error of a request for which the server has no room now.
pub(super) fn busy_error() -> ErrorData {
    let data = json!({"code": "busy", "retry_after_ms": 1_000});
    let text = "the server holds as many bytes of requests and answers as it may; try again later";
    ErrorData::internal_error(text, Some(data))
}

/// Serializes the result to JSON.
pub(super) fn to_raw_json(result: &impl Serialize) -> Result<Answer, ErrorData> {
    serde_json::value::to_raw_value(result)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Returns the message that answers a request.
pub(super) fn message(id: RequestId, answer: Result<Answer, ErrorData>) -> Vec<u8> {
    let mut written = match answer {
        Ok(result) => {
            serde_json::to_vec(&JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result })
        }
        Err(error) => serde_json::to_vec(&JsonRpcError::new(Some(id), error)),
    };
    // Over lines, a message is one line. Line ends in valid JSON occur only between its tokens,
    // where a tool wrote them.
    for byte in written.iter_mut().flatten().filter(|byte| matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    written.unwrap_or_default()
}
