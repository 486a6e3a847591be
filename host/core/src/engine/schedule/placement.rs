//! Runs cells on the engine's threads or in the caller's task, and watches their deadlines.
//!
//! A cell is the wasmtime store of one call. A loaded component calls [`execute`] for a call,
//! [`run_check`] for `visible` and `validate`, and the loader [`describe`]. Each waits for a slot
//! in the queue of the engine, runs the guest (the WebAssembly code of a tool), and returns its
//! answer, or a timeout at the deadline, whatever the guest does. If no slot becomes free in time,
//! the call is refused as overloaded. A panic of the host in the cell becomes an error of the call,
//! and counts for the quarantine of the component.
//! [`Placement`] chooses the threads: those of the engine, with a lower priority, or the caller's
//! task.
//! Invariants: a slot is held for as long as the cell lives, also when no caller waits for it any
//! more. The caller's timer never runs on a thread that runs guests. A call that a tool makes of
//! another tool needs no slot.

use std::future::Future;
use std::num::NonZero;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::runtime::Handle;
use toolcell_contract::call::CallResult;
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::definition::{Checks, Definition};
use toolcell_contract::error::Error;
use toolcell_contract::grants::rights::Rights;
use toolcell_contract::outcome::refusal::{RETRY_AFTER, Refusal};
use toolcell_contract::outcome::tool_error::{Crash, Exit, Timeout, ToolError};
use toolcell_contract::panic_guard::dispose;

use super::guest::{Guest, Remote};
use super::latency_class::{Flow, LatencyClass};
use super::quarantine::Quarantine;
use super::runtimes::Lanes;
use crate::engine::cell::bounds::run_state::RunState;
use crate::engine::cell::output::lines::Lines;
use crate::engine::cell::{invoke, translate};
use crate::os::clock::{Clock, before};
use crate::tenant::queue::{Queue, Slot};
use crate::tenant::state::PerTenant;
use crate::tool::handler::Invocation;

/// The threads on which guests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Placement {
    /// On threads of their own, with a lower priority than the caller's: a hostile guest cannot
    /// delay a timer of the host. It costs a few microseconds to hand a call over, and again to
    /// hand its result back.
    #[default]
    Cells,
    /// In the caller's task: the shortest latency, for embedders that isolate calls by other means.
    /// A guest keeps the caller's thread for up to a tick (a millisecond) at a time.
    Inline,
}

/// The cells and threads of an engine, and the state by which it places calls on them.
pub(in crate::engine) struct Scheduler {
    pub(in crate::engine) queue: Arc<Queue>,
    /// `None` for [`Placement::Inline`].
    pub(in crate::engine) lanes: Option<Lanes>,
    pub(in crate::engine) flows: PerTenant<Flow>,
    pub(in crate::engine) sleeps: &'static Handle,
    /// Panics of the host within an hour after which a component is quarantined; `None`: never.
    pub(in crate::engine) panics: Option<NonZero<u32>>,
    /// The clock of that hour; calls do not use it.
    pub(in crate::engine) clock: Arc<dyn Clock>,
}

/// Calls `execute` within the invocation's time.
pub(in crate::engine) async fn execute(
    scheduler: &Scheduler,
    ready: Arc<invoke::Ready>,
    quarantine: &Arc<Quarantine>,
    latency_class: Arc<LatencyClass>,
    invocation: Arc<Invocation>,
    checks: Checks,
    rights: Arc<Rights>,
) -> CallResult {
    let slot = match slot(scheduler, quarantine, &invocation).await {
        Ok(slot) => slot,
        Err(refusal) => return CallResult::Refusal(refusal),
    };
    invocation.open();
    let streams = ready.exports.streams(&invocation);
    let printed = streams.as_ref().map(|streams| streams.stdout.clone());
    let call = Arc::clone(&invocation);
    let guest = |state| invoke::execute(ready, call, checks, rights, streams, state);
    let ended = run_cell(scheduler, slot, quarantine, latency_class, &invocation, guest).await;
    ended.unwrap_or_else(|mut error| {
        // The cell may still be running on another thread; this does not wait for it.
        if let (ToolError::Timeout(timeout), Some(printed)) = (&mut error, &printed) {
            printed.log(&Lines::new(invocation));
            *timeout.stdout_mut() = printed.text();
        }
        CallResult::ToolError(error)
    })
}

/// Calls `visible` or `validate` in the same way. Without a free slot the result is a timeout. A
/// component in quarantine gives the same result as one whose call makes the host panic.
pub(in crate::engine) async fn run_check<T: Send + 'static, F>(
    scheduler: &Scheduler,
    quarantine: &Arc<Quarantine>,
    latency_class: Arc<LatencyClass>,
    invocation: &Arc<Invocation>,
    question: impl FnOnce(Arc<RunState>) -> F,
) -> Result<T, ToolError>
where
    F: Future<Output = Result<T, ToolError>> + Send + 'static,
{
    let slot = slot(scheduler, quarantine, invocation).await.map_err(|refusal| {
        if refusal == Refusal::Quarantined {
            return ToolError::HandlerRaised(Crash::by_the_host());
        }
        let (budget, used) = (invocation.limits.timeout, invocation.started.elapsed());
        ToolError::Timeout(Timeout::Blocked { budget, used, blocked_on: None, stdout: None })
    })?;
    run_cell(scheduler, slot, quarantine, latency_class, invocation, question).await
}

/// Calls `describe` in the same way. The wait for a cell has the invocation's time, and then the
/// guest has that time again: if no cell is free, the error does not blame the component.
pub(in crate::engine) async fn describe(
    scheduler: &Scheduler,
    ready: Arc<invoke::Ready>,
    invocation: impl Fn() -> Invocation,
) -> Result<Vec<Definition>, Error> {
    // It is called once, so panics need no count.
    let nothing = Arc::new(Quarantine::after(None, Arc::clone(&scheduler.clock)));
    let busy = |refusal: Refusal| Error::no_cell(RETRY_AFTER).with_source(refusal);
    let slot = slot(scheduler, &nothing, &invocation()).await.map_err(busy)?;
    let invocation = Arc::new(invocation());
    let guest = |state| invoke::describe(ready, Arc::clone(&invocation), state);
    let asked = run_cell(scheduler, slot, &nothing, Arc::default(), &invocation, guest);
    asked.await.map_err(Error::describe)?.into_iter().map(translate::definition).collect()
}

/// Runs a guest in a cell until its answer or its deadline. The cell releases its slot at its end.
/// A panic of the host in it becomes its error, and is counted.
async fn run_cell<T, F>(
    scheduler: &Scheduler,
    slot: Option<Slot>,
    quarantine: &Arc<Quarantine>,
    latency_class: Arc<LatencyClass>,
    invocation: &Arc<Invocation>,
    guest: impl FnOnce(Arc<RunState>) -> F,
) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ToolError>> + Send + 'static,
{
    let deadline = bound!(Deadline, invocation.deadline());
    let run_state = Arc::new(RunState::with_deadline(deadline));
    let guest = guest(Arc::clone(&run_state));
    let (of_component, call) = (Arc::clone(quarantine), Arc::clone(invocation));
    let cell = async move {
        let ended = if enforced!(CellFence) {
            AssertUnwindSafe(guest).catch_unwind().await.unwrap_or_else(|panic| {
                dispose(panic);
                Err(ToolError::HandlerRaised(Crash::by_the_host()))
            })
        } else {
            guest.await
        };
        of_component.note(&ended, &call);
        drop(slot);
        ended
    };
    let guest = Guest::new(cell, scheduler.sleeps, Arc::clone(&run_state), latency_class);
    let ended = match &scheduler.lanes {
        None => before(deadline, async { Ok(guest.await) }).await,
        Some(lanes) => {
            let remote = Remote::start(lanes, guest);
            before(deadline, async { remote.await.map(Some) }).await
        }
    };
    match ended {
        Some(Ok(Some(answer))) if !run_state.is_late() => answer,
        // An answer, a trap or an exit after the deadline does not count: the result depends on the
        // guest's state when the deadline passed.
        Some(Ok(Some(_))) | None => Err(ToolError::Timeout(timeout(invocation, &run_state))),
        // Another thread killed it, or the code around the cell panicked: the process continues
        // without the cell.
        Some(Ok(None) | Err(_)) => Err(ToolError::HandlerExit(Exit::ProcessEnded)),
    }
}

fn timeout(invocation: &Invocation, run_state: &RunState) -> Timeout {
    let (budget, used) = (invocation.limits.timeout, invocation.started.elapsed());
    if run_state.was_blocked() {
        Timeout::Blocked { budget, used, blocked_on: run_state.blocked_on(), stdout: None }
    } else {
        Timeout::Deadline { budget, used, stdout: None }
    }
}

/// Takes a free slot, now or before the deadline, unless the component is in quarantine. A call
/// that a tool makes needs no slot: its code is linked apart from the pool.
async fn slot(
    scheduler: &Scheduler,
    quarantine: &Quarantine,
    invocation: &Invocation,
) -> Result<Option<Slot>, Refusal> {
    quarantine.admit()?;
    if invocation.caller.is_some() {
        return Ok(None);
    }
    let (tenant, is_shared) = (&invocation.tenant, invocation.is_shared);
    let (deadline, text) = (invocation.deadline(), invocation.text_bytes());
    let slot = scheduler.queue.take(tenant, is_shared, deadline, text).await;
    let slot = slot.ok_or_else(Refusal::overloaded)?;
    // The component may have been quarantined during the wait.
    quarantine.admit()?;
    // The slot may have become free at the last moment: a tool that never ran must not time out.
    if invocation.remaining().is_zero() { Err(Refusal::overloaded()) } else { Ok(Some(slot)) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolcell_contract::limits::Limits;

    use super::*;
    use crate::engine::Engine;

    /// It never returns to the host by itself, and runs no code that a tick could interrupt.
    #[test]
    fn waiting_guest_times_out_at_its_deadline() {
        for placement in [Placement::Cells, Placement::Inline] {
            let engine =
                Engine::builder().cells(1).threads(1).placement(placement).build().unwrap();
            let limits = Limits { timeout: Duration::from_millis(10), ..Limits::default() };
            let invocation = Arc::new(Invocation::scripted("t", limits));
            let scheduler = &engine.compiler.scheduler;
            let nothing = Arc::new(Quarantine::after(None, Arc::clone(&scheduler.clock)));
            let (class, guest) = (Arc::default(), |_| std::future::pending());
            let waits = run_cell::<(), _>(scheduler, None, &nothing, class, &invocation, guest);
            let patience = Duration::from_secs(5);
            let ended =
                scheduler.sleeps.block_on(async { tokio::time::timeout(patience, waits).await });
            let is_blocked = matches!(ended, Ok(Err(ToolError::Timeout(Timeout::Blocked { .. }))));
            assert!(is_blocked, "{placement:?}: {ended:?}");
        }
    }

    /// A panic of the host in a cell has the same result in both placements, counts for its
    /// component, and frees the slot.
    #[test]
    fn host_panic_in_a_cell_counts_and_frees_the_slot() {
        for placement in [Placement::Cells, Placement::Inline] {
            let engine =
                Engine::builder().cells(1).threads(1).placement(placement).build().unwrap();
            let invocation = Arc::new(Invocation::scripted("t", Limits::default()));
            let scheduler = &engine.compiler.scheduler;
            let clock = Arc::new(crate::os::clock::SystemClock);
            let quarantine = Arc::new(Quarantine::after(std::num::NonZero::new(2), clock));
            for expected in [Ok(()), Err(Refusal::Quarantined)] {
                let question = |_| async { panic!("a bug") };
                let class = Arc::default();
                let asked =
                    run_check::<(), _>(scheduler, &quarantine, class, &invocation, question);
                let raised = ToolError::HandlerRaised(Crash::by_the_host());
                assert_eq!(scheduler.sleeps.block_on(asked), Err(raised), "{placement:?}");
                assert_eq!(quarantine.admit(), expected, "{placement:?}");
            }
        }
    }
}
