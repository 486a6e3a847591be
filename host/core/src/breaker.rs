//! A circuit breaker: a tool that keeps failing is given a rest.
//!
//! In: a tool and a [`Breaker`]. Out: the same tool, whose calls are refused at once for as long as it rests.
//! Invariants: one state for a tool and all its clones; of a tool that has rested, one call at a time finds out whether it
//! works again; a call that ends without a word, cancelled or panicking, never leaves the circuit waiting for it.
//! Source: contract, section 4.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use serde::Serialize;

use crate::call::CallResult;
use crate::clock::{Clock, SystemClock};
use crate::fence::fenced;
use crate::handler::{Handler, HandlerFuture, Invocation};
use crate::layer::{Layer, Layered};
use crate::policy::Failure;
use crate::refusal::Refusal;
use crate::tool::Tool;
use crate::tool_error::{Exit, ToolError};

/// Failures in a row: more than chance, fewer than a run of calls.
pub const DEFAULT_FAILURES: u32 = 5;
/// As long as a call may take by default: long enough for a restart elsewhere, short enough for a person to wait.
pub const DEFAULT_OPEN_TIME: Duration = Duration::from_secs(30);

/// When a tool that keeps failing is given a rest, and for how long.
///
/// A tool gets one with [`Tool::with_breaker`]; without, every call is made.
///
/// # Defaults
/// [`DEFAULT_FAILURES`], [`DEFAULT_OPEN_TIME`], [`SystemClock`].
#[derive(Debug, Clone)]
pub struct Breaker {
    failures: u32,
    open_time: Duration,
    clock: Arc<dyn Clock>,
}

/// Whether a tool rests.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// It works: calls are made.
    Closed,
    /// It rests: calls are refused.
    Open,
    /// It has rested: one call is made, and decides. Others are refused until it has.
    HalfOpen,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures: DEFAULT_FAILURES, open_time: DEFAULT_OPEN_TIME, clock: Arc::new(SystemClock) }
    }
}

impl Breaker {
    /// Opens after this many failures in a row; at least one.
    #[must_use]
    pub fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures.max(1);
        self
    }

    /// Rests for this time.
    #[must_use]
    pub fn with_open_time(mut self, time: Duration) -> Self {
        self.open_time = time;
        self
    }

    /// With this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}

impl Tool {
    /// Refuses calls at once, as `circuit_open`, for some time after the handler failed several times in a row. Then one call
    /// is let through as a probe: it closes the circuit, or opens it again.
    ///
    /// A failure is every tool error, a call past its deadline and a panic among them, and every error that the handler
    /// calls retryable: the tool is not well. Any other error is an answer: the tool works, and a model's mistakes do not
    /// take it from others. What says nothing of the tool changes nothing: a cancelled call, an overloaded host. A value
    /// that breaks the tool's output schema is judged later and counts as an answer.
    ///
    /// The state belongs to the tool that this returns and its clones. Callers that do not trust each other can make a tool
    /// fail for all, by tight limits for instance: give each of them a tool with a breaker of its own.
    ///
    /// With [`with_retry`](Tool::with_retry) the later of the two stands outside. Ask for the retry first: a call then counts
    /// once, however many attempts it takes, and an open breaker refuses it without any.
    #[must_use]
    pub fn with_breaker(self, breaker: Breaker) -> Self {
        let (tool, state) = (self.definition().name.clone(), Mutex::new(State::Closed { failures: 0 }));
        let circuit = Arc::new(Circuit { tool, breaker, state, openings: AtomicU64::new(0) });
        let guard = Arc::clone(&circuit);
        self.wrapped(|inner| Layered { layer: Guarded { circuit: guard }, inner }).with_circuit(circuit)
    }

    /// The state of its breaker, the outermost if there are several; none where there is none.
    #[must_use]
    pub fn breaker_state(&self) -> Option<BreakerState> {
        self.circuit().map(Circuit::read)
    }
}

/// The breaker of one tool, at work.
#[derive(Debug)]
pub(crate) struct Circuit {
    tool: String,
    breaker: Breaker,
    state: Mutex<State>,
    /// How often it has opened.
    openings: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// So many failures in a row.
    Closed { failures: u32 },
    /// Rests, or has rested and nobody has called since.
    Open { since: Instant },
    /// A probe is under way.
    Probing { since: Instant },
}

/// Who a call is for the circuit.
#[derive(Debug, Clone, Copy)]
enum Role {
    /// Let through after so many openings.
    Ordinary(u64),
    Probe,
}

/// What a call says of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Works,
    Fails,
    /// Nothing.
    Silent,
}

impl Sign {
    fn of(result: &CallResult) -> Self {
        let Some(failure) = Failure::of(result) else { return Self::Works };
        let retryable = failure.is_retryable();
        match failure {
            Failure::ToolError(ToolError::HandlerExit(Exit::Cancelled)) => Self::Silent,
            Failure::ToolError(_) => Self::Fails,
            Failure::Error(_) if retryable => Self::Fails,
            // The host's state, which passes with time or when somebody has looked; the handler's own check is an answer.
            Failure::Refusal(Refusal::Quarantined) => Self::Silent,
            Failure::Refusal(_) if retryable => Self::Silent,
            Failure::Error(_) | Failure::Refusal(_) => Self::Works,
        }
    }
}

impl Circuit {
    /// The time, read before the lock is taken: the clock is the embedder's. Of one that panics, the machine's.
    fn now(&self) -> Instant {
        fenced(|| self.breaker.clock.now()).unwrap_or_else(Instant::now)
    }

    fn read(&self) -> BreakerState {
        let now = self.now();
        match *self.state.lock() {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { since } if self.rest(since, now).is_some() => BreakerState::Open,
            State::Open { .. } | State::Probing { .. } => BreakerState::HalfOpen,
        }
    }

    /// What is left of a rest.
    fn rest(&self, since: Instant, now: Instant) -> Option<Duration> {
        let rested = now.saturating_duration_since(since);
        self.breaker.open_time.checked_sub(rested).filter(|left| !left.is_zero())
    }

    /// Lets a call through, or refuses it.
    fn admit(&self) -> Result<Role, Refusal> {
        let now = self.now();
        let mut state = self.state.lock();
        let retry_after = match *state {
            State::Closed { .. } => return Ok(Role::Ordinary(self.openings.load(Ordering::Relaxed))),
            State::Open { since } => match self.rest(since, now) {
                Some(left) => left,
                None => {
                    *state = State::Probing { since };
                    return Ok(Role::Probe);
                }
            },
            // It ends soon, or the tool rests once more: the longer is the safer guess.
            State::Probing { .. } => self.breaker.open_time,
        };
        Err(Refusal::CircuitOpen { retry_after })
    }

    /// Takes note of how a call ended. One that began before the circuit opened has nothing to say any more.
    fn settle(&self, role: Role, sign: Sign) {
        let now = self.now();
        let mut state = self.state.lock();
        if matches!(role, Role::Ordinary(openings) if openings != self.openings.load(Ordering::Relaxed)) {
            return;
        }
        let was = *state;
        let is = was.after(role, sign, self.breaker.failures, now);
        *state = is;
        if let State::Open { .. } = is {
            self.openings.fetch_add(1, Ordering::Relaxed);
        }
        drop(state);
        if let (State::Closed { .. }, State::Open { .. }) = (was, is) {
            tracing::warn!(tool = self.tool, "failed too often and rests");
        }
        if let (State::Probing { .. }, State::Closed { .. }) = (was, is) {
            tracing::info!(tool = self.tool, "works again after a rest");
        }
    }
}

impl State {
    fn after(self, role: Role, sign: Sign, most: u32, now: Instant) -> Self {
        match (self, role, sign) {
            (Self::Closed { .. }, Role::Ordinary(_), Sign::Works)
            | (Self::Probing { .. }, Role::Probe, Sign::Works) => Self::Closed { failures: 0 },
            (Self::Closed { failures }, Role::Ordinary(_), Sign::Fails) if failures + 1 < most => {
                Self::Closed { failures: failures + 1 }
            }
            (Self::Closed { .. }, Role::Ordinary(_), Sign::Fails)
            | (Self::Probing { .. }, Role::Probe, Sign::Fails) => Self::Open { since: now },
            // The place is free: the next call is the probe.
            (Self::Probing { since }, Role::Probe, Sign::Silent) => Self::Open { since },
            (unchanged, Role::Ordinary(_) | Role::Probe, Sign::Works | Sign::Fails | Sign::Silent) => unchanged,
        }
    }
}

/// A call that was let through. However it ends, the circuit hears of it.
struct Pass<'a> {
    circuit: &'a Circuit,
    role: Role,
    deadline: Option<Instant>,
    sign: Option<Sign>,
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // Dropped without a word: by the executor at the deadline, which is a timeout, or by the caller before.
        let is_over = || self.deadline.is_some_and(|deadline| self.circuit.now() >= deadline);
        let sign = self.sign.unwrap_or_else(|| if is_over() { Sign::Fails } else { Sign::Silent });
        self.circuit.settle(self.role, sign);
    }
}

/// The circuit that guards a handler.
struct Guarded {
    circuit: Arc<Circuit>,
}

impl Guarded {
    async fn answer(&self, inner: &dyn Handler, invocation: Arc<Invocation>) -> CallResult {
        let role = match self.circuit.admit() {
            Ok(role) => role,
            Err(refusal) => return CallResult::Refusal(refusal),
        };
        let mut pass = Pass { circuit: &self.circuit, role, deadline: invocation.deadline(), sign: None };
        let answer = AssertUnwindSafe(async { inner.call(invocation).await }).catch_unwind().await;
        pass.sign = Some(answer.as_ref().map_or(Sign::Fails, Sign::of));
        answer.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Layer for Guarded {
    fn call<'a>(&'a self, inner: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a> {
        Box::pin(self.answer(inner, invocation))
    }
}

#[cfg(test)]
mod tests;
