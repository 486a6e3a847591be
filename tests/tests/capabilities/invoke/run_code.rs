//! Tests the example tool `run_code`: it runs code of a model, which calls tools.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};
use toolcell::outcome::Halt;
use toolcell::runtime::Placement;
use toolcell::tool::Invocation;
use toolcell::{
    CallOptions, Completion, Definition, Event, Executor, Grants, Limits, Outcome, Question,
    Registry, RunOptions, Runner, Tool, ToolCall,
};
use toolcell_test_guests::{bytes, rows};
use toolcell_tests::{load_with, wait};

use super::{SOME_FUEL, engine, rule, value};
use crate::{complete, message, observed};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The component, built by `toolcell build`.
static COMPONENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run_code.wasm");
    toolcell_author::build(&Path::new(ROOT).join("example-tools/js/run_code"), Some(&out))
        .expect("it builds");
    fs::read(out).expect("a component")
});

/// Returns the first block of JavaScript in `docs/run-code.md`.
fn page() -> String {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/run-code.md")).expect("the page");
    let block = page.split("```js\n").nth(1).and_then(|rest| rest.split("```").next());
    block.expect("a block").to_owned()
}

/// Six tools: four native ones, and two components.
fn tools() -> Vec<Tool> {
    let native = |name: &str, answer: Value| {
        let definition = Definition::new(name, "Knows something.").expect("a definition");
        Tool::native(definition, async move |_: Value| answer).expect("a tool")
    };
    let mut tools = vec![
        native("find_place", json!({"name": "Bern", "at": [46.9, 7.4]})),
        native("weather", json!({"celsius": 12.5})),
        native("distance", json!({"km": 120})),
        native("exchange_rate", json!({"rate": 0.95})),
    ];
    for component in ["calculator", "markdown"] {
        tools.extend(loaded(bytes(component), Grants::default()).into_iter().filter(|tool| {
            let name = &tool.definition().name;
            name == "calculator" || name == "markdown_to_html"
        }));
    }
    tools
}

fn loaded(component: Vec<u8>, grants: Grants) -> Vec<Tool> {
    let engine = engine(Placement::Cells, 4);
    load_with(&engine, component, grants).expect("it loads").tools().to_vec()
}

fn grants(rules: &[&str]) -> Grants {
    let mut grants = Grants::default();
    grants.invoke = rules.iter().map(|text| rule(text)).collect();
    grants
}

/// `run_code` with its grants, and the registry with the other tools.
struct Code {
    tool: Tool,
    registry: Registry,
}

impl Code {
    fn new(grants: Grants, tools: Vec<Tool>) -> Self {
        let registry = Registry::new();
        let tool = loaded(COMPONENT.clone(), grants).remove(0);
        registry.register_all(tools).expect("registered");
        registry.register(tool.clone()).expect("registered");
        Self { tool, registry }
    }

    fn executor(&self) -> Executor {
        let registry = self.registry.clone();
        Executor::new().with_callable(move |name| registry.get(name))
    }

    fn run_with(&self, executor: Executor, code: &str, limits: Limits) -> Completion {
        let options = CallOptions { limits, ..CallOptions::default() };
        complete(&executor, &self.tool, &json!({ "code": code }), options)
    }

    fn run(&self, code: &str) -> Completion {
        self.run_with(self.executor(), code, Limits::default())
    }

    fn value(&self, code: &str) -> Value {
        value(&self.run(code).result)
    }

    /// Returns the message of the tool's own failure.
    fn failure(&self, code: &str) -> String {
        let made = self.run(code);
        message(&json!(made.result)).to_owned()
    }
}

#[test]
fn code_makes_six_calls_in_one_turn() {
    let rules =
        "own find_place,own weather,own distance,own exchange_rate,calculator,markdown_to_html";
    let code = Code::new(grants(&rules.split(',').collect::<Vec<_>>()), tools());
    let (executor, events) = observed(Some);
    let runner = Runner::new(code.registry.clone()).with_executor(executor);
    let call = ToolCall::with_value("1", "run_code", &json!({ "code": page() }));
    let outcome =
        wait(async move { runner.run([call], RunOptions::default()).await }).expect("it runs");
    let [message] = &outcome.messages[..] else { panic!("one message: {outcome:?}") };
    let told = "<p><strong>Bern</strong>: 12.5 °C, 43.32 € by train</p>";
    assert!(message.content.contains(told), "{message:?}");

    let events = events.lock().expect("events");
    let started = |event: &Event| match event {
        Event::Started { id, name, .. } => Some(format!("{id} {name}")),
        Event::Completed { .. } | _ => None,
    };
    let expected = rows::<&str>("capabilities/invoke/run_code", "code_makes_six_calls_in_one_turn");
    assert_eq!(events.iter().filter_map(started).collect::<Vec<_>>(), expected);
    let receipt = |event: &Event| match event {
        Event::Completed { name, usage, .. } => Some((name.clone(), *usage)),
        Event::Started { .. } | _ => None,
    };
    let receipts: Vec<_> = events.iter().filter_map(receipt).collect();
    assert_eq!(receipts.len(), 7, "{receipts:?}");
    let fuel = |name: &str| {
        let (_, usage) = receipts.iter().find(|(known, _)| known == name).expect("a receipt");
        usage.fuel.unwrap_or_default()
    };
    let (called, all) = (fuel("calculator") + fuel("markdown_to_html"), fuel("run_code"));
    assert!(fuel("calculator") > 0 && all > called, "{receipts:?}");
    assert_eq!(outcome.usage[0].fuel, Some(all));
}

#[test]
fn calls_of_code_share_one_fuel_budget() {
    let code = Code::new(grants(&["calculator"]), tools());
    let calculated = "await tools.calculator({ expression: '1 + 1' });";
    let limits = Limits { fuel: SOME_FUEL, ..Limits::unlimited() };
    let one = code.run_with(code.executor(), calculated, limits);
    let used = one.usage.fuel.expect("it is metered");
    assert!(one.result.value().is_some() && used < SOME_FUEL, "{one:?}");
    let all = code.run_with(code.executor(), &format!("for (;;) {calculated}"), limits);
    let ended = serde_json::to_value(&all.result).expect("JSON");
    assert_eq!(ended["tool_error"]["reason"], "timeout", "{ended}");
    assert_eq!(all.usage.fuel, Some(SOME_FUEL));
}

#[test]
fn calls_in_code_are_limited_in_count_and_depth() {
    let code = Code::new(grants(&["own find_place", "run_code"]), tools());
    let counted = "let calls = 0; try { for (;;) { await tools.find_place(); calls++; } } \
                   catch (error) { return [calls, error.kind]; }";
    assert_eq!(code.value(counted), json!([Invocation::MAX_SUB_CALLS, "limit"]));
    // Code that runs `run_code` again ends at a depth.
    let nested = "const run = async (left) => left === 0 ? 'deep' : \
                  tools.run_code({ code: `const run = ${run}; return run(${left - 1});` });";
    let deep = |levels: u32| format!("{nested} return run({levels});");
    assert_eq!(code.value(&deep(Executor::DEFAULT_CALL_DEPTH)), "deep");
    let told = code.failure(&deep(Executor::DEFAULT_CALL_DEPTH + 1));
    let depth = Executor::DEFAULT_CALL_DEPTH;
    let limit = format!("tools can call tools at most {depth} levels deep");
    assert!(told.contains(&limit), "{told}");
}

#[test]
fn called_tool_endings_map_to_error_kinds() {
    let ends = |name: &'static str, outcome: Outcome| {
        let definition = Definition::new(name, "Ends.").expect("a definition");
        let definition = definition
            .with_parameters(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
        Tool::native(definition, async move |_: Value| outcome).expect("a tool")
    };
    let endings = vec![
        ends("works", Outcome::ok(json!(7))),
        ends("fails", Outcome::error("no such place")),
        ends("asks", Outcome::AskUser(Question::new("Which one?"))),
        ends("halts", Outcome::Halt(Halt::new("enough", json!(1)))),
    ];
    let code =
        Code::new(grants(&["own works", "own fails", "own asks", "own halts", "gone"]), endings);
    let told = |name: &str, arguments: &str| {
        format!(
            "try {{ return await tools.{name}({arguments}); }} catch (e) {{ return [e.name, e.kind, e.message, e.data]; }}"
        )
    };
    assert_eq!(code.value(&told("works", "")), 7);
    for (name, arguments, kind, message, data) in rows::<(&str, &str, &str, &str, Value)>(
        "capabilities/invoke/run_code",
        "called_tool_endings_map_to_error_kinds",
    ) {
        let ended = code.value(&told(name, arguments));
        assert_eq!((&ended[0], &ended[1]), (&json!("InvokeError"), &json!(kind)), "{ended}");
        assert!(ended[2].as_str().is_some_and(|told| told.contains(message)), "{ended}");
        let has = |member: &String| ended[3][member] == data[member];
        assert!(data.as_object().is_none_or(|data| data.keys().all(has)), "{ended}");
    }
    let alone = code.run_with(Executor::new(), &told("works", ""), Limits::default());
    assert_eq!(value(&alone.result)[1], "unavailable");
    // An error that is not caught is the failure of the code, and names its line.
    let failure = code.failure("\nawait tools.fails();");
    assert_eq!(failure, "line 2 of the code: tools.fails: no such place");
}

#[test]
fn code_can_only_call_tools() {
    let component = COMPONENT.clone();
    let imports = |interface: &str| {
        component.windows(interface.len()).any(|part| part == interface.as_bytes())
    };
    assert!(imports("toolcell:tool/invoke@"));
    for name in ["http", "kv", "reveal", "secrets"] {
        assert!(!imports(&format!("toolcell:tool/{name}@")), "{name}");
    }
    // Even if the operator grants more.
    let mut more = grants(&["own find_place"]);
    more.http.push("GET https://example.com".parse().expect("a rule"));
    more.kv.push("write *".parse().expect("a rule"));
    more.reveal.insert("token".to_owned());
    let code = Code::new(more, tools());
    for asked in rows::<&str>("capabilities/invoke/run_code", "code_can_only_call_tools") {
        let asks = format!(
            "const sdk = await import('toolcell'); try {{ return await {asked}; }} catch (e) {{ return e.kind; }}"
        );
        assert_eq!(code.value(&asks), "denied", "{asked}");
    }
    let reached =
        code.value("return [typeof __toolcell, typeof require, typeof process, typeof Deno];");
    assert_eq!(reached, json!(["undefined", "undefined", "undefined", "undefined"]));
}

#[test]
fn code_errors_name_their_line() {
    let code = Code::new(Grants::default(), Vec::new());
    for (source, told) in
        rows::<(&str, &str)>("capabilities/invoke/run_code", "code_errors_name_their_line")
    {
        let failure = code.failure(source);
        assert!(failure.contains(told), "{source}: {failure}");
    }
}
