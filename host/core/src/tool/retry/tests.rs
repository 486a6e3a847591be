//! Tests of retries: the schedules as tables, and which failures are retried, when and how often.
//! The clock moves by itself; two tests run in real time.

use std::task::{Context, Waker};

use toolcell_contract::call::AbortSignal;
use toolcell_contract::outcome::tool_error::Timeout;
use toolcell_test_guests::rows;

use super::*;
use crate::os::clock::ManualClock;
use crate::tool::scripted::ScriptedAnswer::{Busy, BusyFor, Hang, Ok};
use crate::tool::scripted::{Scripted, ScriptedAnswer, assert_delegates, invocation};

const SECOND: Duration = Duration::from_secs(1);

fn delays(retry: &Retry, rng: &mut Rng) -> Vec<u128> {
    [1, 2, 3, 4, 5, 40, u32::MAX].map(|failed| retry.delay(failed, rng).as_millis()).to_vec()
}

#[test]
fn retry_delays_follow_the_schedule() {
    let longest = Duration::from_millis(900);
    for (retry, expected) in [
        (Retry::fixed(SECOND / 10), [100, 100, 100, 100, 100, 100, 100]),
        (Retry::exponential(SECOND / 10), [100, 200, 400, 800, 900, 900, 900]),
        (Retry::fixed(SECOND), [900; 7]),
        (Retry::exponential(Duration::ZERO), [0; 7]),
    ] {
        let delays = delays(&retry.clone().with_max_delay(longest), &mut Rng::with_seed(1));
        assert_eq!(delays, expected, "{retry:?}");
    }
    let unbounded = Retry::exponential(Duration::MAX).with_max_delay(Duration::MAX);
    assert_eq!(unbounded.delay(u32::MAX, &mut Rng::with_seed(1)), Duration::MAX);
}

#[test]
fn jitter_is_in_the_upper_half_and_reproducible() {
    let jitter = Retry::exponential_with_jitter(SECOND);
    let full = delays(&Retry::exponential(SECOND), &mut Rng::with_seed(0));
    let draw = |seed| delays(&jitter, &mut Rng::with_seed(seed));
    for seed in 0..100 {
        let drawn = draw(seed);
        for (drawn, full) in drawn.iter().zip(&full) {
            assert!((full / 2..=*full).contains(drawn), "{drawn} of {full}");
        }
        assert_eq!(drawn, draw(seed));
    }
    assert_ne!(draw(1), draw(2));
    let longest = Retry::exponential_with_jitter(Duration::MAX).with_max_delay(Duration::MAX);
    assert!(longest.delay(1, &mut Rng::with_seed(1)) >= Duration::MAX / 2);
}

/// Returns the result of a call, and the number and time of each of its attempts.
async fn run(
    script: &[ScriptedAnswer],
    retry: Retry,
    timeout: Duration,
) -> (CallResult, Vec<(Option<u32>, u64)>) {
    let clock = ManualClock::automatic();
    let scripted = Scripted::new(&clock, script);
    let tool = scripted.tool().with_retry(retry.with_clock(Arc::new(clock.clone())));
    let result = tool.handler().unwrap().call(Arc::new(invocation(&clock, timeout))).await;
    assert_eq!(clock.sleepers(), 0);
    (result, scripted.calls())
}

#[tokio::test]
async fn only_transient_failures_are_retried() {
    for (script, expected) in rows::<(Vec<ScriptedAnswer>, Vec<u64>)>("tool/retry", "scripts") {
        let (result, calls) = run(&script, Retry::fixed(SECOND), SECOND * 30).await;
        let at: Vec<_> = calls.iter().map(|(_, at)| *at).collect();
        assert_eq!(at, expected, "{script:?}");
        let last = &script[calls.len() - 1..];
        let (said, _) = run(last, Retry::fixed(SECOND).with_attempts(0), SECOND).await;
        assert_eq!(result, said, "{script:?}: the last attempt counts");
    }
}

#[tokio::test]
async fn attempts_are_counted_and_bounded() {
    let (_, calls) = run(&[Busy], Retry::exponential(SECOND).with_attempts(4), SECOND * 30).await;
    assert_eq!(calls, [(Some(1), 0), (Some(2), 1000), (Some(3), 3000), (Some(4), 7000)]);
    let (_, calls) =
        run(&[Busy], Retry::fixed(Duration::ZERO).with_attempts(u32::MAX), SECOND).await;
    assert_eq!(calls.len(), Retry::MAX_ATTEMPTS as usize);
}

/// The failure returns at once: no sleep begins if its end leaves no time for an attempt.
#[tokio::test]
async fn no_attempt_starts_after_the_deadline() {
    let many = Retry::exponential(SECOND).with_attempts(100);
    let (_, calls) = run(&[Busy], many.clone(), SECOND * 7).await;
    assert_eq!(calls.last(), Some(&(Some(3), 3000)), "the fourth would come at 7000");
    let (_, calls) = run(&[Busy], many.clone(), SECOND * 7 + Duration::from_millis(1)).await;
    assert_eq!(calls.last(), Some(&(Some(4), 7000)));
    let (_, calls) = run(&[BusyFor(9000)], many, SECOND * 9).await;
    assert_eq!(calls.len(), 1);
    let endless = Retry::fixed(Duration::MAX).with_max_delay(Duration::MAX);
    assert_eq!(run(&[Busy], endless, Duration::MAX).await.1.len(), 1, "no clock can say that time");
}

/// An abort ends the sleep with the last failure; dropping the call leaves no sleeper.
#[test]
fn cancelled_call_is_not_retried() {
    let clock = ManualClock::new();
    let scripted = Scripted::new(&clock, &[Busy]);
    let tool = scripted.tool().with_retry(Retry::fixed(SECOND).with_clock(Arc::new(clock.clone())));
    let handler = tool.handler().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let abort = AbortSignal::new();
    let call = || Arc::new(Invocation { abort: abort.clone(), ..invocation(&clock, SECOND * 30) });

    let mut dropped = handler.call(call());
    assert!(dropped.as_mut().poll(&mut context).is_pending() && clock.sleepers() == 1);
    drop(dropped);
    assert_eq!(clock.sleepers(), 0);

    let mut aborted = handler.call(call());
    assert!(aborted.as_mut().poll(&mut context).is_pending());
    abort.raise();
    assert!(aborted.as_mut().poll(&mut context).is_ready());
    assert!(handler.call(call()).as_mut().poll(&mut context).is_ready(), "raised before");
    clock.advance(SECOND * 10);
    assert_eq!(scripted.calls().len(), 3);
}

/// The real clock ends the sleep too, even if another clock says that time is left.
#[tokio::test]
async fn retry_sleep_ends_at_the_deadline() {
    let clock = ManualClock::new();
    let scripted = Scripted::new(&clock, &[Busy, Ok]);
    let tool = scripted
        .tool()
        .with_retry(Retry::fixed(Duration::from_nanos(1)).with_clock(Arc::new(clock.clone())));
    let result =
        tool.handler().unwrap().call(Arc::new(invocation(&clock, Duration::from_nanos(2)))).await;
    assert!(Failure::of(&result).is_some_and(|failure| failure.is_retryable()));
    assert_eq!(scripted.calls().len(), 1);
}

#[tokio::test]
async fn retry_delegates_all_but_calls() {
    let tool = Scripted::new(&ManualClock::new(), &[Ok]).tool().with_retry(Retry::fixed(SECOND));
    assert_delegates(tool.handler().unwrap()).await;
}

/// In real time: an attempt that hangs is ended after its own time, and the next one answers. The
/// call's deadline ends all attempts.
#[tokio::test]
async fn each_attempt_has_its_own_timeout() {
    let clock = ManualClock::automatic();
    let short = Duration::from_millis(20);
    let retry =
        || Retry::fixed(SECOND).with_clock(Arc::new(clock.clone())).with_attempt_timeout(short);
    let made = async |retry: Retry, script: &[ScriptedAnswer], timeout| {
        let scripted = Scripted::new(&clock, script);
        let tool = scripted.tool().with_retry(retry);
        let call = Invocation { started: Instant::now(), ..invocation(&clock, timeout) };
        let result = tool.handler().unwrap().call(Arc::new(call)).await;
        (result, scripted.calls().into_iter().map(|(attempt, _)| attempt).collect::<Vec<_>>())
    };
    let hour = SECOND * 3600;
    let (result, calls) = made(retry(), &[Hang, Ok], hour).await;
    assert!(Failure::of(&result).is_none() && calls == [Some(1), Some(2)], "{result:?}, {calls:?}");

    let (result, calls) = made(retry().with_attempts(2), &[Hang], hour).await;
    let CallResult::ToolError(ToolError::Timeout(Timeout::Blocked { budget, .. })) = result else {
        panic!("{result:?}")
    };
    assert_eq!((budget, calls.len()), (short, 2), "the attempt's own time");

    let (result, calls) = made(retry().with_attempt_timeout(hour), &[Hang, Ok], short).await;
    let CallResult::ToolError(ToolError::Timeout(Timeout::Blocked { budget, .. })) = result else {
        panic!("{result:?}")
    };
    assert_eq!((budget, calls.len()), (short, 1), "the call's time, which is over");
}
