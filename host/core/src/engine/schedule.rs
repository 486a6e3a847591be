//! Decides when each call of a guest runs, and on which thread.
//!
//! A guest is the WebAssembly code of a tool, and a cell is the fresh instance in which it runs one
//! call. `placement` is the entrance: it waits for a free cell (`tenant/queue`) and runs the call
//! until its answer or its deadline. A call runs in slices of about a millisecond. The first slice
//! runs in the `fast_lane`, unless `latency_class` predicts from the tenant's recent calls of the
//! component that the call is long; then it begins in the `slow_lane`. A call that needs more than
//! one slice continues in the `slow_lane`, on threads of lower priority, where tenants take turns
//! (`fair_queue`). A call that waited for the host continues on a third set of threads. `runtimes`
//! owns all these threads. `guest` moves a call between them, and kills it. `quarantine` refuses
//! components in whose calls the host panicked too often.

mod fair_queue;
mod fast_lane;
mod guest;
pub(super) mod in_use;
pub(super) mod latency_class;
pub(super) mod placement;
pub(super) mod quarantine;
pub(super) mod runtimes;
mod slow_lane;
