//! Decides when each call of a guest runs, and on which thread.
//!
//! `placement` is the entrance: it waits for a free cell in the `queue` and runs the call until its
//! answer or its deadline. A call runs in slices of about a millisecond. The first one runs in the
//! `fast_lane`. A call that needs more continues in the `slow_lane`, on threads of lower priority,
//! where tenants take turns (`fair_queue`). `latency_class` predicts which calls are long. `guest`
//! moves a call between the lanes (`runtimes`), and kills it. `quarantine` refuses components in
//! whose calls the host panicked too often.

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
