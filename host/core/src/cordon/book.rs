//! What a cordon's child was asked, and what is still to be handed to it.
//!
//! Pure: the time comes from outside, and whoever holds the lock waits for nothing.
//! Invariants: a question is handed over once, and once more only after its child died and where its tool may be called
//! twice; each has one end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::wire::{Answer, What};
use crate::call::CallResult;
use crate::handler::Invocation;
use crate::refusal::Refusal;
use crate::tool_error::{Exit, ToolError};

/// Questions that are open at once; one more is refused. As many as may wait for a cell.
const MAX_OPEN: usize = 10_000;
/// What a caller is told to wait who is refused for that, or for whom no child came in time.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The rest after a child died right after another, doubled with each further one.
const FIRST_REST: Duration = Duration::from_millis(100);
/// The longest: what is wrong for so long is not over sooner.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// A rest from which on calls are refused instead of waiting for its end.
const REFUSING: Duration = Duration::from_secs(1);
/// Bytes of news about one call beside what its log limit allows, before the rest is left out: no tool says so much.
const NEWS: u64 = 8 << 20;

/// How a question ended.
pub(super) enum Reply {
    Answer(Answer),
    /// The child said nothing: this instead.
    Lost(CallResult),
}

impl Reply {
    /// The process that was at it died.
    pub(super) fn died() -> Self {
        Self::Lost(CallResult::ToolError(ToolError::HandlerExit(Exit::Died)))
    }
}

/// Whether a call may be made a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Never,
    Once,
}

/// What the cordon is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A child begins; what is asked waits for it.
    Starting,
    /// The child of this number answers.
    Serving(u64),
    /// Until then there is none.
    Resting(Instant),
    /// There will be none.
    Closed,
}

/// A question.
struct Open {
    invocation: Arc<Invocation>,
    what: What,
    again: Again,
    /// The child has it.
    sent: bool,
    /// Bytes that were said about it.
    news: u64,
    /// Absent when nobody waits any more.
    asker: Option<oneshot::Sender<Reply>>,
}

/// What goes to the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Ask(u64),
    Abort(u64),
    Cancel(u64),
}

/// The same, taken from the queue.
pub(super) enum Outgoing {
    Ask(u64, What, Arc<Invocation>),
    Abort(u64),
    Cancel(u64),
}

pub(super) struct Book {
    pub(super) phase: Phase,
    open: HashMap<u64, Open>,
    queue: VecDeque<Line>,
    last: u64,
    /// Children that died since one answered.
    deaths: u32,
}

impl Book {
    pub(super) fn new() -> Self {
        Self { phase: Phase::Starting, open: HashMap::new(), queue: VecDeque::new(), last: 0, deaths: 0 }
    }

    /// Notes a question.
    pub(super) fn ask(
        &mut self,
        what: What,
        invocation: Arc<Invocation>,
        again: Again,
        now: Instant,
    ) -> Result<(u64, oneshot::Receiver<Reply>), Refusal> {
        if let Phase::Resting(until) = self.phase
            && until.saturating_duration_since(now) >= REFUSING
        {
            return Err(Refusal::Overloaded { retry_after: until - now });
        }
        if self.open.len() >= MAX_OPEN {
            return Err(Refusal::Overloaded { retry_after: RETRY_AFTER });
        }
        self.last += 1;
        let (asker, answer) = oneshot::channel();
        let open = Open { invocation, what, again, sent: false, news: 0, asker: Some(asker) };
        self.open.insert(self.last, open);
        self.queue.push_back(Line::Ask(self.last));
        Ok((self.last, answer))
    }

    /// Passes on that the caller wishes an end.
    pub(super) fn abort(&mut self, number: u64) {
        if self.open.contains_key(&number) {
            self.queue.push_back(Line::Abort(number));
        }
    }

    /// Nobody waits for it any more. Whether the child has it, and has to give it up.
    pub(super) fn leave(&mut self, number: u64) -> bool {
        let Some(open) = self.open.get_mut(&number) else { return false };
        if open.sent {
            open.asker = None;
            self.queue.push_back(Line::Cancel(number));
            true
        } else {
            self.open.remove(&number);
            false
        }
    }

    /// Refuses what the child does not have yet.
    pub(super) fn refuse_waiting(&mut self, number: u64) {
        if self.open.get(&number).is_some_and(|open| !open.sent) {
            self.end(number, Reply::Lost(CallResult::Refusal(Refusal::Overloaded { retry_after: RETRY_AFTER })));
        }
    }

    /// Whether it has no end yet.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// What the child is to be told next. From here on a question is the child's.
    pub(super) fn outgoing(&mut self) -> Option<Outgoing> {
        while let Some(line) = self.queue.pop_front() {
            match line {
                Line::Ask(number) => {
                    if let Some(open) = self.open.get_mut(&number) {
                        open.sent = true;
                        return Some(Outgoing::Ask(number, open.what, Arc::clone(&open.invocation)));
                    }
                }
                Line::Abort(number) if self.is_open(number) => return Some(Outgoing::Abort(number)),
                Line::Cancel(number) if self.is_open(number) => return Some(Outgoing::Cancel(number)),
                Line::Abort(_) | Line::Cancel(_) => {}
            }
        }
        None
    }

    /// Whom news of this size are about; nobody, where the child does not have it or says too much of it.
    pub(super) fn about(&mut self, number: u64, bytes: u64) -> Option<Arc<Invocation>> {
        let open = self.open.get_mut(&number).filter(|open| open.sent)?;
        open.news = open.news.saturating_add(bytes);
        (open.news <= NEWS.saturating_add(open.invocation.limits.log)).then(|| Arc::clone(&open.invocation))
    }

    /// Ends a question.
    pub(super) fn end(&mut self, number: u64, reply: Reply) {
        if matches!(reply, Reply::Answer(_)) {
            self.deaths = 0;
        }
        if let Some(asker) = self.open.remove(&number).and_then(|open| open.asker) {
            // Who left meanwhile does not mind.
            let _ = asker.send(reply);
        }
    }

    /// A child died. Ends what it had, but for what may be asked again, and says when the next one begins.
    pub(super) fn bury(&mut self, now: Instant) -> Phase {
        if self.phase == Phase::Closed {
            return Phase::Closed;
        }
        self.deaths = self.deaths.saturating_add(1);
        let mut again = Vec::new();
        for (number, open) in &mut self.open {
            if open.sent && open.again == Again::Once && open.asker.is_some() {
                (open.sent, open.again) = (false, Again::Never);
                again.push(*number);
            }
        }
        let lost: Vec<_> = self.open.iter().filter(|(_, open)| open.sent).map(|(number, _)| *number).collect();
        lost.into_iter().for_each(|number| self.end(number, Reply::died()));
        // What the dead child was told about its calls is nothing to the next one.
        again.sort_unstable();
        self.queue.retain(|line| matches!(line, Line::Ask(_)));
        again.into_iter().rev().for_each(|number| self.queue.push_front(Line::Ask(number)));
        let rest = match self.deaths {
            0 | 1 => Duration::ZERO,
            deaths => FIRST_REST.saturating_mul(2_u32.saturating_pow(deaths - 2)).min(LONGEST_REST),
        };
        if rest >= REFUSING {
            let refused: Vec<_> = self.open.keys().copied().collect();
            for number in refused {
                self.end(number, Reply::Lost(CallResult::Refusal(Refusal::Overloaded { retry_after: rest })));
            }
            self.queue.clear();
        }
        self.phase = if rest.is_zero() { Phase::Starting } else { Phase::Resting(now + rest) };
        self.phase
    }
}

#[cfg(test)]
mod tests;
