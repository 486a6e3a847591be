//! A circuit breaker: refuses calls of a tool for some time after it failed repeatedly.
//!
//! [`Tool::with_breaker`] puts it around the tool's handler (its code) as a middleware. After some
//! failures in a row the circuit opens, and calls are refused at once as `circuit_open`, with the
//! time after which to try again. After the open time, one call at a time is let through as a
//! probe; successes close the circuit, a failure opens it again. A [`Breaker`] holds the settings,
//! among them the rule for which failures count. A tool and its clones share one state. A probe
//! that is cancelled or panics never blocks the next probe.
//!
//! Source: docs/contract.md, section 4.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use toolcell_contract::call::CallResult;
use toolcell_contract::message::failure::Failure;
use toolcell_contract::outcome::refusal::Refusal;
use toolcell_contract::outcome::tool_error::{Crash, Exit, ToolError};
use toolcell_contract::panic_guard::{GuardedFuture, guarded};

use super::handler::{Handler, HandlerFuture, Invocation};
use super::{handler_wait, middleware::Middleware};
use crate::os::clock::{Clock, SystemClock};
use crate::tool::Tool;

/// Settings of a circuit breaker: when the circuit opens, and for how long. [`Tool::with_breaker`]
/// applies them. A tool without a breaker makes every call.
///
/// # Defaults
/// [`Breaker::DEFAULT_FAILURES`], [`Breaker::DEFAULT_OPEN_TIME`],
/// [`Breaker::DEFAULT_SUCCESSES_TO_CLOSE`], the failures that [`Tool::with_breaker`] lists,
/// [`SystemClock`].
#[derive(Clone)]
#[must_use]
pub struct Breaker {
    failures: u32,
    open_time: Duration,
    successes: u32,
    counts: Option<Arc<Counts>>,
    clock: Arc<dyn Clock>,
}

/// The embedder's rule: returns true if a failure counts.
type Counts = dyn Fn(&Failure) -> bool + Send + Sync;

/// The state of a circuit breaker.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls are made.
    Closed,
    /// Calls are refused.
    Open,
    /// The open time is over: one call at a time is made as a probe, and other calls are refused
    /// meanwhile.
    HalfOpen,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: Self::DEFAULT_FAILURES,
            open_time: Self::DEFAULT_OPEN_TIME,
            successes: Self::DEFAULT_SUCCESSES_TO_CLOSE,
            counts: None,
            clock: Arc::new(SystemClock),
        }
    }
}

impl Breaker {
    /// Failures in a row that open the circuit. It tolerates occasional failures, and still spares
    /// most calls of a broken tool.
    pub const DEFAULT_FAILURES: u32 = 5;
    /// Probes that must succeed before the circuit closes.
    pub const DEFAULT_SUCCESSES_TO_CLOSE: u32 = 1;
    /// The time that the circuit stays open: 30 s. It equals the default timeout of a call: long
    /// enough for a service to restart, and short enough for a person to wait.
    pub const DEFAULT_OPEN_TIME: Duration = Duration::from_secs(30);

    /// Sets the number of failures in a row that open the circuit; at least one.
    pub fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures.max(1);
        self
    }

    /// Sets how long the circuit stays open.
    pub fn with_open_time(mut self, time: Duration) -> Self {
        self.open_time = time;
        self
    }

    /// Sets the number of successful probes in a row that close the circuit; at least one. A failed
    /// probe opens it again.
    pub fn with_successes_to_close(mut self, successes: u32) -> Self {
        self.successes = successes.max(1);
        self
    }

    /// Counts a failure only if `counts` returns true; every other failure counts as an answer. It
    /// is called for tool errors (timeouts and panics included), for the handler's own errors, and
    /// for refusals that a repetition does not change, such as invalid arguments. It is not called
    /// for cancelled calls, retryable refusals, a quarantined tool or an unset secret. If `counts`
    /// panics, the failure counts.
    pub fn with_failure_rule(
        mut self,
        counts: impl Fn(&Failure) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.counts = Some(Arc::new(counts));
        self
    }

    /// Sets the clock that measures the open time.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("failures", &self.failures)
            .field("open_time", &self.open_time)
            .field("successes_to_close", &self.successes)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

impl Tool {
    /// Refuses calls at once, as `circuit_open`, for some time after the handler failed several
    /// times in a row. Then one call at a time is let through as a probe: enough successes in a row
    /// close the circuit ([`Breaker::with_successes_to_close`]), and a failure opens it again.
    ///
    /// By default these are failures: every tool error (timeouts and panics included), and every
    /// error that the handler calls retryable. [`Breaker::with_failure_rule`] changes that. Any
    /// other error counts as an answer: the tool works, and the mistakes of one model must not stop
    /// it for others. A cancelled call and an overloaded host change nothing. A value that violates
    /// the tool's output schema counts as an answer, because it is checked later.
    ///
    /// The returned tool and its clones share one state. Callers that do not trust each other could
    /// make a tool fail for all, for example with tight limits: give each of them a tool with its
    /// own breaker.
    ///
    /// With [`with_retry`](Tool::with_retry), the one that is added last is the outer one. Add the
    /// retry first: then a call counts once, whatever its number of attempts, and an open circuit
    /// refuses it without an attempt.
    #[must_use]
    pub fn with_breaker(self, breaker: Breaker) -> Self {
        let (tool, state) = (self.definition().name.clone(), State::Closed { failures: 0 });
        let circuit = Arc::new(Circuit { tool, breaker, state: Mutex::new((0, state)) });
        self.with_middleware(Arc::clone(&circuit)).with(|tool| tool.circuit = Some(circuit))
    }

    /// Returns the state of the tool's breaker, or `None` if it has no breaker. Of several
    /// breakers, this is the outermost one.
    #[must_use]
    pub fn breaker_state(&self) -> Option<BreakerState> {
        self.circuit().map(Circuit::read)
    }
}

/// The breaker of one tool, with its state.
#[derive(Debug)]
pub(crate) struct Circuit {
    tool: String,
    breaker: Breaker,
    /// The era and the state. The era is the number of times that the circuit opened. A call that
    /// began in an earlier era does not count.
    state: Mutex<(u64, State)>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The number of failures in a row.
    Closed { failures: u32 },
    /// Calls are refused until the open time is over. Stays in this state after it, until the next
    /// call.
    Open { since: Instant },
    /// The open time is over. `successes` probes in a row succeeded; `is_probing` if one is
    /// running.
    HalfOpen { successes: u32, is_probing: bool },
}

/// The effect of a call's end on the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Works,
    Fails,
    /// Changes nothing.
    Silent,
}

impl Sign {
    fn of(failure: &Failure, counts: Option<&Counts>) -> Self {
        let retryable = failure.is_retryable();
        let is_failure = match failure {
            Failure::ToolError(ToolError::HandlerExit(Exit::Cancelled)) => return Self::Silent,
            // The host's state, which changes with time or by an operator. A refusal by the
            // handler's own check counts as an answer instead.
            Failure::Refusal(Refusal::Quarantined | Refusal::UnsetSecret(_)) => {
                return Self::Silent;
            }
            Failure::Refusal(_) if retryable => return Self::Silent,
            Failure::ToolError(_) => true,
            Failure::Error(_) => retryable,
            Failure::Refusal(_) => false,
        };
        // Guarded, because the rule is the embedder's code.
        let is_failure =
            counts.map_or(is_failure, |counts| guarded(|| counts(failure)).unwrap_or(true));
        if is_failure { Self::Fails } else { Self::Works }
    }
}

impl Circuit {
    /// Returns the time of the breaker's clock, or of the system's clock if that one panics. Called
    /// before the lock is taken, because the clock is the embedder's code.
    fn now(&self) -> Instant {
        guarded(|| self.breaker.clock.now()).unwrap_or_else(Instant::now)
    }

    fn read(&self) -> BreakerState {
        let now = self.now();
        match self.state.lock().1 {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { since } if self.rest(since, now).is_some() => BreakerState::Open,
            State::Open { .. } | State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Returns the rest of the open time, or `None` if it is over.
    fn rest(&self, since: Instant, now: Instant) -> Option<Duration> {
        let rested = now.saturating_duration_since(since);
        self.breaker.open_time.checked_sub(rested).filter(|left| !left.is_zero())
    }

    /// Admits a call, and returns the era, or refuses it.
    fn admit(&self) -> Result<u64, Refusal> {
        let now = self.now();
        let (era, state) = &mut *self.state.lock();
        let (successes, retry_after) = match *state {
            State::Closed { .. } => return Ok(*era),
            State::Open { since } => (0, self.rest(since, now)),
            // The probe either succeeds soon or opens the circuit again: the longer time is the
            // safer guess.
            State::HalfOpen { successes, is_probing } => {
                (successes, is_probing.then_some(self.breaker.open_time))
            }
        };
        if let Some(retry_after) = retry_after {
            return Err(Refusal::CircuitOpen { retry_after });
        }
        *state = State::HalfOpen { successes, is_probing: true };
        Ok(*era)
    }

    /// Records how a call of this era ended. Ignores a call that began before the circuit last
    /// opened.
    fn settle(&self, era: u64, sign: Sign) {
        let now = self.now();
        let mut locked = self.state.lock();
        let (current, was) = *locked;
        if era != current {
            return;
        }
        let is = was.after(sign, &self.breaker, now);
        *locked = (era + u64::from(matches!(is, State::Open { .. })), is);
        drop(locked);
        if let (State::Closed { .. }, State::Open { .. }) = (was, is) {
            tracing::warn!(
                tool = self.tool,
                "the tool failed too often: its calls are refused for a while"
            );
        }
        if let (State::HalfOpen { .. }, State::Closed { .. }) = (was, is) {
            tracing::info!(
                tool = self.tool,
                "the tool works again: its calls are no longer refused"
            );
        }
    }
}

impl State {
    /// Returns the next state after a call of the current era. In a half-open circuit, that call is
    /// the probe.
    fn after(self, sign: Sign, breaker: &Breaker, now: Instant) -> Self {
        match (self, sign) {
            (Self::Closed { .. }, Sign::Works) => Self::Closed { failures: 0 },
            (Self::Closed { failures }, Sign::Fails) if failures + 1 < breaker.failures => {
                Self::Closed { failures: failures + 1 }
            }
            (Self::HalfOpen { successes, .. }, Sign::Works)
                if successes + 1 < breaker.successes =>
            {
                Self::HalfOpen { successes: successes + 1, is_probing: false }
            }
            (Self::HalfOpen { .. }, Sign::Works) => Self::Closed { failures: 0 },
            // The probe's place is free again: the next call is the probe.
            (Self::HalfOpen { successes, .. }, Sign::Silent) => {
                Self::HalfOpen { successes, is_probing: false }
            }
            (Self::Closed { .. } | Self::HalfOpen { .. }, Sign::Fails) => Self::Open { since: now },
            (unchanged @ (Self::Closed { .. } | Self::Open { .. }), _) => unchanged,
        }
    }
}

/// An admitted call. When it is dropped, its end is recorded in the circuit.
struct AdmittedCall<'a> {
    circuit: &'a Circuit,
    era: u64,
    invocation: Arc<Invocation>,
    sign: Option<Sign>,
}

impl AdmittedCall<'_> {
    fn sign(&self, failure: Option<&Failure>) -> Sign {
        failure.map_or(Sign::Works, |failure| {
            Sign::of(failure, self.circuit.breaker.counts.as_deref())
        })
    }
}

impl Drop for AdmittedCall<'_> {
    fn drop(&mut self) {
        // The call was dropped without a result: by the executor at the deadline, which is a
        // timeout, or by the caller before the deadline.
        let dropped = || {
            let is_over =
                self.invocation.deadline().is_some_and(|deadline| self.circuit.now() >= deadline);
            let timeout = ToolError::Timeout(handler_wait::blocked(&self.invocation));
            if is_over { self.sign(Some(&Failure::ToolError(timeout))) } else { Sign::Silent }
        };
        self.circuit.settle(self.era, self.sign.unwrap_or_else(dropped));
    }
}

/// Guards a handler.
impl Middleware for Arc<Circuit> {
    fn call<'a>(
        &'a self,
        inner: &'a dyn Handler,
        invocation: Arc<Invocation>,
    ) -> HandlerFuture<'a> {
        Box::pin(async move {
            let era = match self.admit() {
                Ok(era) => era,
                Err(refusal) => return CallResult::Refusal(refusal),
            };
            let (circuit, of_call) = (&**self, Arc::clone(&invocation));
            let mut pass = AdmittedCall { circuit, era, invocation: of_call, sign: None };
            let answer = GuardedFuture::new(|| inner.call(invocation)).await;
            let panicked =
                |panic| Failure::ToolError(ToolError::HandlerRaised(Crash::panicked(panic)));
            let failure =
                answer.as_ref().map_or_else(|panic| Some(panicked(&**panic)), Failure::of);
            pass.sign = Some(pass.sign(failure.as_ref()));
            drop(pass);
            answer.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

#[cfg(test)]
mod tests;
