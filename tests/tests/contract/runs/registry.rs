//! A registry's calls and its statistics: each call is counted once, for its tool.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::message::{EncodeError, EncodeInput};
use toolcell::runtime::Placement;
use toolcell::tool::{Invocation, LastError, Statistics};
use toolcell::{
    CallOptions, Event, Executor, Limits, Registry, RunOptions, Runner, Stepper, Tool, ToolCall,
    Turn,
};
use toolcell_test_guests::rows;
use toolcell_tests::{ending, wait_here};

use crate::{Log, component, form, named, native, registry};

/// Returns a tool that answers with `answer`, or with an error with the text of its argument
/// `fails`.
fn tool(name: &str, answer: &str) -> Tool {
    let answer = answer.to_owned();
    let parameters = json!({"type": "object", "properties": {"fails": {"type": "string"}}});
    let definition = named(name).with_parameters(parameters);
    let tool =
        Tool::native(definition, async move |arguments: Value| match arguments["fails"].as_str() {
            Some("panic") => panic!("ouch"),
            Some(words) => Err(words.to_owned()),
            None => Ok(json!(answer)),
        });
    tool.expect("a tool")
}

fn call(arguments: &str) -> ToolCall {
    ToolCall::new("c1", "t", arguments)
}

/// Formats statistics as `count/success/failure`.
fn counted(statistics: Statistics) -> String {
    format!("{}/{}/{}", statistics.count, statistics.success, statistics.failure)
}

fn by_registry(registry: &Registry, arguments: &str) {
    let executor = Executor::new();
    wait_here(registry.call(&executor, call(arguments), CallOptions::default()))
        .expect("it is registered");
}

fn by_runner(registry: &Registry, arguments: &str) {
    let runner = Runner::new(registry.clone());
    wait_here(runner.run([call(arguments)], RunOptions::default())).expect("it starts");
}

fn by_stepper(registry: &Registry, arguments: &str) {
    let stepper = Stepper::new(registry.clone());
    wait_here(stepper.step(call(arguments), &mut Turn::default()));
}

fn by_executor(registry: &Registry, arguments: &str) {
    let tool = registry.get("t").expect("it is registered");
    wait_here(Executor::new().call(&tool, call(arguments), CallOptions::default()));
}

type Caller = fn(&Registry, &str);

const CALLERS: [Caller; 4] = [by_registry, by_runner, by_stepper, by_executor];

/// Returns the statistics of a registered tool.
fn counts(registry: &Registry, name: &str) -> String {
    counted(registry.statistics(name).expect("it is there"))
}

/// Fails without: counters in the tool; counters in the registry missed calls of the executor.
#[test]
fn call_is_counted_once_from_each_caller() {
    for caller in CALLERS {
        let own = tool("t", "fine");
        let registry = registry([own.clone()]);
        caller(&registry, "{}");
        assert_eq!(counted(own.statistics()), "1/1/0");
        caller(&registry, r#"{"fails": "no such city"}"#);
        assert_eq!(counts(&registry, "t"), "2/1/1");
        caller(&registry, r#"{"fails": 1}"#);
        assert_eq!((counted(own.statistics()), own.statistics().refused), ("2/1/1".into(), 1));
    }
}

/// Fails without: the executor accepting blank arguments.
#[test]
fn blank_arguments_are_an_empty_object() {
    for blank in ["", " ", "\n\t ", "{}"] {
        for caller in CALLERS {
            let (seen, sink) = Log::shared();
            let definition = named("t").with_parameters(json!({"maxProperties": 0}));
            let tool =
                Tool::native(definition, move |arguments: Value, invocation: Arc<Invocation>| {
                    sink.push((arguments, invocation.call.arguments.clone()));
                    std::future::ready(json!("done"))
                });
            caller(&registry([tool.expect("a tool")]), blank);
            assert_eq!(seen.taken(), [(json!({}), "{}".to_owned())], "{blank:?}");
        }
    }
    // The arguments that the tool of a component gets.
    let component = component(Placement::Inline, "mischief");
    let tool = component.tool("services").expect("the tool");
    let (events, sink) = Log::shared();
    let executor = Executor::new().with_events(move |event: Event| {
        if let Event::Started { arguments, .. } = event {
            sink.push(arguments);
        }
    });
    let completion = crate::call(&executor, tool, "");
    assert_eq!(ending(&completion.result), "ok");
    assert_eq!(events.taken(), ["{}"]);
}

#[test]
fn clones_share_statistics_changed_tools_do_not() {
    let first = tool("t", "fine");
    let changed = first.clone().with_limits(Limits::unlimited());
    let registry = registry([first.clone()]);
    by_executor(&registry, "{}");
    assert_eq!(counted(first.statistics()), "1/1/0");
    assert_eq!(counted(changed.statistics()), "0/0/0");
    first.clear_statistics();
    assert_eq!(registry.statistics("t"), Some(Statistics::default()));
}

#[test]
fn registry_calls_by_name_or_reports_unknown() {
    let registry = registry([tool("t", "fine")]);
    let executor = Executor::new();
    let called = |name: &str| {
        let call = ToolCall::new("c1", name, "");
        wait_here(registry.call(&executor, call, CallOptions::default()))
    };
    let good = called("t").expect("a completion");
    assert_eq!((ending(&good.result).as_str(), good.id.as_str()), ("ok", "c1"));
    let error = called("tt").expect_err("there is no such tool");
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
    let registry = registry(["z", "t", "a"].map(|name| tool(name, "old")));
    by_registry(&registry, r#"{"fails": "once"}"#);
    let before = registry.toolbox();
    let replaced = registry.replace(tool("t", "new")).expect("the old one");
    let names: Vec<_> = registry.list().into_iter().map(|definition| definition.name).collect();
    assert_eq!(names, ["z", "t", "a"]);
    let called = |tool: &Tool| {
        let completion = crate::call(&Executor::new(), tool, "{}");
        completion.result.value().expect("ok").as_str().to_owned()
    };
    let completion = wait_here(registry.call(&Executor::new(), call("{}"), CallOptions::default()));
    assert_eq!(completion.expect("it is there").result.value().expect("ok").as_str(), r#""new""#);
    assert_eq!(counts(&registry, "t"), "2/1/1");
    assert_eq!(registry.last_error("t").expect("it failed once").message, "once");
    for name in ["z", "a"] {
        assert_eq!(counts(&registry, name), "0/0/0");
    }
    for tool in [before.resolve("t").expect("kept"), &replaced] {
        assert_eq!(called(tool), r#""old""#);
    }
    assert!(registry.replace(tool("new", "")).is_none(), "added where there was none");
    assert_eq!(registry.list().last().expect("the last").name, "new");
}

#[test]
fn last_error_is_kept() {
    let registry = registry([tool("t", "fine")]);
    let told = |registry: &Registry| {
        let last = registry.last_error("t");
        last.map(|LastError { reason, message, .. }| (reason.map(|reason| reason.name()), message))
    };
    assert_eq!(told(&registry), None);
    for (arguments, reason, message) in
        rows::<(&str, Option<&str>, String)>("contract/runs/registry", "last_error_is_kept")
    {
        by_registry(&registry, arguments);
        assert_eq!(told(&registry), Some((reason, message)), "{arguments}");
    }
    let encoder =
        |_: EncodeInput<'_>| -> Result<String, EncodeError> { Err(EncodeError("no text".into())) };
    let runner = Runner::new(registry.clone()).with_encoder(encoder);
    wait_here(runner.run([call("{}")], RunOptions::default())).expect("it starts");
    let message = "the result could not be encoded: no text";
    assert_eq!(told(&registry), Some((Some("encoding_failed"), message.to_owned())));
    let expected = json!({"reason": "encoding_failed", "message": message});
    assert_eq!(form(&registry.last_error("t")), expected);
    registry.clear_statistics();
    assert_eq!(told(&registry), None);
    let long = native("long", async |_: Value| Err::<Value, _>("é".repeat(5000)));
    registry.register(long.clone()).expect("new");
    crate::call(&Executor::new(), &long, "{}");
    assert_eq!(registry.last_error("long").expect("it failed").message, "é".repeat(1000));
}
