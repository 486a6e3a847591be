//! What stands around a handler: it has its way with calls, everything else is the handler's own.
//!
//! Invariants: whatever a handler says of itself is said through any number of layers.

use std::sync::Arc;

use crate::handler::{Handler, HandlerFuture, Invocation, ValidateFuture, VisibleFuture};

/// Answers calls by way of the handler inside.
pub(crate) trait Layer: Send + Sync + 'static {
    /// Answers one call.
    fn call<'a>(&'a self, inner: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a>;
}

/// A handler within a layer.
pub(crate) struct Layered<L> {
    pub(crate) layer: L,
    pub(crate) inner: Arc<dyn Handler>,
}

impl<L: Layer> Handler for Layered<L> {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        self.layer.call(&*self.inner, invocation)
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

    fn keeps_time(&self) -> bool {
        self.inner.keeps_time()
    }
}
