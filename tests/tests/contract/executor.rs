//! Tests what holds for every handler: refusals, native closures, one terminal event, cancellation,
//! overload.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::outcome::{Exit, Halt};
use toolcell::runtime::Placement;
use toolcell::tool::{Handler, HandlerFuture, Invocation, VisibleFuture};
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Definition, Engine, Event, Executor, Limits,
    Outcome, Tool, ToolCall, ToolError,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, rows};
use toolcell_tests::{PLACEMENTS, ending, load, wait};

fn definition() -> Definition {
    Definition::new("greet", "Greets.").expect("a name").with_parameters(json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "mood": {"enum": ["glad", "sad"]}},
        "required": ["name"],
    }))
}

fn run(tool: &Tool, arguments: &str, limits: Limits) -> Completion {
    let (tool, call) = (tool.clone(), ToolCall::new("call-1", "greet", arguments));
    wait(async move {
        Executor::new().with_limits(limits).call(&tool, call, CallOptions::default()).await
    })
}

/// Records events as their kinds, with the ending of the terminal one.
fn recorder() -> (Executor, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let executor = Executor::new().with_events(move |event: Event| {
        let text = if let Event::Completed { result, .. } = &event {
            format!("completed {}", ending(result))
        } else {
            "started".to_owned()
        };
        sink.lock().expect("no panic").push(text);
    });
    (executor, seen)
}

#[test]
fn native_accepts_both_closure_signatures() {
    let one =
        Tool::native(definition(), async |arguments: Value| json!({ "hello": arguments["name"] }))
            .expect("a tool");
    let two = Tool::native(definition(), async |_: Value, invocation: Arc<Invocation>| {
        if invocation.remaining() > Duration::ZERO {
            Ok(json!(invocation.call.id))
        } else {
            Err("no time")
        }
    })
    .expect("a tool");
    assert_eq!(
        run(&one, r#"{"name": "Ada"}"#, Limits::default()).result.value().expect("ok").as_str(),
        r#"{"hello":"Ada"}"#
    );
    assert_eq!(
        run(&two, r#"{"name": "Ada"}"#, Limits::default()).result.value().expect("ok").as_str(),
        r#""call-1""#
    );
}

#[test]
fn native_handlers_end_as_the_contract_says() {
    let short = Limits { timeout: Duration::from_millis(20), result: 300, ..Limits::default() };
    let error = Tool::native(definition(), async |_: Value| Err::<Value, _>("no such person"));
    let panics = Tool::native(definition(), async |_: Value| -> Value { panic!("ouch") });
    let stuck =
        Tool::native(definition(), async |_: Value| -> Value { std::future::pending().await });
    let halts =
        Tool::native(definition(), async |_: Value| Outcome::Halt(Halt::new("done", json!(1))));
    let promised = definition().with_output(json!({"type": "integer"}));
    let lies = Tool::native(promised, async |_: Value| json!("one"));
    let large = Tool::native(definition(), async |_: Value| json!("x".repeat(300)));
    let deep = Tool::native(definition(), async |_: Value| {
        (0..45).fold(json!(1), |inner, _| json!([[[inner]]]))
    });
    for (tool, expected) in [
        (large, "invalid_return/too_large"),
        (deep, "invalid_return/not_json"),
        (error, "error"),
        (panics, "handler_raised/native_panic"),
        (stuck, "timeout/blocked"),
        (halts, "halt"),
        (lies, "invalid_return/schema"),
        (Tool::manual(definition()), "not_found"),
    ] {
        let completion = run(&tool.expect("a tool"), r#"{"name": "Ada"}"#, short);
        assert_eq!(ending(&completion.result), expected, "{completion:?}");
    }
}

#[test]
fn native_reserved_halt_is_an_invalid_return() {
    for word in Halt::RESERVED_REASONS.into_iter().chain(["Completed", "completed ", " ASK_USER\n"])
    {
        let halts = Tool::native(definition(), move |_: Value| async move {
            Outcome::Halt(Halt::new(word, json!(1)))
        });
        let completion = run(&halts.expect("a tool"), r#"{"name": "Ada"}"#, Limits::default());
        assert_eq!(ending(&completion.result), "invalid_return/reserved_halt", "{word}");
    }
}

/// Time after which a test counts as hung.
const PATIENCE: Duration = Duration::from_secs(10);

/// A handler of the embedder's own, which ignores its deadline and its abort signal.
struct Careless;

impl Handler for Careless {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async move {
            assert!(invocation.arguments()["name"] != "panic", "ouch");
            std::future::pending().await
        })
    }

    fn visible(&self, invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        assert!(!invocation.arguments().is_null(), "ouch");
        Box::pin(std::future::ready(true))
    }
}

#[test]
fn custom_handler_panic_or_hang_ends_its_call() {
    let tool = Tool::with_handler(definition(), Careless).expect("a tool");
    let listed = tool.clone();
    assert!(!wait(async move { listed.is_visible(&CallContext::default()).await }));
    let short = Limits { timeout: Duration::from_millis(20), ..Limits::default() };
    assert_eq!(
        ending(&run(&tool, r#"{"name": "panic"}"#, short).result),
        "handler_raised/native_panic"
    );
    let hangs = async move {
        let call = ToolCall::new("call-1", "greet", r#"{"name": "hang"}"#);
        let executor = Executor::new().with_limits(short);
        tokio::time::timeout(PATIENCE, executor.call(&tool, call, CallOptions::default()))
            .await
            .expect("it is left")
    };
    assert_eq!(ending(&wait(hangs).result), "timeout/blocked");
}

/// A value of a handler that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn panic_on_drop_ends_only_its_own_call() {
    let tool = Tool::native(definition(), async |_: Value| {
        let _bomb = Bomb;
        std::future::pending::<Value>().await
    })
    .expect("a tool");
    let (executor, seen) = recorder();
    let call = |timeout| {
        let options = CallOptions {
            limits: Limits { timeout, ..Limits::default() },
            ..CallOptions::default()
        };
        let (executor, tool) = (executor.clone(), tool.clone());
        Box::pin(async move {
            executor.call(&tool, ToolCall::new("1", "greet", r#"{"name": "a"}"#), options).await
        })
    };
    assert_eq!(ending(&wait(call(Duration::from_millis(20))).result), "timeout/blocked");
    let mut dropped = call(Duration::from_secs(3600));
    assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(dropped);
    let (started, ends) =
        ("started", ["completed timeout/blocked", "completed handler_exit/cancelled"]);
    assert_eq!(*seen.lock().expect("no panic"), [started, ends[0], started, ends[1]]);
}

/// A handler of the embedder's own that runs its work in a task, and reports that the task died.
struct Elsewhere;

impl Handler for Elsewhere {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async move {
            let work =
                tokio::spawn(
                    async move { invocation.arguments()["name"].as_u64().expect("a number") },
                );
            match work.await {
                Ok(number) => CallResult::Outcome(json!(number).into()),
                Err(_) => CallResult::ToolError(ToolError::HandlerExit(Exit::ProcessEnded)),
            }
        })
    }
}

#[test]
fn handler_reported_death_is_kept() {
    let tool = Tool::with_handler(definition(), Elsewhere).expect("a tool");
    assert_eq!(
        ending(&run(&tool, r#"{"name": "Ada"}"#, Limits::default()).result),
        "handler_exit/process_ended"
    );
}

/// The tool runs whose schema was checked, no matter which name the call carries.
#[test]
fn tool_not_call_name_selects_the_handler() {
    let engine = toolcell_tests::engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    let component = load(&engine, toolcell_test_guests::bytes("mischief")).expect("loads");
    let tool = component.tool("remembers").expect("the tool").clone();
    let call = ToolCall::new("1", "exits", r#"{"secret": "s"}"#);
    let completion =
        wait(async move { Executor::new().call(&tool, call, CallOptions::default()).await });
    assert_eq!(
        (ending(&completion.result).as_str(), completion.tool.as_str()),
        ("ok", "remembers")
    );
}

/// No event of a guest that is killed while it logs comes after the call's last event.
#[test]
fn no_event_follows_the_terminal_event() {
    for placement in PLACEMENTS {
        let engine = toolcell_tests::engine(placement, env!("CARGO_TARGET_TMPDIR"));
        let chatter = load(&engine, Hostile::new(Place::Execute, Misdeed::Chatter).component())
            .expect("loads");
        let (executor, seen) = recorder();
        let limits =
            Limits { timeout: Duration::from_millis(60), memory: 4 << 20, ..Limits::unlimited() };
        let (executor, tool) =
            (executor.with_limits(limits), chatter.tool("hostile").expect("a tool").clone());
        let call = ToolCall::new("1", "hostile", "{}");
        wait(async move { executor.call(&tool, call, CallOptions::default()).await });
        // The next call of the guest runs after the killed one is gone.
        assert_eq!(
            ending(&toolcell_tests::call(&chatter, "hostile", "[]", limits).result),
            "refusal/invalid_arguments"
        );
        let seen = seen.lock().expect("no panic");
        assert_eq!(
            seen.last().map(String::as_str),
            Some("completed timeout/deadline"),
            "{placement:?}"
        );
    }
}

#[test]
fn invalid_arguments_are_refused_with_a_reason() {
    let tool = Tool::native(definition(), async |_: Value| json!("hello")).expect("a tool");
    let deep = format!(r#"{{"name": {}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let huge = format!(r#"{{"name": "{}"}}"#, "x".repeat(100 << 20));
    for (arguments, needle) in
        rows::<(&str, &str)>("contract/executor", "invalid_arguments_are_refused_with_a_reason")
            .into_iter()
            .chain([(deep.as_str(), "nested deeper"), (huge.as_str(), "at most 1048576 bytes")])
    {
        let completion = run(&tool, arguments, Limits::default());
        assert_eq!(ending(&completion.result), "refusal/invalid_arguments", "{needle}");
        let CallResult::Refusal(refusal) = &completion.result else { panic!("a refusal") };
        assert!(refusal.to_string().contains(needle), "{refusal}");
    }
}

#[test]
fn every_call_has_one_terminal_event() {
    for (name, arguments) in
        [("ok", "{\"name\": \"a\"}"), ("refused", "[]"), ("panics", "{\"name\": \"p\"}")]
    {
        let tool = Tool::native(definition(), async |arguments: Value| {
            assert!(arguments["name"] != "p");
            json!(1)
        })
        .expect("a tool");
        let (executor, seen) = recorder();
        let call = ToolCall::new("1", "greet", arguments);
        wait(async move { executor.call(&tool, call, CallOptions::default()).await });
        let seen = seen.lock().expect("no panic").clone();
        assert!(
            seen.len() == 2 && seen[0] == "started" && seen[1].starts_with("completed"),
            "{name}: {seen:?}"
        );
    }
}

/// An observer that panics loses its own events, without effect on the call.
#[test]
fn observer_panic_does_not_affect_the_call() {
    let tool = Tool::native(definition(), async |_: Value| json!(1)).expect("a tool");
    let executor = Executor::new().with_events(|_: Event| panic!("observer"));
    let call = ToolCall::new("1", "greet", r#"{"name": "a"}"#);
    let completion = wait(async move { executor.call(&tool, call, CallOptions::default()).await });
    assert_eq!(ending(&completion.result), "ok");
}

fn narrow(placement: Placement) -> Engine {
    Engine::builder().placement(placement).cells(1).build().expect("an engine")
}

/// Dropping the future ends the guest: the only cell is free again, and there is a terminal event.
#[test]
fn dropped_call_frees_its_cell() {
    for placement in PLACEMENTS {
        let engine = narrow(placement);
        let spin =
            load(&engine, Hostile::new(Place::Execute, Misdeed::Spin).component()).expect("loads");
        let good = load(&engine, Hostile::answering(Answer::Echo).component()).expect("loads");
        let (executor, seen) = recorder();
        let executor = executor.with_limits(Limits { fuel: u64::MAX, ..Limits::default() });
        let tool = spin.tool("hostile").expect("the tool").clone();
        {
            let call = ToolCall::new("1", "hostile", "{}");
            let mut running = pin!(executor.call(&tool, call, CallOptions::default()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(matches!(running.as_mut().poll(&mut context), Poll::Pending), "{placement:?}");
        }
        assert_eq!(
            *seen.lock().expect("no panic"),
            ["started", "completed handler_exit/cancelled"]
        );
        let completion = toolcell_tests::call(
            &good,
            "hostile",
            "{}",
            Limits { timeout: PATIENCE, ..Limits::default() },
        );
        assert_eq!(ending(&completion.result), "ok", "{placement:?}");
    }
}

/// If there are more calls than cells, the others wait. A call that waits past its time is refused;
/// it never fails because of the pool.
#[test]
fn overload_is_a_refusal() {
    let engine = narrow(Placement::Cells);
    let sleep =
        load(&engine, Hostile::new(Place::Execute, Misdeed::Sleep).component()).expect("loads");
    let good = load(&engine, Hostile::answering(Answer::Echo).component()).expect("loads");
    let [sleep, good] =
        [sleep, good].map(|component| component.tool("hostile").expect("the tool").clone());
    let endings = wait(async move {
        let call = async |tool: &Tool, millis| {
            let executor = Executor::new().with_limits(Limits {
                timeout: Duration::from_millis(millis),
                ..Limits::default()
            });
            let completion = executor
                .call(tool, ToolCall::new("1", "hostile", "{}"), CallOptions::default())
                .await;
            ending(&completion.result)
        };
        // Polled in this order: the first has the only cell until its time is over.
        let endings = tokio::join!(call(&sleep, 400), call(&good, 40), call(&good, 20_000));
        [endings.0, endings.1, endings.2]
    });
    assert_eq!(endings, ["timeout/blocked", "refusal/overloaded", "ok"]);
}

/// Ten thousand calls wait for the only cell. One more is refused at once, and calls are accepted
/// again when they have gone.
#[test]
fn call_over_queue_limit_is_refused_at_once() {
    const WAITING: usize = 10_000;
    for placement in PLACEMENTS {
        let engine = narrow(placement);
        let sleep =
            load(&engine, Hostile::new(Place::Execute, Misdeed::Sleep).component()).expect("loads");
        let tool = sleep.tool("hostile").expect("the tool");
        let executor = Executor::new()
            .with_limits(Limits { timeout: Duration::from_secs(3600), ..Limits::default() });
        let call = || {
            Box::pin(executor.call(
                tool,
                ToolCall::new("1", "hostile", "{}"),
                CallOptions::default(),
            ))
        };
        let mut context = Context::from_waker(Waker::noop());
        let mut sleeper = call();
        assert!(sleeper.as_mut().poll(&mut context).is_pending());
        for _ in 0..2 {
            let mut waiting: Vec<_> = (0..WAITING).map(|_| call()).collect();
            assert!(
                waiting.iter_mut().all(|call| call.as_mut().poll(&mut context).is_pending()),
                "{placement:?}"
            );
            let Poll::Ready(refused) = call().as_mut().poll(&mut context) else {
                panic!("{placement:?}: it waits")
            };
            assert_eq!(ending(&refused.result), "refusal/overloaded", "{placement:?}");
        }
    }
}

/// 64 guests that never end run on the engine's two threads, and a good tool between them.
#[test]
fn looping_guests_time_out_and_others_are_served() {
    for placement in PLACEMENTS {
        let engine = toolcell_tests::engine(placement, env!("CARGO_TARGET_TMPDIR"));
        let spin =
            load(&engine, Hostile::new(Place::Execute, Misdeed::Spin).component()).expect("loads");
        let good = load(&engine, Hostile::answering(Answer::Echo).component()).expect("loads");
        let (spin, good) = (
            spin.tool("hostile").expect("a tool").clone(),
            good.tool("hostile").expect("a tool").clone(),
        );
        let endings = wait(async move {
            let call = |tool: Tool, timeout| {
                tokio::spawn(async move {
                    let limits = Limits { fuel: u64::MAX, timeout, ..Limits::default() };
                    let call = ToolCall::new("1", "hostile", "{}");
                    Executor::new()
                        .with_limits(limits)
                        .call(&tool, call, CallOptions::default())
                        .await
                })
            };
            let loops: Vec<_> =
                (0..64).map(|_| call(spin.clone(), Duration::from_millis(150))).collect();
            let neighbour = call(good, Duration::from_secs(20)).await.expect("no panic");
            let mut endings = vec![ending(&neighbour.result)];
            for guest in loops {
                endings.push(ending(&guest.await.expect("no panic").result));
            }
            endings
        });
        assert_eq!(endings[0], "ok", "{placement:?}");
        assert!(
            endings[1..].iter().all(|ending| ending == "timeout/deadline"),
            "{placement:?}: {endings:?}"
        );
    }
}

/// The caller has no runtime: the engine brings its own timers.
#[test]
fn timeouts_need_no_caller_runtime() {
    for placement in PLACEMENTS {
        let engine = narrow(placement);
        let sleep =
            load(&engine, Hostile::new(Place::Execute, Misdeed::Sleep).component()).expect("loads");
        let executor = Executor::new()
            .with_limits(Limits { timeout: Duration::from_millis(30), ..Limits::default() });
        let tool = sleep.tool("hostile").expect("the tool");
        let completion = futures_executor::block_on(executor.call(
            tool,
            ToolCall::new("1", "hostile", "{}"),
            CallOptions::default(),
        ));
        assert_eq!(ending(&completion.result), "timeout/blocked", "{placement:?}");
    }
    let stuck =
        Tool::native(definition(), async |_: Value| -> Value { std::future::pending().await })
            .expect("a tool");
    let executor = Executor::new()
        .with_limits(Limits { timeout: Duration::from_millis(30), ..Limits::default() });
    let call = ToolCall::new("1", "greet", r#"{"name": "a"}"#);
    let completion =
        futures_executor::block_on(executor.call(&stuck, call, CallOptions::default()));
    assert_eq!(ending(&completion.result), "timeout/blocked");
}

#[test]
fn one_executor_calls_tools_of_several_engines() {
    let echo = Hostile::answering(Answer::Echo).component();
    let tools = PLACEMENTS.map(|placement| {
        let engine = Engine::builder().cells(4).placement(placement).build().expect("an engine");
        load(&engine, echo.clone()).expect("it loads").tool("hostile").expect("the tool").clone()
    });
    let executor = Executor::new();
    for tool in tools.iter().chain([&tools[0]]) {
        let (executor, tool) = (executor.clone(), tool.clone());
        let call = ToolCall::new("1", "hostile", r#"{"a":1}"#);
        let ended = wait(async move { executor.call(&tool, call, CallOptions::default()).await });
        assert_eq!(ended.result.value().expect("ok").as_str(), r#"{"a":1}"#);
    }
}
