//! Decides when and on which thread a cell runs.

mod fair_queue;
mod fast_lane;
mod guest;
pub(super) mod in_use;
pub(super) mod latency_class;
pub(super) mod placement;
pub(super) mod quarantine;
pub(crate) mod queue;
pub(super) mod runtimes;
mod slow_lane;
