//! Tests the policy function of a run: the context that it runs in, and the cost for others of one
//! that never returns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle};
use toolcell::run::{RunHalt, RunOutcome, Verdict};
use toolcell::{
    AbortSignal, CallOptions, Definition, Executor, Limits, OnToolError, RunOptions, Runner, Tool,
    ToolCall,
};
use toolcell_tests::wait_here;
use tracing::Instrument as _;

use crate::{limited, named, registry, with_policy, within};

/// Policy functions of one runner that may run at the same time.
const PLACES: usize = 64;

/// Returns a runner of one tool, which fails or hangs as its arguments say.
fn runner() -> Runner {
    runner_of(named("t"))
}

fn runner_of(definition: Definition) -> Runner {
    let fails = Tool::native(definition, async |arguments: Value| {
        if arguments["hang"] == true {
            std::future::pending::<()>().await;
        }
        Err::<Value, _>("no")
    });
    Runner::new(registry([fails.expect("a tool")]))
}

fn calls(count: usize) -> Vec<ToolCall> {
    (0..count).map(|n| ToolCall::new(n.to_string(), "t", "{}")).collect()
}

fn run(runner: &Runner, count: usize, timeout: Duration, policy: &OnToolError) -> RunOutcome {
    let options = RunOptions {
        max_concurrency: Some(count),
        tool_timeout: Some(timeout),
        on_tool_error: policy.clone(),
        ..RunOptions::default()
    };
    wait_here(runner.run(calls(count), options)).expect("every name is known")
}

/// Returns the content of each message.
fn contents(outcome: &RunOutcome) -> Vec<&str> {
    outcome.messages.iter().map(|message| message.content.as_str()).collect()
}

/// Returns true if the policy of each call was given up, and there was a call.
fn is_given_up(outcome: &RunOutcome) -> bool {
    let contents = contents(outcome);
    let silent = |content: &&str| content.contains("gave no answer within 20ms");
    !contents.is_empty() && contents.iter().all(silent)
}

/// Returns a policy that waits until the gate is open.
fn waiting(gate: &Arc<RwLock<()>>) -> OnToolError {
    let gate = Arc::clone(gate);
    OnToolError::decide(move |_, _| {
        drop(gate.read());
        Verdict::Halt
    })
}

fn instead(text: &'static str) -> OnToolError {
    OnToolError::decide(move |_, _| Verdict::Continue(json!(text).into()))
}

/// Fails without: ending the wait for the policy at a stop (the run hangs).
#[test]
fn stop_ends_a_run_waiting_for_its_policy() {
    let (abort, asked) = (AbortSignal::new(), Arc::new(AtomicUsize::new(0)));
    let (stop, count) = (abort.clone(), Arc::clone(&asked));
    let policy = OnToolError::decide_async(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        stop.raise();
        std::future::pending::<Verdict>()
    });
    let options = RunOptions {
        call: CallOptions { abort, ..CallOptions::default() },
        max_concurrency: Some(1),
        ..with_policy(policy)
    };
    let outcome = wait_here(runner().run(calls(3), options)).expect("every name is known");
    let cancelled = r#"{"error":"the call was cancelled"}"#;
    assert_eq!(contents(&outcome), [r#"{"error":"no"}"#, cancelled, cancelled]);
    assert_eq!((asked.load(Ordering::Relaxed), outcome.halted), (1, None));
}

tokio::task_local! {
    static WHO: &'static str;
}

/// An async policy runs in the call's own task: it sees its task-locals and its span, and it may
/// wait.
#[test]
fn async_policy_runs_in_the_calls_task() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let policy = OnToolError::decide_async(move |call, failure| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::task::yield_now().await;
            let span = tracing::Span::current().metadata().map(tracing::Metadata::name);
            let seen = WHO.try_with(|who| *who).ok();
            Verdict::Continue(json!([call.id, failure.to_string(), seen, span]).into())
        }
    });
    let subscriber = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
    let outcome = tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!("turn");
        let run = WHO.scope("ada", async { runner().run(calls(2), with_policy(policy)).await });
        Builder::new_current_thread().build().expect("a runtime").block_on(run.instrument(span))
    });
    let outcome = outcome.expect("every name is known");
    assert_eq!(contents(&outcome), [r#"["0","no","ada","turn"]"#, r#"["1","no","ada","turn"]"#]);
    assert_eq!((asked.load(Ordering::Relaxed), outcome.halted), (2, None));
    // A blocking policy runs on a thread of its own, which has no task.
    let seen =
        OnToolError::decide(|_, _| Verdict::Continue(json!(WHO.try_with(|who| *who).ok()).into()));
    let run = WHO.scope("ada", async { runner().run(calls(1), with_policy(seen)).await });
    let outcome = Builder::new_current_thread().build().expect("a runtime").block_on(run);
    assert_eq!(outcome.expect("every name is known").messages[0].content, "null");
}

/// A policy that panics when it is called or polled, or that never ends, halts the run; the other
/// calls end.
#[test]
fn failing_async_policy_halts_the_run() {
    let made =
        OnToolError::decide_async(|_, _| -> std::future::Pending<Verdict> { panic!("made") });
    let polled = OnToolError::decide_async(async |_, _| panic!("polled"));
    let never = OnToolError::decide_async(|_, _| std::future::pending());
    for (policy, expected) in [
        (made, "panicked: made"),
        (polled, "panicked: polled"),
        (never, "gave no answer within 20ms"),
    ] {
        let outcome = run(&runner(), 2, Duration::from_millis(20), &policy);
        let text = json!({"error": format!("the policy function of the run {expected}")});
        assert_eq!(contents(&outcome), [text.to_string(), text.to_string()]);
        let exception = Some(expected.to_owned());
        let halted = RunHalt::ToolError { tool_call_id: "0".into(), exception };
        assert_eq!(outcome.halted, Some(halted));
    }
}

/// A task that the policy spawns runs on the caller's runtime, never on the thread with the timers
/// of all calls.
#[test]
fn policy_spawns_on_the_callers_runtime() {
    let caller = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("caller")
        .build()
        .expect("a runtime");
    let (told, names) = mpsc::channel();
    let policy = OnToolError::decide(move |_, _| {
        let told = told.clone();
        Handle::current()
            .spawn(async move { told.send(thread::current().name().map(str::to_owned)) });
        Verdict::Halt
    });
    let options =
        RunOptions { tool_timeout: Some(Duration::from_millis(20)), ..with_policy(policy) };
    let both =
        [ToolCall::new("fails", "t", "{}"), ToolCall::new("hangs", "t", r#"{"hang": true}"#)];
    caller.block_on(runner().run(both, options)).expect("every name is known");
    for _ in 0..2 {
        assert_eq!(names.recv().expect("spawned").as_deref(), Some("caller"));
    }
}

/// All policies that may run at once never return: one more gets no place in time, but another
/// runner's policy is called.
#[test]
fn stuck_policies_do_not_block_other_runners() {
    let (stuck, gate) = (runner(), Arc::new(RwLock::new(())));
    let closed = gate.write().expect("no panic");
    let never = waiting(&gate);
    let (short, long) = (Duration::from_millis(20), Duration::from_secs(30));
    let first = run(&stuck, PLACES, short, &never);
    assert!(is_given_up(&first) && first.messages.len() == PLACES, "{first:?}");
    let second = run(&stuck, 1, short, &instead("too late"));
    assert!(is_given_up(&second), "{second:?}");
    assert_eq!(contents(&run(&runner(), 1, long, &instead("replaced"))), ["replaced"]);
    drop(closed);
    let again = run(&stuck, 1, long, &instead("again"));
    assert_eq!(contents(&again), ["again"], "a place is free again");
}

/// This time may be set by the run, its limits, the executor or the tool.
#[test]
fn policy_has_the_calls_timeout() {
    let (short, gate) = (Duration::from_millis(20), Arc::new(RwLock::new(())));
    let closed = gate.write().expect("no panic");
    let options = with_policy(waiting(&gate));
    let call = limited(Limits { timeout: short, ..Limits::unlimited() });
    let executor = Executor::new().with_limits(within(20));
    for (runner, options) in [
        (runner(), RunOptions { tool_timeout: Some(short), ..options.clone() }),
        (runner(), RunOptions { call, ..options.clone() }),
        (runner().with_executor(executor), options.clone()),
        (runner_of(named("t").with_max_execution(short)), options),
    ] {
        let outcome = wait_here(runner.run(calls(1), options)).expect("every name is known");
        assert!(is_given_up(&outcome), "{:?}", outcome.messages);
    }
    drop(closed);
}
