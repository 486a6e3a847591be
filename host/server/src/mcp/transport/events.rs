//! Responses of MCP over HTTP: JSON, and streams of server-sent events.
//!
//! The endpoint calls it with an answer or the messages of a stream, and gets the HTTP response.
//! Events of a session have ids, so that a client can resume a stream after the last event that it
//! saw. An idle stream gets a comment every 15 seconds, so that proxies keep it open. In the era
//! without sessions (revision 2026-07-28) some errors have an HTTP status of their own.
//!
//! A [`DetachedRequest`] is a running request without a session: if its response is dropped because
//! the client has gone, it is cancelled, and runs on in the background for its grace period, to end
//! by itself.

use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use futures_util::future::{BoxFuture, Fuse, FusedFuture as _};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::http::run_routes::sse;
use crate::mcp::request::{self, Answer};
use crate::mcp::session::outbox::{Outbox, Reader};

/// The time after which a disconnected client resumes its stream.
const RECONNECT: Duration = Duration::from_secs(3);

/// Returns an answer as JSON.
pub(super) fn json(status: StatusCode, message: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], message).into_response()
}

/// Returns the answer to a request of the era without sessions, as JSON.
pub(super) fn json_response(id: RequestId, answer: Result<Answer, ErrorData>) -> Response {
    let status = answer.as_ref().err().map_or(StatusCode::OK, status);
    let is_busy = status == StatusCode::SERVICE_UNAVAILABLE;
    let mut response = json(status, request::message(id, answer));
    if is_busy {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(1));
    }
    response
}

/// Returns the status of an error in the era without sessions.
fn status(error: &ErrorData) -> StatusCode {
    let is_busy = error.data.as_ref().is_some_and(|data| data["code"] == "busy");
    match error.code {
        _ if is_busy => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// Streams the events of a session. `number` is the stream's, and `first` the number of its next
/// message.
pub(super) fn of_session(number: Option<u64>, first: u64, reader: Reader) -> Response {
    let id = move |event: u64| {
        number.map_or_else(|| event.to_string(), |number| format!("{event}/{number}"))
    };
    let priming = Event::default().id(id(first)).retry(RECONNECT).data("");
    let messages = stream::unfold(reader, move |mut reader| async move {
        let (at, text) = reader.next().await?;
        Some((event(&text).id(id(at + 1)), reader))
    });
    sse(stream::once(std::future::ready(priming)).chain(messages))
}

/// Streams one message, which is not an event of a session.
pub(super) fn single_message(message: &[u8]) -> Response {
    sse(stream::once(std::future::ready(event(message))))
}

/// Streams the messages about a request of the era without sessions, then its answer.
pub(super) fn of_request(id: RequestId, lasting: DetachedRequest, outbox: Arc<Outbox>) -> Response {
    let start = (outbox.read(0), outbox, id, lasting);
    sse(stream::unfold(start, async |(mut reader, outbox, id, mut lasting)| {
        loop {
            tokio::select! {
                biased;
                message = reader.next() => {
                    let (_, text) = message?;
                    return Some((event(&text), (reader, outbox, id, lasting)));
                }
                answer = &mut lasting.running => {
                    outbox.send(request::message(id.clone(), answer));
                    outbox.end();
                }
            }
        }
    }))
}

fn event(text: &[u8]) -> Event {
    Event::default().data(std::str::from_utf8(text).unwrap_or_default())
}

/// A request that is cancelled when it is dropped, and still runs to its end.
pub(super) struct DetachedRequest {
    /// Pending after the answer.
    pub(super) running: Fuse<BoxFuture<'static, Result<Answer, ErrorData>>>,
    cancelled: CancellationToken,
}

impl DetachedRequest {
    /// `cancelled` is the token that cancels it.
    pub(super) fn new(
        running: impl Future<Output = Result<Answer, ErrorData>> + Send + 'static,
        cancelled: CancellationToken,
    ) -> Self {
        Self { running: running.boxed().fuse(), cancelled }
    }
}

impl Drop for DetachedRequest {
    fn drop(&mut self) {
        if let (false, Ok(runtime)) = (self.running.is_terminated(), Handle::try_current()) {
            self.cancelled.cancel();
            let running = std::mem::replace(&mut self.running, Fuse::terminated());
            drop(runtime.spawn(running));
        }
    }
}
