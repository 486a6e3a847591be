//! Rules of the embedder and of the tool itself: callers that are offered a tool, calls that it
//! takes, and faults of arguments.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Barrier;
use toolcell::outcome::Timeout;
use toolcell::runtime::Placement;
use toolcell::tool::{Breaker, Handler, HandlerFuture, Invocation, ValidateFuture, VisibleFuture};
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Definition, Executor, Json, Limits, Registry,
    Sealer, Tool, ToolCall, ToolError,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, context, ending, engine, load, wait};

fn definition(name: &str) -> Definition {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    Definition::new(name, "").expect("a name").with_parameters(schema)
}

fn native(name: &str) -> Tool {
    Tool::native(definition(name), async |arguments: Value| arguments["n"].clone()).expect("a tool")
}

fn role(role: &str) -> CallContext {
    let mut context = CallContext::default();
    context.metadata = Some(Json::from(json!({"role": role})));
    context
}

fn is_admin(context: &CallContext) -> bool {
    context.metadata.as_ref().is_some_and(|metadata| metadata.to_value()["role"] == "admin")
}

fn call(tool: &Tool, name: &str, arguments: &str, context: CallContext) -> Completion {
    let (tool, call) = (tool.clone(), ToolCall::new("1", name, arguments));
    wait(async move {
        Executor::new()
            .call(&tool, call, CallOptions { context: context.into(), ..CallOptions::default() })
            .await
    })
}

fn wasm(guest: Hostile) -> Tool {
    let component = load(&engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR")), guest.component())
        .expect("loads");
    component.tools()[0].clone()
}

/// A tool that its caller must not see stays hidden, if the check lacks fuel or time, and if the
/// call brings the state of no question.
#[test]
fn hidden_tool_is_never_revealed_by_its_ending() {
    let guest = Hostile { parameters: None, name: "t", ..Hostile::answering(Answer::Echo) };
    let shown = wasm(guest).with_visibility(|_, _| true);
    let hidden = wasm(Hostile { visible: false, ..guest });
    let executor = Executor::new().with_sealer(Sealer::generate().expect("a key"));
    let limited = |limits| CallOptions { limits, ..CallOptions::default() };
    let answer = context(&json!({"resume": {"state": "x", "answer": 1}}));
    for (options, expected) in [
        (limited(Limits { fuel: 1, ..Limits::unlimited() }), "timeout/fuel"),
        (
            limited(Limits { timeout: Duration::from_nanos(1), ..Limits::unlimited() }),
            "refusal/overloaded",
        ),
        (
            CallOptions { context: answer.into(), ..CallOptions::default() },
            "refusal/resume_tampered",
        ),
    ] {
        for (tool, expected) in [(&shown, expected), (&hidden, "refusal/not_visible")] {
            let (executor, tool, options) = (executor.clone(), tool.clone(), options.clone());
            let call = ToolCall::new("1", "t", "{}");
            let completion = wait(async move { executor.call(&tool, call, options).await });
            assert_eq!(ending(&completion.result), expected);
        }
    }
}

#[test]
fn embedder_rules_refuse_before_the_handler_runs() {
    for tool in [
        native("t"),
        wasm(Hostile { parameters: None, name: "t", ..Hostile::answering(Answer::Echo) }),
    ] {
        let hidden = tool.clone().with_visibility(|_, context| is_admin(context));
        let picky = tool.clone().with_can_execute(|call| call.id != "1");
        let checked = tool.clone().with_validator(|arguments| match arguments["n"].as_i64() {
            Some(n) if n < 0 => vec!["n is negative".into(), "try 1".into()],
            _ => Vec::new(),
        });
        let broken = tool.clone().with_validator(|_| panic!("a bug"));
        // A further rule adds to those before it.
        let strict = picky.clone().with_can_execute(|_| true);
        let hidden_twice = hidden.clone().with_visibility(|_, _| true);
        let checked_twice = checked.clone().with_validator(|_| Vec::new());
        let manual = Tool::manual(definition("t"))
            .expect("a tool")
            .with_visibility(|_, context| is_admin(context));
        for (tool, arguments, who, expected) in [
            (&hidden, r#"{"n": 1}"#, "admin", "ok"),
            (&hidden, r#"{"n": 1}"#, "guest", "refusal/not_visible"),
            // A caller that may not see the tool does not learn its parameters either.
            (&hidden, r#"{"m": 1}"#, "guest", "refusal/not_visible"),
            (&hidden_twice, r#"{"n": 1}"#, "admin", "ok"),
            (&hidden_twice, r#"{"n": 1}"#, "guest", "refusal/not_visible"),
            (&strict, r#"{"n": 1}"#, "guest", "refusal/not_allowed"),
            (&checked_twice, r#"{"n": -1}"#, "guest", "refusal/invalid_arguments"),
            (&manual, r#"{"n": 1}"#, "admin", "not_found"),
            (&manual, r#"{"n": 1}"#, "guest", "refusal/not_visible"),
            (&picky, r#"{"n": 1}"#, "guest", "refusal/not_allowed"),
            (&checked, r#"{"n": 1}"#, "guest", "ok"),
            (&checked, r#"{"n": -1}"#, "guest", "refusal/invalid_arguments"),
            (&broken, r#"{"n": 1}"#, "guest", "handler_raised/native_panic"),
        ] {
            let completion = call(tool, "t", arguments, role(who));
            assert_eq!(
                ending(&completion.result),
                expected,
                "{arguments} of {who}: {completion:?}"
            );
        }
        assert!(
            tool.can_execute(&ToolCall::new("1", "t", ""))
                && !tool.can_execute(&ToolCall::new("1", "u", ""))
        );
    }
}

/// The observer of checks is told the fuel of checks outside of calls. The checks of a call are on
/// its receipt.
#[test]
fn fuel_of_checks_outside_calls_is_reported_apart() {
    let [tool, validating] = [Place::Visible, Place::Validate].map(|place| {
        wasm(Hostile { parameters: None, name: "t", ..Hostile::new(place, Misdeed::None) })
    });
    let told = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&told);
    let executor = Executor::new().with_check_fuel(move |fuel| {
        sum.fetch_add(fuel, Ordering::Relaxed);
    });
    wait(async move {
        // A cell can outlive its check for a moment.
        let hears = async || {
            let heard = async {
                while told.swap(0, Ordering::Relaxed) == 0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(10), heard).await.is_ok()
        };
        let call = || ToolCall::new("1", "t", "{}");
        assert_eq!(executor.is_visible(&tool, None, &CallContext::default()).await, Some(true));
        assert!(hears().await, "visible");
        assert_eq!(
            executor.validate(&validating, call(), CallOptions::default()).await,
            Ok(vec![])
        );
        assert!(hears().await, "validate");
        let completion = executor.call(&tool, call(), CallOptions::default()).await;
        assert!(completion.usage.fuel.is_some_and(|fuel| fuel > 0), "{completion:?}");
        assert_eq!(told.swap(0, Ordering::Relaxed), 0, "a call");
        let options = CallOptions {
            limits: Limits { fuel: 1, ..Limits::unlimited() },
            ..CallOptions::default()
        };
        let completion = executor.call(&tool, call(), options).await;
        assert!(completion.usage.fuel.is_none_or(|fuel| fuel <= 1), "{completion:?}");
        assert!(hears().await, "a call that failed before it said who sees it");
    });
}

/// Visibility sees the arguments of a call before they are validated; in a list there are none.
#[test]
fn visibility_sees_the_arguments_of_a_call() {
    let knows = |arguments: &Value| arguments.is_null() || arguments["word"] == "xyzzy";
    let definition = || {
        let properties = json!({"word": {"type": "string"}, "times": {"type": "integer"}});
        Definition::new("opens", "")
            .expect("a name")
            .with_parameters(json!({"properties": properties}))
    };
    let ruled = Tool::native(definition(), async |_: Value| json!("open")).expect("a tool");
    let ruled = ruled.with_visibility(move |arguments, _| knows(arguments));
    let asked = Tool::with_handler(definition(), Knows).expect("a tool");
    let guest = |placement| {
        let engine = engine(placement, env!("CARGO_TARGET_TMPDIR"));
        load(&engine, toolcell_test_guests::bytes("mischief"))
            .expect("loads")
            .tool("opens")
            .expect("a tool")
            .clone()
    };
    for tool in [ruled, guest(PLACEMENTS[0]), guest(PLACEMENTS[1])] {
        let listed = tool.clone();
        assert!(wait(async move { listed.is_visible(&CallContext::default()).await }), "{tool:?}");
        for (arguments, expected) in [
            (json!({"word": "xyzzy", "times": 2}), "ok"),
            (json!({"word": "guess", "times": 2}), "refusal/not_visible"),
            (json!({"word": "xyzzy", "times": "x"}), "refusal/invalid_arguments"),
            (json!({"word": "guess", "times": "x"}), "refusal/not_visible"),
        ] {
            let completion = call(&tool, "opens", &arguments.to_string(), CallContext::default());
            assert_eq!(
                ending(&completion.result),
                expected,
                "{arguments} of {tool:?}: {completion:?}"
            );
            let (shown, told) = (tool.clone(), expected != "refusal/not_visible");
            let visible =
                wait(
                    async move { shown.is_visible_with(&arguments, &CallContext::default()).await },
                );
            assert_eq!(visible, told, "{tool:?}");
        }
    }
    for (arguments, expected) in
        [(json!({"word": "xyzzy"}), true), (json!({}), false), (Value::Null, true)]
    {
        let tool = asked.clone();
        assert_eq!(
            wait(async move { tool.is_visible_with(&arguments, &CallContext::default()).await }),
            expected
        );
    }
}

/// A handler that is visible only to callers whose arguments have the word.
struct Knows;

impl Handler for Knows {
    fn call(&self, _: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async { CallResult::Outcome(json!("open").into()) })
    }

    fn visible(&self, invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        let arguments = invocation.arguments();
        let knows = arguments.is_null() || arguments["word"] == "xyzzy";
        Box::pin(async move { knows })
    }
}

/// The breaker opens for a component's tool as for any other.
#[test]
fn failing_component_tool_opens_its_breaker() {
    let tool = wasm(Hostile::new(Place::Execute, Misdeed::Abort))
        .with_breaker(Breaker::default().with_failures(2));
    let endings =
        [(); 4].map(|()| ending(&call(&tool, "hostile", "{}", CallContext::default()).result));
    let (raised, rests) = ("handler_raised/unreachable", "refusal/circuit_open");
    assert_eq!(endings, [raised, raised, rests, rests]);
}

#[test]
fn validate_reports_every_fault_without_a_call() {
    let checked = native("t").with_validator(|_| vec!["one".into(), "two".into()]);
    let own =
        wasm(Hostile { problem: Some("not on a Sunday"), ..Hostile::answering(Answer::Echo) });
    let spins = wasm(Hostile::new(Place::Validate, Misdeed::Spin));
    // A caller that may not see a tool does not learn its parameters.
    let hides = wasm(Hostile {
        visible: false,
        problem: Some("not on a Sunday"),
        ..Hostile::answering(Answer::Echo)
    });
    let hidden = checked.clone().with_visibility(|_, _| false);
    let not_visible = "this tool is not available in this context";
    for (tool, arguments, expected) in [
        (&hides, "{}", Ok(vec![not_visible])),
        (&hides, "[]", Ok(vec![not_visible])),
        (&hidden, r#"{"n": 1}"#, Ok(vec![not_visible])),
        (&hidden, "[]", Ok(vec![not_visible])),
        (&checked, r#"{"n": 1}"#, Ok(vec!["one", "two"])),
        (&checked, r#"{"n": "x"}"#, Ok(vec!["at `/n`: expected an integer, got \"x\""])),
        (&own, "{}", Ok(vec!["not on a Sunday"])),
        (&own, "[]", Ok(vec!["expected an object, got an array"])),
        (&spins, "{}", Err("timeout/fuel")),
    ] {
        let (tool, call) =
            (tool.clone(), ToolCall::new("1", tool.definition().name.as_str(), arguments));
        let limits = toolcell::Limits { fuel: 20_000_000, ..toolcell::Limits::default() };
        let options = CallOptions { limits, ..CallOptions::default() };
        let found = wait(async move { Executor::new().validate(&tool, call, options).await });
        let found = found
            .map(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())
            .map_err(|error| toolcell_tests::tool_error(&error));
        let expected = expected
            .map(|faults| faults.into_iter().map(str::to_owned).collect())
            .map_err(str::to_owned);
        assert_eq!(found, expected, "{arguments}");
    }
}

/// A list shows the tools that are offered by the embedder's rule and by a component's own check. A
/// tool whose check fails is not offered.
#[test]
fn list_shows_only_visible_tools() {
    for placement in PLACEMENTS {
        let engine = engine(placement, env!("CARGO_TARGET_TMPDIR"));
        let guest = |name, guest: Hostile| {
            load(&engine, Hostile { name, ..guest }.component()).expect("loads").tools()[0].clone()
        };
        let registry = Registry::new();
        registry
            .register_all([
                native("open"),
                native("admins").with_visibility(|_, context| is_admin(context)),
                native("broken").with_visibility(|_, _| panic!("a bug")),
                guest("shows", Hostile::new(Place::Visible, Misdeed::None)),
                guest("hides", Hostile { visible: false, ..Hostile::answering(Answer::Echo) }),
                guest("traps", Hostile::new(Place::Visible, Misdeed::Abort)),
                guest("spins", Hostile::new(Place::Visible, Misdeed::Spin)),
            ])
            .expect("names of their own");
        for (who, expected) in
            [("admin", vec!["open", "admins", "shows"]), ("guest", vec!["open", "shows"])]
        {
            let (registry, context) = (registry.clone(), role(who));
            let visible =
                wait(async move { registry.visible_tools(&Executor::new(), &context).await });
            let names: Vec<_> = visible.iter().map(|tool| tool.definition().name.clone()).collect();
            assert_eq!(names, expected, "{who}, {placement:?}");
        }
    }
}

/// A handler whose `visible` waits until those of other tools run too, and whose `validate` never
/// ends.
struct SlowHandler {
    meeting: Arc<Barrier>,
    /// The names of the calls that it was to check.
    checked: Arc<Mutex<Vec<String>>>,
}

impl SlowHandler {
    fn new(most: usize) -> Self {
        Self { meeting: Arc::new(Barrier::new(most)), checked: Arc::default() }
    }

    fn tool(&self, definition: Definition) -> Tool {
        let slow = Self { meeting: Arc::clone(&self.meeting), checked: Arc::clone(&self.checked) };
        Tool::with_handler(definition, slow).expect("a tool")
    }
}

impl Handler for SlowHandler {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async move { CallResult::Outcome(invocation.arguments().clone().into()) })
    }

    fn visible(&self, _: Arc<Invocation>) -> VisibleFuture<'_> {
        Box::pin(async {
            self.meeting.wait().await;
            true
        })
    }

    fn validate(&self, invocation: Arc<Invocation>) -> ValidateFuture<'_> {
        self.checked.lock().expect("no panic").push(invocation.call.name.clone());
        Box::pin(std::future::pending())
    }
}

/// If tools were asked one after the other, they would wait for ever.
#[test]
fn list_checks_visibility_concurrently() {
    let (registry, slow) = (Registry::new(), SlowHandler::new(3));
    registry
        .register_all(["a", "b", "c"].map(|name| slow.tool(definition(name))))
        .expect("names of their own");
    let visible =
        wait(
            async move { registry.visible_tools(&Executor::new(), &CallContext::default()).await },
        );
    assert_eq!(visible.len(), 3);
}

/// A check without a call runs like the check of a call: with the tool's own name and time limit.
#[test]
fn validate_runs_the_same_check_as_a_call() {
    let (slow, own) = (SlowHandler::new(1), Duration::from_millis(10));
    let tool = slow.tool(definition("t").with_max_execution(own));
    let options = CallOptions {
        limits: Limits { timeout: Duration::from_secs(3600), ..Limits::default() },
        ..CallOptions::default()
    };
    let call = ToolCall::new("1", "alias", r#"{"n": 1}"#);
    let found = wait(async move { Executor::new().validate(&tool, call, options).await });
    let Err(ToolError::Timeout(Timeout::Blocked { budget, .. })) = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (budget, slow.checked.lock().expect("no panic").as_slice()),
        (own, ["t".to_owned()].as_slice())
    );
}
