//! How a run is to be made.

use std::sync::Arc;
use std::time::Duration;

use crate::call::{AbortSignal, CallContext, CallOptions};
use crate::error::Error;
use crate::grants::Overlay;
use crate::limits::{DEFAULT_TIMEOUT, Limits};
use crate::policy::OnToolError;

/// Calls at once, for each core, unless the options say otherwise. Source: contract, section 3.
const CALLS_PER_CORE: usize = 2;

/// How a run is to be made.
///
/// # Defaults
/// An empty context, no tightening, failures are passed on to the model, 30 s per call, as many calls at once as there are
/// calls but at most two per core, a signal that nobody raises.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// Where the calls come from. Forwarded to each as given.
    pub context: Arc<CallContext>,
    /// Tightens the executor's limits for each call.
    pub limits: Limits,
    /// What to do about failures.
    pub on_tool_error: OnToolError,
    /// Wall time of each call; never longer than the executor's limit and the tool's own.
    pub tool_timeout: Duration,
    /// How many calls may run at once; never exceeded.
    pub max_concurrency: Option<usize>,
    /// The caller's way to ask the handlers to stop early.
    pub abort: AbortSignal,
    /// Tightens the tools' rights; never widens them.
    pub overlay: Option<Arc<Overlay>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            context: Arc::default(),
            limits: Limits::unlimited(),
            on_tool_error: OnToolError::default(),
            tool_timeout: DEFAULT_TIMEOUT,
            max_concurrency: None,
            abort: AbortSignal::default(),
            overlay: None,
        }
    }
}

impl RunOptions {
    /// With this context.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<Arc<CallContext>>) -> Self {
        self.context = context.into();
        self
    }

    /// With these limits on top of the executor's.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With this policy.
    #[must_use]
    pub fn with_on_tool_error(mut self, policy: OnToolError) -> Self {
        self.on_tool_error = policy;
        self
    }

    /// With this wall time of each call.
    #[must_use]
    pub fn with_tool_timeout(mut self, timeout: Duration) -> Self {
        self.tool_timeout = timeout;
        self
    }

    /// With this many calls at once.
    #[must_use]
    pub fn with_max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = Some(calls);
        self
    }

    /// With only this much of the tools' rights.
    #[must_use]
    pub fn with_overlay(mut self, overlay: impl Into<Arc<Overlay>>) -> Self {
        self.overlay = Some(overlay.into());
        self
    }

    /// With this signal.
    #[must_use]
    pub fn with_abort(mut self, abort: AbortSignal) -> Self {
        self.abort = abort;
        self
    }

    /// The options of each of its calls.
    pub(super) fn of_a_call(&self) -> CallOptions {
        CallOptions {
            context: Arc::clone(&self.context),
            limits: self.limits.with_timeout(self.limits.timeout.min(self.tool_timeout)),
            abort: self.abort.clone(),
            overlay: self.overlay.clone(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.max_concurrency == Some(0) {
            return Err(Error::options("max_concurrency", "must be at least 1"));
        }
        if self.tool_timeout.is_zero() {
            return Err(Error::options("tool_timeout", "must be longer than nothing"));
        }
        Ok(())
    }

    /// How many of so many calls may run at once.
    #[must_use]
    pub fn concurrency(&self, calls: usize) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.max_concurrency.unwrap_or_else(|| calls.min(CALLS_PER_CORE * cores()).max(1))
    }
}
