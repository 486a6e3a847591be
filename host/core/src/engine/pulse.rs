//! What the task that runs a cell and the caller that waits for it know of each other.
//!
//! Invariants: a guest that could go on has asked to be polled again (a tick or the fuel interval stopped it); one that has
//! not, and is not being polled, waits for the host. No flag is set by the guest's own word.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use super::ticker::TICK;

/// A slice that a tick hits before this goes on to the next tick: else most would be stopped that are nearly over, and one
/// that was long in line, or waited for the host, at its first instruction.
const SHORTEST: Duration = TICK.checked_div(2).expect("not by zero");

/// The state of a running cell, seen from outside.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    cancelled: AtomicBool,
    idle: AtomicBool,
    woken: AtomicBool,
    task: AtomicWaker,
    /// When the slice that runs began, or the last one did.
    began: Mutex<Option<Instant>>,
    stopped: AtomicBool,
}

impl Pulse {
    /// The caller went away: the guest stops at its next tick.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Has the guest polled again.
    pub(super) fn wake(&self) {
        self.task.wake();
    }

    /// Whether the caller went away.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether the guest waits for the host.
    pub(super) fn is_waiting(&self) -> bool {
        self.idle.load(Ordering::Acquire) && !self.woken.load(Ordering::Acquire)
    }

    /// A tick hit the guest. Whether it has run for long enough to be stopped: a slice begins between two ticks.
    pub(super) fn tick(&self) -> bool {
        let is_long = self.began.lock().is_none_or(|began| began.elapsed() >= SHORTEST);
        self.stopped.fetch_or(is_long, Ordering::Relaxed);
        is_long
    }

    /// Whether a tick has ever stopped the guest, also for good.
    pub(super) fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Ends when the guest does not wait for the host any more.
    pub(super) fn awake(&self) -> impl Future<Output = ()> + Unpin {
        poll_fn(|context| {
            self.task.register(context.waker());
            if self.is_waiting() { Poll::Pending } else { Poll::Ready(()) }
        })
    }

    /// Ends when this does, or with none when the caller goes away.
    pub(super) async fn unless_cancelled<F: Future + Unpin>(&self, mut future: F) -> Option<F::Output> {
        let ended = poll_fn(|context| {
            self.task.register(context.waker());
            if self.is_cancelled() { Poll::Ready(None) } else { Pin::new(&mut future).poll(context).map(Some) }
        });
        ended.await
    }

    /// Polls a guest, and notices whether it asks to be polled again.
    pub(super) fn poll<T>(
        self: &Arc<Self>,
        context: &Context<'_>,
        guest: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.idle.store(false, Ordering::Release);
        self.woken.store(false, Ordering::Release);
        *self.began.lock() = Some(Instant::now());
        self.task.register(context.waker());
        let waker = Waker::from(Arc::clone(self));
        let poll = guest(&mut Context::from_waker(&waker));
        self.idle.store(poll.is_pending(), Ordering::Release);
        poll
    }
}

impl Wake for Pulse {
    fn wake(self: Arc<Self>) {
        Wake::wake_by_ref(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runnable_waiting_and_done_are_told_apart() {
        let pulse = Arc::new(Pulse::default());
        let context = Context::from_waker(Waker::noop());
        assert!(!pulse.is_waiting(), "not started");
        let _ = pulse.poll(&context, |inner| {
            assert!(!pulse.is_waiting(), "being polled");
            inner.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(!pulse.is_waiting(), "stopped by a tick");
        let mut kept = None;
        let _ = pulse.poll(&context, |inner| {
            kept = Some(inner.waker().clone());
            Poll::<()>::Pending
        });
        assert!(pulse.is_waiting(), "waits for the host");
        kept.expect("a waker").wake();
        assert!(!pulse.is_waiting(), "the host has answered");
        let _ = pulse.poll(&context, |_| Poll::Ready(()));
        assert!(!pulse.is_waiting(), "done");
    }
}
