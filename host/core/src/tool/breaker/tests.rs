//! Tests of the circuit breaker, with a scripted handler and a clock that the test moves: which
//! failures count, which calls are admitted, and the record of every end.

use std::panic::AssertUnwindSafe;
use std::task::{Context, Waker};

use futures_util::FutureExt as _;
use toolcell_test_guests::rows;

use super::*;
use crate::os::clock::ManualClock;
use crate::tool::retry::Retry;
use crate::tool::scripted::ScriptedAnswer::{Busy, Hang, Ok, Panic, Trap};
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
        Self::changed(failures, |breaker| breaker)
    }

    /// Applies a change to the breaker before it is added to the tool.
    fn changed(failures: u32, change: impl Fn(Breaker) -> Breaker) -> Self {
        let clock = ManualClock::automatic();
        let scripted = Scripted::new(&clock, &[Ok]);
        let breaker = change(breaker(&clock, failures));
        Self { clock, tool: scripted.tool().with_breaker(breaker), scripted }
    }

    fn state(&self) -> &'static str {
        match self.tool.breaker_state().unwrap() {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half_open",
        }
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

    /// Returns the seconds of `retry_after`, or `None` if the call is made.
    async fn call(&self, say: ScriptedAnswer) -> Option<u64> {
        let before = self.scripted.calls().len();
        let result = self.start(say).await;
        let made = self.scripted.calls().len() > before;
        match result {
            CallResult::Refusal(Refusal::CircuitOpen { retry_after }) if !made => {
                Some(retry_after.as_secs())
            }
            CallResult::Outcome(_) | CallResult::ToolError(_) | CallResult::Refusal(_) => {
                assert!(made);
                None
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
    for (say, expected) in rows::<(ScriptedAnswer, &str)>("tool/breaker", "single_answers") {
        let bench = Bench::new(0);
        assert_eq!((bench.call(say).await, bench.state()), (None, expected), "{say:?}");
    }
}

#[tokio::test]
async fn breaker_opens_rests_and_probes() {
    let bench = Bench::new(2);
    let table = rows::<(_, &str, ScriptedAnswer, Option<u64>, &str)>("tool/breaker", "opening");
    for (line, (seconds, found, say, refused, left)) in table.into_iter().enumerate() {
        bench.clock.advance(Duration::from_secs(seconds));
        let seen = (bench.state(), bench.call(say).await, bench.state());
        assert_eq!(seen, (found, refused, left), "line {line}");
    }
}

#[tokio::test]
async fn half_open_breaker_admits_one_probe() {
    let bench = Bench::new(1);
    assert_eq!(bench.call(Trap).await, None);
    bench.clock.advance(REST);
    let probe = bench.hang();
    assert_eq!((bench.state(), bench.call(Ok).await), ("half_open", Some(10)));
    drop(probe);
    assert_eq!(bench.state(), "half_open", "its place is free");
    let probe = bench.hang();
    bench.clock.advance(SECOND);
    drop(probe);
    // Past its deadline it has failed.
    assert_eq!((bench.state(), bench.call(Ok).await), ("open", Some(10)));
    bench.clock.advance(REST);
    assert_eq!((bench.call(Ok).await, bench.state()), (None, "closed"));
}

#[tokio::test]
async fn dropped_call_counts_only_past_its_deadline() {
    let bench = Bench::new(1);
    drop(bench.hang());
    assert_eq!(bench.state(), "closed");
    let (late, later) = (bench.hang(), bench.hang());
    bench.clock.advance(SECOND);
    drop(late);
    assert_eq!(bench.state(), "open");
    bench.clock.advance(SECOND * 3);
    drop(later);
    assert_eq!(bench.call(Ok).await, Some(7), "what began before has nothing to add");
}

/// Calls that were admitted before the circuit opened end while it is open, half-open and closed
/// again.
#[tokio::test]
async fn calls_started_before_opening_do_not_count() {
    for sign in [Sign::Works, Sign::Fails, Sign::Silent] {
        let bench = Bench::new(2);
        let circuit = bench.tool.circuit().unwrap();
        let [resting, rested, late, later] = [(); 4].map(|()| circuit.admit().unwrap());
        assert_eq!([bench.call(Trap).await, bench.call(Trap).await], [None; 2]);
        circuit.settle(resting, sign);
        assert_eq!(bench.state(), "open", "{sign:?}");
        bench.clock.advance(REST);
        circuit.settle(rested, sign);
        assert_eq!((bench.state(), bench.call(Ok).await), ("half_open", None), "{sign:?}");
        // They neither add to the current count of failures, nor reset it.
        assert_eq!(bench.call(Trap).await, None);
        circuit.settle(late, sign);
        circuit.settle(later, sign);
        assert_eq!(bench.state(), "closed", "{sign:?}");
        assert_eq!((bench.call(Trap).await, bench.state()), (None, "open"), "{sign:?}");
    }
}

#[tokio::test]
async fn panic_counts_as_failure_and_propagates() {
    let bench = Bench::new(1);
    for _ in 0..2 {
        let panic = AssertUnwindSafe(bench.start(Panic)).catch_unwind().await.unwrap_err();
        assert_eq!((panic.downcast_ref(), bench.state()), (Some(&"ouch"), "open"));
        bench.clock.advance(REST);
    }
}

#[tokio::test]
async fn breaker_state_is_shared_by_clones_only() {
    let bench = Bench::new(1);
    let clone = bench.tool.clone().with_visibility(|_, _| true);
    let other = bench.scripted.tool().with_breaker(breaker(&bench.clock, 1));
    assert_eq!(bench.call(Trap).await, None);
    assert_eq!(clone.breaker_state(), Some(BreakerState::Open));
    assert_eq!(other.breaker_state(), Some(BreakerState::Closed));
    assert_eq!(bench.scripted.tool().breaker_state(), None);
    assert_delegates(bench.tool.handler().unwrap()).await;
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
    let broken = |failures| {
        Bench::changed(failures, |_| {
            Breaker::default().with_failures(failures).with_clock(Arc::new(Broken))
        })
    };
    let bench = broken(2);
    for expected in [None, None, Some(29)] {
        assert_eq!(bench.call(Trap).await, expected);
    }
    assert_eq!(bench.state(), "open");
    let bench = broken(1);
    assert!(AssertUnwindSafe(bench.call(Panic)).catch_unwind().await.is_err());
    assert_eq!(bench.state(), "open");
}

#[tokio::test]
async fn breaker_closes_after_consecutive_successes() {
    let bench = Bench::changed(1, |breaker| breaker.with_successes_to_close(3));
    let table = rows::<(_, ScriptedAnswer, Option<u64>, &str)>("tool/breaker", "closing");
    for (line, (seconds, say, refused, left)) in table.into_iter().enumerate() {
        bench.clock.advance(Duration::from_secs(seconds));
        assert_eq!((bench.call(say).await, bench.state()), (refused, left), "line {line}");
    }
    // Only one probe runs at a time between two successes as well.
    assert_eq!(bench.call(Trap).await, None);
    bench.clock.advance(REST);
    assert_eq!(bench.call(Ok).await, None);
    let probe = bench.hang();
    assert_eq!(bench.call(Ok).await, Some(10));
    drop(probe);
    assert_eq!((bench.call(Ok).await, bench.state()), (None, "half_open"));
}

#[tokio::test]
async fn failure_rule_decides_which_failures_count() {
    type Rule = fn(&Failure) -> bool;
    let is_word: Rule = |failure| matches!(failure, Failure::Error(_));
    let is_late: Rule = |failure| matches!(failure, Failure::ToolError(ToolError::Timeout(_)));
    let bench = |rule: Rule| Bench::changed(1, |breaker| breaker.with_failure_rule(rule));
    for (name, say, expected) in rows::<(&str, ScriptedAnswer, &str)>("tool/breaker", "rules") {
        let bench = bench(match name {
            "word" => is_word,
            "late" => is_late,
            "all" => |_| true,
            "panic" => |_| panic!("a rule of an embedder's own"),
            other => panic!("{other}"),
        });
        let seen = (bench.call(say).await, bench.state());
        assert_eq!(seen, (None, expected), "{name}: {say:?}");
    }
    // The rule is also called for a handler that was dropped at its deadline or that panicked.
    for (rule, expected) in [(is_late, "open"), (is_word, "closed")] {
        let bench = bench(rule);
        let hangs = bench.hang();
        bench.clock.advance(SECOND);
        drop(hangs);
        assert_eq!(bench.state(), expected);
    }
    let bench = bench(is_word);
    assert!(AssertUnwindSafe(bench.call(Panic)).catch_unwind().await.is_err());
    assert_eq!(bench.state(), "closed");
}
