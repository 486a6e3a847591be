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
    CallContext, CallOptions, Definition, Executor, Limits, Outcome, Provider, Registry,
    RunOptions, Runner, Tool, ToolCall,
};
use toolcell_tests::wait_here;

use super::{example, form, named};

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

fn weather(service: &Arc<Service>) -> anyhow::Result<Tool> {
    let service = Arc::clone(service);
    let definition = Definition::new("get_weather", "Tells the weather at a place.")?
        .with_parameters(json!({
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
    })?;
    Ok(tool.with_validator(|arguments| {
        let mut errors = Vec::new();
        if arguments["location"].as_str().is_some_and(|location| location.trim().is_empty()) {
            errors.push("Location cannot be empty".to_owned());
        }
        if arguments["days"].as_f64().is_some_and(|days| days < 0.0) {
            errors.push("Number must be non-negative".to_owned());
        }
        errors
    }))
}

/// Returns a tool that reads a file of the device, and blocks meanwhile.
fn reader(root: PathBuf) -> anyhow::Result<Tool> {
    let definition = Definition::new("read_file", "Reads a file.")?;
    Ok(Tool::native_blocking(definition, move |arguments: Value| {
        let name = arguments["filename"].as_str().ok_or("Missing filename")?;
        let text = std::fs::read_to_string(root.join(name))
            .map_err(|error| format!("File error: {}", error.kind()))?;
        Ok::<_, String>(Value::from(text))
    })?)
}

async fn call(tool: &Tool, arguments: Value) -> toolcell::Completion {
    let call = ToolCall::with_value("call-1", tool.definition().name.as_str(), &arguments);
    Executor::new().call(tool, call, CallOptions::default()).await
}

fn view(tool: &Tool, completion: &toolcell::Completion) -> ResultView {
    ResultView::of(completion, tool.definition())
}

#[test]
fn streamed_calls_are_answered_by_result_events() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("notes.txt"), "milk")?;
    let registry = Registry::new();
    registry.register_all([
        example("calculator", "calculator")?,
        weather(&Arc::default())?,
        reader(folder.path().to_owned())?,
    ])?;
    let asked = Provider::AgUi.calls(&json!([
        {"type": "RUN_STARTED", "threadId": "thread", "runId": "run"},
        {"type": "TOOL_CALL_START", "toolCallId": "sum", "toolCallName": "calculator"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "sum", "delta": "{\"expression\": "},
        {"type": "TOOL_CALL_START", "toolCallId": "file", "toolCallName": "read_file"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "sum", "delta": "\"2 + 3\"}"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "file", "delta": "{\"filename\": \"notes.txt\"}"},
        {"type": "TOOL_CALL_END", "toolCallId": "file"},
        {"type": "TOOL_CALL_END", "toolCallId": "sum"},
        {"type": "TOOL_CALL_START", "toolCallId": "sky", "toolCallName": "get_weather"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "sky", "delta": "{\"location\": \"Rome\"}"},
        {"type": "TOOL_CALL_END", "toolCallId": "sky"},
    ]))?;
    assert!(asked.unreadable.is_empty());

    let (sent, halted) = wait_here(async {
        let mut stream = Runner::new(registry)
            .stream(asked.calls, RunOptions { max_concurrency: Some(1), ..RunOptions::default() });
        let mut sent = Vec::new();
        while let Some(event) = stream.next().await {
            sent.extend(agui_events(&event));
        }
        (sent, stream.halted().cloned())
    });
    for (id, content) in
        [("sum", "5"), ("file", "milk"), ("sky", r#"{"error":"no weather for Rome"}"#)]
    {
        let events: Vec<_> = sent.iter().filter(|event| event["toolCallId"] == id).collect();
        let types: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
        assert_eq!(
            types,
            ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"],
            "{sent:?}"
        );
        assert_eq!(events[3]["content"], content);
    }
    assert_eq!(agui_run_end("thread", "run", halted.as_ref())["type"], "RUN_FINISHED");
    Ok(())
}

#[test]
fn every_fault_is_listed_before_the_tool_runs() -> anyhow::Result<()> {
    let service = Arc::<Service>::default();
    let tool = weather(&service)?;
    let cases = [
        (
            json!({"location": " ", "days": -1}),
            vec!["Location cannot be empty", "Number must be non-negative"],
        ),
        (json!({"days": "two"}), vec!["location", "days"]),
        (json!({"location": "Oslo"}), vec![]),
    ];
    wait_here(async {
        for (arguments, expected) in cases {
            let call = ToolCall::with_value("call-1", "get_weather", &arguments);
            let faults =
                Executor::new().validate(&tool, call.clone(), CallOptions::default()).await?;
            assert_eq!(service.asked.load(SeqCst), 0);
            let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
            assert_eq!(texts.len(), expected.len(), "{arguments}: {texts:?}");
            assert!(
                expected.iter().all(|part| texts.iter().any(|text| text.contains(part))),
                "{texts:?}"
            );
            if !faults.is_empty() {
                let completion = Executor::new().call(&tool, call, CallOptions::default()).await;
                let view = view(&tool, &completion);
                assert_eq!((view.success, &view.errors), (false, &texts));
                assert_eq!(view.message, Some(texts.join("; ")));
            }
        }
        anyhow::Ok(())
    })
}

#[test]
fn call_runs_only_with_permission() -> anyhow::Result<()> {
    let permitted = Arc::new(AtomicBool::new(false));
    let asks = Arc::clone(&permitted);
    let tool = weather(&Arc::default())?.with_can_execute(move |_| asks.load(SeqCst));
    let named_call = |name: &str| ToolCall::new("call-1", name, r#"{"location": "Oslo"}"#);
    assert!(!tool.can_execute(&named_call("get_weather")));
    let refused = wait_here(call(&tool, json!({"location": "Oslo"})));
    assert_eq!(form(&refused)["outcome"]["refusal"]["kind"], "not_allowed");
    permitted.store(true, SeqCst);
    assert!(tool.can_execute(&named_call("get_weather")));
    assert!(!tool.can_execute(&named_call("get_whether")));
    Ok(())
}

#[test]
fn context_reaches_the_handler_unchanged() -> anyhow::Result<()> {
    let tool = Tool::native(named("where"), async |_: Value, invocation: Arc<Invocation>| {
        let context = &invocation.context;
        let metadata = context.metadata.as_ref().map(|metadata| metadata.to_value());
        json!([
            invocation.call.id,
            invocation.call.name,
            context.thread_id,
            context.run_id,
            metadata
        ])
    })?;
    let mut context = CallContext::default();
    context.thread_id = Some("thread".into());
    context.metadata = Some(json!({"device": "phone"}).into());
    let options = CallOptions { context: context.into(), ..CallOptions::default() };
    let completion =
        wait_here(Executor::new().call(&tool, ToolCall::new("call-7", "where", "{}"), options));
    let told = completion.result.value().map(|value| value.to_value());
    assert_eq!(told, Some(json!(["call-7", "where", "thread", null, {"device": "phone"}])));
    Ok(())
}

#[test]
fn tool_ends_at_its_timeout_and_frees_resources() -> anyhow::Result<()> {
    struct Open(Arc<AtomicBool>);
    impl Drop for Open {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    let closed = Arc::new(AtomicBool::new(false));
    let closes = Arc::clone(&closed);
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let brief = |name| named(name).with_max_execution(Duration::from_millis(20));
    let tools = [
        Tool::native(brief("waits"), async move |_: Value| {
            let _file = Open(Arc::clone(&closes));
            pending::<Value>().await
        })?,
        Tool::native_blocking(brief("blocks"), move |_: Value| {
            let ended = held.lock().map(|held| held.recv().is_err());
            json!(ended.is_ok())
        })?,
        // Without a time of its own, a call has that of the run.
        Tool::native(named("forever"), async |_: Value| pending::<Value>().await)?,
    ];
    let registry = Registry::new();
    registry.register_all(tools)?;
    let run = async |name: &str, time: Duration| {
        let options = RunOptions { tool_timeout: Some(time), ..RunOptions::default() };
        Runner::new(registry.clone()).run([ToolCall::new("call-1", name, "{}")], options).await
    };
    for (name, time, doing) in
        [("waits", 30_000, "waiting"), ("blocks", 30_000, "running"), ("forever", 20, "waiting")]
    {
        let outcome = wait_here(run(name, Duration::from_millis(time)))?;
        let told = format!(r#"{{"error":"the tool was still {doing} after 20ms"}}"#);
        assert_eq!(outcome.messages[0].content, told, "{name}");
        let last = registry.last_error(name).and_then(|error| error.reason);
        assert_eq!(last, Some(Reason::Timeout), "{name}: {}", outcome.messages[0].content);
    }
    assert!(closed.load(SeqCst));
    drop(release);
    Ok(())
}

#[test]
fn failures_carry_their_kind_and_call() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let reader = reader(folder.path().to_owned())?;
    let missing = wait_here(call(&reader, json!({"filename": "none.txt"})));
    assert_eq!(view(&reader, &missing).message.as_deref(), Some("File error: entity not found"));
    assert_eq!(view(&reader, &missing).to_text(), r#"{"error":"File error: entity not found"}"#);

    let broken =
        Tool::native(named("broken"), async |_: Value| -> Value { panic!("no such sensor") })?;
    let completion = wait_here(call(&broken, json!({})));
    assert_eq!((completion.id.as_str(), completion.tool.as_str()), ("call-1", "broken"));
    let Some(Failure::ToolError(error)) = completion.failure() else { panic!("{completion:?}") };
    assert_eq!(error.reason(), Reason::HandlerRaised);
    assert!(
        view(&broken, &completion)
            .message
            .is_some_and(|message| message.contains("no such sensor"))
    );
    Ok(())
}

#[test]
fn results_carry_a_value_and_a_message() -> anyhow::Result<()> {
    let tool = weather(&Arc::default())?;
    let good = view(&tool, &wait_here(call(&tool, json!({"location": "Oslo"}))));
    assert_eq!(
        form(&good),
        json!({
            "tool_call_id": "call-1", "tool": "get_weather", "success": true, "errors": [], "attributes": {},
            "result": {"temperature": -3, "condition": "snow"}, "message": "-3 degrees in Oslo",
        })
    );
    let bad = view(&tool, &wait_here(call(&tool, json!({"location": "Rome"}))));
    assert_eq!(
        (bad.success, bad.result, bad.errors),
        (false, None, vec!["no weather for Rome".to_owned()])
    );
    assert_eq!(bad.message.as_deref(), Some("no weather for Rome"));
    Ok(())
}

#[test]
fn wrong_enum_value_suggests_the_nearest() -> anyhow::Result<()> {
    let parameters = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query"},
            "filters": {"type": "object", "properties": {
                "category": {"type": "string", "enum": ["books", "movies", "music"]},
                "minRating": {"type": "number", "minimum": 0, "maximum": 5},
            }},
        },
        "required": ["query"],
    });
    let definition = Definition::new("data_query", "Query data with filters.")?
        .with_parameters(parameters.clone());
    for provider in Provider::ALL {
        let offered = provider.definitions([&definition])?.value.to_string();
        assert!(
            offered.contains("data_query") && offered.contains("minRating"),
            "{provider}: {offered}"
        );
    }
    assert_eq!(Provider::AgUi.definitions([&definition])?.value[0]["parameters"], parameters);

    let tool = Tool::native(definition, async |arguments: Value| arguments)?;
    let completion =
        wait_here(call(&tool, json!({"filters": {"category": "boks", "minRating": 6}})));
    let faults = &form(&completion)["outcome"]["refusal"]["faults"];
    assert_eq!(faults.as_array().map(Vec::len), Some(3), "{faults}");
    let fault_at =
        |path: &str| faults.as_array().into_iter().flatten().find(|fault| fault["path"] == path);
    assert_eq!(
        fault_at("/filters/category").map(|fault| &fault["nearest"]),
        Some(&json!("books")),
        "{faults}"
    );
    assert!(fault_at("/filters/minRating").is_some(), "{faults}");
    Ok(())
}

#[test]
fn failing_service_is_retried_then_circuit_opens() -> anyhow::Result<()> {
    let (attempts, clock) = (Arc::new(AtomicU32::new(0)), ManualClock::new());
    let (counted, rest) = (Arc::clone(&attempts), Duration::from_secs(30));
    let tool = Tool::native(named("flaky"), async move |_: Value, invocation: Arc<Invocation>| {
        let before = counted.fetch_add(1, SeqCst);
        assert_eq!(invocation.context.attempt, Some(before % 3 + 1));
        if before < 6 {
            return Outcome::Error(HandlerError::new("busy").retryable_after(Duration::ZERO));
        }
        Outcome::ok(json!("well"))
    })?
    .with_retry(Retry::fixed(Duration::ZERO).with_attempts(3))
    .with_breaker(
        Breaker::default()
            .with_failures(2)
            .with_open_time(rest)
            .with_clock(Arc::new(clock.clone())),
    );
    let registry = Registry::new();
    registry.register(tool.clone())?;
    let executor = Executor::new().with_limits(Limits::default());
    let endings = wait_here(async {
        let mut endings = Vec::new();
        for _ in 0..3 {
            let call = ToolCall::new("call-1", "flaky", "");
            let completion = registry.call(&executor, call, CallOptions::default()).await?;
            endings.push(view(&tool, &completion).message.unwrap_or_default());
        }
        clock.advance(rest);
        let call = ToolCall::new("call-1", "flaky", "");
        endings.push(
            view(&tool, &registry.call(&executor, call, CallOptions::default()).await?).to_text(),
        );
        anyhow::Ok(endings)
    })?;
    assert_eq!(endings[..2], ["busy", "busy"]);
    assert_eq!(endings[3], "well", "{endings:?}");
    assert_eq!(attempts.load(SeqCst), 7);
    assert_eq!(tool.breaker_state(), Some(BreakerState::Closed));
    let statistics = registry.statistics("flaky").unwrap_or_default();
    assert_eq!(
        (statistics.count, statistics.success, statistics.failure, statistics.refused),
        (3, 1, 2, 1)
    );
    Ok(())
}

#[test]
fn registry_keeps_one_tool_per_name() -> anyhow::Result<()> {
    let registry = Registry::new();
    registry.register(weather(&Arc::default())?)?;
    let again = registry.register(weather(&Arc::default())?).expect_err("the name is taken");
    assert!(again.is_duplicate());
    assert!(registry.is_registered("get_weather") && registry.get("get_weather").is_some());
    assert_eq!(registry.list().len(), 1);
    assert!(registry.unregister("get_weather").is_some());
    assert!(registry.unregister("get_weather").is_none());
    registry.register(weather(&Arc::default())?)?;
    registry.clear();
    assert!(registry.list().is_empty() && registry.statistics("get_weather").is_none());
    let call = ToolCall::new("call-1", "get_weather", "{}");
    let unknown = wait_here(registry.call(&Executor::new(), call, CallOptions::default()));
    assert_eq!(unknown.expect_err("no such tool").unknown_tool(), Some("get_weather"));
    Ok(())
}
