//! Tests of the lanes that a guest's slices run in, and of what remains of a killed guest.
//!
//! Futures take the place of guests (the WebAssembly code of tools): they record the thread of each
//! slice, and are interrupted a given number of times.

use std::time::{Duration, Instant};

use toolcell_test_guests::rows;

use super::*;
use crate::engine::schedule::slow_lane;
use crate::os::clock;

/// The name of each slice's guest and its thread, in order.
type Trail = Arc<Mutex<Vec<(char, String)>>>;

/// Builds a guest that is interrupted by this many ticks before it ends.
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

fn guest<F>(future: F, run_state: &Arc<RunState>, class: &Arc<LatencyClass>) -> Guest<F> {
    Guest::new(future, clock::sleeps().unwrap(), Arc::clone(run_state), Arc::clone(class))
}

fn started<F: Future<Output = ()> + Send + 'static>(
    lanes: &Lanes,
    latency_class: &Arc<LatencyClass>,
    future: F,
) -> Remote<F> {
    Remote::start(lanes, guest(future, &Arc::default(), latency_class))
}

fn wait(call: impl Future<Output = Result<(), oneshot::error::RecvError>>) {
    clock::sleeps().unwrap().block_on(call).unwrap();
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < patience, "{what}");
        std::thread::yield_now();
    }
}

/// Returns the latency class after many interrupted calls.
fn slow_class() -> Arc<LatencyClass> {
    let latency_class = Arc::<LatencyClass>::default();
    (0..20).for_each(|_| latency_class.note(true));
    latency_class
}

/// Fails without: latency classes.
#[test]
fn mostly_interrupted_calls_start_in_slow_lane() {
    let (lanes, latency_class, trail) =
        (Lanes::new(1).unwrap(), Arc::<LatencyClass>::default(), Trail::default());
    let calls = rows::<(_, &str)>("engine/schedule/guest", "calls");
    for (number, (ticks, expected)) in calls.into_iter().enumerate() {
        wait(started(&lanes, &latency_class, stopped(ticks, 'a', &trail)));
        let mut threads: Vec<_> = trail.lock().drain(..).map(|(_, thread)| thread).collect();
        threads.dedup();
        assert_eq!(threads.join(" "), expected, "call {number}");
    }
    // Calls of another class start as before.
    wait(started(&lanes, &Arc::default(), stopped(0, 'b', &trail)));
    assert_eq!(trail.lock().pop(), Some(('b', "fast".to_owned())));
}

/// Fails without: the exception for calls that begin with a wait, which tells nothing about the
/// rest of the call.
#[test]
fn call_is_classed_by_work_after_its_first_wait() {
    let lanes = Lanes::new(1).unwrap();
    for (ticks, is_quick) in [(0, true), (2, false)] {
        let (latency_class, trail) = (Arc::<LatencyClass>::default(), Trail::default());
        for _ in 0..30 {
            let (wakes, woken) = oneshot::channel();
            let rest = stopped(ticks, 'a', &trail);
            let future = async move {
                woken.await.unwrap();
                rest.await;
            };
            let run_state = Arc::<RunState>::default();
            let call = Remote::start(&lanes, guest(future, &run_state, &latency_class));
            wait_until("it does not wait", || run_state.is_waiting());
            wakes.send(()).unwrap();
            wait(call);
        }
        assert_eq!(latency_class.is_short(), is_quick, "{ticks} ticks");
    }
}

/// Takes the only turn of a lane with one thread.
fn take_turn(lanes: &Lanes) -> slow_lane::Turn {
    let turn = lanes.slow_lane.enqueue(&Arc::default(), &Arc::default(), true);
    clock::sleeps().unwrap().block_on(turn).expect("it is free")
}

/// One flow with many long calls, and two with one each. Fails without: turns (first come, first
/// served).
#[test]
fn slow_lane_serves_flows_in_turn() {
    let (lanes, trail) = (Lanes::new(1).unwrap(), Trail::default());
    let only_turn = take_turn(&lanes);
    let long = |name, many| {
        let latency_class = slow_class();
        let calls = (0..many).map(|_| started(&lanes, &latency_class, stopped(3, name, &trail)));
        calls.collect::<Vec<_>>()
    };
    let calls: Vec<_> = [long('a', 3), long('b', 1), long('c', 1)].into_iter().flatten().collect();
    drop(only_turn);
    clock::sleeps().unwrap().block_on(futures_util::future::join_all(calls));
    let order: String = trail.lock().iter().map(|(name, _)| *name).collect();
    assert_eq!(order, "abcabcabcabcaaaaaaaa");
}

/// Builds a guest of this future, and polls it once.
fn poll_once<F: Future>(
    future: F,
    run_state: &Arc<RunState>,
) -> (Guest<F>, Poll<Option<F::Output>>) {
    let mut guest = guest(future, run_state, &Arc::default());
    let poll = Pin::new(&mut guest).poll(&mut Context::from_waker(Waker::noop()));
    (guest, poll)
}

/// The poll ends in a wait, and no code would wake the guest again.
#[test]
fn guest_killed_during_poll_ends_at_once() {
    let run_state = Arc::new(RunState::default());
    let held = Arc::new(());
    let (inside, witness) = (Arc::clone(&run_state), Arc::clone(&held));
    let future = async move {
        inside.cancel();
        std::future::pending::<()>().await;
        drop(witness);
    };
    let (_guest, poll) = poll_once(future, &run_state);
    assert!(matches!(poll, Poll::Ready(None)));
    assert_eq!(Arc::strong_count(&held), 1, "what it held is given back");
}

#[test]
fn waiting_guest_is_dropped_by_its_caller() {
    let (lanes, run_state) = (Lanes::new(1).unwrap(), Arc::new(RunState::default()));
    let held = Arc::new(());
    let witness = Arc::clone(&held);
    let (guest, poll) =
        poll_once(async move { std::future::pending::<Arc<()>>().await == witness }, &run_state);
    assert!(poll.is_pending() && Arc::strong_count(&held) == 2);
    guest.shared.kill(&lanes.slow_lane);
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Sends the name of the thread that drops it.
struct DropReport(std::sync::mpsc::Sender<String>);

impl Drop for DropReport {
    fn drop(&mut self) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        let _ = self.0.send(thread);
    }
}

#[test]
fn settled_guest_is_dropped_by_slow_lane() {
    let lanes = Lanes::new(1).unwrap();
    let (dropped, drops) = std::sync::mpsc::channel();
    let (held, run_state) = (DropReport(dropped), Arc::new(RunState::default()));
    let inside = Arc::clone(&run_state);
    let future = poll_fn(move |_| {
        let _held = &held;
        inside.mark_settled();
        Poll::<()>::Pending
    });
    let (guest, poll) = poll_once(future, &run_state);
    assert!(poll.is_pending());
    guest.shared.kill(&lanes.slow_lane);
    assert_eq!(drops.recv_timeout(Duration::from_secs(20)).as_deref(), Ok("toolcell-slow"));
}

/// Its task ends while another guest has the turn, and it takes no turn. Fails without: the task's
/// wait for the kill.
#[test]
fn guest_killed_in_queue_ends_at_once() {
    let (lanes, trail, latency_class) = (Lanes::new(1).unwrap(), Trail::default(), slow_class());
    let only_turn = take_turn(&lanes);
    let killed: Vec<_> =
        (0..100).map(|_| started(&lanes, &latency_class, stopped(3, 'k', &trail))).collect();
    let lives = started(&lanes, &slow_class(), stopped(1, 'l', &trail));
    drop(killed);
    wait_until("a killed guest's task has not ended", || Arc::strong_count(&latency_class) == 1);
    drop(only_turn);
    wait(lives);
    assert_eq!(trail.lock().iter().map(|(name, _)| *name).collect::<String>(), "ll");
}
