//! Rules of the embedder and of the tool itself: callers that are offered a tool, calls that it
//! takes, and faults of arguments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Barrier;
use toolcell::outcome::Timeout;
use toolcell::runtime::Placement;
use toolcell::tool::{Breaker, Handler, HandlerFuture, Invocation, ValidateFuture, VisibleFuture};
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Definition, Executor, Limits, Sealer, Tool,
    ToolCall, ToolError,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, rows};
use toolcell_tests::{PLACEMENTS, context, ending, wait, wait_here};

use crate::{Log, component, engine, guest, inside, limited, named, registry};

fn definition(name: &str) -> Definition {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    named(name).with_parameters(schema)
}

fn native(name: &str) -> Tool {
    Tool::native(definition(name), async |arguments: Value| arguments["n"].clone()).expect("a tool")
}

fn role(role: &str) -> CallContext {
    context(&json!({"metadata": {"role": role}}))
}

fn is_admin(context: &CallContext) -> bool {
    context.metadata.as_ref().is_some_and(|metadata| metadata.to_value()["role"] == "admin")
}

fn call(tool: &Tool, arguments: &str, context: CallContext) -> Completion {
    crate::call_with(&Executor::new(), tool, arguments, inside(context))
}

fn wasm(hostile: Hostile) -> Tool {
    guest(&engine(Placement::Cells), hostile)
}

/// A tool that its caller must not see stays hidden, if the check lacks fuel or time, and if the
/// call brings the state of no question.
#[test]
fn hidden_tool_is_never_revealed_by_its_ending() {
    let guest = Hostile { parameters: None, name: "t", ..Hostile::answering(Answer::Echo) };
    let shown = wasm(guest).with_visibility(|_, _| true);
    let hidden = wasm(Hostile { visible: false, ..guest });
    let executor = Executor::new().with_sealer(Sealer::generate().expect("a key"));
    let brief = Limits { timeout: Duration::from_nanos(1), ..Limits::unlimited() };
    let answer = context(&json!({"resume": {"state": "x", "answer": 1}}));
    for (options, expected) in [
        (limited(Limits { fuel: 1, ..Limits::unlimited() }), "timeout/fuel"),
        (limited(brief), "refusal/overloaded"),
        (inside(answer), "refusal/resume_tampered"),
    ] {
        for (tool, expected) in [(&shown, expected), (&hidden, "refusal/not_visible")] {
            let completion = crate::call_with(&executor, tool, "{}", options.clone());
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
        let picky = tool.clone().with_can_execute(|call| call.id != "call-1");
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
            let completion = call(tool, arguments, role(who));
            let ending = ending(&completion.result);
            assert_eq!(ending, expected, "{arguments} of {who}: {completion:?}");
        }
        let executable = ["t", "u"].map(|name| tool.can_execute(&ToolCall::new("1", name, "")));
        assert_eq!(executable, [true, false]);
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
        let faults = executor.validate(&validating, call(), CallOptions::default()).await;
        assert_eq!(faults, Ok(vec![]));
        assert!(hears().await, "validate");
        let completion = executor.call(&tool, call(), CallOptions::default()).await;
        assert!(completion.usage.fuel.is_some_and(|fuel| fuel > 0), "{completion:?}");
        assert_eq!(told.swap(0, Ordering::Relaxed), 0, "a call");
        let options = limited(Limits { fuel: 1, ..Limits::unlimited() });
        let completion = executor.call(&tool, call(), options).await;
        assert!(completion.usage.fuel.is_none_or(|fuel| fuel <= 1), "{completion:?}");
        assert!(hears().await, "a call that failed before it said who sees it");
    });
}

fn knows(arguments: &Value) -> bool {
    arguments.is_null() || arguments["word"] == "xyzzy"
}

/// Visibility sees the arguments of a call before they are validated; in a list there are none.
#[test]
fn visibility_sees_the_arguments_of_a_call() {
    let definition = || {
        let properties = json!({"word": {"type": "string"}, "times": {"type": "integer"}});
        named("opens").with_parameters(json!({"properties": properties}))
    };
    let ruled = Tool::native(definition(), async |_: Value| json!("open")).expect("a tool");
    let ruled = ruled.with_visibility(move |arguments, _| knows(arguments));
    let asked = Tool::with_handler(definition(), Knows).expect("a tool");
    let guest = |placement| component(placement, "mischief").tool("opens").expect("it").clone();
    let sees = |tool: &Tool, arguments: &Value| {
        wait_here(tool.is_visible_with(arguments, &CallContext::default()))
    };
    for tool in [ruled, guest(PLACEMENTS[0]), guest(PLACEMENTS[1])] {
        assert!(wait_here(tool.is_visible(&CallContext::default())), "{tool:?}");
        for (arguments, expected) in
            rows::<(Value, &str)>("contract/calls/rules", "visibility_sees_the_arguments_of_a_call")
        {
            let completion = call(&tool, &arguments.to_string(), CallContext::default());
            let ending = ending(&completion.result);
            assert_eq!(ending, expected, "{arguments} of {tool:?}: {completion:?}");
            assert_eq!(sees(&tool, &arguments), expected != "refusal/not_visible", "{tool:?}");
        }
    }
    for (arguments, expected) in
        [(json!({"word": "xyzzy"}), true), (json!({}), false), (Value::Null, true)]
    {
        assert_eq!(sees(&asked, &arguments), expected, "{arguments}");
    }
}

/// A handler that is visible only to callers whose arguments have the word.
struct Knows;

impl Handler for Knows {
    fn call(&self, _: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async { CallResult::Outcome(json!("open").into()) })
    }

    fn visible(&self, invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        Box::pin(std::future::ready(knows(invocation.arguments())))
    }
}

/// The breaker opens for a component's tool as for any other.
#[test]
fn failing_component_tool_opens_its_breaker() {
    let tool = wasm(Hostile::new(Place::Execute, Misdeed::Abort))
        .with_breaker(Breaker::default().with_failures(2));
    let endings = [(); 4].map(|()| ending(&call(&tool, "{}", CallContext::default()).result));
    let (raised, rests) = ("handler_raised/unreachable", "refusal/circuit_open");
    assert_eq!(endings, [raised, raised, rests, rests]);
}

#[test]
fn validate_reports_every_fault_without_a_call() {
    let checked = native("t").with_validator(|_| vec!["one".into(), "two".into()]);
    let closed = Hostile { problem: Some("not on a Sunday"), ..Hostile::answering(Answer::Echo) };
    let own = wasm(closed);
    let spins = wasm(Hostile::new(Place::Validate, Misdeed::Spin));
    // A caller that may not see a tool does not learn its parameters.
    let hides = wasm(Hostile { visible: false, ..closed });
    let hides_all = wasm(Hostile { visible: false, ..Hostile::answering(Answer::Echo) });
    let hides_spin =
        wasm(Hostile { visible: false, ..Hostile::new(Place::Validate, Misdeed::Spin) });
    let hidden = checked.clone().with_visibility(|_, _| false);
    let not_visible = "this tool is not available in this context";
    for (tool, arguments, expected) in [
        (&hides, "{}", Ok(vec![not_visible])),
        (&hides, "[]", Ok(vec![not_visible])),
        (&hides_all, "{}", Ok(vec![not_visible])),
        (&hides_spin, "{}", Ok(vec![not_visible])),
        (&hidden, r#"{"n": 1}"#, Ok(vec![not_visible])),
        (&hidden, "[]", Ok(vec![not_visible])),
        (&checked, r#"{"n": 1}"#, Ok(vec!["one", "two"])),
        (&checked, r#"{"n": "x"}"#, Ok(vec!["at `/n`: expected an integer, got \"x\""])),
        (&own, "{}", Ok(vec!["not on a Sunday"])),
        (&own, "[]", Ok(vec!["expected an object, got an array"])),
        (&spins, "{}", Err("timeout/fuel")),
    ] {
        let call = ToolCall::new("1", tool.definition().name.as_str(), arguments);
        let options = limited(Limits { fuel: 20_000_000, ..Limits::default() });
        let found = wait_here(Executor::new().validate(tool, call, options));
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
        let engine = engine(placement);
        let guest = |name, hostile: Hostile| guest(&engine, Hostile { name, ..hostile });
        let registry = registry([
            native("open"),
            native("admins").with_visibility(|_, context| is_admin(context)),
            native("broken").with_visibility(|_, _| panic!("a bug")),
            guest("shows", Hostile::new(Place::Visible, Misdeed::None)),
            guest("hides", Hostile { visible: false, ..Hostile::answering(Answer::Echo) }),
            guest("traps", Hostile::new(Place::Visible, Misdeed::Abort)),
            guest("spins", Hostile::new(Place::Visible, Misdeed::Spin)),
        ]);
        for (who, expected) in
            [("admin", vec!["open", "admins", "shows"]), ("guest", vec!["open", "shows"])]
        {
            let visible = wait_here(registry.visible_tools(&Executor::new(), &role(who)));
            let names: Vec<_> = visible.iter().map(|tool| tool.definition().name.clone()).collect();
            assert_eq!(names, expected, "{who}, {placement:?}");
        }
    }
}

/// A handler whose `visible` waits until those of other tools run too, and whose `validate` never
/// ends.
#[derive(Clone)]
struct SlowHandler {
    meeting: Arc<Barrier>,
    /// The names of the calls that it was to check.
    checked: Log<String>,
}

impl SlowHandler {
    fn new(most: usize) -> Self {
        Self { meeting: Arc::new(Barrier::new(most)), checked: Log::new() }
    }

    fn tool(&self, definition: Definition) -> Tool {
        Tool::with_handler(definition, self.clone()).expect("a tool")
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
        self.checked.push(invocation.call.name.clone());
        Box::pin(std::future::pending())
    }
}

/// If tools were asked one after the other, they would wait for ever.
#[test]
fn list_checks_visibility_concurrently() {
    let slow = SlowHandler::new(3);
    let registry = registry(["a", "b", "c"].map(|name| slow.tool(definition(name))));
    let (executor, context) = (Executor::new(), CallContext::default());
    let visible = wait_here(registry.visible_tools(&executor, &context));
    assert_eq!(visible.len(), 3);
}

/// A check without a call runs like the check of a call: with the tool's own name and time limit.
#[test]
fn validate_runs_the_same_check_as_a_call() {
    let (slow, own) = (SlowHandler::new(1), Duration::from_millis(10));
    let tool = slow.tool(definition("t").with_max_execution(own));
    let options = limited(Limits { timeout: Duration::from_secs(3600), ..Limits::default() });
    let call = ToolCall::new("1", "alias", r#"{"n": 1}"#);
    let found = wait_here(Executor::new().validate(&tool, call, options));
    let Err(ToolError::Timeout(Timeout::Blocked { budget, .. })) = found else {
        panic!("{found:?}")
    };
    assert_eq!((budget, slow.checked.taken()), (own, vec!["t".to_owned()]));
}
