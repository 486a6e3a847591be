//! Code that runs around a tool's handler (its code), such as a log, a cache or a switch.
//!
//! An embedder (the program that uses this library) implements [`Middleware`] and adds it with
//! `Tool::with_middleware`; retries and circuit breakers are built in this way. For each call, the
//! middleware gets the inner handler and the invocation, and returns a result: its own, the
//! handler's, or a changed one. [`Layered`] makes a handler of the two. Only calls go through it;
//! visibility, validation and all other methods are passed on to the handler.

use std::sync::Arc;

use super::handler::{Handler, HandlerFuture, Invocation, ValidateFuture, VisibleFuture};

/// Runs around each call of a tool's handler: it can answer by itself, call the handler, or change
/// the handler's result.
///
/// [`Tool::with_middleware`](crate::Tool::with_middleware) adds one. The checks of the call run
/// before it, and the deadline includes it. The tool's visibility and its own check of arguments
/// bypass it and go to the handler.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use serde_json::{Value, json};
/// use toolcell::outcome::HandlerError;
/// use toolcell::tool::{Handler, HandlerFuture, Invocation, Middleware};
/// use toolcell::{CallOptions, CallResult, Definition, Executor, Outcome, Tool, ToolCall};
///
/// /// Answers each call with an error while it is switched on.
/// struct Maintenance(Arc<AtomicBool>);
///
/// impl Middleware for Maintenance {
///     fn call<'a>(&'a self, next: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a> {
///         if self.0.load(Ordering::Relaxed) {
///             let error = HandlerError::new("the orders are closed for maintenance");
///             return Box::pin(async { CallResult::Outcome(Outcome::Error(error)) });
///         }
///         next.call(invocation)
///     }
/// }
///
/// let is_closed = Arc::new(AtomicBool::new(true));
/// let tool = Tool::native(Definition::new("order", "Orders a chair.")?, async |_: Value| json!("ordered"))?
///     .with_middleware(Maintenance(Arc::clone(&is_closed)));
/// let order = async || Executor::new().call(&tool, ToolCall::new("1", "order", "{}"), CallOptions::default()).await.result;
/// assert!(matches!(order().await, CallResult::Outcome(Outcome::Error(_))));
/// is_closed.store(false, Ordering::Relaxed);
/// assert_eq!(order().await.value().map(|value| value.to_value()), Some(json!("ordered")));
/// # Ok(()) }
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Answers one call. `next` is the handler, or the middleware that was added before this one.
    ///
    /// # Cancel safety
    /// As [`Handler::call`].
    fn call<'a>(&'a self, next: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a>;
}

/// A handler inside a middleware.
pub(crate) struct Layered<M> {
    pub(crate) middleware: M,
    pub(crate) inner: Arc<dyn Handler>,
}

impl<M: Middleware> Handler for Layered<M> {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        self.middleware.call(&*self.inner, invocation)
    }

    fn visible(&self, invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        self.inner.visible(invocation)
    }

    fn validate(&self, invocation: Arc<Invocation>) -> ValidateFuture<'_> {
        self.inner.validate(invocation)
    }

    fn digest(&self) -> Option<&str> {
        self.inner.digest()
    }

    fn always_visible(&self) -> bool {
        self.inner.always_visible()
    }

    fn reads_arguments(&self) -> bool {
        self.inner.reads_arguments()
    }

    fn enforces_deadline(&self) -> bool {
        self.inner.enforces_deadline()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use toolcell_contract::call::CallResult;
    use toolcell_contract::outcome::Outcome;

    use super::*;
    use crate::os::clock::ManualClock;
    use crate::tool::scripted::{Scripted, ScriptedAnswer, assert_delegates, invocation};

    /// Answers by itself if it is on.
    struct Switch(bool);

    impl Middleware for Switch {
        fn call<'a>(
            &'a self,
            next: &'a dyn Handler,
            invocation: Arc<Invocation>,
        ) -> HandlerFuture<'a> {
            if self.0 {
                return Box::pin(async { CallResult::Outcome(Outcome::ok(json!("middleware"))) });
            }
            next.call(invocation)
        }
    }

    #[tokio::test]
    async fn middleware_wraps_calls_only() {
        let clock = ManualClock::new();
        for (is_on, expected) in [(true, json!("middleware")), (false, Value::Null)] {
            let inner = Arc::new(Scripted::new(&clock, &[ScriptedAnswer::Ok]));
            let handler = Layered { middleware: Switch(is_on), inner: inner.clone() };
            let call = Arc::new(invocation(&clock, Duration::from_secs(1)));
            let result = handler.call(call).await;
            assert_eq!(result, CallResult::Outcome(Outcome::ok(expected)));
            assert_eq!(inner.calls().len(), usize::from(!is_on));
            assert_delegates(&handler).await;
        }
    }
}
