//! One request of a client, in any era and over any transport.

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
use toolcell::TreeRoom;

use super::client::Client;
use super::extension::Asked;
use super::meta::Meta;
use super::raw::Raw;
use crate::http::body::Held;
use crate::principal::Principal;

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
    /// What the request holds until it has ended and its answer was sent. `None` over lines.
    pub(super) held: Option<Arc<Held>>,
}

impl Request {
    /// Whether the request is of the era without sessions.
    pub(super) fn is_modern(&self) -> bool {
        self.client.session().is_none()
    }

    /// The params as a tree, for as long as the room is kept: large ones when it is their turn.
    ///
    /// # Errors
    /// If they do not fit, or the server holds as many trees as it may.
    pub(super) async fn tree<T: DeserializeOwned>(
        &self,
        principal: &Principal,
    ) -> Result<(T, TreeRoom), ErrorData> {
        let mut room = tree_room(principal, self.params.as_str()).await?;
        let tree = self.params.read().ok_or_else(|| self.unfit())?;
        room.is_parsed();
        Ok((tree, room))
    }

    /// What an extension learns of the request, for as long as the room is kept.
    pub(super) async fn asked(
        &self,
        principal: &Principal,
    ) -> Result<(Asked, TreeRoom), ErrorData> {
        let meta = self.params.member("_meta").unwrap_or_else(Raw::empty);
        let mut room = tree_room(principal, meta.as_str()).await?;
        let meta: RequestMetaObject = meta.read().unwrap_or_default();
        room.is_parsed();
        let (id, client) = (self.id.clone(), self.client.clone());
        Ok((Asked { principal: principal.clone(), id, meta, client }, room))
    }

    /// Takes room for so many more bytes, until the request has ended and its answer was sent.
    pub(super) fn take(&self, bytes: usize) -> bool {
        self.held.as_ref().is_none_or(|held| held.take(bytes))
    }

    /// The error of params that do not fit the method.
    pub(super) fn unfit(&self) -> ErrorData {
        ErrorData::invalid_params(format!("the params do not fit `{}`", self.method), None)
    }
}

/// Room for the tree of a text that a client sent.
pub(super) async fn tree_room(principal: &Principal, text: &str) -> Result<TreeRoom, ErrorData> {
    let room = TreeRoom::take(principal.tenant(), text, Instant::now() + TREE_TIME).await;
    room.ok_or_else(busy)
}

/// The error of a request for which the server has no room now.
pub(super) fn busy() -> ErrorData {
    let data = json!({"code": "busy", "retry_after_ms": 1_000});
    let text = "the server holds as many bytes of requests and answers as it may; try again later";
    ErrorData::internal_error(text, Some(data))
}

/// The result as JSON.
pub(super) fn written(result: &impl Serialize) -> Result<Answer, ErrorData> {
    serde_json::value::to_raw_value(result)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The message that answers a request.
pub(super) fn message(id: RequestId, answer: Result<Answer, ErrorData>) -> Vec<u8> {
    let mut written = match answer {
        Ok(result) => {
            serde_json::to_vec(&JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result })
        }
        Err(error) => serde_json::to_vec(&JsonRpcError::new(Some(id), error)),
    };
    // Over lines, a line is a message. Line ends in valid JSON stand between its tokens, as a tool
    // wrote them.
    for byte in written.iter_mut().flatten().filter(|byte| matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    written.unwrap_or_default()
}
