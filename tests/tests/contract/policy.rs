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
    AbortSignal, CallOptions, Definition, Executor, Limits, OnToolError, Registry, RunOptions,
    Runner, Tool, ToolCall,
};
use toolcell_tests::wait;
use tracing::Instrument as _;

/// Policy functions of one runner that may run at the same time.
const PLACES: usize = 64;

fn definition() -> Definition {
    Definition::new("t", "").expect("a name")
}

/// Returns a runner of one tool, which fails or hangs as its arguments say.
fn runner() -> Runner {
    runner_of(definition())
}

fn runner_of(definition: Definition) -> Runner {
    let fails = Tool::native(definition, async |arguments: Value| {
        if arguments["hang"] == true {
            std::future::pending::<()>().await;
        }
        Err::<Value, _>("no")
    });
    let registry = Registry::new();
    registry.register(fails.expect("a tool")).expect("a name of its own");
    Runner::new(registry)
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
    let runner = runner.clone();
    wait(async move { runner.run(calls(count), options).await }).expect("every name is known")
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
        on_tool_error: policy,
        ..RunOptions::default()
    };
    let outcome =
        wait(async move { runner().run(calls(3), options).await }).expect("every name is known");
    let contents: Vec<_> =
        outcome.messages.iter().map(|message| message.content.as_str()).collect();
    let cancelled = r#"{"error":"the call was cancelled"}"#;
    assert_eq!(contents, [r#"{"error":"no"}"#, cancelled, cancelled]);
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
    let options = RunOptions { on_tool_error: policy, ..RunOptions::default() };
    let subscriber = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
    let outcome = tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!("turn");
        let run = WHO.scope("ada", async { runner().run(calls(2), options).await });
        Builder::new_current_thread().build().expect("a runtime").block_on(run.instrument(span))
    });
    let outcome = outcome.expect("every name is known");
    let contents: Vec<_> =
        outcome.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(contents, [r#"["0","no","ada","turn"]"#, r#"["1","no","ada","turn"]"#]);
    assert_eq!((asked.load(Ordering::Relaxed), outcome.halted), (2, None));
    // A blocking policy runs on a thread of its own, which has no task.
    let seen =
        OnToolError::decide(|_, _| Verdict::Continue(json!(WHO.try_with(|who| *who).ok()).into()));
    let options = RunOptions { on_tool_error: seen, ..RunOptions::default() };
    let run = WHO.scope("ada", async { runner().run(calls(1), options).await });
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
        let texts: Vec<_> =
            outcome.messages.iter().map(|message| message.content.clone()).collect();
        assert_eq!(
            texts,
            [(); 2]
                .map(|()| json!({"error": format!("the policy function of the run {expected}")})
                    .to_string())
        );
        let exception = Some(expected.to_owned());
        assert_eq!(
            outcome.halted,
            Some(RunHalt::ToolError { tool_call_id: "0".into(), exception })
        );
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
    let options = RunOptions {
        tool_timeout: Some(Duration::from_millis(20)),
        on_tool_error: policy,
        ..RunOptions::default()
    };
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
    let parked = Arc::clone(&gate);
    let never = OnToolError::decide(move |_, _| {
        drop(parked.read());
        Verdict::Halt
    });
    let (short, long) = (Duration::from_millis(20), Duration::from_secs(30));
    let silent = |outcome: &RunOutcome| {
        outcome
            .messages
            .iter()
            .all(|message| message.content.contains("gave no answer within 20ms"))
    };
    let first = run(&stuck, PLACES, short, &never);
    assert!(silent(&first) && first.messages.len() == PLACES, "{first:?}");
    let second = run(&stuck, 1, short, &instead("too late"));
    assert!(silent(&second), "{second:?}");
    assert_eq!(run(&runner(), 1, long, &instead("replaced")).messages[0].content, "replaced");
    drop(closed);
    assert_eq!(
        run(&stuck, 1, long, &instead("again")).messages[0].content,
        "again",
        "a place is free again"
    );
}

/// This time may be set by the run, its limits, the executor or the tool.
#[test]
fn policy_has_the_calls_timeout() {
    let (short, gate) = (Duration::from_millis(20), Arc::new(RwLock::new(())));
    let closed = gate.write().expect("no panic");
    let parked = Arc::clone(&gate);
    let never = OnToolError::decide(move |_, _| {
        drop(parked.read());
        Verdict::Halt
    });
    let options = RunOptions { on_tool_error: never, ..RunOptions::default() };
    let limits = Limits { timeout: short, ..Limits::unlimited() };
    let call = CallOptions { limits, ..CallOptions::default() };
    let limited = Executor::new().with_limits(Limits { timeout: short, ..Limits::default() });
    for (runner, options) in [
        (runner(), RunOptions { tool_timeout: Some(short), ..options.clone() }),
        (runner(), RunOptions { call, ..options.clone() }),
        (runner().with_executor(limited), options.clone()),
        (runner_of(definition().with_max_execution(short)), options),
    ] {
        let outcome =
            wait(async move { runner.run(calls(1), options).await }).expect("every name is known");
        assert!(
            outcome.messages[0].content.contains("gave no answer within 20ms"),
            "{:?}",
            outcome.messages
        );
    }
    drop(closed);
}
