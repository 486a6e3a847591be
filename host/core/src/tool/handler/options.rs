//! Options of one call.

use std::sync::Arc;
use std::time::Duration;

use toolcell_contract::call::{AbortSignal, CallContext};
use toolcell_contract::grants::Overlay;
use toolcell_contract::limits::Limits;

use crate::capability::files::CallFiles;

/// Options of one call: its context, limits, abort signal and overlay.
///
/// # Defaults
/// An empty context, no tightening, a signal that is never raised, [`AbortSignal::DEFAULT_GRACE`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// The context of the call. It is shared by the calls of a run.
    pub context: Arc<CallContext>,
    /// Tightens the executor's limits.
    pub limits: Limits,
    /// Ends the call early: the handler is asked to end, and is ended by force after
    /// [`stop_grace`](Self::stop_grace). If the signal is raised before the call begins, the call
    /// is made only if there is a grace.
    pub abort: AbortSignal,
    /// The time that the handler has to end by itself once `abort` is raised. With
    /// [`Duration::MAX`], it is never ended by force.
    pub stop_grace: Duration,
    /// Narrows the tool's rights.
    pub overlay: Option<Arc<Overlay>>,
    /// Files that the tool can read, if it is a component.
    pub files: Option<CallFiles>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            context: Arc::default(),
            limits: Limits::unlimited(),
            abort: AbortSignal::default(),
            stop_grace: AbortSignal::DEFAULT_GRACE,
            overlay: None,
            files: None,
        }
    }
}

impl CallOptions {
    /// Sets the context of the call.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<Arc<CallContext>>) -> Self {
        self.context = context.into();
        self
    }

    /// Tightens the executor's limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the signal that ends the call early.
    #[must_use]
    pub fn with_abort(mut self, abort: AbortSignal) -> Self {
        self.abort = abort;
        self
    }

    /// Sets the time that the handler has to end by itself once the signal is raised.
    #[must_use]
    pub fn with_stop_grace(mut self, grace: Duration) -> Self {
        self.stop_grace = grace;
        self
    }

    /// Narrows the tool's rights.
    #[must_use]
    pub fn with_overlay(mut self, overlay: impl Into<Arc<Overlay>>) -> Self {
        self.overlay = Some(overlay.into());
        self
    }

    /// Gives the tool these files to read, if it is a component.
    #[must_use]
    pub fn with_files(mut self, files: CallFiles) -> Self {
        self.files = Some(files);
        self
    }
}
