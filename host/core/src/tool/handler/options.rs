//! The options that a caller passes with one call.
//!
//! The executor takes [`CallOptions`] beside the call itself. They name the context of the call
//! (session, tenant, metadata), limits that tighten the executor's own, a signal that ends the call
//! early, and an overlay: rules that can only narrow the tool's rights. They also hold the files
//! that a component can read. Runs and steps pass their own options on in this type.
//!
//! Not here: a call and its result, which are data of the package `toolcell-contract`.

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
