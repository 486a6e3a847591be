//! A guest's future: polled where timers are found, handed from lane to lane, killed from outside.
//!
//! Invariants: whoever kills a guest drops what it holds at once, unless it is being polled at that very moment: then it
//! sees the flag at its next tick. A killed guest's task ends.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::pace::Pace;
use super::pulse::Pulse;
use super::quick::{Turn, be_patient};
use super::runtimes::Lanes;

use crate::defence::{Defence, stands};

/// A guest's future in a place that several can reach. Its output is none when it was killed.
pub(super) struct Guest<F> {
    future: Arc<Mutex<Option<Pin<Box<F>>>>>,
    timers: &'static Handle,
    pulse: Arc<Pulse>,
    pace: Arc<Pace>,
}

impl<F> Guest<F> {
    pub(super) fn new(future: F, timers: &'static Handle, pulse: Arc<Pulse>, pace: Arc<Pace>) -> Self {
        Self { future: Arc::new(Mutex::new(Some(Box::pin(future)))), timers, pulse, pace }
    }

    fn share(&self) -> Self {
        let (pulse, pace) = (Arc::clone(&self.pulse), Arc::clone(&self.pace));
        Self { future: Arc::clone(&self.future), timers: self.timers, pulse, pace }
    }

    fn kill(&self) {
        self.pulse.cancel();
        // Dropped when the lock is not held any more: there is others' code in a cell.
        drop(self.future.try_lock().and_then(|mut future| future.take()));
        // Whoever would poll it next learns that there is nothing left to poll.
        self.pulse.wake();
    }
}

impl<F: Future> Future for Guest<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut future = self.future.lock();
        let Some(running) = future.as_mut() else { return Poll::Ready(None) };
        let _timers = self.timers.enter();
        let poll = self.pulse.poll(context, |context| running.as_mut().poll(context));
        if poll.is_pending() && self.pulse.is_cancelled() {
            // Killed while it was being polled. It may wait for the host now, for ever: nobody else would drop it.
            future.take();
            return Poll::Ready(None);
        }
        if poll.is_ready() {
            self.pace.ended();
            future.take();
        } else if !self.pulse.is_waiting() {
            self.pace.stopped();
        }
        poll.map(Some)
    }
}

/// A guest in the lanes that ends when nobody waits for it any more.
pub(super) struct Remote<F: Future> {
    guest: Guest<F>,
    answer: oneshot::Receiver<F::Output>,
    /// A thread was awake to pick it up.
    at_once: bool,
}

impl<F> Remote<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Starts it: in the quick lane, unless the calls before it mostly outlasted a tick.
    pub(super) fn start(lanes: &Lanes, guest: Guest<F>) -> Self {
        let (answered, answer) = oneshot::channel();
        let (mut first, woken, slow) = (guest.share(), lanes.woken().clone(), lanes.slow().clone());
        let pace = Arc::clone(&guest.pace);
        if !pace.is_quick() {
            slow.spawn(go_on(first, answered));
            return Self { guest, answer, at_once: false };
        }
        let slice = Box::new(move |turn: &mut Turn<'_>| {
            // Others of its kind may have run while it stood in line.
            if !first.pace.is_quick() {
                slow.spawn(go_on(first, answered));
                return;
            }
            match Pin::new(&mut first).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => {
                    turn.end();
                    send(answered, answer);
                }
                Poll::Pending if first.pulse.is_waiting() => {
                    woken.spawn(resume(first, slow, answered));
                }
                Poll::Pending => {
                    slow.spawn(go_on(first, answered));
                }
            }
        });
        let at_once = lanes.quick().run(&pace, slice);
        Self { guest, answer, at_once }
    }
}

/// Goes on with a guest to its end.
async fn go_on<F: Future>(guest: Guest<F>, answered: oneshot::Sender<F::Output>) {
    send(answered, guest.await);
}

/// Goes on with a guest that waits for the host, until a tick stops it; then the slow lane does.
async fn resume<F>(mut guest: Guest<F>, slow: Handle, answered: oneshot::Sender<F::Output>)
where
    F: Future<Output: Send> + Send + 'static,
{
    let slice = poll_fn(|context| match Pin::new(&mut guest).poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if guest.pulse.is_waiting() => Poll::Pending,
        Poll::Pending => Poll::Ready(None),
    });
    match slice.await {
        Some(answer) => send(answered, answer),
        None => {
            slow.spawn(go_on(guest, answered));
        }
    }
}

/// Tells the caller, if there still is one.
fn send<T>(answered: oneshot::Sender<T>, answer: Option<T>) {
    if let Some(answer) = answer {
        let _ = answered.send(answer);
    }
}

impl<F: Future> Future for Remote<F> {
    /// An error when the guest's code panicked.
    type Output = Result<F::Output, oneshot::error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::take(&mut self.at_once) {
            be_patient(|| !self.answer.is_empty());
        }
        Pin::new(&mut self.answer).poll(context)
    }
}

impl<F: Future> Drop for Remote<F> {
    fn drop(&mut self) {
        if stands(Defence::Cancellation) {
            self.guest.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::clock;

    use super::*;

    /// A guest of this future, polled once.
    fn polled<F: Future>(future: F, pulse: &Arc<Pulse>) -> (Guest<F>, Poll<Option<F::Output>>) {
        let mut guest = Guest::new(future, clock::sleeps().unwrap(), Arc::clone(pulse), Arc::default());
        let poll = Pin::new(&mut guest).poll(&mut Context::from_waker(Waker::noop()));
        (guest, poll)
    }

    /// Killed in the middle of a poll that ends in a wait: nobody would ever wake it, so it must not be left to wait.
    #[test]
    fn killed_while_polled_it_does_not_wait() {
        let pulse = Arc::new(Pulse::default());
        let held = Arc::new(());
        let (inside, witness) = (Arc::clone(&pulse), Arc::clone(&held));
        let future = async move {
            inside.cancel();
            std::future::pending::<()>().await;
            drop(witness);
        };
        let (_guest, poll) = polled(future, &pulse);
        assert!(matches!(poll, Poll::Ready(None)));
        assert_eq!(Arc::strong_count(&held), 1, "what it held is given back");
    }

    #[test]
    fn killed_between_polls_it_is_dropped_at_once() {
        let pulse = Arc::new(Pulse::default());
        let held = Arc::new(());
        let witness = Arc::clone(&held);
        let (guest, poll) = polled(async move { std::future::pending::<Arc<()>>().await == witness }, &pulse);
        assert!(poll.is_pending() && Arc::strong_count(&held) == 2);
        guest.kill();
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
