//! Makes a handler (the code of a tool) of an async Rust closure, in either of two signatures.
//!
//! [`Tool::native`](crate::Tool::native) takes a closure `async |arguments| …`, or one that takes
//! the invocation as well, and returns a tool. Both kinds of closures implement [`NativeFn`]. For
//! each call, [`Native`] calls a clone of the closure and turns its answer into an [`Outcome`]. The
//! executor enforces the deadline while the closure awaits; a closure that blocks instead holds the
//! thread that polls it.
//!
//! Not here: closures that block, in `blocking`.

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;
use toolcell_contract::call::CallResult;
use toolcell_contract::outcome::Outcome;

use super::handler::{Handler, HandlerFuture, Invocation};

/// A closure that can answer calls: `f(arguments)` or `f(arguments, invocation)`. It returns a
/// future of any type that converts into an [`Outcome`]: the outcome itself, an
/// [`Output`](crate::outcome::Output), a [`Value`], or a `Result` of one of these with a
/// [`HandlerError`](crate::outcome::HandlerError) or any error that implements `Display`, whose
/// text becomes the message.
///
/// The arguments are those of [`Invocation::arguments`]: a whole number that a [`Value`] cannot
/// hold exactly is a string with all its digits.
///
/// Each call runs a clone of the closure, so captured values must be `Clone`: share state by an
/// `Arc`.
#[diagnostic::on_unimplemented(
    message = "this closure is not a tool handler",
    label = "expected `async |arguments: serde_json::Value| …` or `async |arguments: serde_json::Value, invocation: Arc<toolcell::tool::Invocation>| …`",
    note = "it must return an `Outcome`, an `Output`, a `serde_json::Value`, or `Result<T, E>` with `T` one of them and `E` a `HandlerError` or `Display`",
    note = "a closure that is not `async` is a handler for `Tool::native_blocking`"
)]
pub trait NativeFn<Shape>: Send + Sync + 'static {
    /// Answers one call.
    ///
    /// # Cancel safety
    /// As [`Handler::call`].
    fn answer(&self, invocation: Arc<Invocation>) -> impl Future<Output = Outcome> + Send;
}

impl<F, Answer, Said> NativeFn<fn(Value) -> Said> for F
where
    F: FnOnce(Value) -> Answer + Clone + Send + Sync + 'static,
    Answer: Future<Output = Said> + Send,
    Said: Into<Outcome>,
{
    async fn answer(&self, invocation: Arc<Invocation>) -> Outcome {
        // The clone is called once. Only then does the future of an `async move` closure borrow
        // nothing from it.
        self.clone()(invocation.take_arguments()).await.into()
    }
}

impl<F, Answer, Said> NativeFn<fn(Value, Arc<Invocation>) -> Said> for F
where
    F: FnOnce(Value, Arc<Invocation>) -> Answer + Clone + Send + Sync + 'static,
    Answer: Future<Output = Said> + Send,
    Said: Into<Outcome>,
{
    async fn answer(&self, invocation: Arc<Invocation>) -> Outcome {
        self.clone()(invocation.take_arguments(), invocation).await.into()
    }
}

/// The [`Handler`] of a closure.
pub(crate) struct Native<F, Shape> {
    pub(crate) function: F,
    pub(crate) shape: PhantomData<fn() -> Shape>,
}

impl<F: NativeFn<Shape>, Shape: 'static> Handler for Native<F, Shape> {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async move { CallResult::Outcome(self.function.answer(invocation).await) })
    }

    fn always_visible(&self) -> bool {
        true
    }
}
