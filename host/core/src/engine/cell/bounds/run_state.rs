//! State of a running guest that its own task and its caller share: running or waiting, cancelled,
//! late.
//!
//! The code that runs guests (the WebAssembly code of tools) polls them through [`RunState::poll`]
//! and asks whether the guest waits for the host, was interrupted by a tick (the interrupt about
//! every millisecond), or has ended after its deadline. The caller uses [`RunState::cancel`] to end
//! the call. Host functions record that the guest waits while the host works for it, and the object
//! that it waits for, so that a timeout can name it.
//! Invariants: a guest that could continue has asked to be polled again, because a tick or the fuel
//! interval (after a fixed number of instructions) interrupted it. A guest that has not, and is not
//! being polled, waits for the host. The guest sets no flag itself. Once the deadline has passed,
//! the answer to whether the guest waited at that moment does not change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use std::{cell::Cell, future::poll_fn, pin::Pin, sync::Arc};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use toolcell_contract::outcome::tool_error::BlockedOn;

use super::ticker::TICK;

/// A slice that a tick hits before this runs until the next tick. Otherwise most slices that are
/// nearly over would be interrupted, and a slice that waited in a queue or for the host could be
/// interrupted at its first instruction.
const SHORTEST: Duration = TICK.checked_div(2).expect("not by zero");

thread_local! {
    /// The address of the run state that this thread polls.
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// The state of a running cell, as its caller sees it.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    deadline: Option<Instant>,
    /// True if the guest waits for the host, or did when its deadline passed. Written only by the
    /// task that polls the guest.
    is_blocked: AtomicBool,
    /// True if the guest asked to be polled again during the current poll.
    yielded: AtomicBool,
    /// True if the guest ended after its deadline.
    is_late: AtomicBool,
    cancelled: AtomicBool,
    idle: AtomicBool,
    woken: AtomicBool,
    task: AtomicWaker,
    /// The start of the current slice, or of the last one.
    began: Mutex<Option<Instant>>,
    stopped: AtomicBool,
    /// True if dropping the cell now writes and ends nothing that its caller sees.
    settled: AtomicBool,
    /// The object of the guest's current wait, or of its last one.
    blocked_on: Mutex<Option<BlockedOn>>,
}

impl RunState {
    /// Builds the state of a cell with this deadline.
    pub(crate) fn with_deadline(deadline: Option<Instant>) -> Self {
        Self { deadline, ..Self::default() }
    }

    fn is_past(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Records that the guest runs: it calls the host, a tick hits it, or it ends. Its wait is
    /// over. Steps of the host's own work, of which a request has many, do not count.
    pub(crate) fn runs(&self) {
        self.set_blocked(false);
    }

    /// Records that the guest has called the host, which has no answer yet. During the host's work
    /// the task may be woken as if by the guest.
    pub(crate) fn waits(&self) {
        self.set_blocked(true);
    }

    fn set_blocked(&self, is_blocked: bool) {
        // The clock is read only for a change.
        if self.is_blocked.load(Ordering::Relaxed) != is_blocked && !self.is_past() {
            self.is_blocked.store(is_blocked, Ordering::Relaxed);
        }
    }

    /// Sets what the guest is going to wait for. `None`: it is not known.
    pub(crate) fn awaits(&self, blocked_on: Option<BlockedOn>) {
        *self.blocked_on.lock() = blocked_on;
    }

    /// Returns what the guest waited for last, if the host recorded it.
    pub(crate) fn blocked_on(&self) -> Option<BlockedOn> {
        *self.blocked_on.lock()
    }

    /// Returns true if the guest waited for the host when its deadline passed. Called after the
    /// deadline.
    pub(crate) fn was_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    /// Returns true if the guest ended after its deadline.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    /// Marks the call as cancelled: the guest stops at its next tick.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Wakes the guest's task.
    pub(crate) fn wake(&self) {
        self.task.wake();
    }

    /// Returns true if the call was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns true if the guest waits for the host.
    pub(crate) fn is_waiting(&self) -> bool {
        self.idle.load(Ordering::Acquire) && !self.woken.load(Ordering::Acquire)
    }

    /// Records a tick. Returns true if the slice has run for long enough to be interrupted, since a
    /// slice may begin shortly before a tick.
    pub(crate) fn tick(&self) -> bool {
        self.runs();
        let is_long = self.began.lock().is_none_or(|began| began.elapsed() >= SHORTEST);
        self.stopped.fetch_or(is_long, Ordering::Relaxed);
        is_long
    }

    /// Records that the slice ends here, that the usage is written, and that the cell holds nothing
    /// but memory.
    pub(crate) fn mark_settled(&self) {
        self.settled.store(true, Ordering::Release);
    }

    /// Returns true if the last slice ended with [`Self::mark_settled`], and none has begun since.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Returns true if a tick has ever interrupted the guest, also if that ended it.
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Resolves when the guest does not wait for the host any more.
    pub(crate) fn awake(&self) -> impl Future<Output = ()> + Unpin {
        poll_fn(|context| {
            self.task.register(context.waker());
            if self.is_waiting() { Poll::Pending } else { Poll::Ready(()) }
        })
    }

    /// Resolves with the output of this future, or with `None` when the call is cancelled.
    pub(crate) async fn unless_cancelled<F: Future + Unpin>(
        &self,
        mut future: F,
    ) -> Option<F::Output> {
        poll_fn(|context| {
            self.task.register(context.waker());
            if self.is_cancelled() {
                Poll::Ready(None)
            } else {
                Pin::new(&mut future).poll(context).map(Some)
            }
        })
        .await
    }

    /// Polls a guest, and records whether it asks to be polled again.
    pub(crate) fn poll<T>(
        self: &Arc<Self>,
        context: &Context<'_>,
        guest: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.idle.store(false, Ordering::Release);
        self.woken.store(false, Ordering::Release);
        *self.began.lock() = Some(Instant::now());
        self.yielded.store(false, Ordering::Relaxed);
        self.settled.store(false, Ordering::Release);
        self.task.register(context.waker());
        let waker = Waker::from(Arc::clone(self));
        let before = POLLED.replace(Arc::as_ptr(self).addr());
        let poll = guest(&mut Context::from_waker(&waker));
        POLLED.set(before);
        if poll.is_ready() {
            self.runs();
            self.is_late.store(self.is_past(), Ordering::Relaxed);
        } else if !self.yielded.load(Ordering::Relaxed) {
            self.waits();
        }
        self.idle.store(poll.is_pending(), Ordering::Release);
        poll
    }
}

impl Wake for RunState {
    fn wake(self: Arc<Self>) {
        Wake::wake_by_ref(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        if POLLED.get() == Arc::as_ptr(self).addr() {
            // Woken on the thread that polls the guest, so by the interval of ticks or fuel: the
            // host wakes it from other threads.
            self.yielded.store(true, Ordering::Relaxed);
        }
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    /// Cases: steps of a guest before its deadline, steps after it, and true if it waited at the
    /// deadline.
    #[test]
    fn later_steps_do_not_change_state_at_deadline() {
        #[derive(Debug, Clone, Copy, serde::Deserialize)]
        enum GuestAction {
            /// A tick or the fuel interval interrupts it.
            Yields,
            /// It calls the host, which has no answer.
            Waits,
            /// It calls the host, and the answer is there before the state is read.
            IsAnswered,
            /// It calls the host, which works for it and asks to be polled again.
            IsServed,
            /// The host's work continues, and is not done.
            GoesOn,
            /// It calls the host, which answers at once.
            Calls,
            Ends,
        }
        use GuestAction::{Calls, Ends, GoesOn, IsAnswered, IsServed, Waits, Yields};
        type Steps = Vec<GuestAction>;
        let table = rows::<(Steps, Steps, bool)>("engine/cell/bounds/run_state", "steps");
        for (before, after, expected) in table {
            let mut run_state = Arc::new(RunState::default());
            let context = Context::from_waker(Waker::noop());
            let go = |run_state: &Arc<RunState>, does: GuestAction| {
                let _ = run_state.poll(&context, |inner| {
                    if let Waits | IsAnswered | IsServed | Calls = does {
                        run_state.runs();
                    }
                    if let IsServed = does {
                        run_state.waits();
                    }
                    let waker = inner.waker().clone();
                    match does {
                        Yields | Calls | IsServed => waker.wake(),
                        IsAnswered => {
                            std::thread::scope(|scope| drop(scope.spawn(|| waker.wake()).join()))
                        }
                        Waits | GoesOn => {}
                        Ends => return Poll::Ready(()),
                    }
                    Poll::Pending
                });
            };
            before.iter().for_each(|does| go(&run_state, *does));
            Arc::get_mut(&mut run_state).expect("no waker is left").deadline = Some(Instant::now());
            after.iter().for_each(|does| go(&run_state, *does));
            assert_eq!(run_state.was_blocked(), expected, "{before:?}, {after:?}");
            let has_ended = matches!(after[..], [.., Ends]);
            assert_eq!(run_state.is_late(), has_ended, "{before:?}, {after:?}");
        }
    }

    #[test]
    fn runnable_waiting_and_done_are_distinct() {
        let run_state = Arc::new(RunState::default());
        let context = Context::from_waker(Waker::noop());
        assert!(!run_state.is_waiting(), "not started");
        let _ = run_state.poll(&context, |inner| {
            assert!(!run_state.is_waiting(), "being polled");
            inner.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(!run_state.is_waiting(), "stopped by a tick");
        run_state.mark_settled();
        let mut kept = None;
        let _ = run_state.poll(&context, |inner| {
            kept = Some(inner.waker().clone());
            Poll::<()>::Pending
        });
        assert!(run_state.is_waiting(), "waits for the host");
        assert!(!run_state.is_settled(), "a slice has begun since");
        kept.expect("a waker").wake();
        assert!(!run_state.is_waiting(), "the host has answered");
        let _ = run_state.poll(&context, |_| Poll::Ready(()));
        assert!(!run_state.is_waiting(), "done");
    }
}
