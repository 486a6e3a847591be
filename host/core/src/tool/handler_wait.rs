//! Waits for a handler (the code of a tool) until it answers, its time is over, or its caller ends
//! the call by force.
//!
//! The executor and the retry pass a handler's future to [`wait`]. The [`WaitResult`] is the
//! answer, a late answer, or the tool error that the call ends with instead: a timeout, or
//! cancelled after the abort signal was raised and the grace period is over. An outcome that comes
//! after the deadline does not count. A handler that watches the deadline by itself gets 250 ms
//! more, so that its own error can arrive. A handler that is no longer awaited is dropped.
//!
//! Runs, steps and the command only raise the signal and choose the grace period. They leave the
//! waiting to this module.

use std::future::poll_fn;
use std::pin::pin;
use std::time::{Duration, Instant};

use toolcell_contract::call::{AbortSignal, CallResult};
use toolcell_contract::controls::bound;
use toolcell_contract::outcome::tool_error::{Exit, Timeout, ToolError};

use super::handler::{Handler, Invocation};
use crate::os::clock::until_deadline;

/// The time after the deadline for a handler that watches the deadline by itself
/// ([`Handler::enforces_deadline`]), so that its own error can arrive.
const GRACE: Duration = Duration::from_millis(250);

/// The result of waiting for a handler.
pub(crate) enum WaitResult<T> {
    /// The handler answered in time.
    InTime(T),
    /// The handler answered after its deadline: it blocked its thread, or was not polled before.
    Late(T, Timeout),
    /// The handler did not answer; the call ends with this error.
    Unanswered(ToolError),
}

impl WaitResult<CallResult> {
    /// Returns the result of the call. A late refusal or error is kept, because it says more than a
    /// timeout.
    pub(crate) fn result(self) -> CallResult {
        match self {
            Self::Late(CallResult::Outcome(_), timeout) => {
                CallResult::ToolError(ToolError::Timeout(timeout))
            }
            Self::InTime(result) | Self::Late(result, _) => result,
            Self::Unanswered(error) => CallResult::ToolError(error),
        }
    }
}

/// Waits for a handler's answer, its deadline or the forced end of the call.
pub(crate) async fn wait<T>(
    handler: &dyn Handler,
    invocation: &Invocation,
    answer: impl Future<Output = T>,
) -> WaitResult<T> {
    let grace = if handler.enforces_deadline() { GRACE } else { Duration::ZERO };
    let end = invocation.deadline().and_then(|deadline| deadline.checked_add(grace));
    let until = bound!(Patience, end);
    let mut answer = pin!(answer);
    // The time of the last poll. If that poll began before the deadline and returned after it, the
    // handler was running in between.
    let mut polled = invocation.started;
    let watched = poll_fn(|context| {
        polled = Instant::now();
        answer.as_mut().poll(context)
    });
    let said = tokio::select! {
        biased;
        said = watched => said,
        () = forced(&invocation.abort, invocation.stop_grace) => return WaitResult::Unanswered(ToolError::HandlerExit(Exit::Cancelled)),
        () = until_deadline(until) => return WaitResult::Unanswered(ToolError::Timeout(blocked(invocation))),
    };
    // The answer of a handler that keeps time counts as in time, however late the caller's thread
    // reads it.
    match until.filter(|_| !handler.enforces_deadline()) {
        Some(until) if polled >= until => WaitResult::Late(said, blocked(invocation)),
        Some(until) if Instant::now() >= until => WaitResult::Late(said, running(invocation)),
        Some(_) | None => WaitResult::InTime(said),
    }
}

/// Completes when the abort signal was raised and the grace is over: from then on the call is ended
/// by force.
pub(crate) async fn forced(abort: &AbortSignal, stop_grace: Duration) {
    abort.raised().await;
    if !stop_grace.is_zero() {
        until_deadline(Instant::now().checked_add(stop_grace)).await;
    }
}

/// Returns true if the call was ended by force before it began.
pub(crate) fn is_forced(invocation: &Invocation) -> bool {
    invocation.abort.is_raised() && invocation.stop_grace.is_zero()
}

/// The timeout of a handler that was waiting when its time was over.
pub(crate) fn blocked(invocation: &Invocation) -> Timeout {
    let (budget, used) = (invocation.limits.timeout, invocation.started.elapsed());
    Timeout::Blocked { budget, used, blocked_on: None, stdout: None }
}

/// The timeout of a handler that was running when its time was over.
pub(crate) fn running(invocation: &Invocation) -> Timeout {
    Timeout::Deadline {
        budget: invocation.limits.timeout,
        used: invocation.started.elapsed(),
        stdout: None,
    }
}
