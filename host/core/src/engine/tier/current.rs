//! The code that a component's calls run on now, which is replaced once at most.
//!
//! Invariants: a call ends on the code it began on, which lives until then; what is settled costs a call one load of an
//! atomic, and no lock.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::SetOnce;

use super::Code;
use crate::engine::compile::Leash;
use crate::engine::invoke::Ready;

/// The code of a component.
pub(in crate::engine) struct Current {
    /// What calls get until it is settled.
    now: RwLock<Arc<Ready>>,
    settled: SetOnce<(Arc<Ready>, Code)>,
    /// Ends the compiler when nobody has the component any more.
    _leash: Option<Leash>,
}

impl Current {
    /// Code that stays.
    pub(in crate::engine) fn settled(ready: Arc<Ready>, code: Code) -> Self {
        let settled = SetOnce::new_with(Some((Arc::clone(&ready), code)));
        Self { now: RwLock::new(ready), settled, _leash: None }
    }

    /// Code that better code will replace, if the compiler on this leash has it.
    pub(in crate::engine) fn quick(ready: Arc<Ready>, leash: Leash) -> Self {
        Self { now: RwLock::new(ready), settled: SetOnce::new(), _leash: Some(leash) }
    }

    /// What a call that begins now runs on.
    pub(in crate::engine) fn ready(&self) -> Arc<Ready> {
        match self.settled.get() {
            Some((ready, _)) => Arc::clone(ready),
            None => Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// What that is.
    pub(in crate::engine) fn code(&self) -> Code {
        self.settled.get().map_or(Code::Quick, |(_, code)| *code)
    }

    /// Waits until it does not change any more.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub(in crate::engine) async fn last(&self) -> Code {
        self.settled.wait().await.1
    }

    /// Has later calls run on this.
    pub(in crate::engine) fn replace(&self, ready: Arc<Ready>) {
        // The quick code goes with its last call.
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&ready);
        self.settle(ready, Code::Optimised);
    }

    /// Leaves it as it is.
    pub(in crate::engine) fn keep(&self) {
        self.settle(self.ready(), Code::Unoptimised);
    }

    fn settle(&self, ready: Arc<Ready>, code: Code) {
        // Settled before: the first word counts.
        let _ = self.settled.set((ready, code));
    }
}
