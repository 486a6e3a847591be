//! A tenant's tools in a process of their own: the calls behave alike, and the death of the process
//! affects no other tenant.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolcell::call::CallFiles;
use toolcell::process::{WorkerProcess, WorkerProcessBuilder};
use toolcell::runtime::Placement;
use toolcell::{AbortSignal, CallOptions, Completion, Event, Executor, Limits, Tool, ToolCall};
use toolcell_test_guests::rows;
use toolcell_tests::{context, ending, engine, load, wait};

/// Time after which a test counts as hung.
const PATIENCE: Duration = Duration::from_secs(10);
const WARD: &str = env!("CARGO_BIN_EXE_ward");

fn builder(words: &[&str]) -> WorkerProcessBuilder {
    WorkerProcess::builder(WARD).arguments(words.iter().copied())
}

fn worker_process() -> WorkerProcess {
    wait(builder(&["tools"]).start()).expect("it starts")
}

async fn complete(
    tool: Tool,
    arguments: Value,
    executor: Executor,
    options: CallOptions,
) -> Completion {
    let call = ToolCall::with_value("call-1", tool.definition().name.as_str(), &arguments);
    executor.call(&tool, call, options).await
}

fn tool_of(worker_process: &WorkerProcess, name: &str) -> Tool {
    worker_process.tool(name).expect("the tool").clone()
}

fn call(worker_process: &WorkerProcess, tool: &str) -> Completion {
    complete_now(tool_of(worker_process, tool), Executor::new(), CallOptions::default())
}

/// Makes a call without arguments to its end.
fn complete_now(tool: Tool, executor: Executor, options: CallOptions) -> Completion {
    wait(complete(tool, json!({}), executor, options))
}

fn call_ending(worker_process: &WorkerProcess, tool: &str) -> String {
    ending(&call(worker_process, tool).result)
}

/// Returns the id of the process that answers.
fn answering_pid(worker_process: &WorkerProcess) -> Value {
    said(&call(worker_process, "pid"))
}

/// Returns an executor that calls `act` when a call reports progress.
fn at_progress(act: impl Fn() + Send + Sync + 'static) -> Executor {
    Executor::new().with_events(move |event| {
        if let Event::Progress { .. } = event {
            act();
        }
    })
}

/// Returns an executor that raises the signal when a call starts.
fn raising_at_start(abort: AbortSignal) -> Executor {
    Executor::new().with_events(move |event| {
        if let Event::Started { .. } = event {
            abort.raise();
        }
    })
}

fn said(completion: &Completion) -> Value {
    completion.result.value().unwrap_or_else(|| panic!("{completion:?}")).to_value()
}

fn eventually(mut comes_about: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if comes_about() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Returns true if a process runs; a zombie does not.
fn lives(pid: u32) -> bool {
    let told = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    told.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn send(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("an id")).expect("an id");
    rustix::process::kill_process(pid, signal).expect("it is ours");
}

/// Starts a call and waits until it runs. Returns the channel of its completion.
fn running(worker_process: &WorkerProcess, tool: &str) -> mpsc::Receiver<Completion> {
    let ((begins, begun), (ends, ended)) = (mpsc::channel(), mpsc::channel());
    let tool = tool_of(worker_process, tool);
    let executor = at_progress(move || {
        let _ = begins.send(());
    });
    std::thread::spawn(move || {
        drop(ends.send(complete_now(tool, executor, CallOptions::default())))
    });
    begun.recv_timeout(PATIENCE).expect("it runs");
    ended
}

#[test]
fn each_worker_has_its_own_process_and_environment() {
    let (one, other) = (
        worker_process(),
        wait(builder(&["tools"]).variable("GIVEN", "to one").start()).expect("it starts"),
    );
    let (first, second) = (answering_pid(&one), answering_pid(&other));
    assert_eq!((&first, &second), (&json!(one.pid()), &json!(other.pid())));
    assert_ne!(first, second);
    assert!(![first, second].contains(&json!(std::process::id())));
    let mut environment = said(&call(&other, "environment"));
    // The variable that tests pass to all their children.
    environment.as_object_mut().expect("variables").remove("TOOLCELL_DOWN");
    assert_eq!(environment, json!({"GIVEN": "to one"}));
    let bounds = said(&call(&other, "bounds"));
    let mut bounds = bounds.as_str().expect("bounds").lines();
    let dumps = bounds.find(|line| line.starts_with("Max core file size")).expect("a bound");
    // Its memory is written to no disk.
    assert_eq!(dumps.split_whitespace().nth(4), Some("0"));
    assert!(!format!("{:?}", builder(&[]).variable("TOKEN", "canary")).contains("canary"));
}

/// Compares result, receipt and events of a component's calls, with and without a worker process.
#[test]
fn calls_are_equal_with_and_without_worker_process() {
    let scratch = env!("CARGO_TARGET_TMPDIR");
    let here = load(&engine(Placement::Cells, scratch), toolcell_test_guests::bytes("mischief"))
        .expect("it loads");
    let there = wait(builder(&["component", scratch, "mischief"]).start()).expect("it starts");
    let definitions: Vec<_> = there.tools().iter().map(Tool::definition).collect();
    assert_eq!(definitions, here.definitions().collect::<Vec<_>>());
    let little = Limits { fuel: 20_000_000, log: 300, ..Limits::default() };
    for (tool, arguments, is_limited) in rows::<(&str, Value, bool)>(
        "sandbox/workers",
        "calls_are_equal_with_and_without_worker_process",
    ) {
        let limits = if is_limited { little } else { Limits::default() };
        let observed = |tool: &Tool| {
            let events = Arc::<Mutex<Vec<Value>>>::default();
            let heard = Arc::clone(&events);
            let executor = Executor::new().with_limits(limits).with_events(move |event: Event| {
                heard.lock().expect("no panic").push(serde_json::to_value(event).expect("JSON"));
            });
            let mut completion =
                wait(complete(tool.clone(), arguments.clone(), executor, CallOptions::default()));
            completion.usage.wall = Duration::ZERO;
            let mut events = std::mem::take(&mut *events.lock().expect("no panic"));
            events.pop().expect("an end");
            let mut told = serde_json::to_value(&completion).expect("JSON");
            if let Some(used) = told.pointer_mut("/outcome/tool_error/cause/used_ms") {
                *used = Value::Null;
            }
            (told, events)
        };
        let (with, without) = (
            observed(there.tool(tool).expect("the tool")),
            observed(here.tool(tool).expect("the tool")),
        );
        assert_eq!(with, without, "{tool} {arguments}");
    }
    // It depends on the machine if the tool has reached its sleep by then.
    let impatient = call(&there, "impatient").result;
    assert!(
        ["timeout/blocked", "timeout/deadline"].contains(&ending(&impatient).as_str()),
        "{impatient:?}"
    );
}

/// The call's context, the abort signal, and the rules of the child reach the other process.
#[test]
fn context_abort_and_rules_reach_the_worker() {
    let worker_process = worker_process();
    let sent = context(&json!({
        "session_id": "s", "tenant": "acme", "attempt": 2, "metadata": null,
        "resume": {"answer": [1.50, "x"], "state": null},
    }));
    let options = CallOptions { context: sent.clone().into(), ..CallOptions::default() };
    let tool = tool_of(&worker_process, "context");
    let told = complete_now(tool, Executor::new().without_sealer(), options);
    assert_eq!(said(&told), json!(format!("{:?}", Arc::new(sent))));
    let abort = AbortSignal::new();
    let options =
        CallOptions { abort: abort.clone(), stop_grace: Duration::MAX, ..CallOptions::default() };
    let stops = tool_of(&worker_process, "stops");
    let stopped = complete_now(stops, raising_at_start(abort), options);
    assert_eq!(said(&stopped), json!("stopped"));
    // Without a grace, a call that does not end by itself is not waited for.
    let abort = AbortSignal::new();
    let options = CallOptions { abort: abort.clone(), ..CallOptions::default() };
    let hangs = tool_of(&worker_process, "hangs");
    let ended = complete_now(hangs, raising_at_start(abort), options);
    assert_eq!(ending(&ended.result), "handler_exit/cancelled");
    assert_eq!(call_ending(&worker_process, "hidden"), "refusal/not_visible");
    let hidden = tool_of(&worker_process, "hidden");
    assert!(!wait(async move { hidden.is_visible(&context(&json!({}))).await }));
    let (tool, call) = (tool_of(&worker_process, "picky"), ToolCall::new("1", "picky", "{}"));
    let checked =
        async move { Executor::new().validate(&tool, call, CallOptions::default()).await };
    let faults = wait(checked).expect("an answer");
    assert!(faults.len() == 1 && faults[0].to_string().contains("too plain"), "{faults:?}");
}

#[test]
fn files_of_a_call_reach_the_worker() {
    let words = ["component", env!("CARGO_TARGET_TMPDIR"), "clerk"];
    let worker_process = wait(builder(&words).start()).expect("it starts");
    let files = CallFiles::new().expect("a directory");
    files.add("a.csv", &b"1,2"[..]).expect("a name");
    let path = "/input/a.csv";
    let arguments = json!({"steps": [["read", path], ["write", path, "9"], ["read", path]]});
    let tool = tool_of(&worker_process, "clerk");
    for _ in 0..2 {
        // The worker does not remove them: the second call reads them too.
        let options = CallOptions { files: Some(files.clone()), ..CallOptions::default() };
        let called = complete(tool.clone(), arguments.clone(), Executor::new(), options);
        let told = said(&wait(called));
        assert!(told[0] == "1,2" && told[1] != "done" && told[2] == "1,2", "{told}");
    }
}

/// Source: docs/threat-model.md, row 83.
#[test]
fn dying_worker_ends_only_its_own_calls() {
    let (one, other) = (worker_process(), worker_process());
    for death in ["abort", "kill"] {
        let (before, others) = (one.pid(), running(&other, "hangs"));
        let hangs = running(&one, "hangs");
        if death == "abort" {
            assert_eq!(call_ending(&one, "aborts"), "handler_exit/process_ended");
        } else {
            send(before.expect("a child"), Signal::KILL);
        }
        let died = Instant::now();
        let ended = hangs.recv_timeout(PATIENCE).expect("it ends");
        assert_eq!(ending(&ended.result), "handler_exit/process_ended", "{death}");
        // The next child is there, and it is the one that answers.
        let next = answering_pid(&one);
        assert!(
            died.elapsed() < PATIENCE && next == json!(one.pid()) && next != json!(before),
            "{death}: {next}"
        );
        assert!(one.pid().is_some_and(lives) && !before.is_some_and(lives), "{death}");
        let errors = (0..20).filter(|_| call_ending(&other, "pid") != "ok").count();
        assert_eq!(errors, 0, "{death}");
        assert!(others.try_recv().is_err(), "it goes on");
    }
}

#[test]
fn idempotent_call_is_retried_after_worker_death() {
    let (worker_process, dir) = (worker_process(), TempDir::new().expect("a directory"));
    for (tool, expected) in
        [("dies_once", "handler_exit/process_ended"), ("dies_once_and_may_be_called_twice", "ok")]
    {
        let (arguments, options) =
            (json!({ "mark": dir.path().join(tool) }), CallOptions::default());
        let called = complete(tool_of(&worker_process, tool), arguments, Executor::new(), options);
        assert_eq!(ending(&wait(called).result), expected, "{tool}");
    }
}

#[test]
fn invalid_worker_is_reported_at_start() {
    for (mode, needle) in
        rows::<(&str, &str)>("sandbox/workers", "invalid_worker_is_reported_at_start")
    {
        let error = wait(builder(&[mode]).start()).expect_err("no child");
        assert!(error.is_environment() && error.to_string().contains(needle), "{mode}: {error}");
    }
    let error = wait(builder(&["refuses"]).start()).expect_err("it refuses");
    let words = std::error::Error::source(&error).expect("its words").to_string();
    assert!(error.is_worker() && words == "there is nothing to be had", "{error}: {words}");
    let error = wait(WorkerProcess::builder("no such program").start()).expect_err("no child");
    assert!(error.is_environment(), "{error}");
}

#[test]
fn call_is_refused_if_no_worker_restarts_in_time() {
    let dir = TempDir::new().expect("a directory");
    let program = dir.path().join("ward");
    std::os::unix::fs::symlink(WARD, &program).expect("a program");
    let worker_process =
        wait(WorkerProcess::builder(&program).arguments(["tools"]).start()).expect("it starts");
    std::fs::remove_file(&program).expect("it is there");
    send(worker_process.pid().expect("a child"), Signal::KILL);
    let limits = Limits { timeout: Duration::from_millis(100), ..Limits::default() };
    let is_told = || {
        let (tool, executor) =
            (tool_of(&worker_process, "pid"), Executor::new().with_limits(limits));
        let ended = ending(&complete_now(tool, executor, CallOptions::default()).result);
        assert!(
            ["ok", "handler_exit/process_ended", "refusal/restarting"].contains(&ended.as_str()),
            "{ended}"
        );
        ended == "refusal/restarting"
    };
    assert!(eventually(is_told));
}

#[test]
fn worker_with_malformed_reply_is_replaced() {
    let worker_process = worker_process();
    let before = worker_process.pid();
    assert_eq!(call_ending(&worker_process, "rubbish"), "handler_exit/process_ended");
    assert_ne!(answering_pid(&worker_process), json!(before));
}

#[test]
fn unreadable_message_ends_only_its_own_call() {
    let worker_process = worker_process();
    let (pid, hangs) = (worker_process.pid(), running(&worker_process, "hangs"));
    let deep = (0..200).fold(json!(0), |inner, _| json!([inner]));
    for bad in [json!({"$serde_json::private::x": 0}), deep] {
        for sent in [json!({"metadata": bad}), json!({"resume": {"answer": bad}})] {
            let options = CallOptions { context: context(&sent).into(), ..CallOptions::default() };
            let tool = tool_of(&worker_process, "pid");
            let told = complete_now(tool, Executor::new().without_sealer(), options);
            assert_eq!(ending(&told.result), "refusal/invalid_arguments", "{sent}");
        }
    }
    assert_eq!(call_ending(&worker_process, "reserved"), "invalid_return/unreadable");
    assert_eq!(answering_pid(&worker_process), json!(pid));
    assert!(hangs.try_recv().is_err(), "it goes on");
}

#[test]
fn worker_holding_an_ended_call_is_killed() {
    let worker_process =
        wait(builder(&["tools"]).grace(Duration::from_millis(50)).start()).expect("it starts");
    let before = worker_process.pid();
    let tool = tool_of(&worker_process, "never_lets_go");
    let executor = Executor::new()
        .with_limits(Limits { timeout: Duration::from_millis(50), ..Limits::default() });
    let ended = complete_now(tool, executor, CallOptions::default());
    assert_eq!(ending(&ended.result), "timeout/blocked");
    assert!(eventually(|| worker_process.pid().is_some_and(|pid| Some(pid) != before)));
    assert_eq!(answering_pid(&worker_process), json!(worker_process.pid()));
}

/// Makes a call, and drops it when `begun` reports that it runs.
fn drop_once_begun(tool: Tool, executor: Executor, begun: mpsc::Receiver<()>) {
    wait(async move {
        let task = tokio::spawn(complete(tool, json!({}), executor, CallOptions::default()));
        tokio::task::block_in_place(|| begun.recv_timeout(PATIENCE)).expect("it runs");
        task.abort();
        assert!(task.await.is_err());
    });
}

#[test]
fn dropped_call_is_ended_in_the_worker() {
    let worker_process = worker_process();
    let tool = tool_of(&worker_process, "hangs");
    let (begins, begun) = mpsc::channel();
    let executor = at_progress(move || {
        let _ = begins.send(());
    });
    drop_once_begun(tool, executor, begun);
    assert!(eventually(|| said(&call(&worker_process, "hanging")) == json!(0)));
}

/// An event sink that owns the worker process is dropped after the last call that it observes.
#[test]
fn dropped_call_releases_its_observer() {
    let one = worker_process();
    let (pid, tool) = (one.pid().expect("a child"), tool_of(&one, "hangs"));
    let (begins, begun) = mpsc::channel();
    let executor = at_progress(move || {
        let _it_is_held = &one;
        let _ = begins.send(());
    });
    drop_once_begun(tool, executor, begun);
    assert!(eventually(|| !lives(pid)), "nothing keeps the worker process any more");
}

#[test]
fn always_visible_tool_is_listed_without_a_worker() {
    let worker_process = worker_process();
    send(worker_process.pid().expect("a child"), Signal::STOP);
    let tool = tool_of(&worker_process, "pid");
    assert!(wait(async move { tool.is_visible(&context(&json!({}))).await }));
}

#[test]
fn blocking_observer_delays_only_its_own_call() {
    let worker_process = worker_process();
    let tool = tool_of(&worker_process, "hangs");
    let ((blocks, blocked), (frees, freed)) = (mpsc::channel(), mpsc::channel::<()>());
    let freed = Mutex::new(freed);
    let executor = at_progress(move || {
        let _ = blocks.send(None);
        let is_freed = freed.lock().expect("no panic").recv_timeout(PATIENCE).is_ok();
        let _ = blocks.send(Some(is_freed));
    });
    std::thread::spawn(move || complete_now(tool, executor, CallOptions::default()));
    assert_eq!(blocked.recv_timeout(PATIENCE), Ok(None));
    assert_eq!(answering_pid(&worker_process), json!(worker_process.pid()));
    frees.send(()).expect("it waits");
    assert_eq!(blocked.recv_timeout(PATIENCE), Ok(Some(true)), "the other was answered meanwhile");
}

#[test]
fn worker_ends_with_its_handle_or_parent() {
    let worker_process = worker_process();
    let (pid, tool) = (worker_process.pid().expect("a child"), tool_of(&worker_process, "pid"));
    drop(worker_process);
    let told = complete_now(tool, Executor::new(), CallOptions::default());
    assert_eq!(said(&told), json!(pid), "a tool keeps it");
    assert!(eventually(|| !lives(pid)), "nothing keeps it any more");
    let parent =
        Command::new(WARD).arg("parent").stdout(Stdio::piped()).stderr(Stdio::null()).output();
    let told = String::from_utf8(parent.expect("it runs").stdout).expect("a number");
    let orphan = told.parse().expect("a child's id");
    assert!(eventually(|| !lives(orphan)));
}
