//! Tests what holds for every handler: refusals, native closures, one terminal event, cancellation,
//! overload.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::outcome::{Exit, Halt};
use toolcell::runtime::Placement;
use toolcell::tool::{Handler, HandlerFuture, Invocation, NativeFn, VisibleFuture};
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Definition, Engine, Event, Executor, Limits,
    Outcome, Tool, ToolCall, ToolError,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, rows};
use toolcell_tests::{PLACEMENTS, ending, wait, wait_here};

use crate::{Log, call, component, engine, guest, limited, poll, within};

const ADA: &str = r#"{"name": "Ada"}"#;

fn definition() -> Definition {
    Definition::new("greet", "Greets.").expect("a name").with_parameters(json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "mood": {"enum": ["glad", "sad"]}},
        "required": ["name"],
    }))
}

/// Returns a tool that answers the call `greet` with this closure.
fn greeter<S: 'static>(function: impl NativeFn<S>) -> Tool {
    Tool::native(definition(), function).expect("a tool")
}

fn run(tool: &Tool, arguments: &str, limits: Limits) -> Completion {
    call(&Executor::new().with_limits(limits), tool, arguments)
}

/// Returns the ending of a call with the default limits.
fn end(tool: &Tool, arguments: &str) -> String {
    ending(&run(tool, arguments, Limits::default()).result)
}

/// Returns an executor that records events as their kinds, with the ending of the terminal one.
fn recorder() -> (Executor, Log<String>) {
    let (seen, sink) = Log::shared();
    let executor = Executor::new().with_events(move |event: Event| {
        sink.push(if let Event::Completed { result, .. } = &event {
            format!("completed {}", ending(result))
        } else {
            "started".to_owned()
        });
    });
    (executor, seen)
}

fn hostile(misdeed: Misdeed) -> Hostile {
    Hostile::new(Place::Execute, misdeed)
}

#[test]
fn native_accepts_both_closure_signatures() {
    let one = greeter(async |arguments: Value| json!({ "hello": arguments["name"] }));
    let two = greeter(async |_: Value, invocation: Arc<Invocation>| {
        if invocation.remaining() > Duration::ZERO {
            Ok(json!(invocation.call.id))
        } else {
            Err("no time")
        }
    });
    for (tool, expected) in [(one, r#"{"hello":"Ada"}"#), (two, r#""call-1""#)] {
        let completion = run(&tool, ADA, Limits::default());
        assert_eq!(completion.result.value().expect("ok").as_str(), expected);
    }
}

#[test]
fn native_handlers_end_as_the_contract_says() {
    let short = Limits { result: 300, ..within(20) };
    let promised = definition().with_output(json!({"type": "integer"}));
    for (tool, expected) in [
        (greeter(async |_: Value| json!("x".repeat(300))), "invalid_return/too_large"),
        (
            greeter(async |_: Value| (0..45).fold(json!(1), |inner, _| json!([[[inner]]]))),
            "invalid_return/not_json",
        ),
        (greeter(async |_: Value| Err::<Value, _>("no such person")), "error"),
        (greeter(async |_: Value| -> Value { panic!("ouch") }), "handler_raised/native_panic"),
        (greeter(async |_: Value| -> Value { pending().await }), "timeout/blocked"),
        (greeter(async |_: Value| Outcome::Halt(Halt::new("done", json!(1)))), "halt"),
        (
            Tool::native(promised, async |_: Value| json!("one")).expect("a tool"),
            "invalid_return/schema",
        ),
        (Tool::manual(definition()).expect("a tool"), "not_found"),
    ] {
        let completion = run(&tool, ADA, short);
        assert_eq!(ending(&completion.result), expected, "{completion:?}");
    }
}

#[test]
fn native_reserved_halt_is_an_invalid_return() {
    for word in Halt::RESERVED_REASONS.into_iter().chain(["Completed", "completed ", " ASK_USER\n"])
    {
        let halts =
            greeter(move |_: Value| async move { Outcome::Halt(Halt::new(word, json!(1))) });
        assert_eq!(end(&halts, ADA), "invalid_return/reserved_halt", "{word}");
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
            pending().await
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
    assert!(!wait_here(tool.is_visible(&CallContext::default())));
    let panics = run(&tool, r#"{"name": "panic"}"#, within(20));
    assert_eq!(ending(&panics.result), "handler_raised/native_panic");
    let hangs = wait_here(async {
        let call = ToolCall::new("call-1", "greet", r#"{"name": "hang"}"#);
        let executor = Executor::new().with_limits(within(20));
        tokio::time::timeout(PATIENCE, executor.call(&tool, call, CallOptions::default()))
            .await
            .expect("it is left")
    });
    assert_eq!(ending(&hangs.result), "timeout/blocked");
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
    let tool = greeter(async |_: Value| {
        let _bomb = Bomb;
        pending::<Value>().await
    });
    let (executor, seen) = recorder();
    let call = |millis| {
        Box::pin(executor.call(&tool, ToolCall::new("1", "greet", ADA), limited(within(millis))))
    };
    assert_eq!(ending(&wait_here(call(20)).result), "timeout/blocked");
    let mut dropped = call(3_600_000);
    assert!(poll(dropped.as_mut()).is_pending());
    drop(dropped);
    let (started, ends) =
        ("started", ["completed timeout/blocked", "completed handler_exit/cancelled"]);
    assert_eq!(seen.taken(), [started, ends[0], started, ends[1]]);
}

/// A handler of the embedder's own that runs its work in a task, and reports that the task died.
struct Elsewhere;

impl Handler for Elsewhere {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async move {
            let number = async move { invocation.arguments()["name"].as_u64().expect("a number") };
            match tokio::spawn(number).await {
                Ok(number) => CallResult::Outcome(json!(number).into()),
                Err(_) => CallResult::ToolError(ToolError::HandlerExit(Exit::ProcessEnded)),
            }
        })
    }
}

#[test]
fn handler_reported_death_is_kept() {
    let tool = Tool::with_handler(definition(), Elsewhere).expect("a tool");
    assert_eq!(end(&tool, ADA), "handler_exit/process_ended");
}

/// The tool runs whose schema was checked, no matter which name the call carries.
#[test]
fn tool_not_call_name_selects_the_handler() {
    let component = component(Placement::Cells, "mischief");
    let tool = component.tool("remembers").expect("the tool");
    let call = ToolCall::new("1", "exits", r#"{"secret": "s"}"#);
    let completion = wait_here(Executor::new().call(tool, call, CallOptions::default()));
    assert_eq!(ending(&completion.result), "ok");
    assert_eq!(completion.tool, "remembers");
}

/// No event of a guest that is killed while it logs comes after the call's last event.
#[test]
fn no_event_follows_the_terminal_event() {
    for placement in PLACEMENTS {
        let chatter = guest(&engine(placement), hostile(Misdeed::Chatter));
        let (executor, seen) = recorder();
        let timeout = Duration::from_millis(60);
        let limits = Limits { timeout, memory: 4 << 20, ..Limits::unlimited() };
        call(&executor.with_limits(limits), &chatter, "{}");
        // The next call of the guest runs after the killed one is gone.
        assert_eq!(ending(&run(&chatter, "[]", limits).result), "refusal/invalid_arguments");
        let seen = seen.taken();
        let last = seen.last().map(String::as_str);
        assert_eq!(last, Some("completed timeout/deadline"), "{placement:?}");
    }
}

#[test]
fn invalid_arguments_are_refused_with_a_reason() {
    let tool = greeter(async |_: Value| json!("hello"));
    let deep = format!(r#"{{"name": {}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let huge = format!(r#"{{"name": "{}"}}"#, "x".repeat(100 << 20));
    for (arguments, needle) in rows::<(&str, &str)>(
        "contract/calls/executor",
        "invalid_arguments_are_refused_with_a_reason",
    )
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
    let tool = greeter(async |arguments: Value| {
        assert!(arguments["name"] != "p");
        json!(1)
    });
    for arguments in [ADA, "[]", r#"{"name": "p"}"#] {
        let (executor, seen) = recorder();
        call(&executor, &tool, arguments);
        let seen = seen.taken();
        assert!(seen.len() == 2 && seen[0] == "started", "{arguments}: {seen:?}");
        assert!(seen[1].starts_with("completed"), "{arguments}: {seen:?}");
    }
}

/// An observer that panics loses its own events, without effect on the call.
#[test]
fn observer_panic_does_not_affect_the_call() {
    let tool = greeter(async |_: Value| json!(1));
    let executor = Executor::new().with_events(|_: Event| panic!("observer"));
    assert_eq!(ending(&call(&executor, &tool, ADA).result), "ok");
}

fn narrow(placement: Placement) -> Engine {
    Engine::builder().placement(placement).cells(1).build().expect("an engine")
}

/// Dropping the future ends the guest: the only cell is free again, and there is a terminal event.
#[test]
fn dropped_call_frees_its_cell() {
    for placement in PLACEMENTS {
        let engine = narrow(placement);
        let spin = guest(&engine, hostile(Misdeed::Spin));
        let good = guest(&engine, Hostile::answering(Answer::Echo));
        let (executor, seen) = recorder();
        let executor = executor.with_limits(Limits { fuel: u64::MAX, ..Limits::default() });
        {
            let call = ToolCall::new("1", "hostile", "{}");
            let mut running = pin!(executor.call(&spin, call, CallOptions::default()));
            assert!(poll(running.as_mut()).is_pending(), "{placement:?}");
        }
        assert_eq!(seen.taken(), ["started", "completed handler_exit/cancelled"]);
        let completion = run(&good, "{}", Limits { timeout: PATIENCE, ..Limits::default() });
        assert_eq!(ending(&completion.result), "ok", "{placement:?}");
    }
}

/// If there are more calls than cells, the others wait. A call that waits past its time is refused;
/// it never fails because of the pool.
#[test]
fn overload_is_a_refusal() {
    let engine = narrow(Placement::Cells);
    let sleep = guest(&engine, hostile(Misdeed::Sleep));
    let good = guest(&engine, Hostile::answering(Answer::Echo));
    let call = async |tool: &Tool, millis| {
        let executor = Executor::new().with_limits(within(millis));
        let call = ToolCall::new("1", "hostile", "{}");
        ending(&executor.call(tool, call, CallOptions::default()).await.result)
    };
    // Polled in this order: the first has the only cell until its time is over.
    let endings =
        wait_here(async { tokio::join!(call(&sleep, 400), call(&good, 40), call(&good, 20_000)) });
    let expected = ("timeout/blocked", "refusal/overloaded", "ok");
    assert_eq!((&*endings.0, &*endings.1, &*endings.2), expected);
}

/// Ten thousand calls wait for the only cell. One more is refused at once, and calls are accepted
/// again when they have gone.
#[test]
fn call_over_queue_limit_is_refused_at_once() {
    const WAITING: usize = 10_000;
    for placement in PLACEMENTS {
        let tool = guest(&narrow(placement), hostile(Misdeed::Sleep));
        let executor = Executor::new().with_limits(within(3_600_000));
        let call = || {
            let call = ToolCall::new("1", "hostile", "{}");
            Box::pin(executor.call(&tool, call, CallOptions::default()))
        };
        let mut sleeper = call();
        assert!(poll(sleeper.as_mut()).is_pending());
        for _ in 0..2 {
            let mut waiting: Vec<_> = (0..WAITING).map(|_| call()).collect();
            let wait = waiting.iter_mut().all(|call| poll(call.as_mut()).is_pending());
            assert!(wait, "{placement:?}");
            let Poll::Ready(refused) = poll(call().as_mut()) else {
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
        let engine = engine(placement);
        let spin = guest(&engine, hostile(Misdeed::Spin));
        let good = guest(&engine, Hostile::answering(Answer::Echo));
        let endings = wait(async move {
            let call = |tool: Tool, millis| {
                tokio::spawn(async move {
                    let limits = Limits { fuel: u64::MAX, ..within(millis) };
                    let executor = Executor::new().with_limits(limits);
                    let call = ToolCall::new("1", "hostile", "{}");
                    executor.call(&tool, call, CallOptions::default()).await
                })
            };
            let loops: Vec<_> = (0..64).map(|_| call(spin.clone(), 150)).collect();
            let neighbour = call(good, 20_000).await.expect("no panic");
            let mut endings = vec![ending(&neighbour.result)];
            for guest in loops {
                endings.push(ending(&guest.await.expect("no panic").result));
            }
            endings
        });
        assert_eq!(endings[0], "ok", "{placement:?}");
        assert_eq!(endings[1..], ["timeout/deadline"; 64], "{placement:?}");
    }
}

/// The caller has no runtime: the engine brings its own timers.
#[test]
fn timeouts_need_no_caller_runtime() {
    let [cells, inline] =
        PLACEMENTS.map(|placement| guest(&narrow(placement), hostile(Misdeed::Sleep)));
    let stuck = greeter(async |_: Value| -> Value { pending().await });
    let executor = Executor::new().with_limits(within(30));
    for (place, tool, arguments) in
        [("cells", cells, "{}"), ("inline", inline, "{}"), ("native", stuck, ADA)]
    {
        let call = ToolCall::new("1", tool.definition().name.as_str(), arguments);
        let called = executor.call(&tool, call, CallOptions::default());
        let completion = futures_executor::block_on(called);
        assert_eq!(ending(&completion.result), "timeout/blocked", "{place}");
    }
}

#[test]
fn one_executor_calls_tools_of_several_engines() {
    let tools = PLACEMENTS.map(|placement| {
        let engine = Engine::builder().cells(4).placement(placement).build().expect("an engine");
        guest(&engine, Hostile::answering(Answer::Echo))
    });
    let executor = Executor::new();
    for tool in tools.iter().chain([&tools[0]]) {
        let ended = call(&executor, tool, r#"{"a":1}"#);
        assert_eq!(ended.result.value().expect("ok").as_str(), r#"{"a":1}"#);
    }
}
