//! Serves MCP over lines: one message per line, on standard input and output.
//!
//! A client starts the server as a child process and writes messages to its standard input.
//! [`serve_stdio`] serves it for one principal (the authenticated sender: a key or user of a
//! tenant) until the input ends or a shutdown begins, and [`serve_lines`] over any pair of streams.
//! The output has lines of protocol and nothing else. Each request runs in a task of its own, up to
//! a limit; one task writes, so that lines are never mixed.
//!
//! A line over the limit is skipped to its end; no more of it than the limit and one read is in
//! memory, and not after it. A bad line is answered, and the next one is read. A request whose id
//! is in use is refused. After the last line the running requests are answered; if the output is
//! closed, they are stopped.
//!
//! Source: docs/threat-model.md, rows 72 and 73.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, Decoder as _};
use tokio_util::sync::CancellationToken;
use toolcell::controls::bound;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::endpoint::notified;
use crate::mcp::handler::{self, Handler, opening};
use crate::mcp::message::raw::Raw;
use crate::mcp::message::wire::{self, BadMessage, Kind, Message};
use crate::mcp::request::{self, Request};
use crate::mcp::session::{Requests, Session};
use crate::mcp::{
    McpOptions, message::meta::Meta, session::client::Client, session::outbox::Outbox,
};
use crate::service::Service;
use crate::tenants::{principal::Principal, refused::shown};

/// The hint for a client that begins with another request.
const OPENING: &str = "send `initialize` and `notifications/initialized` first, or name the revision 2026-07-28 in the \
                       `_meta` of each request";

/// The most messages that wait to be written. Above it no line is read.
const WAITING: usize = 64;
/// The byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes that are read at once.
const READ: usize = 8 << 10;
/// Time for the last answers to be written after the calls have ended.
const CLOSING: Duration = Duration::from_secs(2);

/// The reason why the client could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// The client did not begin as the protocol requires.
    #[error("the client did not begin with a request of the protocol: {0}")]
    Opening(String),
    /// The server failed.
    #[error("the server failed: {0}")]
    Failed(String),
}

/// Serves one client on standard input and output, for this principal, until the client closes
/// standard input. Nothing else may write to standard output meanwhile. When `shutdown` completes,
/// it refuses new calls, waits for the running ones for at most `drain`, cancels the remaining
/// ones, and returns when their answers are written.
///
/// # Errors
/// [`StdioError`].
///
/// # Cancel safety
/// When dropped, running calls are stopped.
pub async fn serve_stdio(
    service: Service,
    principal: Principal,
    options: McpOptions,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> Result<(), StdioError> {
    let over = CancellationToken::new();
    let (read, write) = (tokio::io::stdin(), tokio::io::stdout());
    let mut serving = pin!(serve(service.clone(), principal, options, read, write, over.clone()));
    tokio::select! {
        ended = &mut serving => return ended,
        () = async { shutdown.await; service.drain(drain).await } => over.cancel(),
    }
    tokio::time::timeout(CLOSING, serving).await.unwrap_or(Ok(()))
}

/// Serves one client over any pair of streams, until `read` ends.
///
/// # Errors
/// [`StdioError`].
///
/// # Cancel safety
/// When dropped, running calls are stopped.
pub async fn serve_lines(
    service: Service,
    principal: Principal,
    options: McpOptions,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), StdioError> {
    serve(service, principal, options, read, write, CancellationToken::new()).await
}

/// Reads no line after `over` is cancelled.
async fn serve(
    service: Service,
    principal: Principal,
    options: McpOptions,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
    over: CancellationToken,
) -> Result<(), StdioError> {
    let outbox = Arc::new(Outbox::with_kept(0));
    let (gone, written) = (CancellationToken::new(), Arc::clone(&outbox));
    let mut reader = outbox.read(0);
    let stopped = gone.clone();
    let writing = tokio::spawn(async move {
        let mut write = write;
        while let Some((_, line)) = reader.next().await {
            if let Err(error) = write_line(&mut write, &line).await {
                tracing::info!(%error, "the client reads nothing more");
                written.end();
                stopped.cancel();
                return;
            }
        }
    });
    let most = options.line;
    let mut lines = Lines::new(read, most);
    let questions = handler::question_places(&options);
    let mut server = Server {
        handler: Handler { service, principal, options: Arc::new(options), questions },
        outbox: Arc::clone(&outbox),
        session: None,
        requests: Arc::default(),
        tasks: JoinSet::new(),
        closing: CancellationToken::new(),
    };
    loop {
        let line = tokio::select! {
            line = async { outbox.has_room(WAITING).await; lines.next().await } => line,
            () = over.cancelled() => break,
            () = gone.cancelled() => break,
        };
        match line {
            Ok(Some(line)) => {
                let Some(taken) = gone.run_until_cancelled(server.take(&line)).await else { break };
                if let Err(bad) = taken {
                    outbox.send(bad.to_json());
                }
            }
            Err(AnyDelimiterCodecError::MaxChunkLengthExceeded) => {
                let text = format!("the line is longer than {most} bytes");
                outbox.send(BadMessage::request(None, text).to_json());
            }
            Ok(None) => break,
            Err(AnyDelimiterCodecError::Io(error)) => {
                tracing::warn!(%error, "standard input failed");
                break;
            }
        }
    }
    // Ends requests for changes and open questions, which need the client. The other requests run
    // to their end.
    server.closing.cancel();
    tokio::select! {
        () = async { while server.tasks.join_next().await.is_some() {} } => {}
        () = gone.cancelled() => server.tasks.shutdown().await,
    }
    outbox.end();
    let _ = writing.await;
    Ok(())
}

async fn write_line(write: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
    write.write_all(line).await?;
    write.write_all(b"\n").await?;
    write.flush().await
}

/// The state of the one client.
struct Server {
    handler: Handler,
    outbox: Arc<Outbox>,
    session: Option<Arc<Session>>,
    requests: Arc<Requests>,
    tasks: JoinSet<()>,
    /// Cancelled when no more lines are read.
    closing: CancellationToken,
}

impl Server {
    /// Handles one line.
    ///
    /// # Errors
    /// A line that is refused.
    async fn take(&mut self, line: &[u8]) -> Result<(), BadMessage> {
        while self.tasks.try_join_next().is_some() {}
        let text = line.trim_ascii_end();
        if text.is_empty() {
            return Ok(());
        }
        let Message { kind, params, meta } = wire::decode(&Bytes::copy_from_slice(text))?;
        match kind {
            Kind::Request { id, method } if method == "initialize" && meta.version.is_none() => {
                if self.session.is_some() {
                    let text = "the session is open: start the server again for another";
                    return Err(BadMessage::request(Some(id), text));
                }
                let opening = self.handler.initialize(&params);
                let (answer, capabilities) =
                    opening.map_err(|error| BadMessage { id: Some(id.clone()), error })?;
                let most_questions = self.handler.options.session_questions;
                let common = Arc::clone(&self.outbox);
                let mut session = Session::new(capabilities, common, most_questions);
                session.requests = Arc::clone(&self.requests);
                session.no_answers = self.closing.clone();
                self.session = Some(Arc::new(session));
                self.outbox.send(request::message(id, Ok(answer)));
            }
            // Answered at once: it takes no slot of the running requests.
            Kind::Request { id, method } if method == "ping" && meta.version.is_none() => {
                self.outbox.send(request::message(id, request::to_raw_json(&json!({}))));
            }
            Kind::Request { id, method } => self.begin(id, method, params, meta).await?,
            Kind::Notification { method } => {
                let session = self.session.as_deref();
                notified(&self.handler, session, &self.requests, &method, &params);
            }
            Kind::Response { id, answer } => {
                if let (Some(session), Some(id)) = (&self.session, id) {
                    session.answered(&id, answer, None);
                }
            }
        }
        Ok(())
    }

    /// Starts a request in a task of its own.
    async fn begin(
        &mut self,
        id: RequestId,
        method: String,
        params: Raw,
        meta: Meta,
    ) -> Result<(), BadMessage> {
        let session = self.session.clone().filter(|_| !meta.is_modern());
        let client = match session {
            Some(session) => Client::of_session(&session, Some(Arc::clone(&self.outbox))),
            // The protocol begins with another request.
            None if meta.version.is_none() => {
                let text = format!("the request `{}` comes before `initialize`", shown(&method));
                return Err(BadMessage::request(Some(id), text).with_hint(OPENING));
            }
            None => {
                opening::check_metadata(&meta)
                    .map_err(|error| BadMessage { id: Some(id.clone()), error })?;
                Client::alone(meta.capabilities.clone(), Some(Arc::clone(&self.outbox)))
            }
        };
        let most = self.handler.options.in_flight;
        self.requests.settled(most).await;
        // A request that only reports changes ends with the last line.
        let end = match method.as_str() {
            "subscriptions/listen" => self.closing.clone(),
            _ => CancellationToken::new(),
        };
        let is_full = self.requests.count() >= most;
        let Some(running) = self.requests.enter(&id, &end) else {
            return Err(BadMessage::request(None, "a request with this id is running"));
        };
        if is_full {
            let text = "too many requests are running; try again later";
            let error = ErrorData::new(ErrorCode(-32000), text, None);
            return Err(BadMessage { id: Some(id), error });
        }
        let span = if method == "tools/call" { call_span(&meta) } else { Span::none() };
        let request = Request {
            id,
            method,
            params,
            meta,
            client,
            cancelled: running.cancelled.clone(),
            resources: None,
        };
        let (handler, outbox) = (self.handler.clone(), Arc::clone(&self.outbox));
        let task = async move {
            let answer = handler.answer(&request).await;
            // Dropped before the answer is sent: a client that has the answer can reuse the id.
            drop(running);
            // A cancelled request has no answer.
            if !request.cancelled.is_cancelled() {
                outbox.send(request::message(request.id.clone(), answer));
            }
        };
        self.tasks.spawn(task.instrument(span));
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.end.cancel();
        }
    }
}

/// Creates the span of a call.
fn call_span(meta: &Meta) -> Span {
    let span = tracing::info_span!(
        parent: None,
        "request",
        mcp = "tools/call",
        tool = Empty,
        trace_id = Empty,
        parent_id = Empty,
        trace_flags = Empty,
        trace_state = Empty,
    );
    if let Some(trace) = meta.trace() {
        trace.record(&span);
    }
    span
}

/// Reads lines of bounded length.
struct Lines<R> {
    read: R,
    buffer: BytesMut,
    codec: AnyDelimiterCodec,
    /// True after the first line was read.
    has_begun: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(read: R, most: usize) -> Self {
        let most = bound!(LineBytes, most);
        let codec = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), most);
        Self { read, buffer: BytesMut::new(), codec, has_begun: false }
    }

    /// Returns the next line, or `None` at the end. The last line may have no line end. A line over
    /// the limit is reported as soon as the limit is exceeded, and its rest is skipped. The byte
    /// order mark that some programs write first is left out.
    ///
    /// # Cancel safety
    /// Cancel safe: the bytes that were read are kept.
    async fn next(&mut self) -> Result<Option<Bytes>, AnyDelimiterCodecError> {
        let line = loop {
            if let Some(line) = self.codec.decode(&mut self.buffer)? {
                break Some(line);
            }
            if self.buffer.is_empty() {
                // The memory of a long line is not kept after it.
                self.buffer = BytesMut::new();
            }
            self.buffer.reserve(READ);
            // Limited, because the buffer can have more room than it reserved.
            if self.read.read_buf(&mut (&mut self.buffer).limit(READ)).await? == 0 {
                break self.codec.decode_eof(&mut self.buffer)?;
            }
        };
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        Ok(line.map(|line| match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if is_first => line.slice_ref(rest),
            Some(_) | None => line,
        }))
    }
}
