//! Runs the future of one guest: polls it slice by slice, moves it between lanes, and kills it.
//!
//! `placement` wraps the work of a call in a [`Guest`] and starts it with [`Remote::start`], which
//! returns the caller's side. The first slice runs in the fast lane, unless recent calls of this
//! tenant to this component were mostly long. If the guest (the WebAssembly code of a tool) waits
//! for the host, it is resumed on threads with the fast lane's priority; if a tick (the interrupt
//! about every millisecond) interrupted it, it continues in the slow lane, one slice at each turn.
//! The answer is sent to the caller.
//! Dropping the `Remote` kills the guest. A guest that is being polled ends at its next tick. The
//! caller's thread drops any other guest at once, because the drop writes usage and output that the
//! caller reads next, and ends requests. If the cell holds nothing but memory, and its usage is
//! written, a thread of the slow lane drops it soon after. The task of a killed guest ends, even
//! while it waits in a queue.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use toolcell_contract::controls::enforced;

use super::fast_lane::{POLL_TIME, Turn};
use super::{latency_class::LatencyClass, runtimes::Lanes, slow_lane::SlowLane};
use crate::engine::cell::bounds::run_state::RunState;

/// A guest's future, for the lane that polls it. Its output is `None` if it was killed.
pub(super) struct Guest<F> {
    shared: Arc<Shared<F>>,
    /// True until the first poll.
    is_new: bool,
    /// True until its latency class was noted.
    is_unrecorded: bool,
}

/// The part of a guest that its caller has, too.
struct Shared<F> {
    future: Mutex<Option<Pin<Box<F>>>>,
    timers: &'static Handle,
    run_state: Arc<RunState>,
    latency_class: Arc<LatencyClass>,
}

impl<F> Guest<F> {
    pub(super) fn new(
        future: F,
        timers: &'static Handle,
        run_state: Arc<RunState>,
        latency_class: Arc<LatencyClass>,
    ) -> Self {
        let future = Mutex::new(Some(Box::pin(future)));
        let shared = Arc::new(Shared { future, timers, run_state, latency_class });
        Self { shared, is_new: true, is_unrecorded: true }
    }
}

impl<F: Send + 'static> Shared<F> {
    fn kill(&self, slow_lane: &SlowLane) {
        self.run_state.cancel();
        // Dropped after the lock is released, since dropping a cell runs other code.
        let future = self.future.try_lock().and_then(|mut future| future.take());
        if future.is_some() && self.run_state.is_settled() {
            // Disposing of a cell takes time, and the deadlines of many calls may pass together.
            slow_lane.spawn(async move { drop(future) });
        } else {
            drop(future);
        }
        // Wakes the task that would poll it next, so that it ends.
        self.run_state.wake();
    }
}

impl<F: Future> Future for Guest<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, is_new, is_unrecorded } = &mut *self;
        let run_state = &shared.run_state;
        *is_new = false;
        let mut future = shared.future.lock();
        let Some(running) = future.as_mut() else { return Poll::Ready(None) };
        let _timers = shared.timers.enter();
        let poll = run_state.poll(context, |context| running.as_mut().poll(context));
        let is_waiting = poll.is_pending() && run_state.is_waiting();
        if *is_unrecorded && !is_waiting {
            shared.latency_class.note(poll.is_pending() || run_state.was_stopped());
        }
        if poll.is_pending() && run_state.is_cancelled() {
            // Killed during the poll. It may now wait for the host without end, and nothing else
            // would drop it.
            future.take();
            return Poll::Ready(None);
        }
        if poll.is_ready() {
            future.take();
        }
        drop(future);
        *is_unrecorded &= is_waiting;
        poll.map(Some)
    }
}

/// A guest in the lanes. Dropping this kills it.
pub(super) struct Remote<F: Future + Send + 'static> {
    guest: Arc<Shared<F>>,
    slow_lane: SlowLane,
    answer: oneshot::Receiver<F::Output>,
    /// Until then the caller polls for the answer. Set if an awake thread picked the call up.
    polled_until: Option<Instant>,
}

impl<F> Remote<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Starts the guest in the fast lane, or in the slow lane if most earlier calls of its kind
    /// were interrupted there.
    pub(super) fn start(lanes: &Lanes, mut first: Guest<F>) -> Self {
        let (answered, answer) = oneshot::channel();
        let guest = Arc::clone(&first.shared);
        let (woken, lane) = (lanes.woken.handle().clone(), lanes.slow_lane.clone());
        let slow_lane = lane.clone();
        if !guest.latency_class.is_short() {
            run_to_end(first, &lane, answered);
            return Self { guest, slow_lane, answer, polled_until: None };
        }
        let slice = Box::new(move |turn: &mut Turn<'_>| {
            // Other calls of its kind may have run while it waited.
            if !first.shared.latency_class.is_short() {
                run_to_end(first, &lane, answered);
                return;
            }
            match Pin::new(&mut first).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => {
                    turn.end();
                    send(answered, answer);
                }
                Poll::Pending if first.shared.run_state.is_waiting() => {
                    woken.spawn(resume(first, lane, answered));
                }
                Poll::Pending => run_to_end(first, &lane, answered),
            }
        });
        let (flow, run_state) = (&guest.latency_class.flow, Arc::clone(&guest.run_state));
        let at_once = lanes.fast_lane.run(&flow.fast_lane, run_state, slice);
        let polled_until = at_once.then(|| Instant::now() + POLL_TIME);
        Self { guest, slow_lane, answer, polled_until }
    }
}

/// Runs a guest to its end in the slow lane, one slice at each turn.
fn run_to_end<F>(mut guest: Guest<F>, slow_lane: &SlowLane, answered: oneshot::Sender<F::Output>)
where
    F: Future<Output: Send> + Send + 'static,
{
    let (lane, run_state) = (slow_lane.clone(), Arc::clone(&guest.shared.run_state));
    let turns = Arc::clone(&guest.shared.latency_class.flow.slow_lane);
    let mut place = slow_lane.enqueue(&turns, &run_state, guest.is_new);
    slow_lane.spawn(async move {
        while let Some(Ok(turn)) = run_state.unless_cancelled(place).await {
            let slice = poll_fn(|context| Poll::Ready(Pin::new(&mut guest).poll(context))).await;
            drop(turn);
            if let Poll::Ready(answer) = slice {
                return send(answered, answer);
            }
            if run_state.unless_cancelled(run_state.awake()).await.is_none() {
                return;
            }
            place = lane.enqueue(&turns, &run_state, false);
            // Its next turn may come at once, so the calls that were woken meanwhile queue first.
            others_first().await;
        }
    });
}

/// Lets the other tasks of the lane run. Unlike with tokio's own yield, any free thread continues
/// then.
async fn others_first() {
    let mut has_let = false;
    let others = poll_fn(|context| {
        if std::mem::replace(&mut has_let, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    others.await;
}

/// Runs a guest that waits for the host, until a tick interrupts it; then it continues in the slow
/// lane.
async fn resume<F>(mut guest: Guest<F>, lane: SlowLane, answered: oneshot::Sender<F::Output>)
where
    F: Future<Output: Send> + Send + 'static,
{
    let slice = poll_fn(|context| match Pin::new(&mut guest).poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if guest.shared.run_state.is_waiting() => Poll::Pending,
        Poll::Pending => Poll::Ready(None),
    });
    match slice.await {
        Some(answer) => send(answered, answer),
        None => run_to_end(guest, &lane, answered),
    }
}

/// Sends the answer to the caller, unless the caller or the answer is gone.
fn send<T>(answered: oneshot::Sender<T>, answer: Option<T>) {
    if let Some(answer) = answer {
        let _ = answered.send(answer);
    }
}

impl<F: Future + Send + 'static> Future for Remote<F> {
    /// An error if the guest's code panicked.
    type Output = Result<F::Output, oneshot::error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        if answer.is_pending() && self.polled_until.is_some_and(|until| Instant::now() < until) {
            // Polled again after the caller's other tasks, which run while the guest does.
            context.waker().wake_by_ref();
        }
        answer
    }
}

impl<F: Future + Send + 'static> Drop for Remote<F> {
    fn drop(&mut self) {
        if enforced!(Cancellation) {
            self.guest.kill(&self.slow_lane);
        }
    }
}

#[cfg(test)]
mod tests;
