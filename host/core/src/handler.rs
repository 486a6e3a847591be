//! What runs for a tool.
//!
//! In: an [`Invocation`], already checked against the tool's schema. Out: a [`CallResult`].
//! Two implementations: a component's export (`wasm`) and a native closure (`native`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::call::{AbortSignal, CallContext, CallResult, ToolCall};
use crate::event::{CallEvents, Event};
use crate::limits::Limits;
use crate::usage::Meter;

/// A future of a handler.
pub type HandlerFuture<'a> = Pin<Box<dyn Future<Output = CallResult> + Send + 'a>>;

/// What runs for a tool. The executor adds the checks before, the deadline around and the receipt after.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call.
    ///
    /// # Cancel safety
    /// The future is dropped when the caller goes away or the deadline passes: it must give everything back then. A panic
    /// in it ends this call only.
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_>;

    /// Whether it watches the deadline by itself and can say more of how the time went. The executor then waits for its
    /// word a moment longer; any other handler is dropped at the deadline.
    fn keeps_time(&self) -> bool {
        false
    }
}

/// One call on its way to a handler.
#[derive(Debug)]
#[non_exhaustive]
pub struct Invocation {
    /// The call as it came.
    pub call: ToolCall,
    /// Its arguments as a tree: an object that fits the tool's schema.
    pub arguments: Value,
    /// Where it comes from.
    pub context: CallContext,
    /// What it may use: the smaller of the executor's limits, the call's and the tool's own.
    pub limits: Limits,
    /// When the call came.
    pub started: Instant,
    /// The caller's wish to end early.
    pub abort: AbortSignal,
    pub(crate) events: CallEvents,
    pub(crate) meter: Meter,
}

impl Invocation {
    /// When the call's time is over; none where that is beyond what a clock can say.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.started.checked_add(self.limits.timeout)
    }

    /// Time left.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.limits.timeout.saturating_sub(self.started.elapsed())
    }

    /// Tells observers how far the call has come.
    pub fn progress(&self, done: u64, total: Option<u64>, message: Option<String>) {
        self.events.emit(|| Event::Progress { id: self.call.id.clone(), done, total, message });
    }
}
