//! A guest's future: polled where timers are found, handed from lane to lane, killed from outside.
//!
//! Invariants: whoever kills a guest drops what it holds at once, unless it is being polled at that very moment: then it
//! sees the flag at its next tick.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

use super::pulse::Pulse;
use super::runtimes::Lanes;

/// A guest's future in a place that several can reach.
pub(super) struct Guest<F> {
    future: Arc<Mutex<Option<Pin<Box<F>>>>>,
    timers: Handle,
    pulse: Arc<Pulse>,
}

impl<F> Guest<F> {
    pub(super) fn new(future: F, timers: Handle, pulse: Arc<Pulse>) -> Self {
        Self { future: Arc::new(Mutex::new(Some(Box::pin(future)))), timers, pulse }
    }

    fn share(&self) -> Self {
        Self { future: Arc::clone(&self.future), timers: self.timers.clone(), pulse: Arc::clone(&self.pulse) }
    }

    fn kill(&self) {
        self.pulse.cancel();
        if let Ok(mut future) = self.future.try_lock() {
            future.take();
        }
    }
}

impl<F: Future> Future for Guest<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Killed, or poisoned by its own panic: nobody waits for an answer, and the task is about to be dropped.
        let Ok(mut future) = self.future.lock() else { return Poll::Pending };
        let Some(running) = future.as_mut() else { return Poll::Pending };
        let _timers = self.timers.enter();
        self.pulse.poll(context, |context| running.as_mut().poll(context))
    }
}

/// A guest in the lanes that ends when nobody waits for it any more.
pub(super) struct Remote<F: Future> {
    guest: Guest<F>,
    task: AbortOnDropHandle<Result<F::Output, JoinError>>,
}

impl<F> Remote<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Starts it in the quick lane.
    pub(super) fn start(lanes: &Lanes, guest: Guest<F>) -> Self {
        let in_lanes = InLanes { guest: guest.share(), slow: lanes.slow().clone(), moved: None };
        Self { guest, task: AbortOnDropHandle::new(lanes.quick().spawn(in_lanes)) }
    }
}

impl<F: Future> Future for Remote<F> {
    type Output = Result<F::Output, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context).map(|ended| ended.and_then(|answer| answer))
    }
}

impl<F: Future> Drop for Remote<F> {
    fn drop(&mut self) {
        self.guest.kill();
    }
}

/// Polls a guest until a tick stops it, then lets the slow lane do so.
struct InLanes<F: Future> {
    guest: Guest<F>,
    slow: Handle,
    moved: Option<AbortOnDropHandle<F::Output>>,
}

impl<F> Future for InLanes<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = Result<F::Output, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.moved.is_none() {
            if let Poll::Ready(answer) = Pin::new(&mut self.guest).poll(context) {
                return Poll::Ready(Ok(answer));
            }
            if self.guest.pulse.is_waiting() {
                return Poll::Pending;
            }
            self.moved = Some(AbortOnDropHandle::new(self.slow.spawn(self.guest.share())));
        }
        match &mut self.moved {
            Some(moved) => Pin::new(moved).poll(context),
            None => Poll::Pending,
        }
    }
}
