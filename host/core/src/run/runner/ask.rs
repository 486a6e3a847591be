//! Asks a policy function of the embedder (the program that uses this library) about a failed call,
//! with a time limit.
//!
//! A run or a step calls [`ask`] when its policy is a function. An async function runs in the
//! call's own task, a blocking one on a thread of its own. The result is the verdict, or an error
//! that says that the function panicked or gave no answer in time; neither makes the run hang.
//! Blocking functions that never return keep their threads, so their number is bounded for each
//! runner, and they do not hold up other runners.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use toolcell_contract::call::ToolCall;
use toolcell_contract::message::failure::Failure;
use toolcell_contract::panic_guard::{GuardedFuture, Panic, into_text};

use crate::os::clock::before;
use crate::run::policy::{Decide, Policy, PolicyKind, Verdict};

/// The maximum number of blocking functions of one runner or stepper that run at the same time,
/// those that never return included.
pub(crate) const MAX_BLOCKING: usize = 64;

/// Asks the function, with a time limit from now. The error says what happened to the function, as
/// the end of a sentence about it.
pub(crate) async fn ask(
    places: &Arc<Semaphore>,
    budget: Duration,
    policy: &Policy,
    call: ToolCall,
    failure: Failure,
) -> Result<Verdict, String> {
    match &policy.0 {
        PolicyKind::Blocking(function) => {
            on_a_thread(places, budget, Arc::clone(function), call, failure).await
        }
        PolicyKind::Async(function) => {
            let answer = GuardedFuture::new(|| function(call, failure));
            match before(Instant::now().checked_add(budget), answer).await {
                Some(answer) => answer.map_err(panicked),
                None => Err(timeout_text(budget)),
            }
        }
    }
}

fn timeout_text(budget: Duration) -> String {
    format!("gave no answer within {budget:?}")
}

fn panicked(panic: Panic) -> String {
    format!("panicked: {}", into_text(panic))
}

async fn on_a_thread(
    places: &Arc<Semaphore>,
    budget: Duration,
    function: Arc<Decide>,
    call: ToolCall,
    failure: Failure,
) -> Result<Verdict, String> {
    let deadline = Instant::now().checked_add(budget);
    let silent = || timeout_text(budget);
    let place = before(deadline, Arc::clone(places).acquire_owned())
        .await
        .and_then(Result::ok)
        .ok_or_else(silent)?;
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
    match before(deadline, answer).await {
        Some(answer) => answer.unwrap_or_else(|_| Err("did not answer".into())),
        None => Err(silent()),
    }
}
