//! A question and its answer, through a client that is not trusted.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::call::Resume;
use toolcell::clock::ManualClock;
use toolcell::runtime::Placement;
use toolcell::step::RawCall;
use toolcell::tool::{Handler, HandlerFuture, Invocation, VisibleFuture};
use toolcell::{
    CallContext, CallResult, Completion, Component, Event, Executor, Json, Outcome, Question,
    Sealer, Stepper, Tool, ToolCall, Turn,
};
use toolcell_test_guests::{bytes, rows};
use toolcell_tests::{context, ending, load, wait_here};

use crate::{Log, engine, inside, named, native, registry};

const ASKED: &str = r#"{"date": "2026-03-03", "time": "19:30"}"#;

fn component(bytes: Vec<u8>) -> Component {
    load(&engine(Placement::Cells), bytes).expect("loads")
}

/// Returns the tool that asks for what is missing to book a table.
fn book_table() -> Tool {
    component(bytes("desk")).tool("book_table").expect("the tool").clone()
}

/// Returns an executor with a key of its own.
fn sealing() -> Executor {
    Executor::new().with_sealer(Sealer::generate().expect("a key"))
}

fn call(executor: &Executor, tool: &Tool, arguments: &str, context: CallContext) -> Completion {
    crate::call_with(executor, tool, arguments, inside(context))
}

/// Returns the ending of a call.
fn end(executor: &Executor, tool: &Tool, arguments: &str, context: CallContext) -> String {
    ending(&call(executor, tool, arguments, context).result)
}

/// Makes a call without a context, and returns the state of its question.
fn ask(executor: &Executor, tool: &Tool, arguments: &str) -> Json {
    state(&call(executor, tool, arguments, CallContext::default()))
}

fn of_tenant(tenant: &str) -> CallContext {
    context(&json!({"tenant": tenant}))
}

fn answered(mut context: CallContext, answer: Value, state: Option<&Json>) -> CallContext {
    context.resume = Some(Resume { answer: answer.into(), state: state.cloned() });
    context
}

/// Returns the context of the answer `yes`.
fn yes(state: Option<&Json>) -> CallContext {
    answered(CallContext::default(), json!("yes"), state)
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
    let tool = book_table();
    let call = |arguments, context| {
        call(&Executor::new().with_sealer(Sealer::new([1; 32])), &tool, arguments, context)
    };
    let first = state(&call(ASKED, of_tenant("acme")));
    assert!(is_sealed(&first), "{first}");
    // An answer may lead to the next question, whose state contains the answers so far.
    let answer = answered(of_tenant("acme"), json!({"party_size": 2}), Some(&first));
    let second = state(&call(ASKED, answer));
    // The order and the spacing of members do not matter.
    let respelt = r#"{"time":"19:30","date":"2026-03-03"}"#;
    for answer in [json!({"name": "Ada"}), json!({"name": "Bob"})] {
        let context = answered(of_tenant("acme"), answer.clone(), Some(&second));
        let booked = call(respelt, context);
        let value = booked.result.value().unwrap_or_else(|| panic!("{booked:?}")).to_value();
        assert_eq!(value["booking"]["party_size"], 2);
        assert_eq!(value["booking"]["name"], answer["name"]);
    }
}

/// Without the seal, a client can write any state.
#[test]
fn forged_state_reaches_tool_only_without_sealer() {
    let tool = book_table();
    let forged = Json::from(
        json!({"date": "2026-03-03", "time": "19:30", "party_size": 2, "name": "Mallory"}),
    );
    let context = answered(CallContext::default(), json!({}), Some(&forged));
    assert_eq!(end(&Executor::new().without_sealer(), &tool, "{}", context.clone()), "ok");
    for sealing in [Executor::new(), sealing()] {
        let refused = call(&sealing, &tool, "{}", context.clone());
        assert_eq!(ending(&refused.result), "refusal/resume_tampered");
        assert_eq!(refused.usage.fuel, None, "no guest ran");
    }
}

/// The executors of a process share one key, which another process does not have.
#[test]
fn question_is_sealed_by_default() {
    let (tool, executor) = (book_table(), Executor::new());
    let sealed = ask(&executor, &tool, ASKED);
    assert!(is_sealed(&sealed), "{sealed}");
    let context = answered(CallContext::default(), json!({"party_size": 2}), Some(&sealed));
    for (executor, arguments, expected) in [
        (sealing(), ASKED, "refusal/resume_tampered"),
        (Executor::new(), "{}", "refusal/resume_other_arguments"),
        (Executor::new(), ASKED, "ask_user"),
    ] {
        assert_eq!(end(&executor, &tool, arguments, context.clone()), expected);
    }
}

#[test]
fn each_resume_refusal_states_its_reason() {
    let bytes = bytes("desk");
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
        rows::<(&str, &str, &str)>("contract/calls/resume", "each_resume_refusal_states_its_reason")
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

fn stateless() -> Tool {
    native("ask", async |_: Value, invocation: Arc<Invocation>| match &invocation.context.resume {
        Some(Resume { answer, state: None }) => Outcome::ok(answer.to_value()),
        Some(Resume { state: Some(state), .. }) => Outcome::error(state.to_string()),
        None => Outcome::AskUser(Question::new("Really?")),
    })
}

/// The seal proves that the question was asked, also if the tool stored no state.
#[test]
fn stateless_native_tool_is_answered_only_if_it_asked() {
    let tool = stateless();
    let executor = sealing();
    assert_eq!(end(&executor, &tool, "{}", yes(None)), "refusal/resume_missing");
    let context = yes(Some(&ask(&executor, &tool, "{}")));
    let completion = call(&executor, &tool, "{}", context.clone());
    assert_eq!(completion.result.value().expect("ok").as_str(), "\"yes\"", "{completion:?}");
    // Native code has no digest: the embedder sets its version.
    let upgraded = tool.clone().with_version("2");
    assert_eq!(end(&executor, &upgraded, "{}", context.clone()), "refusal/resume_upgraded");
    // A check without a call gives the same result.
    for (arguments, faults) in [("{}", 0), (r#"{"other": 1}"#, 1)] {
        let call = ToolCall::new("call-1", "ask", arguments);
        let found = wait_here(executor.validate(&tool, call, inside(context.clone())));
        let found = found.expect("an answer");
        assert_eq!(found.len(), faults, "{found:?}");
    }
}

/// The number is too long for 64 bits.
#[test]
fn resumed_arguments_compare_every_digit() {
    let (tool, executor) = (stateless(), sealing());
    let long = |last| format!(r#"{{"n": 3689348814741910323{last}}}"#);
    let sealed = ask(&executor, &tool, &long(3));
    for (last, expected) in [(3, "ok"), (4, "refusal/resume_other_arguments")] {
        assert_eq!(end(&executor, &tool, &long(last), yes(Some(&sealed))), expected);
    }
}

#[test]
fn state_is_sealed_for_observers_and_size_limited() {
    let tool = native("ask", async |arguments: Value| {
        let state = "s".repeat(arguments["bytes"].as_u64().unwrap_or_default() as usize);
        Outcome::AskUser(Question::new("Really?").with_state(json!(state)))
    });
    let (seen, sink) = Log::shared();
    let executor = sealing().with_events(move |event: Event| sink.push(format!("{event:?}")));
    let ask = |bytes: u64| {
        let arguments = json!({ "bytes": bytes }).to_string();
        call(&executor, &tool, &arguments, CallContext::default())
    };
    assert!(is_sealed(&state(&ask(Sealer::MAX_STATE - 2))));
    assert_eq!(ending(&ask(Sealer::MAX_STATE - 1).result), "invalid_return/state_too_large");
    let seen = seen.taken();
    assert!(seen.len() == 4 && seen.iter().all(|event| !event.contains("ssss")), "{seen:?}");
}

/// A handler that records the states that its `visible` gets with an answer.
#[derive(Clone)]
struct Curious(Log<Option<Json>>);

impl Handler for Curious {
    fn call(&self, _: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(std::future::ready(CallResult::Outcome(Outcome::ok(json!(1)))))
    }

    fn visible(&self, invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        let state = invocation.context.resume.as_ref().and_then(|resume| resume.state.clone());
        self.0.push(state);
        Box::pin(std::future::ready(true))
    }
}

/// A list of tools, and the search for the nearest name, call `visible` before any state was
/// opened.
#[test]
fn listing_passes_no_unopened_state_to_tools() {
    let curious = Curious(Log::new());
    let tool = Tool::with_handler(named("ask"), curious.clone()).expect("a tool");
    let registry = registry([tool]);
    let resume = Resume { answer: json!("yes").into(), state: Some(json!({"admin": true}).into()) };
    let context = yes(resume.state.as_ref());
    let stepper = Stepper::new(registry.clone()).with_executor(sealing());
    let misspelt =
        RawCall::from(json!({"id": "1", "name": "asks", "args": {}})).with_resume(resume);
    wait_here(registry.visible_tools(&Executor::new(), &context));
    wait_here(stepper.step(misspelt, &mut Turn::default()));
    assert_eq!(curious.0.taken(), [None, None]);
}

/// Numbers that a client wrote differently when it parsed and printed JSON are still the same
/// arguments.
#[test]
fn reformatted_numbers_are_the_same_arguments() {
    let (tool, executor) = (stateless(), sealing());
    let table = rows::<(&str, &str, &str)>(
        "contract/calls/resume",
        "reformatted_numbers_are_the_same_arguments",
    );
    for (asked, respelt, expected) in table {
        let context = yes(Some(&ask(&executor, &tool, asked)));
        let end = end(&executor, &tool, respelt, context);
        assert_eq!(end, expected, "{asked} as {respelt}");
    }
}
