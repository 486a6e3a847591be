//! Trying a failed call again.
//!
//! In: a tool and a [`Retry`]. Out: the same tool, a call of which may be several attempts of its handler.
//! Invariants: only failures that are retryable; bounded in attempts, in each attempt's time where one is set, in each wait,
//! and by the call's deadline; all attempts share one budget, one receipt and one pair of events.
//! Source: docs/contract.md, section 4.
//! Not here: which failures are retryable (`policy`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use parking_lot::Mutex;

use crate::call::CallResult;
use crate::clock::{self, Clock, SystemClock};
use crate::handler::{Handler, HandlerFuture, Invocation};
use crate::layer::{Layer, Layered};
use crate::patience;
use crate::policy::Failure;
use crate::tool::Tool;
use crate::tool_error::{Timeout, ToolError};

/// Attempts in all: what fails three times in a row will most likely fail the fourth time.
pub const DEFAULT_ATTEMPTS: u32 = 3;
/// The most attempts that can be asked for. A handler that fails at once must not keep its caller's thread.
pub const MAX_ATTEMPTS: u32 = 100;
/// A third of a call's usual time: one long wait still leaves time for the attempt after it.
pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(10);

/// When a failed call is tried again.
///
/// A tool gets one with [`Tool::with_retry`]; without, nothing is tried twice.
///
/// # Defaults
/// [`DEFAULT_ATTEMPTS`], each with as much time as the call has left, [`DEFAULT_MAX_DELAY`], a seed of its own,
/// [`SystemClock`].
#[derive(Debug, Clone)]
pub struct Retry {
    growth: Growth,
    unit: Duration,
    attempts: u32,
    attempt_timeout: Option<Duration>,
    max_delay: Duration,
    seed: Option<u64>,
    clock: Arc<dyn Clock>,
}

/// How the waits grow.
#[derive(Debug, Clone, Copy)]
enum Growth {
    Fixed,
    Linear,
    Exponential,
    ExponentialWithJitter,
}

impl Retry {
    fn new(growth: Growth, unit: Duration) -> Self {
        Self {
            growth,
            unit,
            attempts: DEFAULT_ATTEMPTS,
            attempt_timeout: None,
            max_delay: DEFAULT_MAX_DELAY,
            seed: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// The same wait each time.
    #[must_use]
    pub fn fixed(delay: Duration) -> Self {
        Self::new(Growth::Fixed, delay)
    }

    /// One step, then two, three, …
    #[must_use]
    pub fn linear(step: Duration) -> Self {
        Self::new(Growth::Linear, step)
    }

    /// Doubles each time.
    #[must_use]
    pub fn exponential(first: Duration) -> Self {
        Self::new(Growth::Exponential, first)
    }

    /// Doubles each time, and each wait is shortened at random by up to a half ("equal jitter"): calls that failed together
    /// do not come back together, and yet none of a few attempts is wasted on a failure that is only just over, as it might
    /// be if a wait could shrink to nothing ("full jitter").
    #[must_use]
    pub fn exponential_with_jitter(first: Duration) -> Self {
        Self::new(Growth::ExponentialWithJitter, first)
    }

    /// With this many attempts in all, the first included; at least one, at most [`MAX_ATTEMPTS`].
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.clamp(1, MAX_ATTEMPTS);
        self
    }

    /// With this much real time for each attempt, and no more than the call has left. An attempt that passes it is a timeout
    /// of that attempt, which may be tried again while the call's deadline lasts. Without it a timeout is the whole call's,
    /// and nothing is left for another attempt.
    #[must_use]
    pub fn with_attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// With no wait longer than this. A failure that asks for a longer one is not tried again: its caller reads there when
    /// to come back.
    #[must_use]
    pub fn with_max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// With this seed of the jitter. Equal seeds draw equal waits, in the order in which the tool's calls fail.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// With this clock for the waits.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The wait after this many attempts have failed.
    fn delay(&self, failed: u32, dice: &mut Rng) -> Duration {
        let units = match self.growth {
            Growth::Fixed => 1,
            Growth::Linear => failed,
            Growth::Exponential | Growth::ExponentialWithJitter => 2_u32.saturating_pow(failed.saturating_sub(1)),
        };
        let full = self.unit.saturating_mul(units).min(self.max_delay);
        match self.growth {
            Growth::Fixed | Growth::Linear | Growth::Exponential => full,
            Growth::ExponentialWithJitter => full - (full / 2).mul_f64(dice.f64()),
        }
    }
}

impl Tool {
    /// Tries a failed call again, as `retry` says and as long as the failure is
    /// [retryable](crate::Failure::is_retryable), the call's deadline lies further off than the next attempt, and the
    /// caller's [`AbortSignal`](crate::AbortSignal) is silent. The last attempt's result counts.
    ///
    /// All attempts are one call: one pair of events, one receipt, one budget of fuel, host calls and log, of which each
    /// attempt gets what is left. The handler sees the attempt's number, 1 in the first, as
    /// [`CallContext::attempt`](crate::CallContext::attempt). A wait is never shorter than the failure's own `retry_after`.
    ///
    /// All attempts share the call's deadline: only with [`Retry::with_attempt_timeout`] can a timeout be tried again.
    ///
    /// Not tried again: a trap or a panic, an `exit`, spent fuel, and a value that breaks the tool's output schema, which is
    /// judged after the last attempt. Only for tools that may be called twice with the same arguments
    /// ([`Hints::idempotent`](crate::Hints::idempotent)): an attempt that failed may have had its effect.
    ///
    /// With [`with_breaker`](Tool::with_breaker) the later of the two stands outside. Ask for the retry first: a call then
    /// counts once for the breaker, however many attempts it takes, and an open breaker refuses it without any.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        let dice = Mutex::new(retry.seed.map_or_else(Rng::new, Rng::with_seed));
        self.wrapped(|inner| Layered { layer: Retrying { retry, dice }, inner })
    }
}

/// Calls a handler until it answers or there is no point in it.
struct Retrying {
    retry: Retry,
    dice: Mutex<Rng>,
}

impl Retrying {
    /// When to try again; never, if there is no point in it.
    fn next(&self, call: &Invocation, failed: u32, result: &CallResult) -> Option<Instant> {
        let failure = Failure::of(result).filter(Failure::is_retryable)?;
        let asked = failure.retry_after().unwrap_or_default();
        if failed >= self.retry.attempts || asked > self.retry.max_delay {
            return None;
        }
        let delay = self.retry.delay(failed, &mut self.dice.lock());
        let at = self.retry.clock.now().checked_add(delay.max(asked))?;
        call.deadline().is_none_or(|deadline| at < deadline).then_some(at)
    }

    /// Sleeps until then. None when the call is over before, by its deadline or by its caller's wish.
    async fn sleep(&self, call: &Invocation, at: Instant) -> Option<()> {
        tokio::select! {
            biased;
            () = call.abort.raised() => None,
            slept = clock::before(call.deadline(), self.retry.clock.sleep_until(at)) => slept,
        }
    }

    async fn answer(&self, inner: &dyn Handler, call: Arc<Invocation>) -> CallResult {
        let mut failed = 0;
        loop {
            let result = self.attempt(inner, &call, failed).await;
            failed += 1;
            let Some(at) = self.next(&call, failed, &result) else { return result };
            tracing::debug!(tool = %call.call.name, failed, "an attempt failed and is made again");
            let Some(()) = self.sleep(&call, at).await else { return result };
        }
    }

    /// The attempt after this many have failed.
    async fn attempt(&self, inner: &dyn Handler, call: &Invocation, failed: u32) -> CallResult {
        let attempt = Arc::new(call.attempt_after(failed, self.retry.attempt_timeout));
        let answer = inner.call(Arc::clone(&attempt));
        if self.retry.attempt_timeout.is_none() {
            return answer.await;
        }
        let result = patience::wait(inner, &attempt, answer).await.result();
        if call.remaining().is_zero() { of_the_call(call, result) } else { result }
    }
}

/// The last attempt had what was left of the call's time: its timeout is told as the call's.
fn of_the_call(call: &Invocation, result: CallResult) -> CallResult {
    let CallResult::ToolError(ToolError::Timeout(timeout)) = result else { return result };
    let (budget, used) = (call.limits.timeout, call.started.elapsed());
    CallResult::ToolError(ToolError::Timeout(match timeout {
        Timeout::Fuel { .. } => timeout,
        Timeout::Deadline { .. } => Timeout::Deadline { budget, used },
        Timeout::Blocked { .. } => Timeout::Blocked { budget, used },
    }))
}

impl Layer for Retrying {
    fn call<'a>(&'a self, inner: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a> {
        Box::pin(self.answer(inner, invocation))
    }
}

#[cfg(test)]
mod tests;
