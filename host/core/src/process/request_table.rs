//! The requests to a worker process: pending, sent and finished, with the decision about resending.
//!
//! The supervisor and the handlers, one for each tool of the worker, share one [`RequestTable`]
//! under a lock. A handler adds a request and gets a channel of replies; the writing thread takes
//! the next message to the child; answers and the child's death end requests. A request is sent
//! once, and a second time only if its worker died and its tool may be called twice. The table also
//! bounds the messages about each request, computes the growing pause before the next start, and
//! counts deaths by tool: after three, the tool is quarantined, that is, refused.
//!
//! It is pure: the caller passes the time. No code of an embedder (the program that uses this
//! library) runs under the lock, and no value of one is dropped under it; such values are returned
//! to code that has released it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolcell_contract::call::CallResult;
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::event::LogSource;
use toolcell_contract::outcome::refusal::{RETRY_AFTER, Refusal};
use toolcell_contract::outcome::tool_error::{Exit, ToolError};
use toolcell_contract::panic_guard::guarded;

use super::wire::{Answer, HostMessage, Notification, RequestKind};
use crate::tool::handler::Invocation;

/// Pending requests; further ones are refused. The same number may wait for a cell.
const MAX_OPEN: usize = 10_000;
/// Pause after a child that died right after another one. It doubles with each further death.
const FIRST_REST: Duration = Duration::from_millis(100);
/// Longest pause. A problem that lasts this long is unlikely to end sooner.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// Deaths during calls of one tool after which the tool is quarantined. One may be chance, and a
/// tool that merely runs while others kill the worker is answered in between.
const DEATHS: u32 = 3;
/// A pause of at least this length refuses calls instead of making them wait.
const REFUSING: Duration = Duration::from_secs(1);
/// Bytes of progress, or of the host's messages, about one call. The rest is dropped. No legitimate
/// tool sends so much.
const MAX_MESSAGE_BYTES: u64 = 8 << 20;
/// Charge of such a message beside its text, in bytes: about the memory that it takes until it is
/// delivered.
const MESSAGE_COST: u64 = 64;
/// Charge of a log line of the tool beside its text, in bytes: the line's charge against the log
/// limit, so that all lines that the child accepted are passed on.
const LINE_COST: u64 = 1;

/// A message to the caller of a request: any number of `Started` and `Notification`, and one `End`.
pub(super) enum CallerMessage {
    Started,
    Notification(Notification),
    End(Reply),
}

/// The end of a request.
pub(super) enum Reply {
    Answer(Answer),
    /// The child gave no answer: this result replaces it.
    Lost(CallResult),
}

/// The error of a request whose worker died.
pub(super) const DIED: ToolError = ToolError::HandlerExit(Exit::ProcessEnded);

impl Reply {
    /// The result of a request whose worker died.
    pub(super) fn died() -> Self {
        Self::Lost(CallResult::ToolError(DIED))
    }

    /// The result of a request that is refused.
    pub(super) fn refused(refusal: Refusal) -> Self {
        Self::Lost(CallResult::Refusal(refusal))
    }
}

/// Selects if a request may be sent a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resend {
    Never,
    Once,
}

/// The state of the worker process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// A child is starting; requests wait for it.
    #[default]
    Starting,
    /// The child with this number answers.
    Serving(u64),
    /// There is no child until this time.
    Resting(Instant),
    /// There will be no further child.
    Closed,
}

/// A pending request.
struct OpenRequest {
    tool: String,
    kind: RequestKind,
    resend: Resend,
    /// True if it was sent to the child.
    sent: bool,
    /// True if the child reported that it has begun.
    begun: bool,
    /// Bytes of messages about it, by [`Kind`].
    message_bytes: [u64; 3],
    /// `None` if the caller no longer waits.
    caller: Option<RequestCaller>,
}

/// The caller's side of a request. Holds the embedder's values, such as its event sink, so it must
/// not be dropped while the request table is locked.
pub(super) struct RequestCaller {
    invocation: Arc<Invocation>,
    replies: UnboundedSender<CallerMessage>,
}

/// A finished request, removed from the table.
#[must_use = "the caller waits for this reply"]
pub(super) struct FinishedRequest(Option<(RequestCaller, Reply)>);

impl FinishedRequest {
    /// Sends the result to the caller. Do not call it under the lock of the request table: it wakes
    /// and drops the embedder's values.
    pub(super) fn send(self) {
        // A caller that has left in the meantime does not need the result.
        let _ = guarded(|| {
            self.0.map(|(asker, reply)| asker.replies.send(CallerMessage::End(reply)).is_ok())
        });
    }
}

/// Kinds of messages with a limit each, so that one cannot use up another's.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Progress,
    /// Log lines of the tool, within its log limit.
    Log,
    /// The host's messages about the call.
    Host,
}

/// A message to the child, taken from the queue.
pub(super) type Outgoing = HostMessage<(u64, RequestKind, Arc<Invocation>)>;

#[derive(Default)]
pub(super) struct RequestTable {
    pub(super) phase: Phase,
    open: HashMap<u64, OpenRequest>,
    queue: VecDeque<HostMessage<u64>>,
    last: u64,
    /// Children that died since a child last answered.
    deaths: u32,
    /// For each tool, children that died during a call of it since it was last answered.
    deaths_by_tool: HashMap<String, u32>,
}

/// The result of a child's death, to be handled after the request table is unlocked.
#[derive(Default)]
pub(super) struct ChildExit {
    pub(super) ended: Vec<FinishedRequest>,
    /// Tools that are quarantined from now on.
    pub(super) quarantined: Vec<String>,
}

impl RequestTable {
    /// Adds a request.
    pub(super) fn ask(
        &mut self,
        kind: RequestKind,
        invocation: Arc<Invocation>,
        resend: Resend,
        now: Instant,
    ) -> Result<(u64, UnboundedReceiver<CallerMessage>), Refusal> {
        let tool = invocation.call.name.clone();
        if self.is_quarantined(&tool) {
            return Err(Refusal::Quarantined);
        }
        if let Phase::Resting(until) = self.phase
            && until.saturating_duration_since(now) >= REFUSING
        {
            return Err(Refusal::Restarting { retry_after: until - now });
        }
        if self.open.len() >= MAX_OPEN {
            return Err(Refusal::overloaded());
        }
        self.last += 1;
        let (sender, replies) = unbounded_channel();
        let caller = Some(RequestCaller { invocation, replies: sender });
        let (sent, begun, message_bytes) = (false, false, [0; 3]);
        let open = OpenRequest { tool, kind, resend, sent, begun, message_bytes, caller };
        self.open.insert(self.last, open);
        self.queue.push_back(HostMessage::Ask(self.last));
        Ok((self.last, replies))
    }

    /// Queues an abort of a request, on behalf of its caller.
    pub(super) fn abort(&mut self, number: u64) {
        if self.open.contains_key(&number) {
            self.queue.push_back(HostMessage::Abort(number));
        }
    }

    /// Removes the caller of a request. Returns true if the child has the request and must cancel
    /// it, and returns the caller's side.
    pub(super) fn remove_caller(&mut self, number: u64) -> (bool, Option<RequestCaller>) {
        let Some(open) = self.open.get_mut(&number) else { return (false, None) };
        if open.sent {
            self.queue.push_back(HostMessage::Cancel(number));
            (true, open.caller.take())
        } else {
            (false, self.open.remove(&number).and_then(|open| open.caller))
        }
    }

    /// Refuses a request that was not sent yet.
    pub(super) fn refuse_waiting(&mut self, number: u64) -> Option<FinishedRequest> {
        self.open.get(&number).filter(|open| !open.sent)?;
        let refusal = match self.phase {
            Phase::Serving(_) => Refusal::overloaded(),
            Phase::Starting | Phase::Resting(_) | Phase::Closed => {
                Refusal::Restarting { retry_after: RETRY_AFTER }
            }
        };
        Some(self.end(number, Reply::refused(refusal)))
    }

    /// Returns true if the request has not ended.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// Returns true if the child has the request. Messages about other requests are ignored.
    pub(super) fn is_sent(&self, number: u64) -> bool {
        self.open.get(&number).is_some_and(|open| open.sent || !enforced!(WorkerAnswers))
    }

    fn is_quarantined(&self, tool: &str) -> bool {
        self.deaths_by_tool.get(tool).is_some_and(|deaths| *deaths >= bound!(WorkerDeaths, DEATHS))
    }

    /// Returns the next message to the child. Marks a request as sent.
    pub(super) fn outgoing(&mut self) -> Option<Outgoing> {
        while let Some(line) = self.queue.pop_front() {
            let (HostMessage::Ask(number)
            | HostMessage::Abort(number)
            | HostMessage::Cancel(number)) = line;
            let Some(open) = self.open.get_mut(&number) else { continue };
            return Some(match line {
                HostMessage::Abort(_) => HostMessage::Abort(number),
                HostMessage::Cancel(_) => HostMessage::Cancel(number),
                HostMessage::Ask(_) => {
                    let Some(asker) = &open.caller else { continue };
                    open.sent = true;
                    HostMessage::Ask((number, open.kind, Arc::clone(&asker.invocation)))
                }
            });
        }
        None
    }

    /// Marks a request as begun. Returns its reply channel, or `None` if the child does not have
    /// the request or reported this before.
    pub(super) fn begun(&mut self, number: u64) -> Option<UnboundedSender<CallerMessage>> {
        let open = self.open.get_mut(&number).filter(|open| open.sent)?;
        let asker = open.caller.as_ref().filter(|_| !open.begun)?;
        open.begun = true;
        Some(asker.replies.clone())
    }

    /// Counts a message about a request. Returns its reply channel, or `None` if the child does not
    /// have the request or the message exceeds the limit. Dropped messages count as lost log,
    /// except for progress.
    pub(super) fn about(
        &mut self,
        number: u64,
        said: &Notification,
    ) -> Option<UnboundedSender<CallerMessage>> {
        let open = self.open.get_mut(&number).filter(|open| open.sent)?;
        let asker = open.caller.as_ref()?;
        let (kind, bytes) = said.measure();
        let (news, meter) = (&mut open.message_bytes[kind as usize], &asker.invocation.meter);
        *news = news.saturating_add(bytes);
        let allowed = match kind {
            // The limit counts bytes as the tool wrote them. In the message, a byte may take three,
            // and be on a line of its own.
            Kind::Log => asker.invocation.limits.log.saturating_mul(4),
            Kind::Progress | Kind::Host => MAX_MESSAGE_BYTES,
        };
        if *news <= allowed {
            return Some(asker.replies.clone());
        }
        if kind != Kind::Progress {
            meter.log_bytes_dropped.fetch_add(bytes, Ordering::Relaxed);
        }
        None
    }

    /// Ends a request.
    pub(super) fn end(&mut self, number: u64, reply: Reply) -> FinishedRequest {
        let ended = self.open.remove(&number);
        if matches!(reply, Reply::Answer(_)) {
            self.deaths = 0;
            // Only a call clears the blame: an answer about visibility does not.
            if let Some(open) = ended.as_ref().filter(|open| open.kind == RequestKind::Call) {
                self.deaths_by_tool.remove(&open.tool);
            }
        }
        FinishedRequest(ended.and_then(|open| open.caller).map(|asker| (asker, reply)))
    }

    /// Charges a death to the tools whose requests were sent. Returns the tools that reached the
    /// limit.
    fn charge(&mut self) -> Vec<String> {
        let at_work: BTreeSet<_> =
            self.open.values().filter(|open| open.sent).map(|open| open.tool.clone()).collect();
        let charge = |tool: &String| {
            let deaths = self.deaths_by_tool.entry(tool.clone()).or_default();
            *deaths = deaths.saturating_add(1);
            *deaths == DEATHS
        };
        at_work.into_iter().filter(charge).collect()
    }

    /// Handles the death of a child. Ends the requests that it had, except those that may be sent
    /// again, and sets the phase and time of the next start.
    pub(super) fn child_exited(&mut self, now: Instant) -> ChildExit {
        if self.phase == Phase::Closed {
            return ChildExit::default();
        }
        self.deaths = self.deaths.saturating_add(1);
        let quarantined = self.charge();
        let mut again = Vec::new();
        for (number, open) in &mut self.open {
            let may_be_sent_again = open.resend == Resend::Once
                && open.caller.is_some()
                && !quarantined.contains(&open.tool);
            if open.sent && may_be_sent_again {
                (open.sent, open.begun, open.resend, open.message_bytes) =
                    (false, false, Resend::Never, [0; 3]);
                again.push(*number);
            }
        }
        let rest = match self.deaths {
            0 | 1 => Duration::ZERO,
            deaths => FIRST_REST.saturating_mul(2_u32.saturating_pow(deaths - 2)).min(LONGEST_REST),
        };
        let refused = |refusal| Some(Reply::refused(refusal));
        let reply = |open: &OpenRequest| match rest {
            _ if open.sent => Some(Reply::died()),
            _ if self.is_quarantined(&open.tool) => refused(Refusal::Quarantined),
            rest if rest >= REFUSING => refused(Refusal::Restarting { retry_after: rest }),
            _ => None,
        };
        let replies = self.open.iter().filter_map(|(number, open)| Some((*number, reply(open)?)));
        let replies: Vec<_> = replies.collect();
        let ended = replies.into_iter().map(|(number, reply)| self.end(number, reply)).collect();
        // Aborts and cancellations for the dead child do not concern the next one.
        again.sort_unstable();
        again.into_iter().rev().for_each(|number| self.queue.push_front(HostMessage::Ask(number)));
        self.queue.retain(
            |line| matches!(line, HostMessage::Ask(number) if self.open.contains_key(number)),
        );
        self.phase = if rest.is_zero() { Phase::Starting } else { Phase::Resting(now + rest) };
        ChildExit { ended, quarantined }
    }
}

impl Notification {
    /// Returns the kind of a message and its bytes, counted as the child counts those of a log.
    fn measure(&self) -> (Kind, u64) {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let (kind, bytes) = match self {
            Self::Progress { message, .. } => (Kind::Progress, length(message)),
            Self::Log { source, message, .. } => match source {
                LogSource::Host => (Kind::Host, message.len()),
                LogSource::Log | LogSource::Stdout | LogSource::Stderr => {
                    (Kind::Log, message.len())
                }
            },
            Self::Denied(denial) => (Kind::Host, denial.request.len() + length(&denial.grant)),
        };
        let cost = if kind == Kind::Log { LINE_COST } else { MESSAGE_COST };
        (kind, bytes as u64 + cost)
    }
}

#[cfg(test)]
mod tests;
