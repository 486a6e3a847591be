//! A native closure as a handler, in either of two signatures.
//!
//! In: a closure of the embedder. Out: a [`Handler`] that never lets a panic through.
//! Invariants: the deadline is kept for closures that await; one that computes without awaiting holds its thread, which
//! no host can take back: long work belongs into a component.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::call::CallResult;
use crate::handler::{Handler, HandlerFuture, Invocation};
use crate::outcome::Outcome;
use crate::tool_error::{Raised, RaisedKind, Timeout, ToolError};

/// Bytes of a panic's message that are kept.
const MESSAGE_CHARS: usize = 2048;

/// A closure that can answer calls: `f(arguments)` or `f(arguments, invocation)`, returning a future of anything that
/// becomes an [`Outcome`]: the outcome itself, a [`Value`], or a `Result` of a value and an error that prints.
#[diagnostic::on_unimplemented(
    message = "this closure is not a tool handler",
    label = "expected `async |arguments: serde_json::Value| …` or `async |arguments: serde_json::Value, invocation: Arc<toolcell::Invocation>| …`",
    note = "it must return an `Outcome`, a `serde_json::Value`, or `Result<serde_json::Value, E>` with `E: Display`"
)]
pub trait NativeFn<Shape>: Send + Sync + 'static {
    /// Answers.
    fn answer(&self, invocation: Arc<Invocation>) -> impl Future<Output = Outcome> + Send;
}

impl<F, Answer, Said> NativeFn<fn(Value) -> Said> for F
where
    F: Fn(Value) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Said> + Send,
    Said: Into<Outcome>,
{
    async fn answer(&self, invocation: Arc<Invocation>) -> Outcome {
        self(invocation.arguments.clone()).await.into()
    }
}

impl<F, Answer, Said> NativeFn<fn(Value, Arc<Invocation>) -> Said> for F
where
    F: Fn(Value, Arc<Invocation>) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Said> + Send,
    Said: Into<Outcome>,
{
    async fn answer(&self, invocation: Arc<Invocation>) -> Outcome {
        self(invocation.arguments.clone(), invocation).await.into()
    }
}

/// A closure as a handler.
pub(crate) struct Native<F, Shape> {
    function: F,
    shape: PhantomData<fn() -> Shape>,
}

impl<F: NativeFn<Shape>, Shape> Native<F, Shape> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, shape: PhantomData }
    }
}

impl<F: NativeFn<Shape>, Shape: 'static> Handler for Native<F, Shape> {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async move {
            let answer = AssertUnwindSafe(self.function.answer(Arc::clone(&invocation))).catch_unwind();
            match before(invocation.deadline(), answer).await {
                Some(Ok(outcome)) => CallResult::Outcome(outcome),
                Some(Err(panic)) => CallResult::ToolError(panicked(&*panic)),
                None => CallResult::ToolError(overdue(&invocation)),
            }
        })
    }
}

/// A handler's panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let mut raised = Raised::new(RaisedKind::NativePanic);
    raised.panic_message = Some(panic_message(panic));
    ToolError::HandlerRaised(raised)
}

/// A handler that has not answered in time.
pub(crate) fn overdue(invocation: &Invocation) -> ToolError {
    ToolError::Timeout(Timeout::Blocked { budget: invocation.limits.timeout, used: invocation.started.elapsed() })
}

/// Waits for a future until a deadline.
pub(crate) async fn before<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = reached(deadline) => None,
    }
}

/// The timers of native handlers, which have no engine: a call needs no runtime of its caller's.
static TIMERS: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread().worker_threads(1).thread_name("toolcell-native-timer").enable_time().build().ok()
});

/// Ends at the deadline. Never, where there is none or where the process cannot have one more thread.
async fn reached(deadline: Option<Instant>) {
    let timer = deadline.zip(TIMERS.as_ref()).map(|(deadline, timers)| {
        let _here = timers.enter();
        tokio::time::sleep_until(deadline.into())
    });
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}

/// What a panic said, shortened.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message");
    text.chars().take(MESSAGE_CHARS).collect()
}
