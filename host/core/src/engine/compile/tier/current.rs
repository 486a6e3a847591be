//! Code that a component's calls run on now, which optimised code replaces at most once.
//!
//! A load creates a [`Current`], settled or with quick code (compiled without the optimiser) that
//! may be replaced. Each call asks `ready` for the code. The optimiser calls `replace` with better
//! code, or `settle_unoptimised` if there will be none; the first of these calls counts. `last`
//! waits for that decision.
//! Invariants: a call ends on the code that it began on, which lives until then. Settled code costs
//! a call one load of an atomic, and no lock.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::SetOnce;

use super::CodeTier;
use crate::engine::cell::invoke::Ready;

/// The code of a component.
pub(in crate::engine) struct Current<R = Ready> {
    /// The code for calls until it is settled.
    now: RwLock<Arc<R>>,
    settled: SetOnce<(Arc<R>, CodeTier)>,
}

impl<R> Current<R> {
    /// Builds code that is not replaced.
    pub(in crate::engine) fn settled(ready: Arc<R>, code: CodeTier) -> Self {
        let settled = SetOnce::new_with(Some((Arc::clone(&ready), code)));
        Self { now: RwLock::new(ready), settled }
    }

    /// Builds code that is replaced when the compiler has better code.
    pub(in crate::engine) fn unoptimised(ready: Arc<R>) -> Self {
        Self { now: RwLock::new(ready), settled: SetOnce::new() }
    }

    /// Returns the code for a call that begins now.
    pub(in crate::engine) fn ready(&self) -> Arc<R> {
        match self.settled.get() {
            Some((ready, _)) => Arc::clone(ready),
            None => Arc::clone(&self.now.read()),
        }
    }

    /// Returns the kind of that code.
    pub(in crate::engine) fn code(&self) -> CodeTier {
        self.settled.get().map_or(CodeTier::Quick, |(_, code)| *code)
    }

    /// Waits until the code does not change any more, and returns its kind.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub(in crate::engine) async fn last(&self) -> CodeTier {
        self.settled.wait().await.1
    }

    /// Settles on this optimised code for later calls.
    pub(in crate::engine) fn replace(&self, ready: Arc<R>) {
        // The quick code is dropped with its last call.
        *self.now.write() = Arc::clone(&ready);
        self.settle(ready, CodeTier::Optimised);
    }

    /// Settles on the present code.
    pub(in crate::engine) fn settle_unoptimised(&self) {
        self.settle(self.ready(), CodeTier::Unoptimised);
    }

    fn settle(&self, ready: Arc<R>, code: CodeTier) {
        // It may be settled already: the first call counts.
        let _ = self.settled.set((ready, code));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn call_ends_on_the_code_it_started_with() {
        let quick = Arc::new("quick");
        let current = Current::unoptimised(Arc::clone(&quick));
        let in_flight = current.ready();
        assert_eq!((current.code(), current.last().now_or_never()), (CodeTier::Quick, None));
        current.replace(Arc::new("optimised"));
        assert_eq!((*in_flight, *current.ready()), ("quick", "optimised"));
        assert_eq!(current.code(), CodeTier::Optimised);
        assert_eq!(current.last().now_or_never(), Some(CodeTier::Optimised));
        drop(in_flight);
        assert_eq!(Arc::strong_count(&quick), 1, "the quick code is not freed");
    }

    #[test]
    fn first_tier_decision_is_final() {
        let current = Current::unoptimised(Arc::new("quick"));
        current.settle_unoptimised();
        current.settle_unoptimised();
        assert_eq!(*current.ready(), "quick");
        assert_eq!(current.last().now_or_never(), Some(CodeTier::Unoptimised));
        let settled = Current::settled(Arc::new("optimised"), CodeTier::Optimised);
        settled.settle_unoptimised();
        assert_eq!((*settled.ready(), settled.code()), ("optimised", CodeTier::Optimised));
    }
}
