//! Applies the policy for failures to a failed call, and asks its function with a time limit.
//!
//! A run or a step calls [`decide`] for each failure. An async function of the embedder (the program
//! that uses this library) runs in the call's own task, a blocking one on a thread of its own. One
//! that panics or gives no answer in time halts the loop; neither makes the run hang. Blocking
//! functions that never return keep their threads, so their number is bounded for each runner, and
//! they do not hold up other runners.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use toolcell_contract::call::{AbortSignal, ToolCall};
use toolcell_contract::json::Json;
use toolcell_contract::message::failure::Failure;
use toolcell_contract::outcome::tool_error::{Exit, ReturnRule, ToolError};
use toolcell_contract::panic_guard::{GuardedFuture, Panic, into_text};

use crate::os::clock::before;
use crate::run::policy::{Decide, OnToolError, Policy, PolicyKind, Verdict};
use crate::tool::handler_wait::forced;

/// The maximum number of blocking functions of one runner or stepper that run at the same time,
/// those that never return included.
pub(crate) const MAX_BLOCKING: usize = 64;

/// The effect of the policy on a failed call.
pub(crate) enum Decision<Encoded> {
    /// The model gets the failure.
    Report(Failure),
    /// The model gets this value in place of the failure.
    Replace(Encoded),
    /// The model gets the failure, and the loop halts. The text says what happened to the policy
    /// function, if that is the reason.
    Halt(Failure, Option<String>),
}

/// Applies the policy to the failure of a call. A function does not decide if the caller has ended
/// the call, or ends it meanwhile: the failure is reported unchanged. `stop` is called only for a
/// function, and returns the signal of that end and the grace after it. If `encode` fails, the loop
/// halts.
pub(crate) async fn decide<Encoded>(
    policy: &OnToolError,
    (places, budget): (&Arc<Semaphore>, Duration),
    call: impl FnOnce() -> ToolCall,
    failure: Failure,
    stop: impl FnOnce() -> (AbortSignal, Duration),
    encode: impl FnOnce(&Json) -> Result<Encoded, Failure>,
) -> Decision<Encoded> {
    let function = match policy {
        OnToolError::Continue => return Decision::Report(failure),
        OnToolError::Halt => return Decision::Halt(failure, None),
        OnToolError::Decide(function) => function,
    };
    let (abort, stop_grace) = stop();
    let is_cancelled =
        matches!(failure, Failure::ToolError(ToolError::HandlerExit(Exit::Cancelled)));
    if is_cancelled && abort.is_raised() {
        return Decision::Report(failure);
    }
    let verdict = tokio::select! {
        biased;
        verdict = ask(places, budget, function, call(), failure.clone()) => verdict,
        () = forced(&abort, stop_grace) => return Decision::Report(failure),
    };
    match verdict {
        Ok(Verdict::Continue(value)) => {
            encode(&value).map_or_else(|failure| Decision::Halt(failure, None), Decision::Replace)
        }
        Ok(Verdict::Halt) => Decision::Halt(failure, None),
        Err(exception) => {
            let rule = ReturnRule::Policy { detail: exception.clone() };
            Decision::Halt(Failure::ToolError(ToolError::InvalidReturn(rule)), Some(exception))
        }
    }
}

/// Asks the function, with a time limit from now. The error says what happened to the function, as
/// the end of a sentence about it.
async fn ask(
    places: &Arc<Semaphore>,
    budget: Duration,
    policy: &Policy,
    call: ToolCall,
    failure: Failure,
) -> Result<Verdict, String> {
    let deadline = || Instant::now().checked_add(budget);
    let answer = match &policy.0 {
        PolicyKind::Blocking(function) => {
            before(deadline(), on_a_thread(places, Arc::clone(function), call, failure)).await
        }
        PolicyKind::Async(function) => {
            let answer = GuardedFuture::new(|| function(call, failure));
            before(deadline(), answer).await.map(|answer| answer.map_err(panicked))
        }
    };
    answer.unwrap_or_else(|| Err(format!("gave no answer within {budget:?}")))
}

fn panicked(panic: Panic) -> String {
    format!("panicked: {}", into_text(panic))
}

async fn on_a_thread(
    places: &Arc<Semaphore>,
    function: Arc<Decide>,
    call: ToolCall,
    failure: Failure,
) -> Result<Verdict, String> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(|error| format!("could not be asked: {error}"))?;
    // The runtime and the tracing span of the run are entered for the function.
    let (runtime, span) = (Handle::try_current().ok(), tracing::Span::current());
    let (answered, answer) = oneshot::channel();
    let decide = move || {
        let _runtime = runtime.as_ref().map(Handle::enter);
        let verdict =
            catch_unwind(AssertUnwindSafe(|| span.in_scope(|| function(&call, &failure))));
        drop(place);
        let _ = answered.send(verdict.map_err(panicked));
    };
    let started = thread::Builder::new().name("toolcell-policy".into()).spawn(decide);
    started.map_err(|error| format!("could not be asked: {error}"))?;
    answer.await.unwrap_or_else(|_| Err("did not answer".into()))
}
