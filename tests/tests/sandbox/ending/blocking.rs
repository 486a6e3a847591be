//! Tests plain closures as handlers, on the threads of a pool, and handlers that answer too late.

use std::pin::pin;
use std::sync::{Arc, Barrier, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolcell::tool::{BlockingPool, Invocation};
use toolcell::{
    AbortSignal, CallContext, CallOptions, Completion, Definition, Event, Executor, Limits,
    Registry, RunOptions, Runner, Tenant, Tool, ToolCall,
};
use toolcell_tests::{ending, wait};

use super::PATIENCE;

fn definition() -> Definition {
    Definition::new("t", "").expect("a name")
}

/// Returns the ending of a call without arguments.
fn run_ending(tool: &Tool, options: CallOptions) -> String {
    ending(&run(tool, &json!({}), options).result)
}

fn run(tool: &Tool, arguments: &Value, options: CallOptions) -> Completion {
    let (tool, call) = (tool.clone(), ToolCall::with_value("1", "t", arguments));
    let call = async move {
        tokio::time::timeout(PATIENCE, Executor::new().call(&tool, call, options)).await
    };
    wait(call).expect("it ends")
}

fn short() -> CallOptions {
    let limits = Limits { timeout: Duration::from_millis(30), ..Limits::default() };
    CallOptions { limits, ..CallOptions::default() }
}

/// Returns a closure that signals its beginning, and returns when its gate is dropped.
fn stuck(pool: &BlockingPool) -> (Tool, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let ((began, begun), (opens, gate)) = (mpsc::channel(), mpsc::channel::<()>());
    let gate = Mutex::new(gate);
    let tool = Tool::native_blocking_on(pool, definition(), move |_: Value| {
        let _ = began.send(());
        let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
        json!("through")
    });
    (tool.expect("a tool"), begun, opens)
}

#[test]
fn blocking_handlers_end_as_the_contract_says() {
    let greeting = "hello".to_owned();
    let one = Tool::native_blocking(definition(), move |arguments: Value| {
        json!([greeting, arguments["name"]])
    });
    let two = Tool::native_blocking(definition(), |_: Value, invocation: Arc<Invocation>| {
        json!(invocation.call.id)
    });
    let fails = Tool::native_blocking(definition(), |_: Value| Err::<Value, _>("no such person"));
    let panics = Tool::native_blocking(definition(), |_: Value| -> Value { panic!("ouch") });
    let number = definition().with_output(json!({"type": "integer"}));
    let lies = Tool::native_blocking(number, |_: Value| json!("one"));
    for (tool, expected, value) in [
        (one, "ok", Some(r#"["hello","Ada"]"#)),
        (two, "ok", Some(r#""1""#)),
        (fails, "error", None),
        (panics, "handler_raised/native_panic", None),
        (lies, "invalid_return/schema", None),
    ] {
        let (tool, arguments) = (tool.expect("a tool"), json!({"name": "Ada"}));
        let completion = run(&tool, &arguments, CallOptions::default());
        let said = completion.result.value().map(|value| value.as_str());
        assert_eq!((ending(&completion.result).as_str(), said), (expected, value));
    }
}

/// Like an async closure, it has the caller's runtime and the call's span.
#[test]
fn blocking_handler_has_the_callers_runtime() {
    let tool = Tool::native_blocking(definition(), |_: Value| {
        tokio::runtime::Handle::current()
            .block_on(async { json!(tokio::spawn(async { 7 }).await.expect("no panic")) })
    });
    let completion = run(&tool.expect("a tool"), &json!({}), CallOptions::default());
    assert_eq!(completion.result.value().map(|value| value.as_str()), Some("7"), "{completion:?}");
}

/// Run one after the other, they would wait for ever.
#[test]
fn blocking_calls_of_a_run_are_concurrent() {
    let meeting = Arc::new(Barrier::new(3));
    let tool = Tool::native_blocking(definition(), move |_: Value| {
        meeting.wait();
        json!("met")
    });
    let registry = Registry::new();
    registry.register(tool.expect("a tool")).expect("a new name");
    let calls = ["a", "b", "c"].map(|id| ToolCall::new(id, "t", "{}"));
    let options = RunOptions { max_concurrency: Some(3), ..RunOptions::default() };
    let outcome =
        wait(async move { Runner::new(registry).run(calls, options).await }).expect("it starts");
    assert!(outcome.messages.iter().all(|message| message.content == "met"), "{outcome:?}");
}

/// A closure that does not return is abandoned at its deadline, or when its caller ends the call.
/// It keeps its thread. The next calls wait for that thread until their deadlines at most, and then
/// count as not made.
#[test]
fn stuck_closure_holds_only_its_own_thread() {
    let pool = BlockingPool::new(1);
    let (tool, begun, opens) = stuck(&pool);
    let other = Tool::native_blocking(definition(), |_: Value| json!(1)).expect("a tool");
    assert_eq!(run_ending(&tool, short()), "timeout/deadline");
    begun.recv_timeout(PATIENCE).expect("it began");
    for _ in 0..2 {
        assert_eq!(run_ending(&tool, short()), "refusal/overloaded");
    }
    assert!(begun.try_recv().is_err(), "no more than the pool has threads");
    assert_eq!(run_ending(&other, CallOptions::default()), "ok", "another pool");
    drop(opens);
    assert_eq!(run_ending(&tool, CallOptions::default()), "ok", "its thread is back");
}

/// Closures that never return keep half of a pool's threads at most. Fails without: `tenant-cells`.
#[test]
fn tenant_leaves_threads_of_a_pool_to_others() {
    let pool = BlockingPool::new(2);
    let (stuck, begun, _opens) = stuck(&pool);
    let quick = Tool::native_blocking_on(&pool, definition(), |_: Value| json!(1)).expect("a tool");
    let executor = Executor::new()
        .with_tenant("hog", Tenant::default())
        .with_tenant("other", Tenant::default());
    let end_for = |tenant: &str, tool: &Tool, options: CallOptions| {
        let (executor, tool) = (executor.clone(), tool.clone());
        let mut context = CallContext::default();
        context.tenant = Some(tenant.to_owned());
        let options = CallOptions { context: context.into(), ..options };
        let call = ToolCall::new("1", "t", "{}");
        ending(&wait(async move { executor.call(&tool, call, options).await }).result)
    };
    assert_eq!(end_for("hog", &stuck, short()), "timeout/deadline");
    begun.recv_timeout(PATIENCE).expect("it began");
    assert_eq!(end_for("hog", &stuck, short()), "refusal/overloaded");
    assert_eq!(end_for("other", &quick, CallOptions::default()), "ok");
}

#[test]
fn blocking_call_can_be_cancelled() {
    let pool = BlockingPool::new(1);
    let (tool, _begun, _opens) = stuck(&pool);
    let (signal, seen) = (AbortSignal::new(), Arc::new(Mutex::new(Vec::new())));
    let (raised, sink) = (signal.clone(), Arc::clone(&seen));
    let executor = Executor::new().with_events(move |event: Event| {
        raised.raise();
        sink.lock().expect("no panic").push(if let Event::Completed { result, .. } = event {
            ending(&result)
        } else {
            "started".into()
        });
    });
    let options = CallOptions { abort: signal, ..CallOptions::default() };
    let call = async move {
        tokio::time::timeout(PATIENCE, executor.call(&tool, ToolCall::new("1", "t", "{}"), options))
            .await
    };
    wait(call).expect("it ends");
    assert_eq!(*seen.lock().expect("no panic"), ["started", "handler_exit/cancelled"]);
}

/// Keeps its thread until its call's time is over.
fn outlasts(invocation: &Invocation) -> Value {
    while !invocation.remaining().is_zero() {
        thread::yield_now();
    }
    json!("too late")
}

/// An answer after the deadline does not count, even if the handler kept a thread of the caller or
/// of the pool until then.
#[test]
fn late_answer_is_a_timeout() {
    let native = Tool::native(definition(), async |_: Value, invocation: Arc<Invocation>| {
        outlasts(&invocation)
    });
    let blocking = Tool::native_blocking(definition(), |_: Value, invocation: Arc<Invocation>| {
        outlasts(&invocation)
    });
    for tool in [native, blocking] {
        let tool = tool.expect("a tool");
        for _ in 0..10 {
            assert_eq!(run_ending(&tool, short()), "timeout/deadline");
        }
    }
}

/// An answer after the deadline does not count either if the handler waited until then, and its
/// caller polls it only afterwards.
#[test]
fn late_answer_of_waiting_handler_is_a_timeout() {
    let (answers, answer) = oneshot::channel::<Value>();
    let answer = Arc::new(Mutex::new(Some(answer)));
    let tool = Tool::native(definition(), async move |_: Value| {
        let answer = answer.lock().expect("no panic").take();
        answer.expect("one call").await.expect("an answer")
    });
    let (tool, executor) = (tool.expect("a tool"), Executor::new());
    let limits = Limits { timeout: Duration::from_millis(5), ..Limits::default() };
    let deadline = std::time::Instant::now() + Duration::from_millis(50);
    let options = CallOptions { limits, ..CallOptions::default() };
    let mut running = pin!(executor.call(&tool, ToolCall::new("1", "t", "{}"), options));
    let mut context = Context::from_waker(Waker::noop());
    assert!(running.as_mut().poll(&mut context).is_pending());
    answers.send(json!("too late")).expect("it waits");
    while std::time::Instant::now() < deadline {
        thread::yield_now();
    }
    let Poll::Ready(completion) = running.as_mut().poll(&mut context) else { panic!("it goes on") };
    assert_eq!(ending(&completion.result), "timeout/blocked");
}
