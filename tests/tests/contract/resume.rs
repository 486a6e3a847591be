//! A question and its answer, through a client that is not trusted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::call::Resume;
use toolcell::clock::ManualClock;
use toolcell::runtime::Placement;
use toolcell::step::RawCall;
use toolcell::tool::{Handler, HandlerFuture, Invocation, VisibleFuture};
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Component, Definition, Event, Executor, Json,
    Outcome, Question, Registry, Sealer, Stepper, Tool, ToolCall, Turn,
};
use toolcell_test_guests::rows;
use toolcell_tests::{ending, load, wait};

const ASKED: &str = r#"{"date": "2026-03-03", "time": "19:30"}"#;

fn desk() -> Component {
    component(toolcell_test_guests::bytes("desk"))
}

fn component(bytes: Vec<u8>) -> Component {
    let engine = toolcell_tests::engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    load(&engine, bytes).expect("loads")
}

fn call(executor: &Executor, tool: &Tool, arguments: &str, context: CallContext) -> Completion {
    let (executor, tool) = (executor.clone(), tool.clone());
    let call = ToolCall::new("call-1", tool.definition().name.as_str(), arguments);
    let options = CallOptions { context: context.into(), ..CallOptions::default() };
    wait(async move { executor.call(&tool, call, options).await })
}

fn of_tenant(tenant: &str) -> CallContext {
    let mut context = CallContext::default();
    context.tenant = Some(tenant.into());
    context
}

fn answered(mut context: CallContext, answer: Value, state: Option<&Json>) -> CallContext {
    context.resume = Some(Resume { answer: answer.into(), state: state.cloned() });
    context
}

/// Returns the state of a question, which is always present with a sealer.
fn state(completion: &Completion) -> Json {
    let CallResult::Outcome(Outcome::AskUser(question)) = &completion.result else {
        panic!("{completion:?}")
    };
    question.state.clone().expect("a state")
}

fn is_sealed(state: &Json) -> bool {
    state.as_str().starts_with("\"tc2.")
}

#[test]
fn question_is_answered_in_another_executor() {
    let (desk, key) = (desk(), [1; 32]);
    let tool = desk.tool("book_table").expect("the tool");
    let executor = || Executor::new().with_sealer(Sealer::new(key));
    let asked = call(&executor(), tool, ASKED, of_tenant("acme"));
    let first = state(&asked);
    assert!(is_sealed(&first), "{first}");
    // An answer may lead to the next question, whose state contains the answers so far.
    let again = call(
        &executor(),
        tool,
        ASKED,
        answered(of_tenant("acme"), json!({"party_size": 2}), Some(&first)),
    );
    let second = state(&again);
    // The order and the spacing of members do not matter.
    let respelt = r#"{"time":"19:30","date":"2026-03-03"}"#;
    for answer in [json!({"name": "Ada"}), json!({"name": "Bob"})] {
        let booked = call(
            &executor(),
            tool,
            respelt,
            answered(of_tenant("acme"), answer.clone(), Some(&second)),
        );
        let value = booked.result.value().unwrap_or_else(|| panic!("{booked:?}")).to_value();
        assert_eq!(
            (&value["booking"]["party_size"], &value["booking"]["name"]),
            (&json!(2), &answer["name"])
        );
    }
}

/// Without the seal, a client can write any state.
#[test]
fn forged_state_reaches_tool_only_without_sealer() {
    let desk = desk();
    let tool = desk.tool("book_table").expect("the tool");
    let forged = Json::from(
        json!({"date": "2026-03-03", "time": "19:30", "party_size": 2, "name": "Mallory"}),
    );
    let context = answered(CallContext::default(), json!({}), Some(&forged));
    assert_eq!(
        ending(&call(&Executor::new().without_sealer(), tool, "{}", context.clone()).result),
        "ok"
    );
    for sealing in
        [Executor::new(), Executor::new().with_sealer(Sealer::generate().expect("a key"))]
    {
        let refused = call(&sealing, tool, "{}", context.clone());
        assert_eq!(ending(&refused.result), "refusal/resume_tampered");
        assert_eq!(refused.usage.fuel, None, "no guest ran");
    }
}

/// The executors of a process share one key, which another process does not have.
#[test]
fn question_is_sealed_by_default() {
    let desk = desk();
    let tool = desk.tool("book_table").expect("the tool");
    let sealed = state(&call(&Executor::new(), tool, ASKED, CallContext::default()));
    assert!(is_sealed(&sealed), "{sealed}");
    let context = answered(CallContext::default(), json!({"party_size": 2}), Some(&sealed));
    let elsewhere = Executor::new().with_sealer(Sealer::generate().expect("a key"));
    assert_eq!(
        ending(&call(&elsewhere, tool, ASKED, context.clone()).result),
        "refusal/resume_tampered"
    );
    let other_arguments = call(&Executor::new(), tool, "{}", context.clone());
    assert_eq!(ending(&other_arguments.result), "refusal/resume_other_arguments");
    assert_eq!(ending(&call(&Executor::new(), tool, ASKED, context).result), "ask_user");
}

#[test]
fn each_resume_refusal_states_its_reason() {
    let bytes = toolcell_test_guests::bytes("desk");
    // The same tools in another component: it has one more custom section, named `x`.
    let upgraded = component([bytes.as_slice(), &[0, 2, 1, b'x']].concat());
    let desk = component(bytes);
    let tool = desk.tool("book_table").expect("the tool");
    let clock = ManualClock::new();
    let sealer = Sealer::new([1; 32]).with_clock(Arc::new(clock.clone()));
    let executor = Executor::new().with_sealer(sealer);
    let sealed = state(&call(&executor, tool, ASKED, of_tenant("acme")));

    let answer = || json!({"party_size": 2, "name": "Ada"});
    let truncated = Json::from(json!(sealed.to_value().as_str().expect("text")[..100]));
    let other_key = Executor::new().with_sealer(Sealer::new([2; 32]));
    let life = Sealer::DEFAULT_LIFETIME.as_secs();
    for (case, kind, words) in
        rows::<(&str, &str, &str)>("contract/resume", "each_resume_refusal_states_its_reason")
    {
        let mut context = answered(of_tenant("acme"), answer(), Some(&sealed));
        let (mut executor, mut tool, mut arguments, mut seconds) = (&executor, tool, ASKED, 0);
        match case {
            "no state" => context = answered(of_tenant("acme"), answer(), None),
            "truncated" => context = answered(of_tenant("acme"), answer(), Some(&truncated)),
            "other key" => executor = &other_key,
            "other tenant" => context.tenant = Some("evil".into()),
            "no tenant" => context.tenant = None,
            "other tool" => {
                tool = desk.tool("submit_plan").expect("a tool");
                arguments = r#"{"goal": "tea", "steps": [{"id": "a", "title": "A"}]}"#;
            }
            "upgraded" => tool = upgraded.tool("book_table").expect("a tool"),
            "other arguments" => arguments = "{}",
            "bad arguments" => arguments = r#"{"seats": 1}"#,
            "bad answer" => {
                let answer = json!({"party_size": "two"});
                context = answered(of_tenant("acme"), answer, Some(&sealed));
            }
            "at the end of its life" => seconds = life - 1,
            "expired" => seconds = 1,
            _ => assert_eq!(case, "fresh"),
        }
        clock.advance(Duration::from_secs(seconds));
        let completion = call(executor, tool, arguments, context);
        assert_eq!(ending(&completion.result), kind, "{completion:?}");
        let told = serde_json::to_string(&completion.result).expect("JSON");
        assert!(told.contains(words), "{told}");
    }
}

fn definition() -> Definition {
    Definition::new("ask", "Asks.").expect("a name")
}

fn stateless() -> Tool {
    let handler = async |_: Value, invocation: Arc<Invocation>| match &invocation.context.resume {
        Some(Resume { answer, state: None }) => Outcome::ok(answer.to_value()),
        Some(Resume { state: Some(state), .. }) => Outcome::error(state.to_string()),
        None => Outcome::AskUser(Question::new("Really?")),
    };
    Tool::native(definition(), handler).expect("a tool")
}

/// The seal proves that the question was asked, also if the tool stored no state.
#[test]
fn stateless_native_tool_is_answered_only_if_it_asked() {
    let tool = stateless();
    let executor = Executor::new().with_sealer(Sealer::generate().expect("a key"));
    let made_up = answered(CallContext::default(), json!("yes"), None);
    assert_eq!(ending(&call(&executor, &tool, "{}", made_up).result), "refusal/resume_missing");
    let sealed = state(&call(&executor, &tool, "{}", CallContext::default()));
    let context = answered(CallContext::default(), json!("yes"), Some(&sealed));
    let completion = call(&executor, &tool, "{}", context.clone());
    assert_eq!(completion.result.value().expect("ok").as_str(), "\"yes\"", "{completion:?}");
    // Native code has no digest: the embedder sets its version.
    let upgraded = call(&executor, &tool.clone().with_version("2"), "{}", context.clone());
    assert_eq!(ending(&upgraded.result), "refusal/resume_upgraded");
    // A check without a call gives the same result.
    for (arguments, faults) in [("{}", 0), (r#"{"other": 1}"#, 1)] {
        let (executor, tool, options) = (
            executor.clone(),
            tool.clone(),
            CallOptions { context: context.clone().into(), ..CallOptions::default() },
        );
        let call = ToolCall::new("call-1", "ask", arguments);
        let found =
            wait(async move { executor.validate(&tool, call, options).await }).expect("an answer");
        assert_eq!(found.len(), faults, "{found:?}");
    }
}

/// The number is too long for 64 bits.
#[test]
fn resumed_arguments_compare_every_digit() {
    let tool = stateless();
    let executor = Executor::new().with_sealer(Sealer::generate().expect("a key"));
    let long = |last| format!(r#"{{"n": 3689348814741910323{last}}}"#);
    let sealed = state(&call(&executor, &tool, &long(3), CallContext::default()));
    for (last, expected) in [(3, "ok"), (4, "refusal/resume_other_arguments")] {
        let context = answered(CallContext::default(), json!("yes"), Some(&sealed));
        assert_eq!(ending(&call(&executor, &tool, &long(last), context).result), expected);
    }
}

#[test]
fn state_is_sealed_for_observers_and_size_limited() {
    let tool = Tool::native(definition(), async |arguments: Value| {
        let state = "s".repeat(arguments["bytes"].as_u64().unwrap_or_default() as usize);
        Outcome::AskUser(Question::new("Really?").with_state(json!(state)))
    })
    .expect("a tool");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let sealer = Sealer::generate().expect("a key");
    let executor = Executor::new().with_sealer(sealer).with_events(move |event: Event| {
        sink.lock().expect("no panic").push(format!("{event:?}"));
    });
    let ask = |bytes: u64| {
        call(&executor, &tool, &json!({ "bytes": bytes }).to_string(), CallContext::default())
    };
    assert!(is_sealed(&state(&ask(Sealer::MAX_STATE - 2))));
    assert_eq!(ending(&ask(Sealer::MAX_STATE - 1).result), "invalid_return/state_too_large");
    let seen = seen.lock().expect("no panic");
    assert!(seen.len() == 4 && seen.iter().all(|event| !event.contains("ssss")), "{seen:?}");
}

/// A handler that records the states that its `visible` gets with an answer.
#[derive(Clone, Default)]
struct Curious(Arc<Mutex<Vec<Option<Json>>>>);

impl Handler for Curious {
    fn call(&self, _: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(std::future::ready(CallResult::Outcome(Outcome::ok(json!(1)))))
    }

    fn visible(&self, invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        let state = invocation.context.resume.as_ref().and_then(|resume| resume.state.clone());
        self.0.lock().expect("no panic").push(state);
        Box::pin(std::future::ready(true))
    }
}

/// A list of tools, and the search for the nearest name, call `visible` before any state was
/// opened.
#[test]
fn listing_passes_no_unopened_state_to_tools() {
    let (curious, registry) = (Curious::default(), Registry::new());
    registry
        .register(Tool::with_handler(definition(), curious.clone()).expect("a tool"))
        .expect("a name of its own");
    let resume = Resume { answer: json!("yes").into(), state: Some(json!({"admin": true}).into()) };
    let context = answered(CallContext::default(), json!("yes"), resume.state.as_ref());
    let stepper = Stepper::new(registry.clone())
        .with_executor(Executor::new().with_sealer(Sealer::generate().expect("a key")));
    let misspelt =
        RawCall::from(json!({"id": "1", "name": "asks", "args": {}})).with_resume(resume);
    wait(async move {
        registry.visible_tools(&Executor::new(), &context).await;
        stepper.step(misspelt, &mut Turn::default()).await
    });
    assert_eq!(*curious.0.lock().expect("no panic"), [None, None]);
}

/// Numbers that a client wrote differently when it parsed and printed JSON are still the same
/// arguments.
#[test]
fn reformatted_numbers_are_the_same_arguments() {
    let tool = Tool::native(definition(), async |_: Value, invocation: Arc<Invocation>| {
        if invocation.context.resume.is_some() {
            Outcome::ok(json!(1))
        } else {
            Outcome::AskUser(Question::new("?"))
        }
    })
    .expect("a tool");
    let executor = Executor::new().with_sealer(Sealer::generate().expect("a key"));
    for (asked, respelt, expected) in [
        (r#"{"x": 1.0}"#, r#"{"x":1}"#, "ok"),
        (r#"{"x": [-0.0, 2e3]}"#, r#"{"x":[0,2000]}"#, "ok"),
        (r#"{"x": 1.50}"#, r#"{"x":1.5}"#, "ok"),
        (r#"{"x": 1.5}"#, r#"{"x":1}"#, "refusal/resume_other_arguments"),
        (r#"{"x": 1}"#, r#"{"x":-1}"#, "refusal/resume_other_arguments"),
        (r#"{"x": 1}"#, r#"{"x":"1"}"#, "refusal/resume_other_arguments"),
    ] {
        let sealed = state(&call(&executor, &tool, asked, CallContext::default()));
        let context = answered(CallContext::default(), json!("yes"), Some(&sealed));
        assert_eq!(
            ending(&call(&executor, &tool, respelt, context).result),
            expected,
            "{asked} as {respelt}"
        );
    }
}
