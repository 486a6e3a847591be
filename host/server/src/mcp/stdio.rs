//! MCP over lines: one message a line, on standard input and output.
//!
//! In: lines. Out: lines of protocol, and nothing else.
//! Invariants: a line that is too long is skipped to its end and costs no memory beyond the limit; a bad line is answered and the
//! next one is read; a request whose id is in use is refused; one task writes, so that no line is torn.
//! Source: docs/threat-model.md, rows 72 and 73.

use std::collections::HashSet;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolcell::defence::{Defence, stands};

use super::McpOptions;
use super::handler::Handler;
use super::wire::{self, Bad, Kind};
use crate::principal::Principal;
use crate::service::Service;

/// How a client that begins with another request opens the conversation.
const OPENING: &str = "send `initialize` and `notifications/initialized` first, or name the revision 2026-07-28 in the \
                       `_meta` of each request";

/// Lines that wait to be written.
const WAITING: usize = 64;
/// Time for the last answers to be written, once the calls have ended.
const CLOSING: Duration = Duration::from_secs(2);

/// Why the client could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// The client did not open the conversation as the protocol says.
    #[error("the client did not begin with a request of the protocol: {0}")]
    Opening(String),
    /// The server failed.
    #[error("the server failed: {0}")]
    Failed(String),
}

/// Serves one client on standard input and output, for this principal, until the client closes standard input. Nothing else
/// may write to standard output meanwhile.
///
/// # Errors
/// [`StdioError`].
///
/// # Cancel safety
/// When dropped, running calls are stopped.
pub async fn serve_stdio(service: Service, principal: Principal, options: McpOptions) -> Result<(), StdioError> {
    serve_stdio_until(service, principal, options, pending(), Duration::ZERO).await
}

/// The same, until `shutdown` ends. Then it refuses new calls, waits for the running ones for as long as `drain`, cancels those
/// that are left, and returns when their answers are written.
///
/// # Errors
/// [`StdioError`].
///
/// # Cancel safety
/// When dropped, running calls are stopped.
pub async fn serve_stdio_until(
    service: Service,
    principal: Principal,
    options: McpOptions,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> Result<(), StdioError> {
    let (over, read, write) = (CancellationToken::new(), tokio::io::stdin(), tokio::io::stdout());
    let lines = Lines::new(read, write, &options, over.clone());
    let mut serving =
        pin!(serve(Handler::new(service.clone(), principal, Arc::new(options), CancellationToken::new()), lines));
    tokio::select! {
        ended = &mut serving => return ended,
        () = async { shutdown.await; service.drain(drain).await } => over.cancel(),
    }
    tokio::time::timeout(CLOSING, serving).await.unwrap_or(Ok(()))
}

/// Serves one client for any pair of streams, until `read` ends.
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
    let lines = Lines::new(read, write, &options, CancellationToken::new());
    serve(Handler::new(service, principal, Arc::new(options), CancellationToken::new()), lines).await
}

async fn serve(handler: Handler, lines: Lines<impl AsyncRead + Send + Unpin + 'static>) -> Result<(), StdioError> {
    let running = match serve_server(handler, lines).await {
        Ok(running) => running,
        // The client left before it asked for anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StdioError::Opening(error.to_string())),
    };
    running.waiting().await.map(drop).map_err(|error| StdioError::Failed(error.to_string()))
}

/// A line to write, and where its end is reported.
type Written = (Vec<u8>, Option<oneshot::Sender<io::Result<()>>>);

struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// Whether the rest of a line that is too long is being skipped.
    is_skipping: bool,
    most: usize,
    write: Option<mpsc::Sender<Written>>,
    writing: Option<JoinHandle<()>>,
    /// The answer to a bad line, until it is handed on.
    reply: Option<Vec<u8>>,
    /// Requests whose answers have not been sent.
    pending: Arc<Mutex<HashSet<RequestId>>>,
    most_pending: usize,
    /// Whether the first request has come. The SDK takes nothing else before it.
    is_open: bool,
    /// Whether a session was opened.
    is_session: bool,
    /// That no line is read any more.
    over: CancellationToken,
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    fn new(
        read: R,
        write: impl AsyncWrite + Send + Unpin + 'static,
        options: &McpOptions,
        over: CancellationToken,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            is_skipping: false,
            most: options.line,
            write: Some(sender),
            writing: Some(tokio::spawn(write_lines(write, receiver))),
            reply: None,
            pending: Arc::default(),
            most_pending: options.in_flight,
            is_open: false,
            is_session: false,
            over,
        }
    }

    /// Reads one line into `line`. Returns whether there was one; one that is too long is skipped, and answered.
    ///
    /// # Cancel safety
    /// What was read stays.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                // The last line can come without its end.
                let is_last = !self.line.is_empty() && !self.is_skipping;
                return Ok(is_last);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(available.len(), |end| end + 1);
            let fits = self.line.len() + end.unwrap_or(count) <= self.most || !stands(Defence::LineBytes);
            if !self.is_skipping && fits {
                self.line.extend_from_slice(&available[..count]);
            } else if !self.is_skipping {
                self.line = Vec::new();
                self.is_skipping = true;
                let text = format!("the line is longer than {} bytes", self.most);
                self.reply = Some(Bad::request(None, text).to_json());
            }
            self.read.consume(count);
            if end.is_some() {
                self.is_skipping = false;
                return Ok(true);
            }
            if self.reply.is_some() {
                self.send_reply().await;
            }
        }
    }

    /// Hands the reply on.
    ///
    /// # Cancel safety
    /// It is kept until there is room for it.
    async fn send_reply(&mut self) {
        let Some(write) = &self.write else { return };
        if self.reply.is_some()
            && let Ok(room) = write.reserve().await
            && let Some(reply) = self.reply.take()
        {
            room.send((reply, None));
        }
    }

    /// The message of the line. `None`: it is answered here, or it is ignored.
    fn take_message(&mut self) -> Option<ClientJsonRpcMessage> {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii_end();
        if text.is_empty() {
            return None;
        }
        match self.decoded(text) {
            Ok(message) => message,
            Err(bad) => {
                self.reply = Some(bad.to_json());
                None
            }
        }
    }

    fn decoded(&mut self, text: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Bad> {
        let message = wire::decode(text)?;
        if let Kind::Request { id, method } = &message.kind {
            if method == "initialize" && message.version.is_none() && std::mem::replace(&mut self.is_session, true) {
                return Err(Bad::request(Some(id.clone()), "the session is open: start the server again for another"));
            }
            // The SDK ends the conversation when its first request is another one.
            if !self.is_session && message.version.is_none() && !["initialize", "ping"].contains(&&**method) {
                let text = format!("the request `{}` comes before `initialize`", wire::shown(method));
                return Err(Bad::request(Some(id.clone()), text).with_hint(OPENING));
            }
            let mut pending = self.pending.lock();
            if pending.contains(id) {
                return Err(Bad::request(None, "a request with this id is running"));
            }
            if pending.len() >= self.most_pending {
                let error = ErrorData::new(ErrorCode(-32000), "too many requests are running; try again later", None);
                return Err(Bad { id: Some(id.clone()), error });
            }
            pending.insert(id.clone());
            self.is_open = true;
        } else if !self.is_open {
            return Ok(None);
        }
        let id = message.id();
        let decoded = serde_json::from_value::<ClientJsonRpcMessage>(message.value).map_err(|_| {
            if let Some(id) = &id {
                self.pending.lock().remove(id);
            }
            Bad::request(id, "the message does not fit the protocol")
        })?;
        if let JsonRpcMessage::Notification(notification) = &decoded
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // It gets no answer.
            self.pending.lock().remove(id);
        }
        Ok(Some(decoded))
    }
}

async fn write_lines(mut write: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Written>) {
    while let Some((mut line, report)) = lines.recv().await {
        line.push(b'\n');
        let written = async {
            write.write_all(&line).await?;
            write.flush().await
        };
        let written = written.await;
        let is_over = written.is_err();
        if let Some(report) = report {
            let _ = report.send(written);
        }
        if is_over {
            return;
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let answered = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = answered {
            self.pending.lock().remove(id);
        }
        let (write, line) = (self.write.clone(), serde_json::to_vec(&message));
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let (report, reported) = oneshot::channel();
            let write = write.ok_or_else(closed)?;
            write.send((line?, Some(report))).await.map_err(|_| closed())?;
            reported.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.send_reply().await;
            let over = self.over.clone();
            let read = tokio::select! {
                () = over.cancelled() => return None,
                read = self.read_line() => read,
            };
            match read {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    tracing::warn!(%error, "standard input failed");
                    return None;
                }
            }
            if let Some(message) = self.take_message() {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.write = None;
        if let Some(writing) = self.writing.take() {
            let _ = writing.await;
        }
        Ok(())
    }
}
