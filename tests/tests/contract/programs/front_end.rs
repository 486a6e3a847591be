//! The tools of a front end that speaks AG-UI: its events in and out, its checks, its deadlines and
//! its statistics.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::clock::ManualClock;
use toolcell::message::{Failure, ResultView};
use toolcell::outcome::{HandlerError, Output, Reason};
use toolcell::provider::{agui_events, agui_run_end};
use toolcell::tool::{Breaker, BreakerState, Invocation, Retry};
use toolcell::{
    CallOptions, Completion, Executor, Outcome, Provider, Registry, RunOptions, Runner, Tool,
    ToolCall,
};
use toolcell_test_guests::rows;
use toolcell_tests::{context, wait_here};

use super::{Recorded, blocking, call, example};
use crate::{at_most, form, inside, named, native, registry};

const OSLO: &str = r#"{"location": "Oslo"}"#;

/// A weather service of the front end, which counts its requests.
#[derive(Default)]
struct Service {
    asked: AtomicU32,
}

impl Service {
    async fn temperature(&self, location: &str) -> Option<i32> {
        self.asked.fetch_add(1, SeqCst);
        (location == "Oslo").then_some(-3)
    }
}

fn weather(service: &Arc<Service>) -> Tool {
    let service = Arc::clone(service);
    let definition = named("get_weather").with_parameters(json!({
        "type": "object",
        "properties": {"location": {"type": "string"}, "days": {"type": "number"}},
        "required": ["location"],
    }));
    let tool = Tool::native(definition, async move |arguments: Value| {
        let location = arguments["location"].as_str().unwrap_or_default();
        let Some(temperature) = service.temperature(location).await else {
            return Outcome::error(format!("no weather for {location}"));
        };
        let value = json!({"temperature": temperature, "condition": "snow"});
        Outcome::Ok(Output::new(value).with_message(format!("{temperature} degrees in {location}")))
    });
    tool.expect("a tool").with_validator(|arguments| {
        let mut errors = Vec::new();
        if arguments["location"].as_str().is_some_and(|location| location.trim().is_empty()) {
            errors.push("Location cannot be empty".to_owned());
        }
        if arguments["days"].as_f64().is_some_and(|days| days < 0.0) {
            errors.push("Number must be non-negative".to_owned());
        }
        errors
    })
}

/// Returns a tool that reads a file of the device, and blocks meanwhile.
fn reader(root: PathBuf) -> Tool {
    blocking("read_file", move |arguments: Value| {
        let name = arguments["filename"].as_str().ok_or("Missing filename")?;
        let text = std::fs::read_to_string(root.join(name))
            .map_err(|error| format!("File error: {}", error.kind()))?;
        Ok::<_, String>(Value::from(text))
    })
}

fn view(tool: &Tool, completion: &Completion) -> ResultView {
    ResultView::of(completion, tool.definition())
}

#[test]
fn streamed_calls_are_answered_by_result_events() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("notes.txt"), "milk").expect("a file");
    let registry = registry([
        example("calculator", "calculator"),
        weather(&Arc::default()),
        reader(folder.path().to_owned()),
    ]);
    let events = rows::<Value>("contract/programs/front_end", "streamed_calls");
    let asked = Provider::AgUi.calls(&json!(events));
    let asked = asked.expect("calls");
    assert!(asked.unreadable.is_empty());

    let mut stream = Runner::new(registry).stream(asked.calls, at_most(1));
    let mut sent = Vec::new();
    while let Some(event) = wait_here(stream.next()) {
        sent.extend(agui_events(&event));
    }
    for (id, content) in
        [("sum", "5"), ("file", "milk"), ("sky", r#"{"error":"no weather for Rome"}"#)]
    {
        let events: Vec<_> = sent.iter().filter(|event| event["toolCallId"] == id).collect();
        let types: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
        let parts = ["START", "ARGS", "END", "RESULT"].map(|part| format!("TOOL_CALL_{part}"));
        assert_eq!(types, parts, "{sent:?}");
        assert_eq!(events[3]["content"], content);
    }
    assert_eq!(agui_run_end("thread", "run", stream.halted())["type"], "RUN_FINISHED");
}

#[test]
fn every_fault_is_listed_before_the_tool_runs() {
    let service = Arc::<Service>::default();
    let tool = weather(&service);
    let table = "every_fault_is_listed_before_the_tool_runs";
    for (arguments, expected) in rows::<(Value, Vec<&str>)>("contract/programs/front_end", table) {
        let text = arguments.to_string();
        let asked = ToolCall::new("call-1", "get_weather", text.as_str());
        let faults = wait_here(Executor::new().validate(&tool, asked, CallOptions::default()))
            .expect("an answer");
        assert_eq!(service.asked.load(SeqCst), 0);
        let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), expected.len(), "{arguments}: {texts:?}");
        let is_told = |part: &&str| texts.iter().any(|text| text.contains(part));
        assert!(expected.iter().all(is_told), "{texts:?}");
        if !faults.is_empty() {
            let view = view(&tool, &call(&tool, &text));
            assert_eq!((view.success, &view.errors), (false, &texts));
            assert_eq!(view.message, Some(texts.join("; ")));
        }
    }
}

#[test]
fn call_runs_only_with_permission() {
    let permitted = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&permitted);
    let tool = weather(&Arc::default()).with_can_execute(move |_| asks.load(SeqCst));
    let named_call = |name: &str| ToolCall::new("call-1", name, OSLO);
    assert!(!tool.can_execute(&named_call("get_weather")));
    let refused = call(&tool, OSLO);
    assert_eq!(form(&refused)["outcome"]["refusal"]["kind"], "not_allowed");
    permitted.store(true, SeqCst);
    assert!(tool.can_execute(&named_call("get_weather")));
    assert!(!tool.can_execute(&named_call("get_whether")));
}

#[test]
fn context_reaches_the_handler_unchanged() {
    let tool = native("where", async |_: Value, invocation: Arc<Invocation>| {
        let (call, context) = (&invocation.call, &invocation.context);
        let metadata = context.metadata.as_ref().map(|metadata| metadata.to_value());
        json!([call.id, call.name, context.thread_id, context.run_id, metadata])
    });
    let context = context(&json!({"thread_id": "thread", "metadata": {"device": "phone"}}));
    let call = ToolCall::new("call-7", "where", "{}");
    let completion = wait_here(Executor::new().call(&tool, call, inside(context)));
    let told = completion.result.value().map(|value| value.to_value());
    assert_eq!(told, Some(json!(["call-7", "where", "thread", null, {"device": "phone"}])));
}

#[test]
fn tool_ends_at_its_timeout_and_frees_resources() {
    let closed = Arc::new(AtomicBool::new(false));
    let closes = Arc::clone(&closed);
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let brief = |name| named(name).with_max_execution(Duration::from_millis(20));
    let waits = Tool::native(brief("waits"), async move |_: Value| {
        let _file = Recorded(Arc::clone(&closes));
        pending::<Value>().await
    });
    let blocks = Tool::native_blocking(brief("blocks"), move |_: Value| {
        let ended = held.lock().map(|held| held.recv().is_err());
        json!(ended.is_ok())
    });
    // Without a time of its own, a call has that of the run.
    let forever = native("forever", async |_: Value| pending::<Value>().await);
    let registry = registry([waits.expect("a tool"), blocks.expect("a tool"), forever]);
    let runner = Runner::new(registry.clone());
    for (name, time, doing) in
        [("waits", 30_000, "waiting"), ("blocks", 30_000, "running"), ("forever", 20, "waiting")]
    {
        let tool_timeout = Some(Duration::from_millis(time));
        let options = RunOptions { tool_timeout, ..RunOptions::default() };
        let outcome = wait_here(runner.run([ToolCall::new("call-1", name, "{}")], options));
        let outcome = outcome.expect("it starts");
        let told = format!(r#"{{"error":"the tool was still {doing} after 20ms"}}"#);
        assert_eq!(outcome.messages[0].content, told, "{name}");
        let last = registry.last_error(name).and_then(|error| error.reason);
        assert_eq!(last, Some(Reason::Timeout), "{name}: {}", outcome.messages[0].content);
    }
    assert!(closed.load(SeqCst));
    drop(release);
}

#[test]
fn failures_carry_their_kind_and_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let reader = reader(folder.path().to_owned());
    let missing = call(&reader, r#"{"filename": "none.txt"}"#);
    assert_eq!(view(&reader, &missing).message.as_deref(), Some("File error: entity not found"));
    assert_eq!(view(&reader, &missing).to_text(), r#"{"error":"File error: entity not found"}"#);

    let broken = native("broken", async |_: Value| -> Value { panic!("no such sensor") });
    let completion = call(&broken, "{}");
    assert_eq!((completion.id.as_str(), completion.tool.as_str()), ("call-1", "broken"));
    let Some(Failure::ToolError(error)) = completion.failure() else { panic!("{completion:?}") };
    assert_eq!(error.reason(), Reason::HandlerRaised);
    let message = view(&broken, &completion).message;
    assert!(message.is_some_and(|message| message.contains("no such sensor")));
}

#[test]
fn results_carry_a_value_and_a_message() {
    let tool = weather(&Arc::default());
    let good = view(&tool, &call(&tool, OSLO));
    let expected = json!({
        "tool_call_id": "call-1", "tool": "get_weather", "success": true, "errors": [],
        "attributes": {}, "result": {"temperature": -3, "condition": "snow"},
        "message": "-3 degrees in Oslo",
    });
    assert_eq!(form(&good), expected);
    let bad = view(&tool, &call(&tool, r#"{"location": "Rome"}"#));
    assert_eq!((bad.success, bad.result), (false, None));
    assert_eq!(bad.errors, ["no weather for Rome"]);
    assert_eq!(bad.message.as_deref(), Some("no weather for Rome"));
}

#[test]
fn wrong_enum_value_suggests_the_nearest() {
    let mut schemas = rows::<Value>("contract/programs/front_end", "parameters_of_a_query");
    let parameters = schemas.remove(0);
    let definition = named("data_query").with_parameters(parameters.clone());
    let offered = |provider: Provider| provider.definitions([&definition]).expect("a form").value;
    for provider in Provider::ALL {
        let offered = offered(provider).to_string();
        let has_all = ["data_query", "minRating"].iter().all(|word| offered.contains(word));
        assert!(has_all, "{provider}: {offered}");
    }
    assert_eq!(offered(Provider::AgUi)[0]["parameters"], parameters);

    let tool = Tool::native(definition, async |arguments: Value| arguments).expect("a tool");
    let completion = call(&tool, r#"{"filters": {"category": "boks", "minRating": 6}}"#);
    let faults = &form(&completion)["outcome"]["refusal"]["faults"];
    assert_eq!(faults.as_array().map(Vec::len), Some(3), "{faults}");
    let fault_at =
        |path: &str| faults.as_array().into_iter().flatten().find(|fault| fault["path"] == path);
    let nearest = fault_at("/filters/category").map(|fault| &fault["nearest"]);
    assert_eq!(nearest, Some(&json!("books")), "{faults}");
    assert!(fault_at("/filters/minRating").is_some(), "{faults}");
}

#[test]
fn failing_service_is_retried_then_circuit_opens() {
    let (attempts, clock) = (Arc::new(AtomicU32::new(0)), ManualClock::new());
    let (counted, rest) = (Arc::clone(&attempts), Duration::from_secs(30));
    let breaker = Breaker::default().with_failures(2).with_open_time(rest);
    let breaker = breaker.with_clock(Arc::new(clock.clone()));
    let tool = native("flaky", async move |_: Value, invocation: Arc<Invocation>| {
        let before = counted.fetch_add(1, SeqCst);
        assert_eq!(invocation.context.attempt, Some(before % 3 + 1));
        if before < 6 {
            return Outcome::Error(HandlerError::new("busy").retryable_after(Duration::ZERO));
        }
        Outcome::ok(json!("well"))
    })
    .with_retry(Retry::fixed(Duration::ZERO).with_attempts(3))
    .with_breaker(breaker);
    let registry = registry([tool.clone()]);
    let executor = Executor::new();
    let ended = || {
        let call = ToolCall::new("call-1", "flaky", "");
        let completion = wait_here(registry.call(&executor, call, CallOptions::default()));
        view(&tool, &completion.expect("a completion"))
    };
    let mut endings = [(); 3].map(|()| ended().message.unwrap_or_default()).to_vec();
    clock.advance(rest);
    endings.push(ended().to_text());
    assert_eq!(endings[..2], ["busy", "busy"]);
    assert_eq!(endings[3], "well", "{endings:?}");
    assert_eq!(attempts.load(SeqCst), 7);
    assert_eq!(tool.breaker_state(), Some(BreakerState::Closed));
    let statistics = registry.statistics("flaky").unwrap_or_default();
    assert_eq!((statistics.success, statistics.failure), (1, 2));
    assert_eq!((statistics.count, statistics.refused), (3, 1));
}

#[test]
fn registry_keeps_one_tool_per_name() {
    let registry = Registry::new();
    let tool = weather(&Arc::default());
    registry.register(tool.clone()).expect("a new name");
    let again = registry.register(tool.clone()).expect_err("the name is taken");
    assert!(again.is_duplicate());
    assert!(registry.is_registered("get_weather") && registry.get("get_weather").is_some());
    assert_eq!(registry.list().len(), 1);
    assert!(registry.unregister("get_weather").is_some());
    assert!(registry.unregister("get_weather").is_none());
    registry.register(tool).expect("the name is free");
    registry.clear();
    assert!(registry.list().is_empty() && registry.statistics("get_weather").is_none());
    let call = ToolCall::new("call-1", "get_weather", "{}");
    let unknown = wait_here(registry.call(&Executor::new(), call, CallOptions::default()));
    assert_eq!(unknown.expect_err("no such tool").unknown_tool(), Some("get_weather"));
}
