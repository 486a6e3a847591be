//! Supervises a worker process: starts it, exchanges messages with it, starts the next one when it
//! dies.
//!
//! The builder of a `WorkerProcess` starts one thread that runs [`Supervisor::supervise`]. It reads
//! the child's messages and passes replies to the waiting handlers (`worker_handler`); a second
//! thread for each child writes requests. The first thread lives as long as any child, because on
//! Linux a child is killed when the thread that started it ends. A child is killed if it sends a
//! message that no valid worker sends, offers other tools than before, takes too long to start, or
//! keeps a call whose caller has left past the grace period.
//!
//! Neither thread runs code of the embedder (the program that uses this library), which may block:
//! handlers receive their messages on their own threads.

use std::io::{self, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use toolcell_contract::controls::bound;
use toolcell_contract::error::Error;
use toolcell_contract::outcome::refusal::{Fault, Refusal};
use toolcell_contract::panic_guard::guarded;

use super::WorkerProcessBuilder;
use super::request_table::{
    CallerMessage, ChildExit, FinishedRequest, Outgoing, Phase, Reply, RequestTable,
};
use super::wire::{self, BadFrame, HostMessage, OfferedTool, RequestMessage, WorkerMessage};
use crate::os::{clock, spawn};

/// Longest start of a child until it offers its tools: enough to compile a few language runtimes on
/// a busy machine.
const START: Duration = Duration::from_secs(600);
/// Messages of a child about requests that it does not have. A tool's own thread may send some for
/// a moment after the tool's answer.
const MAX_STRAYS: u64 = 10_000;

pub(super) struct Supervisor {
    settings: WorkerProcessBuilder,
    timers: &'static Handle,
    requests: Mutex<RequestTable>,
    /// Notified when the request table changes.
    turn: Condvar,
    child: Mutex<Option<Running>>,
}

struct Running {
    number: u64,
    child: Child,
}

/// Closes the worker process when the last handle to it is dropped.
pub(super) struct KillOnDrop(pub(super) Arc<Supervisor>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The reason why a child ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("it could not be started: {0}")]
    NotStarted(io::Error),
    #[error("its output cannot be read as messages of this version ({0})")]
    BadFrame(BadFrame),
    #[error("it sent a message at the wrong time")]
    OutOfTurn,
    #[error("it sent too many messages about calls that it does not have")]
    Strays,
    #[error("it offers other tools than the worker process before it")]
    OtherTools,
    #[error("it refused: {0}")]
    Refused(String),
    #[error("it ended ({0})")]
    Ended(String),
}

impl From<End> for Error {
    fn from(end: End) -> Self {
        match end {
            End::Refused(words) => Self::worker().with_source(io::Error::other(words)),
            End::NotStarted(error) => {
                Self::engine("the worker process cannot be started").with_source(error)
            }
            End::BadFrame(_) | End::OutOfTurn | End::Strays | End::OtherTools | End::Ended(_) => {
                let early = "the worker process ended before it had loaded its tools";
                Self::engine(format!("{early}: {end}"))
            }
        }
    }
}

impl Supervisor {
    pub(super) fn new(settings: WorkerProcessBuilder, timers: &'static Handle) -> Self {
        let (requests, turn, child) = (Mutex::default(), Condvar::new(), Mutex::default());
        Self { settings, timers, requests, turn, child }
    }

    /// Locks the request table. Its changes are atomic, so a panic while it is locked leaves no
    /// partial change.
    pub(super) fn requests(&self) -> MutexGuard<'_, RequestTable> {
        self.requests.lock()
    }

    /// Notifies the threads that wait for a change of the request table.
    pub(super) fn wake(&self) {
        self.turn.notify_all();
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.lock().as_ref().map(|running| running.child.id())
    }

    /// Runs one child after the other, until the `WorkerProcess` is closed. Sends the first child's
    /// offer, or the reason why there is none, to the waiting caller.
    pub(super) fn supervise(
        self: &Arc<Self>,
        first: oneshot::Sender<Result<Vec<OfferedTool>, Error>>,
    ) {
        let (mut first, mut known) = (Some(first), None::<Vec<OfferedTool>>);
        for number in 1.. {
            let end = self.host(number, |offered| {
                if let Some(first) = first.take() {
                    known = Some(offered.clone());
                    return first.send(Ok(offered)).is_ok();
                }
                known.as_ref() == Some(&offered)
            });
            if let Some(first) = first.take() {
                let _ = first.send(Err(end.into()));
                return;
            }
            let ChildExit { ended, quarantined } = self.requests().child_exited(Instant::now());
            ended.into_iter().for_each(FinishedRequest::send);
            for tool in quarantined {
                tracing::error!(
                    tool,
                    "the worker process died too often while it ran this tool: the tool is not called again"
                );
            }
            let mut requests = self.requests();
            if let Phase::Resting(until) = requests.phase {
                let rest = until.saturating_duration_since(Instant::now());
                let is_resting =
                    |requests: &mut RequestTable| matches!(requests.phase, Phase::Resting(_));
                self.turn.wait_while_for(&mut requests, is_resting, rest);
            }
            if requests.phase == Phase::Closed {
                return;
            }
            requests.phase = Phase::Starting;
            drop(requests);
            tracing::warn!(%end, "the worker process has ended, and a new one starts");
        }
    }

    /// Runs one child from its start to its end.
    fn host(
        self: &Arc<Self>,
        number: u64,
        mut accept: impl FnMut(Vec<OfferedTool>) -> bool,
    ) -> End {
        let (mut output, input) = match self.start(number) {
            Ok(pipes) => pipes,
            Err(error) => return End::NotStarted(error),
        };
        let (mut input, mut strays) = (Some(input), 0_u64);
        let end = std::thread::scope(|scope| {
            let end = loop {
                match wire::read::<WorkerMessage>(&mut output) {
                    Ok(None) => break None,
                    Err(bad) => break Some(End::BadFrame(bad)),
                    Ok(Some(WorkerMessage::Ready(offered))) => match input.take() {
                        None => break Some(End::OutOfTurn),
                        Some(_) if !accept(offered) => break Some(End::OtherTools),
                        Some(input) => {
                            self.enter(Phase::Serving(number));
                            scope.spawn(move || self.write(input, number));
                        }
                    },
                    Ok(Some(WorkerMessage::Refused(words))) => break Some(End::Refused(words)),
                    Ok(Some(_)) if input.is_some() => break Some(End::OutOfTurn),
                    Ok(Some(news)) => {
                        strays += u64::from(!self.handle_message(news));
                        if strays > bound!(WorkerStrays, MAX_STRAYS) {
                            break Some(End::Strays);
                        }
                    }
                }
            };
            self.enter(Phase::Starting);
            self.kill(number);
            end
        });
        let status = self.child.lock().take().map(|mut running| running.child.wait());
        end.unwrap_or_else(|| End::Ended(status.map_or_else(String::new, status_text)))
    }

    /// Enters a phase, unless the `WorkerProcess` is closed.
    fn enter(&self, phase: Phase) {
        let mut requests = self.requests();
        if requests.phase != Phase::Closed {
            requests.phase = phase;
        }
        drop(requests);
        self.wake();
    }

    fn start(self: &Arc<Self>, number: u64) -> io::Result<(BufReader<ChildStdout>, ChildStdin)> {
        let mut kept = self.child.lock();
        if self.requests().phase == Phase::Closed {
            return Err(io::Error::other("the worker process is closed"));
        }
        let WorkerProcessBuilder { program, arguments, environment, grace: _ } = &self.settings;
        let mut child = spawn::worker(program).args(arguments).envs(environment).spawn()?;
        let (Some(output), Some(input)) = (child.stdout.take(), child.stdin.take()) else {
            unreachable!("both were asked for");
        };
        *kept = Some(Running { number, child });
        drop(kept);
        self.run_later(START, move |keeper| {
            if keeper.requests().phase == Phase::Starting {
                keeper.kill(number);
            }
        });
        Ok((BufReader::new(output), input))
    }

    /// Kills the child with this number, if it is still the current one.
    fn kill(&self, number: u64) {
        if let Some(running) = self.child.lock().as_mut().filter(|running| running.number == number)
        {
            // The reading thread waits for a child that has already ended.
            let _ = running.child.kill();
        }
    }

    /// Runs something after a delay, if the `WorkerProcess` still exists.
    fn run_later(self: &Arc<Self>, after: Duration, work: impl FnOnce(&Self) + Send + 'static) {
        let (keeper, at) = (Arc::downgrade(self), Instant::now().checked_add(after));
        self.timers.spawn(async move {
            clock::until_deadline(at).await;
            if let Some(keeper) = keeper.upgrade() {
                work(&keeper);
            }
        });
    }

    /// Handles a caller that no longer waits for its request. A child that has the request is told
    /// to cancel it, and is killed if it does not do so within the grace period.
    pub(super) fn abandon(self: &Arc<Self>, question: u64) {
        let (was_sent, caller) = self.requests().remove_caller(question);
        drop(caller);
        if !was_sent {
            return;
        }
        self.wake();
        self.run_later(bound!(WorkerGrace, self.settings.grace), move |keeper| {
            let requests = keeper.requests();
            let (is_open, phase) = (requests.is_open(question), requests.phase);
            drop(requests);
            if let Phase::Serving(number) = phase
                && is_open
            {
                tracing::warn!("the worker process did not end a call in time, and is killed");
                keeper.kill(number);
            }
        });
    }

    /// Closes the worker process. The child's input ends, so that the child can end by itself.
    /// Kills it after the grace period.
    fn close(self: &Arc<Self>) {
        let before = std::mem::replace(&mut self.requests().phase, Phase::Closed);
        self.wake();
        let number = self.child.lock().as_ref().map(|running| running.number);
        let Some(number) = number else { return };
        if !matches!(before, Phase::Serving(_)) {
            return self.kill(number);
        }
        // The timer keeps the supervisor alive until then, unlike other timers, because no other
        // code would end the child.
        let (keeper, at) = (Arc::clone(self), Instant::now().checked_add(self.settings.grace));
        self.timers.spawn(async move {
            clock::until_deadline(at).await;
            keeper.kill(number);
        });
    }

    /// Writes messages to the child as long as it serves. Its input ends with this function.
    fn write(&self, mut input: ChildStdin, number: u64) {
        while let Some(outgoing) = self.next(number) {
            let order = match outgoing {
                HostMessage::Ask((question, what, invocation)) => {
                    let asked = RequestMessage::of(question, what, &invocation);
                    // The caller may have left, so this may be the last reference.
                    let _ = guarded(|| drop(invocation));
                    HostMessage::Ask(Box::new(asked))
                }
                HostMessage::Abort(question) => HostMessage::Abort(question),
                HostMessage::Cancel(question) => HostMessage::Cancel(question),
            };
            match (wire::frame(&order), order) {
                (Ok(frame), _) => {
                    if wire::write(&mut input, &frame).is_err() {
                        return self.kill(number);
                    }
                }
                (Err(bad), HostMessage::Ask(asked)) => {
                    let refusal = Refusal::InvalidArguments(vec![Fault::new("", bad.to_string())]);
                    self.end(asked.number, Reply::refused(refusal));
                }
                (Err(_), HostMessage::Abort(_) | HostMessage::Cancel(_)) => {}
            }
        }
    }

    /// Waits for the next message to the child. Returns `None` when the child no longer serves.
    fn next(&self, number: u64) -> Option<Outgoing> {
        let mut requests = self.requests();
        while requests.phase == Phase::Serving(number) {
            if let Some(outgoing) = requests.outgoing() {
                return Some(outgoing);
            }
            self.turn.wait(&mut requests);
        }
        None
    }

    fn end(&self, question: u64, reply: Reply) {
        let ended = self.requests().end(question, reply);
        ended.send();
    }

    /// Handles a message of the child about a request. Returns false for a request that the child
    /// does not have.
    fn handle_message(&self, news: WorkerMessage) -> bool {
        let question = match &news {
            WorkerMessage::Started(question)
            | WorkerMessage::Said(question, _)
            | WorkerMessage::Done(question, _)
            | WorkerMessage::Gone(question) => question,
            WorkerMessage::Ready(_) | WorkerMessage::Refused(_) => return false,
        };
        if !self.requests().is_sent(*question) {
            return false;
        }
        match news {
            WorkerMessage::Started(question) => {
                let caller = self.requests().begun(question);
                send(caller, CallerMessage::Started);
            }
            WorkerMessage::Said(question, said) => {
                let caller = self.requests().about(question, &said);
                send(caller, CallerMessage::Notification(said));
            }
            WorkerMessage::Done(question, answer) => self.end(question, Reply::Answer(answer)),
            WorkerMessage::Gone(question) => self.end(question, Reply::died()),
            WorkerMessage::Ready(_) | WorkerMessage::Refused(_) => {}
        }
        true
    }
}

/// Sends a message to a caller, which may have left.
fn send(caller: Option<UnboundedSender<CallerMessage>>, message: CallerMessage) {
    let _ = guarded(|| caller.map(|caller| caller.send(message).is_ok()));
}

fn status_text(status: io::Result<ExitStatus>) -> String {
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}
