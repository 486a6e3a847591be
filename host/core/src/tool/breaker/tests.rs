//! Tests of the circuit breaker: which failures count, which calls are admitted, and the record of
//! every end.
//!
//! They use a scripted handler and a clock that the test moves, and cover probes, late calls from
//! before an opening, panics, and several breakers around one tool.

use std::task::{Context, Waker};

use super::*;
use crate::os::clock::ManualClock;
use crate::tool::retry::Retry;
use crate::tool::scripted::ScriptedAnswer::{
    Blocked, Busy, BusyFor, Cancelled, Died, Error, Hang, Invalid, Ok, OutOfFuel, Overloaded,
    Panic, Quarantined, Trap,
};
use crate::tool::scripted::{Scripted, ScriptedAnswer, assert_delegates, invocation};

const SECOND: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(10);

/// A tool whose breaker opens after this many failures in a row.
struct Bench {
    clock: ManualClock,
    scripted: Scripted,
    tool: Tool,
}

impl Bench {
    fn new(failures: u32) -> Self {
        let clock = ManualClock::automatic();
        let scripted = Scripted::new(&clock, &[Ok]);
        let breaker = breaker(&clock, failures);
        Self { clock, tool: scripted.tool().with_breaker(breaker), scripted }
    }

    fn state(&self) -> BreakerState {
        self.tool.breaker_state().unwrap()
    }

    fn start(&self, say: ScriptedAnswer) -> HandlerFuture<'_> {
        self.scripted.set_answer(say);
        self.tool.handler().unwrap().call(Arc::new(invocation(&self.clock, SECOND)))
    }

    /// Starts a call whose handler never answers.
    fn hang(&self) -> HandlerFuture<'_> {
        let mut call = self.start(Hang);
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        call
    }

    /// Returns `Ok` if the call is made, or else the seconds of `retry_after`.
    async fn call(&self, say: ScriptedAnswer) -> Result<(), u64> {
        let before = self.scripted.calls().len();
        let result = self.start(say).await;
        let made = self.scripted.calls().len() > before;
        match result {
            CallResult::Refusal(Refusal::CircuitOpen { retry_after }) if !made => {
                Err(retry_after.as_secs())
            }
            CallResult::Outcome(_) | CallResult::ToolError(_) | CallResult::Refusal(_) => {
                assert!(made);
                Result::Ok(())
            }
        }
    }
}

fn breaker(clock: &ManualClock, failures: u32) -> Breaker {
    Breaker::default()
        .with_failures(failures)
        .with_open_time(REST)
        .with_clock(Arc::new(clock.clone()))
}

#[tokio::test]
async fn only_busy_timeout_and_crash_open_the_breaker() {
    for (say, expected) in [
        (Ok, BreakerState::Closed),
        (Error, BreakerState::Closed),
        (Invalid, BreakerState::Closed),
        (Overloaded, BreakerState::Closed),
        (Cancelled, BreakerState::Closed),
        (Busy, BreakerState::Open),
        (BusyFor(5), BreakerState::Open),
        (OutOfFuel, BreakerState::Open),
        (Blocked, BreakerState::Open),
        (Trap, BreakerState::Open),
        (Died, BreakerState::Open),
    ] {
        let bench = Bench::new(0);
        assert_eq!((bench.call(say).await, bench.state()), (Result::Ok(()), expected), "{say:?}");
    }
}

#[tokio::test]
async fn breaker_opens_rests_and_probes() {
    use BreakerState::{Closed, HalfOpen, Open};
    let bench = Bench::new(2);
    for (line, (seconds, found, say, made, left)) in [
        (0, Closed, Trap, Result::Ok(()), Closed),
        (0, Closed, Ok, Result::Ok(()), Closed),
        (0, Closed, Trap, Result::Ok(()), Closed),
        (0, Closed, Overloaded, Result::Ok(()), Closed),
        (99, Closed, Busy, Result::Ok(()), Open),
        (0, Open, Ok, Err(10), Open),
        (9, Open, Ok, Err(1), Open),
        // The probe fails, so the circuit opens again.
        (1, HalfOpen, Trap, Result::Ok(()), Open),
        (5, Open, Ok, Err(5), Open),
        // The probe's end does not count, so the next call is a probe.
        (5, HalfOpen, Overloaded, Result::Ok(()), HalfOpen),
        (0, HalfOpen, Quarantined, Result::Ok(()), HalfOpen),
        (0, HalfOpen, Cancelled, Result::Ok(()), HalfOpen),
        (0, HalfOpen, Error, Result::Ok(()), Closed),
        // The count of failures starts again at zero.
        (0, Closed, Trap, Result::Ok(()), Closed),
        (0, Closed, Trap, Result::Ok(()), Open),
    ]
    .into_iter()
    .enumerate()
    {
        bench.clock.advance(SECOND * seconds);
        assert_eq!(
            (bench.state(), bench.call(say).await, bench.state()),
            (found, made, left),
            "line {line}"
        );
    }
}

#[tokio::test]
async fn half_open_breaker_admits_one_probe() {
    let bench = Bench::new(1);
    assert_eq!(bench.call(Trap).await, Result::Ok(()));
    bench.clock.advance(REST);
    let probe = bench.hang();
    assert_eq!((bench.state(), bench.call(Ok).await), (BreakerState::HalfOpen, Err(10)));
    drop(probe);
    assert_eq!(bench.state(), BreakerState::HalfOpen, "its place is free");
    let probe = bench.hang();
    bench.clock.advance(SECOND);
    drop(probe);
    assert_eq!(
        (bench.state(), bench.call(Ok).await),
        (BreakerState::Open, Err(10)),
        "past its deadline it has failed"
    );
    bench.clock.advance(REST);
    assert_eq!((bench.call(Ok).await, bench.state()), (Result::Ok(()), BreakerState::Closed));
}

#[tokio::test]
async fn dropped_call_counts_only_past_its_deadline() {
    let bench = Bench::new(1);
    drop(bench.hang());
    assert_eq!(bench.state(), BreakerState::Closed);
    let (late, later) = (bench.hang(), bench.hang());
    bench.clock.advance(SECOND);
    drop(late);
    assert_eq!(bench.state(), BreakerState::Open);
    bench.clock.advance(SECOND * 3);
    drop(later);
    assert_eq!(bench.call(Ok).await, Err(7), "what began before has nothing to add");
}

/// Calls that were admitted before the circuit opened end while it is open, half-open and closed
/// again.
#[tokio::test]
async fn calls_started_before_opening_do_not_count() {
    for sign in [Sign::Works, Sign::Fails, Sign::Silent] {
        let bench = Bench::new(2);
        let circuit = bench.tool.circuit().unwrap();
        let [resting, rested, late, later] = [(); 4].map(|()| circuit.admit().unwrap());
        assert_eq!([bench.call(Trap).await, bench.call(Trap).await], [Result::Ok(()); 2]);
        circuit.settle(resting, sign);
        assert_eq!(bench.state(), BreakerState::Open, "{sign:?}");
        bench.clock.advance(REST);
        circuit.settle(rested, sign);
        assert_eq!(
            (bench.state(), bench.call(Ok).await),
            (BreakerState::HalfOpen, Result::Ok(())),
            "{sign:?}"
        );
        // They neither add to the current count of failures, nor reset it.
        assert_eq!(bench.call(Trap).await, Result::Ok(()));
        circuit.settle(late, sign);
        circuit.settle(later, sign);
        assert_eq!(bench.state(), BreakerState::Closed, "{sign:?}");
        assert_eq!(
            (bench.call(Trap).await, bench.state()),
            (Result::Ok(()), BreakerState::Open),
            "{sign:?}"
        );
    }
}

#[tokio::test]
async fn panic_counts_as_failure_and_propagates() {
    let bench = Bench::new(1);
    for _ in 0..2 {
        let panic = AssertUnwindSafe(bench.start(Panic)).catch_unwind().await.unwrap_err();
        assert_eq!((panic.downcast_ref(), bench.state()), (Some(&"ouch"), BreakerState::Open));
        bench.clock.advance(REST);
    }
}

#[tokio::test]
async fn breaker_state_is_shared_by_clones_only() {
    let bench = Bench::new(1);
    let clone = bench.tool.clone().with_visibility(|_, _| true);
    let other = bench.scripted.tool().with_breaker(breaker(&bench.clock, 1));
    assert_eq!(bench.call(Trap).await, Result::Ok(()));
    assert_eq!(clone.breaker_state(), Some(BreakerState::Open));
    assert_eq!(other.breaker_state(), Some(BreakerState::Closed));
    assert_eq!(bench.scripted.tool().breaker_state(), None);
    assert_delegates(&bench.tool).await;
}

/// The middleware that was added last is the outer one.
#[tokio::test]
async fn outer_breaker_counts_calls_inner_counts_attempts() {
    let bench = Bench::new(2);
    let retry = Retry::fixed(SECOND).with_clock(Arc::new(bench.clock.clone()));
    let count = |tool: Tool, calls: usize| {
        let bench = &bench;
        async move {
            bench.scripted.set_answer(Busy);
            let before = bench.scripted.calls().len();
            let mut refused = Vec::new();
            for _ in 0..calls {
                let call = Arc::new(invocation(&bench.clock, REST * 3));
                let result = tool.handler().unwrap().call(call).await;
                refused.push(matches!(result, CallResult::Refusal(_)));
            }
            (bench.scripted.calls().len() - before, refused)
        }
    };
    let outside =
        bench.scripted.tool().with_retry(retry.clone()).with_breaker(breaker(&bench.clock, 2));
    assert_eq!(count(outside, 3).await, (6, vec![false, false, true]), "a call counts once");
    let inside = bench.scripted.tool().with_breaker(breaker(&bench.clock, 2)).with_retry(retry);
    assert_eq!(count(inside, 1).await, (2, vec![true]), "an attempt counts once");
}

/// A clock that panics.
#[derive(Debug)]
struct Broken;

impl Clock for Broken {
    fn now(&self) -> Instant {
        panic!("a clock of an embedder's own")
    }

    fn sleep_until(&self, _at: Instant) -> crate::os::clock::Sleep {
        panic!("a clock of an embedder's own")
    }
}

/// Fails without: the panic guard around the clock.
#[tokio::test]
async fn breaker_works_despite_panicking_clock() {
    let mut bench = Bench::new(2);
    bench.tool = bench
        .scripted
        .tool()
        .with_breaker(Breaker::default().with_failures(2).with_clock(Arc::new(Broken)));
    for expected in [Result::Ok(()), Result::Ok(()), Err(29)] {
        assert_eq!(bench.call(Trap).await, expected);
    }
    assert_eq!(bench.state(), BreakerState::Open);
    bench.tool = bench
        .scripted
        .tool()
        .with_breaker(Breaker::default().with_failures(1).with_clock(Arc::new(Broken)));
    assert!(AssertUnwindSafe(bench.call(Panic)).catch_unwind().await.is_err());
    assert_eq!(bench.state(), BreakerState::Open);
}

#[tokio::test]
async fn breaker_closes_after_consecutive_successes() {
    use BreakerState::{Closed, HalfOpen, Open};
    let mut bench = Bench::new(1);
    bench.tool =
        bench.scripted.tool().with_breaker(breaker(&bench.clock, 1).with_successes_to_close(3));
    for (line, (seconds, say, made, left)) in [
        (0, Trap, Result::Ok(()), Open),
        (10, Ok, Result::Ok(()), HalfOpen),
        (0, Ok, Result::Ok(()), HalfOpen),
        // The successes were not in a row.
        (0, Trap, Result::Ok(()), Open),
        (9, Ok, Err(1), Open),
        (1, Ok, Result::Ok(()), HalfOpen),
        // An end that does not count does not interrupt the row.
        (0, Cancelled, Result::Ok(()), HalfOpen),
        (0, Error, Result::Ok(()), HalfOpen),
        (0, Ok, Result::Ok(()), Closed),
    ]
    .into_iter()
    .enumerate()
    {
        bench.clock.advance(SECOND * seconds);
        assert_eq!((bench.call(say).await, bench.state()), (made, left), "line {line}");
    }
    // Only one probe runs at a time between two successes as well.
    assert_eq!(bench.call(Trap).await, Result::Ok(()));
    bench.clock.advance(REST);
    assert_eq!(bench.call(Ok).await, Result::Ok(()));
    let probe = bench.hang();
    assert_eq!(bench.call(Ok).await, Err(10));
    drop(probe);
    assert_eq!((bench.call(Ok).await, bench.state()), (Result::Ok(()), HalfOpen));
}

#[tokio::test]
async fn failure_rule_decides_which_failures_count() {
    use BreakerState::{Closed, Open};
    let is_word = |failure: &Failure| matches!(failure, Failure::Error(_));
    let is_late = |failure: &Failure| matches!(failure, Failure::ToolError(ToolError::Timeout(_)));
    let bench = |rule: fn(&Failure) -> bool| {
        let mut bench = Bench::new(1);
        bench.tool =
            bench.scripted.tool().with_breaker(breaker(&bench.clock, 1).with_failure_rule(rule));
        bench
    };
    for (rule, say, expected) in [
        (is_word as fn(&Failure) -> bool, Error, Open),
        (is_word, Busy, Open),
        (is_word, Trap, Closed),
        (is_word, Blocked, Closed),
        (is_late, Error, Closed),
        (is_late, Blocked, Open),
        (|_| true, Ok, Closed),
        (|_| true, Overloaded, Closed),
        (|_| true, Cancelled, Closed),
        (|_| true, Invalid, Open),
        (|_| panic!("a rule of an embedder's own"), Error, Open),
    ] {
        let bench = bench(rule);
        assert_eq!((bench.call(say).await, bench.state()), (Result::Ok(()), expected), "{say:?}");
    }
    // The rule is also called for a handler that was dropped at its deadline or that panicked.
    for (rule, expected) in [(is_late as fn(&Failure) -> bool, Open), (is_word, Closed)] {
        let bench = bench(rule);
        let hangs = bench.hang();
        bench.clock.advance(SECOND);
        drop(hangs);
        assert_eq!(bench.state(), expected);
    }
    let bench = bench(is_word);
    assert!(AssertUnwindSafe(bench.call(Panic)).catch_unwind().await.is_err());
    assert_eq!(bench.state(), Closed);
}
