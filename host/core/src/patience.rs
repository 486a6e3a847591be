//! How long a handler is waited for: until it answers, its time is over, or its caller ends the
//! call by force.
//!
//! In: a handler's future. Out: its answer, or the tool error that the call ends with instead.
//! Invariants: what a handler answers after the deadline does not count; a handler that is not
//! waited for any more is dropped.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::{Duration, Instant};

use crate::call::{AbortSignal, CallResult};
use crate::clock::reached;
use crate::defence::{Defence, stands};
use crate::handler::{Handler, Invocation};
use crate::tool_error::{Exit, Timeout, ToolError};

/// How long after the deadline a handler is waited for that keeps time by itself.
const GRACE: Duration = Duration::from_millis(250);

/// What came of a handler.
pub(crate) enum Waited<T> {
    /// It answered.
    InTime(T),
    /// It answered when its time was over: it had held its thread, or was not looked at before.
    Late(T, Timeout),
    /// It did not answer.
    Not(ToolError),
}

impl Waited<CallResult> {
    /// How the call ends. A late refusal or error is kept: it says more than that it was late.
    pub(crate) fn result(self) -> CallResult {
        match self {
            Self::Late(CallResult::Outcome(_), timeout) => {
                CallResult::ToolError(ToolError::Timeout(timeout))
            }
            Self::InTime(result) | Self::Late(result, _) => result,
            Self::Not(error) => CallResult::ToolError(error),
        }
    }
}

/// Waits for a handler's answer.
pub(crate) async fn wait<T>(
    handler: &dyn Handler,
    invocation: &Invocation,
    answer: impl Future<Output = T>,
) -> Waited<T> {
    let grace = if handler.keeps_time() { GRACE } else { Duration::ZERO };
    let until = invocation.deadline().and_then(|deadline| deadline.checked_add(grace));
    let until = until.filter(|_| stands(Defence::Patience));
    let mut answer = pin!(answer);
    // When it was last polled: one that began before the deadline and came back after it was at
    // work in between.
    let mut polled = invocation.started;
    let watched = poll_fn(|context| {
        polled = Instant::now();
        answer.as_mut().poll(context)
    });
    let said = tokio::select! {
        biased;
        said = watched => said,
        () = forced(&invocation.abort, invocation.stop_grace) => return Waited::Not(ToolError::HandlerExit(Exit::Cancelled)),
        () = reached(until) => return Waited::Not(ToolError::Timeout(blocked(invocation))),
    };
    // One that keeps time has said what came of it in time, however late the caller's thread looks
    // at it.
    match until.filter(|_| !handler.keeps_time()) {
        Some(until) if polled >= until => Waited::Late(said, blocked(invocation)),
        Some(until) if Instant::now() >= until => Waited::Late(said, running(invocation)),
        Some(_) | None => Waited::InTime(said),
    }
}

/// Ends when the caller's grace is over: from here on the call ends by force.
pub(crate) async fn forced(abort: &AbortSignal, stop_grace: Duration) {
    abort.raised().await;
    if !stop_grace.is_zero() {
        reached(Instant::now().checked_add(stop_grace)).await;
    }
}

/// Whether the call was ended by force before it began.
pub(crate) fn is_forced(invocation: &Invocation) -> bool {
    invocation.abort.is_raised() && invocation.stop_grace.is_zero()
}

/// The end of a handler that waited when its time was over.
pub(crate) fn blocked(invocation: &Invocation) -> Timeout {
    let (budget, used) = (invocation.limits.timeout, invocation.started.elapsed());
    Timeout::Blocked { budget, used, awaited: None, stdout: None }
}

/// The end of a handler that was at work when its time was over.
pub(crate) fn running(invocation: &Invocation) -> Timeout {
    Timeout::Deadline {
        budget: invocation.limits.timeout,
        used: invocation.started.elapsed(),
        stdout: None,
    }
}
