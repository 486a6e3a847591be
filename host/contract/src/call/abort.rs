//! Signals with which a caller ends one call, or one call of a run, before it has finished.
//!
//! An embedder (the program that uses this library) puts an [`AbortSignal`] into the options of a
//! call or run and raises it when the call is to end. For a run of many calls, a [`CallCanceller`]
//! raises the signal of one call by its id. A raised signal stays raised. The handler, which is the
//! code that answers the call, sees the signal and may end by itself; after the grace period of the
//! options, which is zero by default, the call is ended by force.
//!
//! Not here: the code that waits for the grace period and ends the call, in `tool/handler_wait.rs`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// A signal with which a caller ends calls early. Clones are the same signal.
///
/// Once it is raised, handlers see it and may end by themselves. A call that has not ended when the
/// grace of its options is over (`CallOptions::stop_grace`) is ended by force: its handler's future
/// is dropped, a guest stops at its next tick, and the connections of its requests are closed. It
/// ends as `handler_exit` with the status `cancelled`. A call that ended by itself keeps its result.
///
/// # Defaults
/// A signal that is never raised.
#[derive(Clone, Default)]
pub struct AbortSignal(Option<CancellationToken>);

impl AbortSignal {
    /// Time between a raised [`AbortSignal`] and the forced end of the call. It is zero for calls,
    /// runs and steps. Raise it if handlers need time to clean up.
    pub const DEFAULT_GRACE: Duration = Duration::ZERO;

    /// Creates a signal that can be raised.
    #[must_use]
    pub fn new() -> Self {
        Self(Some(CancellationToken::new()))
    }

    /// Raises the signal permanently. Does nothing to a `default()` signal.
    pub fn raise(&self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }

    /// Returns true if the signal is raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Completes when the signal is raised.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub async fn raised(&self) {
        match &self.0 {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns a signal that is raised together with this one, and can also be raised on its own.
    fn child(&self) -> Self {
        Self(Some(
            self.0.as_ref().map_or_else(CancellationToken::new, CancellationToken::child_token),
        ))
    }
}

impl fmt::Debug for AbortSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AbortSignal").field(&self.is_raised()).finish()
    }
}

/// Ends single calls of a run by their ids. Made for one run, whose options get a clone of it.
///
/// Until it is dropped, it keeps a signal for each id that was passed to it: make a new one for
/// each run.
#[derive(Clone, Default)]
pub struct CallCanceller(Arc<Mutex<HashMap<String, AbortSignal>>>);

impl CallCanceller {
    /// Creates a canceller for one run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the call with this id, as a raised [`AbortSignal`] would: the call is asked to end,
    /// and ended by force after the run's grace. A call that waits for its turn never starts, and
    /// ends as `cancelled` when its turn comes. Other calls go on. Nothing happens to a call that
    /// has ended. If the run has not started, the id is remembered for it.
    pub fn cancel(&self, id: &str) {
        let signal =
            self.0.lock().entry(id.to_owned()).or_insert_with_key(|_| AbortSignal::new()).clone();
        signal.raise();
    }

    /// Returns the signal of one call of a run. It is raised if the id was cancelled before, or if
    /// the signal of the run is.
    #[doc(hidden)]
    pub fn signal(&self, run: &AbortSignal, id: &str) -> AbortSignal {
        let mut signals = self.0.lock();
        if let Some(cancelled) = signals.get(id).filter(|signal| signal.is_raised()) {
            return cancelled.clone();
        }
        let signal = run.child();
        signals.insert(id.to_owned(), signal.clone());
        signal
    }
}

impl fmt::Debug for CallCanceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallCanceller").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_can_be_cancelled_alone_or_with_its_run() {
        let (run, canceller) = (AbortSignal::new(), CallCanceller::new());
        canceller.cancel("early");
        let [early, one, other] = ["early", "one", "other"].map(|id| canceller.signal(&run, id));
        let raised = || [&early, &one, &other, &run].map(AbortSignal::is_raised);
        assert_eq!(raised(), [true, false, false, false]);
        canceller.cancel("one");
        assert_eq!(raised(), [true, true, false, false]);
        run.raise();
        assert_eq!(raised(), [true; 4]);
        assert!(canceller.signal(&run, "later").is_raised());
    }
}
