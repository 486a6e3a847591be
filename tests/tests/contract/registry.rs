//! A registry's calls and its statistics: each call is counted once, for its tool.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcell::message::{EncodeError, EncodeInput};
use toolcell::outcome::Reason;
use toolcell::runtime::Placement;
use toolcell::tool::{Invocation, LastError, Statistics};
use toolcell::{
    CallOptions, Definition, Event, Executor, Limits, Registry, RunOptions, Runner, Stepper, Tool,
    ToolCall, Turn,
};
use toolcell_tests::{ending, engine, load, wait};

/// Returns a tool that answers with `answer`, or with an error with the text of its argument
/// `fails`.
fn tool(name: &str, answer: &str) -> Tool {
    let answer = answer.to_owned();
    let parameters = json!({"type": "object", "properties": {"fails": {"type": "string"}}});
    let definition = Definition::new(name, "").expect("a name").with_parameters(parameters);
    let handler = move |arguments: Value| {
        let answer = answer.clone();
        async move {
            match arguments["fails"].as_str() {
                Some("panic") => panic!("ouch"),
                Some(words) => Err(words.to_owned()),
                None => Ok(json!(answer)),
            }
        }
    };
    Tool::native(definition, handler).expect("a tool")
}

fn call(arguments: &str) -> ToolCall {
    ToolCall::new("c1", "t", arguments)
}

/// Formats statistics as `count/success/failure`.
fn counted(statistics: Statistics) -> String {
    format!("{}/{}/{}", statistics.count, statistics.success, statistics.failure)
}

fn by_registry(registry: &Registry, arguments: &'static str) {
    let registry = registry.clone();
    wait(async move { registry.call(&Executor::new(), call(arguments), CallOptions::default()).await })
        .expect("it is registered");
}

fn by_runner(registry: &Registry, arguments: &'static str) {
    let runner = Runner::new(registry.clone());
    wait(async move { runner.run([call(arguments)], RunOptions::default()).await })
        .expect("it starts");
}

fn by_stepper(registry: &Registry, arguments: &'static str) {
    let stepper = Stepper::new(registry.clone());
    wait(async move { stepper.step(call(arguments), &mut Turn::default()).await });
}

fn by_executor(registry: &Registry, arguments: &'static str) {
    let tool = registry.get("t").expect("it is registered");
    wait(async move { Executor::new().call(&tool, call(arguments), CallOptions::default()).await });
}

/// Fails without: counters in the tool; counters in the registry missed calls of the executor.
#[test]
fn call_is_counted_once_from_each_caller() {
    type Caller = fn(&Registry, &'static str);
    let callers: [Caller; 4] = [by_registry, by_runner, by_stepper, by_executor];
    for caller in callers {
        let (registry, own) = (Registry::new(), tool("t", "fine"));
        registry.register(own.clone()).expect("new");
        caller(&registry, "{}");
        assert_eq!(counted(own.statistics()), "1/1/0");
        caller(&registry, r#"{"fails": "no such city"}"#);
        assert_eq!(counted(registry.statistics("t").expect("it is there")), "2/1/1");
        caller(&registry, r#"{"fails": 1}"#);
        assert_eq!((counted(own.statistics()), own.statistics().refused), ("2/1/1".into(), 1));
    }
}

/// Fails without: the executor accepting blank arguments.
#[test]
fn blank_arguments_are_an_empty_object() {
    let callers = [by_registry, by_runner, by_stepper, by_executor];
    for blank in ["", " ", "\n\t ", "{}"] {
        for caller in callers {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&seen);
            let definition = Definition::new("t", "")
                .expect("a name")
                .with_parameters(json!({"maxProperties": 0}));
            let tool =
                Tool::native(definition, move |arguments: Value, invocation: Arc<Invocation>| {
                    sink.lock()
                        .expect("no panic")
                        .push((arguments, invocation.call.arguments.clone()));
                    std::future::ready(json!("done"))
                });
            let registry = Registry::new();
            registry.register(tool.expect("a tool")).expect("new");
            caller(&registry, blank);
            assert_eq!(
                *seen.lock().expect("no panic"),
                [(json!({}), "{}".to_owned())],
                "{blank:?}"
            );
        }
    }
    // The arguments that the tool of a component gets.
    let engine = engine(Placement::Inline, env!("CARGO_TARGET_TMPDIR"));
    let component = load(&engine, toolcell_test_guests::bytes("mischief")).expect("loads");
    let (tool, events) =
        (component.tool("services").expect("the tool").clone(), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&events);
    let executor = Executor::new().with_events(move |event: Event| {
        if let Event::Started { arguments, .. } = event {
            sink.lock().expect("no panic").push(arguments);
        }
    });
    let called = async move {
        executor.call(&tool, ToolCall::new("c", "services", ""), CallOptions::default()).await
    };
    assert_eq!(ending(&wait(called).result), "ok");
    assert_eq!(*events.lock().expect("no panic"), ["{}"]);
}

#[test]
fn clones_share_statistics_changed_tools_do_not() {
    let (registry, first) = (Registry::new(), tool("t", "fine"));
    let changed = first.clone().with_limits(Limits::unlimited());
    registry.register(first.clone()).expect("new");
    by_executor(&registry, "{}");
    assert_eq!(
        (counted(first.statistics()), counted(changed.statistics())),
        ("1/1/0".into(), "0/0/0".into())
    );
    first.clear_statistics();
    assert_eq!(registry.statistics("t"), Some(Statistics::default()));
}

#[test]
fn registry_calls_by_name_or_reports_unknown() {
    let registry = Registry::new();
    registry.register(tool("t", "fine")).expect("new");
    let asked = registry.clone();
    let (good, unknown) = wait(async move {
        let executor = Executor::new();
        let called = |name: &'static str| {
            asked.call(&executor, ToolCall::new("c1", name, ""), CallOptions::default())
        };
        (called("t").await, called("tt").await)
    });
    let good = good.expect("a completion");
    assert_eq!((ending(&good.result).as_str(), good.id.as_str()), ("ok", "c1"));
    let error = unknown.expect_err("there is no such tool");
    assert!(error.is_unknown_tool() && error.hint().contains("did you mean `t`?"), "{error}");
    assert_eq!(error.unknown_tool(), Some("tt"));
    let long = "x".repeat(1000);
    let error = registry.toolbox().resolve(&long).expect_err("nor this");
    assert_eq!(error.unknown_tool(), Some(long.as_str()), "whole");
    assert!(error.to_string().len() < 200, "{error}");
    let other = registry.register(tool("t", "again")).expect_err("a duplicate");
    assert_eq!(other.unknown_tool(), None);
}

/// The position and the statistics stay, and a run keeps the tools that it started with.
#[test]
fn tool_is_replaced_atomically() {
    let registry = Registry::new();
    registry.register_all(["z", "t", "a"].map(|name| tool(name, "old"))).expect("new");
    by_registry(&registry, r#"{"fails": "once"}"#);
    let before = registry.toolbox();
    let replaced = registry.replace(tool("t", "new")).expect("the old one");
    let names: Vec<_> = registry.list().into_iter().map(|definition| definition.name).collect();
    assert_eq!(names, ["z", "t", "a"]);
    let asked = registry.clone();
    let completion =
        wait(async move { asked.call(&Executor::new(), call("{}"), CallOptions::default()).await });
    assert_eq!(completion.expect("it is there").result.value().expect("ok").as_str(), r#""new""#);
    assert_eq!(counted(registry.statistics("t").expect("it is there")), "2/1/1");
    assert_eq!(registry.last_error("t").expect("it failed once").message, "once");
    for name in ["z", "a"] {
        assert_eq!(counted(registry.statistics(name).expect("it is there")), "0/0/0");
    }
    let old = before.resolve("t").expect("kept").clone();
    for tool in [old, replaced] {
        let completion = wait(async move {
            Executor::new().call(&tool, call("{}"), CallOptions::default()).await
        });
        assert_eq!(completion.result.value().expect("ok").as_str(), r#""old""#);
    }
    assert!(registry.replace(tool("new", "")).is_none(), "added where there was none");
    assert_eq!(registry.list().last().expect("the last").name, "new");
}

#[test]
fn last_error_is_kept() {
    let registry = Registry::new();
    registry.register(tool("t", "fine")).expect("new");
    let told = |registry: &Registry| {
        registry.last_error("t").map(|LastError { reason, message, .. }| (reason, message))
    };
    assert_eq!(told(&registry), None);
    for (arguments, expected) in [
        (r#"{"fails": "no such city"}"#, (None, "no such city")),
        (r#"{"fails": "panic"}"#, (Some(Reason::HandlerRaised), "the handler panicked: ouch")),
        // A success does not change it, nor does a refusal, which is not the tool's failure.
        ("{}", (Some(Reason::HandlerRaised), "the handler panicked: ouch")),
        ("[]", (Some(Reason::HandlerRaised), "the handler panicked: ouch")),
    ] {
        by_registry(&registry, arguments);
        assert_eq!(told(&registry), Some((expected.0, expected.1.to_owned())), "{arguments}");
    }
    let encoder =
        |_: EncodeInput<'_>| -> Result<String, EncodeError> { Err(EncodeError("no text".into())) };
    let runner = Runner::new(registry.clone()).with_encoder(encoder);
    wait(async move { runner.run([call("{}")], RunOptions::default()).await }).expect("it starts");
    let expected =
        (Some(Reason::EncodingFailed), "the result could not be encoded: no text".to_owned());
    assert_eq!(told(&registry), Some(expected));
    let json = serde_json::to_value(registry.last_error("t")).expect("JSON");
    assert_eq!(
        json,
        json!({"reason": "encoding_failed", "message": "the result could not be encoded: no text"})
    );
    registry.clear_statistics();
    assert_eq!(told(&registry), None);
    let words = Arc::new("é".repeat(5000));
    let long = Tool::native(Definition::new("long", "").expect("a name"), move |_: Value| {
        let words = Arc::clone(&words);
        async move { Err::<Value, _>(words.to_string()) }
    });
    let long = long.expect("a tool");
    registry.register(long.clone()).expect("new");
    wait(async move { Executor::new().call(&long, call("{}"), CallOptions::default()).await });
    assert_eq!(registry.last_error("long").expect("it failed").message, "é".repeat(1000));
}
