//! A guest's future: polled where timers are found, handed from lane to lane, killed from outside.
//!
//! Invariants: what a killed guest holds is dropped in the slow lane, and not by whoever waited for it: to clear a cell away
//! takes as long as several short calls. One that is being polled at that very moment sees the flag at its next tick. A killed
//! guest's task ends.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::habit::Habit;
use super::pulse::Pulse;
use super::quick::{Turn, be_patient};
use super::runtimes::Lanes;
use super::slow::Slow;

use crate::defence::{Defence, stands};

/// A guest's future in a place that several can reach. Its output is none when it was killed.
pub(super) struct Guest<F> {
    future: Arc<Mutex<Option<Pin<Box<F>>>>>,
    timers: &'static Handle,
    pulse: Arc<Pulse>,
    habit: Arc<Habit>,
}

impl<F> Guest<F> {
    pub(super) fn new(future: F, timers: &'static Handle, pulse: Arc<Pulse>, habit: Arc<Habit>) -> Self {
        Self { future: Arc::new(Mutex::new(Some(Box::pin(future)))), timers, pulse, habit }
    }

    fn share(&self) -> Self {
        let (pulse, habit) = (Arc::clone(&self.pulse), Arc::clone(&self.habit));
        Self { future: Arc::clone(&self.future), timers: self.timers, pulse, habit }
    }
}

impl<F: Send + 'static> Guest<F> {
    fn kill(&self, slow: &Slow) {
        self.pulse.cancel();
        if let Some(killed) = self.future.try_lock().and_then(|mut future| future.take()) {
            slow.spawn(async move { drop(killed) });
        }
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
            self.habit.ended();
            future.take();
        } else if !self.pulse.is_waiting() {
            self.habit.stopped();
        }
        poll.map(Some)
    }
}

/// A guest in the lanes that ends when nobody waits for it any more.
pub(super) struct Remote<F: Future + Send + 'static> {
    guest: Guest<F>,
    slow: Slow,
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
        if !guest.habit.is_quick() {
            go_on(first, &slow, answered);
            return Self { guest, slow, answer, at_once: false };
        }
        let lane = slow.clone();
        let slice = Box::new(move |turn: &mut Turn<'_>| {
            // Others of its kind may have run while it stood in line.
            if !first.habit.is_quick() {
                go_on(first, &lane, answered);
                return;
            }
            match Pin::new(&mut first).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => {
                    turn.end();
                    send(answered, answer);
                }
                Poll::Pending if first.pulse.is_waiting() => {
                    woken.spawn(resume(first, lane, answered));
                }
                Poll::Pending => go_on(first, &lane, answered),
            }
        });
        let at_once = lanes.quick().run(&guest.habit.party.quick, slice);
        Self { guest, slow, answer, at_once }
    }
}

/// Goes on with a guest to its end, a slice whenever it is its turn.
fn go_on<F>(mut guest: Guest<F>, slow: &Slow, answered: oneshot::Sender<F::Output>)
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut place = slow.line_up(&guest.habit.party.slow);
    let lane = slow.clone();
    slow.spawn(async move {
        // A lane that is closed gives no more turns.
        while let Ok(turn) = place.await {
            let slice = poll_fn(|context| Poll::Ready(Pin::new(&mut guest).poll(context))).await;
            drop(turn);
            if let Poll::Ready(answer) = slice {
                return send(answered, answer);
            }
            guest.pulse.until_awake().await;
            place = lane.line_up(&guest.habit.party.slow);
        }
    });
}

/// Goes on with a guest that waits for the host, until a tick stops it; then the slow lane does.
async fn resume<F>(mut guest: Guest<F>, slow: Slow, answered: oneshot::Sender<F::Output>)
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
        None => go_on(guest, &slow, answered),
    }
}

/// Tells the caller, if there still is one.
fn send<T>(answered: oneshot::Sender<T>, answer: Option<T>) {
    if let Some(answer) = answer {
        let _ = answered.send(answer);
    }
}

impl<F: Future + Send> Future for Remote<F> {
    /// An error when the guest's code panicked.
    type Output = Result<F::Output, oneshot::error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::take(&mut self.at_once) {
            be_patient(|| !self.answer.is_empty());
        }
        Pin::new(&mut self.answer).poll(context)
    }
}

impl<F: Future + Send + 'static> Drop for Remote<F> {
    fn drop(&mut self) {
        if stands(Defence::Cancellation) {
            self.guest.kill(&self.slow);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::habit::Party;
    use super::*;
    use crate::clock;

    /// Whose slices ran on which threads, in their order.
    type Trail = Arc<Mutex<Vec<(char, String)>>>;

    /// A guest that as many ticks stop before it ends.
    fn stopped(times: usize, name: char, trail: &Trail) -> impl Future<Output = ()> + Send + 'static {
        let (trail, mut left) = (Arc::clone(trail), times);
        poll_fn(move |context| {
            let thread = std::thread::current().name().unwrap_or_default().replace("toolcell-", "");
            trail.lock().push((name, thread));
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    fn started<F: Future<Output = ()> + Send + 'static>(lanes: &Lanes, habit: &Arc<Habit>, guest: F) -> Remote<F> {
        Remote::start(lanes, Guest::new(guest, clock::sleeps().unwrap(), Arc::default(), Arc::clone(habit)))
    }

    fn ended(call: impl Future<Output = Result<(), oneshot::error::RecvError>>) {
        clock::sleeps().unwrap().block_on(call).unwrap();
    }

    /// Seen to fail with every call as quick as any other.
    #[test]
    fn calls_that_mostly_outlast_a_tick_begin_in_the_slow_lane() {
        let (lanes, habit, trail) = (Lanes::new(1).unwrap(), Arc::<Habit>::default(), Trail::default());
        for (ticks, expected) in [(0, "quick"), (1, "quick slow"), (12, "quick slow"), (1, "slow"), (0, "slow")] {
            ended(started(&lanes, &habit, stopped(ticks, 'a', &trail)));
            let mut threads: Vec<_> = trail.lock().drain(..).map(|(_, thread)| thread).collect();
            threads.dedup();
            assert_eq!(threads.join(" "), expected, "{ticks} ticks");
        }
        // Others' calls go on as before.
        ended(started(&lanes, &Arc::default(), stopped(0, 'b', &trail)));
        assert_eq!(trail.lock().pop(), Some(('b', "quick".to_owned())));
    }

    /// One with many long calls, and two with one each. Seen to fail with first come, first served.
    #[test]
    fn in_the_slow_lane_everybody_has_a_turn_after_everybody_elses() {
        let (lanes, trail) = (Lanes::new(1).unwrap(), Trail::default());
        let own = Party::default();
        let only_turn = clock::sleeps().unwrap().block_on(lanes.slow().line_up(&own.slow)).expect("it is free");
        let long = |name, many| {
            let habit = Arc::<Habit>::default();
            (0..20).for_each(|_| habit.stopped());
            (0..many).map(|_| started(&lanes, &habit, stopped(3, name, &trail))).collect::<Vec<_>>()
        };
        let calls: Vec<_> = [long('a', 3), long('b', 1), long('c', 1)].into_iter().flatten().collect();
        drop(only_turn);
        clock::sleeps().unwrap().block_on(futures_util::future::join_all(calls));
        let order: String = trail.lock().iter().map(|(name, _)| *name).collect();
        assert_eq!(order, "abcabcabcabcaaaaaaaa");
    }

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
    fn killed_between_polls_it_is_dropped_in_the_slow_lane() {
        struct Held(mpsc::Sender<Option<String>>);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.send(std::thread::current().name().map(str::to_owned)).unwrap();
            }
        }
        let (lanes, pulse, (tells, dropped)) = (Lanes::new(1).unwrap(), Arc::default(), mpsc::channel());
        let held = Held(tells);
        let waits = async move {
            std::future::pending::<()>().await;
            drop(held);
        };
        let (guest, poll) = polled(waits, &pulse);
        assert!(poll.is_pending() && dropped.try_recv().is_err());
        guest.kill(lanes.slow());
        assert_eq!(dropped.recv().unwrap().as_deref(), Some("toolcell-slow"));
    }
}
