//! Retries failed calls of a tool.
//!
//! [`Tool::with_retry`] puts a middleware around the tool's handler (its code). When an attempt
//! fails and the failure is retryable, it waits as the [`Retry`] schedule says (fixed, linear,
//! exponential, with jitter) and calls the handler again. The number of attempts, each wait and, if
//! set, each attempt's time are bounded, and the call's deadline bounds all of it. An abort ends
//! the wait. All attempts are one call: they share one budget, one usage and one pair of events,
//! and the last result counts.
//!
//! Not here: the rule for which failures are retryable, in `Failure::is_retryable`.
//!
//! Source: docs/contract.md, section 4.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use toolcell_contract::call::CallResult;
use toolcell_contract::message::failure::Failure;
use toolcell_contract::outcome::tool_error::ToolError;

use super::handler::{Handler, HandlerFuture, Invocation};
use super::{handler_wait, middleware::Middleware};
use crate::os::clock::{self, Clock, SystemClock};
use crate::tool::Tool;

/// The schedule of retries of a failed call. [`Tool::with_retry`] applies it; without it, no call
/// is retried.
///
/// # Defaults
/// [`Retry::DEFAULT_ATTEMPTS`], each with the time that the call has left,
/// [`Retry::DEFAULT_MAX_DELAY`], [`SystemClock`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Retry {
    growth: Growth,
    unit: Duration,
    attempts: u32,
    attempt_timeout: Option<Duration>,
    max_delay: Duration,
    clock: Arc<dyn Clock>,
}

/// The growth of the waits.
#[derive(Debug, Clone, Copy)]
enum Growth {
    Fixed,
    Exponential,
    ExponentialWithJitter,
}

impl Retry {
    /// The number of attempts of a call, the first included. A call that fails three times in a row
    /// will most likely fail a fourth time.
    pub const DEFAULT_ATTEMPTS: u32 = 3;
    /// The largest number of attempts. It bounds how long a handler that fails at once can hold its
    /// caller's thread.
    pub const MAX_ATTEMPTS: u32 = 100;
    /// The longest wait between two attempts: 10 s. It is a third of the default timeout, so that
    /// one long wait leaves time for the next attempt.
    pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(10);

    fn new(growth: Growth, unit: Duration) -> Self {
        Self {
            growth,
            unit,
            attempts: Self::DEFAULT_ATTEMPTS,
            attempt_timeout: None,
            max_delay: Self::DEFAULT_MAX_DELAY,
            clock: Arc::new(SystemClock),
        }
    }

    /// Waits the same time before each attempt.
    pub fn fixed(delay: Duration) -> Self {
        Self::new(Growth::Fixed, delay)
    }

    /// Waits `first` before the second attempt, and twice as long before each further one.
    pub fn exponential(first: Duration) -> Self {
        Self::new(Growth::Exponential, first)
    }

    /// As [`exponential`](Self::exponential), and shortens each wait at random by up to a half
    /// ("equal jitter"). So calls that failed together are not retried together, and no wait is so
    /// short that the attempt is wasted on the same failure.
    pub fn exponential_with_jitter(first: Duration) -> Self {
        Self::new(Growth::ExponentialWithJitter, first)
    }

    /// Sets the number of attempts, the first included; at least one, at most
    /// [`Retry::MAX_ATTEMPTS`].
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.clamp(1, Self::MAX_ATTEMPTS);
        self
    }

    /// Sets the real time of each attempt; it never exceeds what the call has left. An attempt that
    /// takes longer ends as a timeout, which can be retried before the call's deadline. Without it,
    /// a timeout uses up the whole call, and nothing is retried.
    pub fn with_attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Sets the longest wait. A failure that asks for a longer one is not retried; its
    /// `retry_after` tells the caller when to try again.
    pub fn with_max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Sets the clock for the waits.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the wait after this many failed attempts.
    fn delay(&self, failed: u32, rng: &mut Rng) -> Duration {
        let wait = |units| self.unit.saturating_mul(units).min(self.max_delay);
        let doubled = wait(2_u32.saturating_pow(failed.saturating_sub(1)));
        match self.growth {
            Growth::Fixed => wait(1),
            Growth::Exponential => doubled,
            Growth::ExponentialWithJitter => doubled - (doubled / 2).mul_f64(rng.f64()),
        }
    }
}

impl Tool {
    /// Tries a failed call again, as `retry` says, while the failure is
    /// [retryable](crate::message::Failure::is_retryable), the next attempt would begin before the
    /// call's deadline, and the caller's [`AbortSignal`](crate::AbortSignal) is not raised. The
    /// last attempt's result counts.
    ///
    /// All attempts are one call: one pair of events, one usage, and one budget of fuel, host
    /// calls and log, of which each attempt gets what is left. The handler sees the number of the
    /// attempt, from 1, as [`CallContext::attempt`](crate::CallContext::attempt). A wait is never
    /// shorter than the failure's own `retry_after`.
    ///
    /// All attempts share the call's deadline: a timeout can be retried only with
    /// [`Retry::with_attempt_timeout`].
    ///
    /// These are never retried: a trap, a panic, an `exit`, spent fuel, and a value that violates
    /// the tool's output schema, which is checked after the last attempt. Use it only for tools
    /// that can be called twice with the same arguments
    /// ([`Hints::idempotent`](crate::tool::Hints::idempotent)): an attempt that failed may have had
    /// its effect.
    ///
    /// With [`with_breaker`](Tool::with_breaker), the one that is added last is the outer one. Add
    /// the retry first: then a call counts once for the breaker, whatever its number of attempts,
    /// and an open circuit refuses it without an attempt.
    #[must_use]
    pub fn with_retry(self, retry: Retry) -> Self {
        self.with_middleware(Retrying(retry))
    }
}

/// A middleware that calls its handler until it succeeds or a retry is not possible.
struct Retrying(Retry);

impl Retrying {
    /// Returns the time of the next attempt, or `None` if the call is not retried.
    fn next(&self, call: &Invocation, failed: u32, result: &CallResult) -> Option<Instant> {
        let failure = Failure::of(result).filter(Failure::is_retryable)?;
        let asked = failure.retry_after().unwrap_or_default();
        if failed >= self.0.attempts || asked > self.0.max_delay {
            return None;
        }
        let delay = self.0.delay(failed, &mut Rng::new());
        let at = self.0.clock.now().checked_add(delay.max(asked))?;
        call.deadline().is_none_or(|deadline| at < deadline).then_some(at)
    }

    /// Sleeps until `at`. `None` if the call ends before that, by its deadline or because its
    /// caller aborts it.
    async fn sleep(&self, call: &Invocation, at: Instant) -> Option<()> {
        tokio::select! {
            biased;
            () = call.abort.raised() => None,
            slept = clock::before(call.deadline(), self.0.clock.sleep_until(at)) => slept,
        }
    }

    /// Makes the attempt that follows this many failed ones.
    async fn attempt(&self, inner: &dyn Handler, call: &Invocation, failed: u32) -> CallResult {
        let attempt = Arc::new(call.attempt_after(failed, self.0.attempt_timeout));
        let answer = inner.call(Arc::clone(&attempt));
        if self.0.attempt_timeout.is_none() {
            return answer.await;
        }
        let result = handler_wait::wait(inner, &attempt, answer).await.result();
        if call.remaining().is_zero() { of_the_call(call, result) } else { result }
    }
}

/// Turns the timeout of the last attempt, which had the call's remaining time, into that of the
/// call.
fn of_the_call(call: &Invocation, result: CallResult) -> CallResult {
    let CallResult::ToolError(ToolError::Timeout(timeout)) = result else { return result };
    CallResult::ToolError(ToolError::Timeout(
        timeout.with_durations(call.limits.timeout, call.started.elapsed()),
    ))
}

impl Middleware for Retrying {
    fn call<'a>(&'a self, inner: &'a dyn Handler, call: Arc<Invocation>) -> HandlerFuture<'a> {
        Box::pin(async move {
            let mut failed = 0;
            loop {
                let result = self.attempt(inner, &call, failed).await;
                failed += 1;
                let Some(at) = self.next(&call, failed, &result) else { return result };
                let tool = &call.call.name;
                tracing::debug!(%tool, failed, "an attempt failed and is made again");
                let Some(()) = self.sleep(&call, at).await else { return result };
            }
        })
    }
}

#[cfg(test)]
mod tests;
