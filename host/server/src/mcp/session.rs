//! One session: the client's capabilities, its running requests, and its open questions.
//!
//! A transport creates a [`Session`] when a client opens one, and asks [`Requests::enter`] for each
//! request. That returns a [`Running`], or nothing if a request with this id runs already. An id is
//! in use until the task of its request has ended, even if its connection ended before.
//! [`Session::ask`] opens a question of the server to the client and returns a [`PendingQuestion`],
//! to which the client's answer is delivered. The number of open questions is bounded.
//!
//! A session counts as idle when no request runs and the client listens to no stream, or when every
//! running request waits for an answer of the client. Not here: the table of all sessions over
//! HTTP, in `mcp/transport/sessions.rs`.
#![expect(deprecated, reason = "clients of the session era use the log of the protocol")]

pub(super) mod client;
pub(super) mod outbox;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rmcp::model::{LoggingLevel, RequestId};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolcell::Sealer;
use toolcell::controls::{bound, enforced};

use super::message::raw::Raw;
use crate::http::body::RequestResources;
use crate::service::running::until;
use outbox::Outbox;

/// The running requests by their ids.
#[derive(Debug, Default)]
pub(super) struct Requests {
    running: Mutex<HashMap<RequestId, CancellationToken>>,
    ended: Notify,
}

/// A running request, until its task drops this.
#[derive(Debug)]
pub(super) struct Running {
    requests: Arc<Requests>,
    id: RequestId,
    /// Cancelled when the client cancels the request, or its session ends.
    pub(super) cancelled: CancellationToken,
}

impl Requests {
    /// Adds a request. `None`: a request with this id is running.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: &RequestId,
        end: &CancellationToken,
    ) -> Option<Running> {
        let mut running = self.running.lock();
        if running.contains_key(id) {
            return None;
        }
        let cancelled = end.child_token();
        running.insert(id.clone(), cancelled.clone());
        Some(Running { requests: Arc::clone(self), id: id.clone(), cancelled })
    }

    /// Cancels a request, if it is running.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(cancelled) = self.running.lock().get(id) {
            cancelled.cancel();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.running.lock().len()
    }

    /// Returns when fewer than `most` are running, or none of them was cancelled. Cancelled ones
    /// end soon.
    pub(super) async fn settled(&self, most: usize) {
        let look = || {
            let running = self.running.lock();
            let is_settled =
                running.len() < most || !running.values().any(CancellationToken::is_cancelled);
            is_settled.then_some(())
        };
        until(&self.ended, look).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.requests.running.lock().remove(&self.id);
        self.requests.ended.notify_waiters();
    }
}

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) capabilities: Raw,
    /// The least severe log level that the client gets.
    pub(super) level: Mutex<LoggingLevel>,
    pub(super) requests: Arc<Requests>,
    /// Messages that belong to no request.
    pub(super) common: Arc<Outbox>,
    /// Cancelled when the session ends.
    pub(super) end: CancellationToken,
    /// Cancelled when no answer of the client can arrive any more.
    pub(super) no_answers: CancellationToken,
    /// True if the client is notified of changes.
    is_notified: AtomicBool,
    open: Mutex<OpenQuestions>,
    most_open: usize,
    /// The number of streams that the client opened besides those of its requests.
    listening: AtomicUsize,
    /// The time when the client last sent something, or a request or a stream ended.
    last: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct OpenQuestions {
    next: i64,
    questions: HashMap<RequestId, oneshot::Sender<Reply>>,
}

/// The client's answer, and the resources that the request with the answer holds.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: Result<Raw, Raw>,
    _held: Option<RequestResources>,
}

/// A pending question, until this is dropped.
#[derive(Debug)]
pub(super) struct PendingQuestion {
    session: Arc<Session>,
    pub(super) id: RequestId,
    answer: oneshot::Receiver<Reply>,
}

/// An open stream, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening(Arc<Session>);

impl Session {
    /// Creates a session with at most `most_open` open questions.
    pub(super) fn new(capabilities: Raw, common: Arc<Outbox>, most_open: usize) -> Self {
        Self {
            capabilities,
            level: Mutex::new(LoggingLevel::Info),
            requests: Arc::default(),
            common,
            end: CancellationToken::new(),
            no_answers: CancellationToken::new(),
            is_notified: AtomicBool::new(false),
            open: Mutex::default(),
            most_open: bound!(OpenQuestions, most_open),
            listening: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
        }
    }

    /// Returns true at the first call: the client then starts to get notifications of changes.
    pub(super) fn start_notifications(&self) -> bool {
        !self.is_notified.swap(true, Ordering::AcqRel)
    }

    /// Opens a question. `None`: the limit of open questions is reached.
    pub(super) fn ask(self: &Arc<Self>) -> Option<PendingQuestion> {
        let (sender, answer) = oneshot::channel();
        let mut open = self.open.lock();
        if open.questions.len() >= self.most_open {
            return None;
        }
        let id = RequestId::Number(open.next);
        open.next += 1;
        open.questions.insert(id.clone(), sender);
        Some(PendingQuestion { session: Arc::clone(self), id, answer })
    }

    /// Passes the client's answer to the request that asked. Other answers are ignored.
    pub(super) fn answered(
        &self,
        id: &RequestId,
        answer: Result<Raw, Raw>,
        held: Option<RequestResources>,
    ) {
        let question = self.open.lock().questions.remove(id);
        if let Some(question) = question {
            // Fails only if the request has ended.
            let _ = question.send(Reply { answer, _held: held });
        }
    }

    /// Records that the client sent something.
    pub(super) fn mark_used(&self) {
        *self.last.lock() = Instant::now();
    }

    /// Counts one more stream of the client.
    pub(super) fn listen(self: &Arc<Self>) -> Listening {
        self.listening.fetch_add(1, Ordering::AcqRel);
        Listening(Arc::clone(self))
    }

    /// Returns the time since which the session is idle: no request is running and the client
    /// listens to no stream, or each request waits for an answer of the client.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let waiting = if enforced!(IdleSessions) { self.open.lock().questions.len() } else { 0 };
        let is_idle = match self.requests.count() {
            0 => self.listening.load(Ordering::Acquire) == 0,
            running => running <= waiting,
        };
        is_idle.then(|| *self.last.lock())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // First, so that the client has time to connect again.
        self.0.mark_used();
        self.0.listening.fetch_sub(1, Ordering::AcqRel);
    }
}

impl PendingQuestion {
    /// Waits for the client's answer. An error says why there is none.
    pub(super) async fn reply(&mut self) -> Result<Reply, &'static str> {
        tokio::select! {
            biased;
            reply = tokio::time::timeout(Sealer::DEFAULT_LIFETIME, &mut self.answer) => {
                reply.map_err(|_| "it took too long")?.map_err(|_| "it has gone")
            }
            () = self.session.no_answers.cancelled() => Err("it sends nothing more"),
        }
    }
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        self.session.open.lock().questions.remove(&self.id);
    }
}
