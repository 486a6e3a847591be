//! What a worker process was asked, and what is still to be handed to it.
//!
//! Pure: the time comes from outside, and the holder of the lock waits for nothing.
//! Invariants: a question is handed over once, and once more only after its child died and where
//! its tool may be called twice; each has one end. Nothing of an asker's is run or dropped in here:
//! it goes out, to code that has let go of the lock.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::wire::{Answer, Said, What};
use crate::call::CallResult;
use crate::defence::{Defence, stands};
use crate::event::LogSource;
use crate::fence::fenced;
use crate::handler::Invocation;
use crate::refusal::{RETRY_AFTER, Refusal};
use crate::tool_error::{Exit, ToolError};

/// Questions that are open at once; one more is refused. As many as may wait for a cell.
const MAX_OPEN: usize = 10_000;
/// The rest after a child died right after another, doubled with each further one.
const FIRST_REST: Duration = Duration::from_millis(100);
/// The longest: what is wrong for so long is not over sooner.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// Deaths with a call of the same tool under way, after which that tool is not called any more: one
/// may be chance, and who is merely there as others die gets an answer in between.
const DEATHS: u32 = 3;
/// A rest from which on calls are refused instead of waiting for its end.
const REFUSING: Duration = Duration::from_secs(1);
/// Bytes of progress, or of what the host has to say, about one call, before the rest is left out:
/// no tool says so much.
const NEWS: u64 = 8 << 20;
/// Bytes that one of those counts for beside its text: about what it takes to keep it until it is
/// heard.
const NEWS_COST: u64 = 64;
/// The same of a line of the tool's: what it costs of its log limit, so that what the child let
/// through comes through.
const LINE_COST: u64 = 1;

/// What an asker is told, in this order: any number of the first two, and one end.
pub(super) enum Told {
    Started,
    Said(Said),
    End(Reply),
}

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

/// What the worker process is doing.
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
    tool: String,
    what: What,
    again: Again,
    /// The child has it.
    sent: bool,
    /// The child said that it has begun.
    begun: bool,
    /// Bytes that were said about it, by their [`Kind`].
    news: [u64; 3],
    /// Absent when no caller waits any more.
    asker: Option<Asker>,
}

/// Who waits. Holds what is the embedder's, as the sink of its events is: not to be dropped while
/// the book is locked.
pub(super) struct Asker {
    invocation: Arc<Invocation>,
    ear: UnboundedSender<Told>,
}

/// A question that is over, on its way out of the book.
#[must_use = "the caller waits for this reply"]
pub(super) struct Ended(Option<(Asker, Reply)>);

impl Ended {
    /// Tells who asked. Not under the book's lock: what wakes up, and what is let go of, is the
    /// embedder's.
    pub(super) fn tell(self) {
        // Who left meanwhile does not mind.
        let _ = fenced(|| self.0.map(|(asker, reply)| asker.ear.send(Told::End(reply)).is_ok()));
    }
}

/// News that are bounded by themselves, so that none is at the cost of another.
#[derive(Clone, Copy)]
enum Kind {
    Progress,
    /// What the tool wrote, within its log limit.
    Log,
    /// What the host has to say of it.
    Host,
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
    /// Children that died with a call of this tool under way, since it answered one.
    blame: HashMap<String, u32>,
}

/// What is to be done after a child's death, once the book is not locked.
pub(super) struct Burial {
    pub(super) ended: Vec<Ended>,
    /// Tools that are not called from now on.
    pub(super) quarantined: Vec<String>,
}

impl Book {
    pub(super) fn new() -> Self {
        let (open, queue, blame) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self { phase: Phase::Starting, open, queue, last: 0, deaths: 0, blame }
    }

    /// Notes a question.
    pub(super) fn ask(
        &mut self,
        what: What,
        invocation: Arc<Invocation>,
        again: Again,
        now: Instant,
    ) -> Result<(u64, UnboundedReceiver<Told>), Refusal> {
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
        let (ear, told) = unbounded_channel();
        let asker = Some(Asker { invocation, ear });
        self.open.insert(
            self.last,
            Open { tool, what, again, sent: false, begun: false, news: [0; 3], asker },
        );
        self.queue.push_back(Line::Ask(self.last));
        Ok((self.last, told))
    }

    /// Passes on that the caller wishes an end.
    pub(super) fn abort(&mut self, number: u64) {
        if self.open.contains_key(&number) {
            self.queue.push_back(Line::Abort(number));
        }
    }

    /// No caller waits for it any more. Whether the child has it, and has to give it up; and who
    /// waited.
    pub(super) fn leave(&mut self, number: u64) -> (bool, Option<Asker>) {
        let Some(open) = self.open.get_mut(&number) else { return (false, None) };
        if open.sent {
            self.queue.push_back(Line::Cancel(number));
            (true, open.asker.take())
        } else {
            (false, self.open.remove(&number).and_then(|open| open.asker))
        }
    }

    /// Refuses what the child does not have yet.
    pub(super) fn refuse_waiting(&mut self, number: u64) -> Option<Ended> {
        self.open.get(&number).filter(|open| !open.sent)?;
        let refusal = match self.phase {
            Phase::Serving(_) => Refusal::overloaded(),
            Phase::Starting | Phase::Resting(_) | Phase::Closed => {
                Refusal::Restarting { retry_after: RETRY_AFTER }
            }
        };
        Some(self.end(number, Reply::Lost(CallResult::Refusal(refusal))))
    }

    /// Whether it has no end yet.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// Whether the child has it: what it says of another is not believed.
    pub(super) fn is_sent(&self, number: u64) -> bool {
        self.open.get(&number).is_some_and(|open| open.sent || !stands(Defence::WorkerAnswers))
    }

    fn is_quarantined(&self, tool: &str) -> bool {
        self.blame.get(tool).is_some_and(|deaths| *deaths >= DEATHS)
            && stands(Defence::WorkerDeaths)
    }

    /// What the child is to be told next. From here on a question is the child's.
    pub(super) fn outgoing(&mut self) -> Option<Outgoing> {
        while let Some(line) = self.queue.pop_front() {
            match line {
                Line::Ask(number) => {
                    if let Some(open) = self.open.get_mut(&number)
                        && let Some(asker) = &open.asker
                    {
                        open.sent = true;
                        return Some(Outgoing::Ask(
                            number,
                            open.what,
                            Arc::clone(&asker.invocation),
                        ));
                    }
                }
                Line::Abort(number) if self.is_open(number) => {
                    return Some(Outgoing::Abort(number));
                }
                Line::Cancel(number) if self.is_open(number) => {
                    return Some(Outgoing::Cancel(number));
                }
                Line::Abort(_) | Line::Cancel(_) => {}
            }
        }
        None
    }

    /// Who hears that it has begun; absent where the child does not have it, or has said so before.
    pub(super) fn begun(&mut self, number: u64) -> Option<UnboundedSender<Told>> {
        let open = self.open.get_mut(&number).filter(|open| open.sent)?;
        let asker = open.asker.as_ref().filter(|_| !open.begun)?;
        open.begun = true;
        Some(asker.ear.clone())
    }

    /// Who hears what is said of it; absent where the child does not have it or says too much of
    /// it. What is left out counts as lost log, but for progress.
    pub(super) fn about(&mut self, number: u64, said: &Said) -> Option<UnboundedSender<Told>> {
        let open = self.open.get_mut(&number).filter(|open| open.sent)?;
        let asker = open.asker.as_ref()?;
        let (kind, bytes) = said.measure();
        let (news, meter) = (&mut open.news[kind as usize], &asker.invocation.meter);
        *news = news.saturating_add(bytes);
        let allowed = match kind {
            // Counted as the tool wrote it: of that a byte may be shown as three, and stand on a
            // line of its own.
            Kind::Log => asker.invocation.limits.log.saturating_mul(4),
            Kind::Progress | Kind::Host => NEWS,
        };
        if *news <= allowed {
            return Some(asker.ear.clone());
        }
        match kind {
            Kind::Progress => {}
            Kind::Log | Kind::Host => {
                meter.log_bytes_lost.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        None
    }

    /// Ends a question.
    pub(super) fn end(&mut self, number: u64, reply: Reply) -> Ended {
        let ended = self.open.remove(&number);
        if matches!(reply, Reply::Answer(_)) {
            self.deaths = 0;
            // Whether it is offered is another question.
            if let Some(open) = ended.as_ref().filter(|open| open.what == What::Call) {
                self.blame.remove(&open.tool);
            }
        }
        Ended(ended.and_then(|open| open.asker).map(|asker| (asker, reply)))
    }

    /// Charges a death to the tools that were at work, and names those for which it was one too
    /// many.
    fn charge(&mut self) -> Vec<String> {
        let at_work: BTreeSet<_> =
            self.open.values().filter(|open| open.sent).map(|open| open.tool.clone()).collect();
        let charged = at_work.into_iter().filter(|tool| {
            let deaths = self.blame.entry(tool.clone()).or_default();
            *deaths = deaths.saturating_add(1);
            *deaths == DEATHS
        });
        charged.collect()
    }

    /// A child died. Ends what it had, but for what may be asked again, and says in its phase when
    /// the next one begins.
    pub(super) fn bury(&mut self, now: Instant) -> Burial {
        if self.phase == Phase::Closed {
            return Burial { ended: Vec::new(), quarantined: Vec::new() };
        }
        self.deaths = self.deaths.saturating_add(1);
        let quarantined = self.charge();
        let mut again = Vec::new();
        for (number, open) in &mut self.open {
            let may_be = open.again == Again::Once
                && open.asker.is_some()
                && !quarantined.contains(&open.tool);
            if open.sent && may_be {
                (open.sent, open.begun, open.again, open.news) =
                    (false, false, Again::Never, [0; 3]);
                again.push(*number);
            }
        }
        let lost: Vec<_> =
            self.open.iter().filter(|(_, open)| open.sent).map(|(number, _)| *number).collect();
        let mut ended: Vec<_> =
            lost.into_iter().map(|number| self.end(number, Reply::died())).collect();
        let rest = match self.deaths {
            0 | 1 => Duration::ZERO,
            deaths => FIRST_REST.saturating_mul(2_u32.saturating_pow(deaths - 2)).min(LONGEST_REST),
        };
        let refusal = |open: &Open| match rest {
            _ if self.is_quarantined(&open.tool) => Some(Refusal::Quarantined),
            rest if rest >= REFUSING => Some(Refusal::Restarting { retry_after: rest }),
            _ => None,
        };
        let refused = self.open.iter().filter_map(|(number, open)| Some((*number, refusal(open)?)));
        for (number, refusal) in refused.collect::<Vec<_>>() {
            ended.push(self.end(number, Reply::Lost(CallResult::Refusal(refusal))));
        }
        // What the dead child was told about its calls is nothing to the next one.
        again.sort_unstable();
        again.into_iter().rev().for_each(|number| self.queue.push_front(Line::Ask(number)));
        self.queue
            .retain(|line| matches!(line, Line::Ask(number) if self.open.contains_key(number)));
        self.phase = if rest.is_zero() { Phase::Starting } else { Phase::Resting(now + rest) };
        Burial { ended, quarantined }
    }
}

impl Said {
    /// What it is, and its bytes, as the child counts those of a log.
    fn measure(&self) -> (Kind, u64) {
        let (kind, bytes, cost) = match self {
            Self::Progress { message, .. } => {
                (Kind::Progress, message.as_ref().map_or(0, String::len), NEWS_COST)
            }
            Self::Log { source: LogSource::Host, message, .. } => {
                (Kind::Host, message.len(), NEWS_COST)
            }
            Self::Log {
                source: LogSource::Log | LogSource::Stdout | LogSource::Stderr,
                message,
                ..
            } => (Kind::Log, message.len(), LINE_COST),
            Self::Denied(denial) => (
                Kind::Host,
                denial.request.len() + denial.grant.as_ref().map_or(0, String::len),
                NEWS_COST,
            ),
        };
        (kind, bytes as u64 + cost)
    }
}

#[cfg(test)]
mod tests;
