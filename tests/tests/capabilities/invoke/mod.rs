//! Tools that call other tools: the grants, budgets and rights of such calls.

mod confided;
mod run_code;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolcell::grants::InvokeRule;
use toolcell::kv::SqliteStore;
use toolcell::runtime::Placement;
use toolcell::tool::Invocation;
use toolcell::{
    CallOptions, CallResult, Completion, Definition, Engine, Event, Executor, Grants, Limits,
    Overlay, Registry, Runner, Tool, ToolCall,
};
use toolcell_test_guests::{bytes, rows};
use toolcell_tests::{PLACEMENTS, context, load, load_with, wait};

use crate::{complete, message, observed, of};

/// Fuel units: far more than a thousand rounds of the tool `relay` take, far less than a million.
const SOME_FUEL: u64 = 5_000_000;

fn engine(placement: Placement, cells: u32) -> Engine {
    let engine = Engine::builder().cells(cells).threads(1).placement(placement);
    let engine = engine.keys(SqliteStore::in_memory());
    engine.cache(concat!(env!("CARGO_TARGET_TMPDIR"), "/invoke")).build().expect("an engine")
}

fn rule(text: &str) -> InvokeRule {
    text.parse().expect("a rule")
}

/// A host with the tools `relay`, which may call the tools of the rules, an unlimited `greet`,
/// `notes` with keys, and the native `clock`.
struct Host {
    executor: Executor,
    relay: Tool,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Host {
    fn new(engine: &Engine, rules: &[&str]) -> Self {
        let registry = Registry::new();
        let load = |name: &str, grants: Grants| {
            load_with(engine, bytes(name), grants).expect("it loads").tools().to_vec()
        };
        let mut relays = Grants::default();
        relays.invoke = rules.iter().map(|text| rule(text)).collect();
        let mut keys = Grants::default();
        keys.kv.push("write notes/*".parse().expect("a rule"));
        let relay = load("relay", relays).remove(0);
        registry.register_all(load("hello", Grants::default())).expect("registered");
        registry.register_all(load("notes", keys)).expect("registered");
        registry.register(relay.clone()).expect("registered");
        let clock = Definition::new("clock", "Tells the time.").expect("a definition");
        let clock = Tool::native(clock, async |_: Value| json!("noon"));
        registry.register(clock.expect("a tool")).expect("registered");
        let (executor, events) = observed(Some);
        let executor = executor.with_callable(move |name| registry.get(name));
        Self { executor, relay, events }
    }

    fn completion(&self, arguments: &Value, options: CallOptions) -> Completion {
        complete(&self.executor, &self.relay, arguments, options)
    }

    /// Returns the ending of one call that `relay` makes.
    fn call_ending(&self, name: &str, arguments: &Value) -> Value {
        let made = self.completion(&relayed(name, arguments), CallOptions::default());
        value(&made.result)[0].clone()
    }
}

fn value(result: &CallResult) -> Value {
    result.value().unwrap_or_else(|| panic!("{result:?}")).to_value()
}

/// Returns the arguments with which `relay` makes one call.
fn relayed(name: &str, arguments: &Value) -> Value {
    json!({"calls": [[name, arguments.to_string()]]})
}

/// Returns arguments with which `relay` calls itself, `depth` calls deep.
fn nested(depth: u32) -> Value {
    (0..depth).fold(json!({"calls": []}), |inner, _| relayed("relay", &inner))
}

/// Returns the innermost ending of nested calls.
fn innermost(mut ended: &Value) -> &Value {
    while let Some(inner) = ended.get("ok").and_then(|ok| ok.get(0)) {
        ended = inner;
    }
    ended
}

fn greeting() -> Value {
    json!({"name": "Ada"})
}

#[test]
fn tool_calls_only_granted_tools() {
    let host = Host::new(&engine(Placement::Cells, 4), &["gre*", "missing"]);
    assert_eq!(host.call_ending("greet", &greeting())["ok"], "Hello, Ada!");
    assert_eq!(host.call_ending("missing", &json!({}))["tool_error"]["reason"], "not_found");
    let refused = host.call_ending("greet", &json!({"name": 5}));
    assert_eq!(refused["refusal"]["kind"], "invalid_arguments");
    let denied = host.call_ending("notes", &json!({"action": "list"}));
    let told = denied["denied"].as_str().unwrap_or_default();
    assert!(told.contains(r#"invoke = ["notes"]"#), "{denied}");
    // An overlay of the call narrows this right like every other.
    let mut overlay = Overlay::default();
    overlay.invoke = Some(Vec::new());
    let options = CallOptions { overlay: Some(overlay.into()), ..CallOptions::default() };
    let narrowed = host.completion(&relayed("greet", &greeting()), options);
    assert!(value(&narrowed.result)[0]["denied"].is_string());
}

#[test]
fn sub_calls_have_their_own_events_and_usage() {
    let host = Host::new(&engine(Placement::Cells, 4), &["greet", "clock"]);
    let mut calls = relayed("greet", &greeting());
    calls["times"] = json!(2);
    let options = CallOptions {
        context: context(&json!({"tenant": "acme", "thread_id": "t"})).into(),
        ..CallOptions::default()
    };
    let made = host.completion(&calls, options);
    let events = host.events.lock().expect("events");
    let show = |event: &Event| match event {
        Event::Started { id, name, .. } => format!("{name} {id} starts"),
        Event::Completed { id, name, parent: None, .. } => format!("{name} {id} ends"),
        Event::Completed { id, name, parent: Some(parent), .. } => {
            format!("{name} {id} ends for {parent}")
        }
        Event::Progress { .. } | Event::Log { .. } | Event::Denied { .. } | _ => {
            format!("{event:?}")
        }
    };
    let shown: Vec<_> = events.iter().map(show).collect();
    let expected = rows::<&str>("capabilities/invoke", "sub_calls_have_their_own_events_and_usage");
    assert_eq!(shown, expected);
    let fuel =
        |event: &Event| if let Event::Completed { usage, .. } = event { usage.fuel } else { None };
    let used: Vec<_> = events.iter().filter_map(fuel).collect();
    let [one, other, all] = used[..] else { panic!("{used:?}") };
    // The receipt has the calls that it led to.
    assert!(one > 0 && other > 0 && all > one + other, "{used:?}");
    assert_eq!(made.usage.fuel, Some(all));
}

#[test]
fn called_tool_has_no_more_rights_than_its_caller() {
    let engine = engine(Placement::Cells, 4);
    let add = json!({"action": "add", "title": "milk", "text": "two litres"});
    let bound = Host::new(&engine, &["notes", "clock"]);
    let told = bound.call_ending("notes", &add);
    assert!(message(&told).contains("own NAME"), "{told}");
    // No rights bind native code.
    let refused = bound.call_ending("clock", &json!({}));
    assert_eq!(refused["refusal"]["kind"], "not_allowed");
    let free = Host::new(&engine, &["own notes", "own clock"]);
    assert_eq!(free.call_ending("notes", &add)["ok"]["text"], "two litres");
    assert_eq!(free.call_ending("clock", &json!({}))["ok"], "noon");
}

#[test]
fn called_tool_uses_the_callers_tenant_keys() {
    let host = Host::new(&engine(Placement::Cells, 4), &["own notes"]);
    let made = |tenant: &str, action: &Value| {
        value(&host.completion(&relayed("notes", action), of(tenant)).result)[0].clone()
    };
    let read = json!({"action": "get", "title": "milk"});
    for (tenant, text) in [("acme", "two litres"), ("globex", "none")] {
        assert!(made(tenant, &read)["error"].is_object(), "{tenant} has no such note yet");
        let add = json!({"action": "add", "title": "milk", "text": text});
        assert_eq!(made(tenant, &add)["ok"]["text"], text);
    }
    assert_eq!(made("acme", &read)["ok"]["text"], "two litres");
}

#[test]
fn sub_call_depth_is_limited() {
    let host = Host::new(&engine(Placement::Cells, 4), &["relay"]);
    let ended = |host: &Host, depth| {
        let made = host.completion(&nested(depth), CallOptions::default());
        innermost(&json!({"ok": value(&made.result)})).clone()
    };
    assert_eq!(ended(&host, Executor::DEFAULT_CALL_DEPTH), json!({"ok": []}));
    assert!(ended(&host, Executor::DEFAULT_CALL_DEPTH + 1)["limit"].is_string());
    let none = Host { executor: host.executor.clone().with_call_depth(0), ..host };
    assert!(ended(&none, 1)["limit"].is_string());
}

#[test]
fn sub_call_count_is_limited_across_depths() {
    let host = Host::new(&engine(Placement::Cells, 4), &["missing", "relay"]);
    let ended = |times: u32| {
        let mut calls = relayed("missing", &json!({}));
        calls["times"] = json!(times);
        // One more call, at another depth: all depths count together.
        host.call_ending("relay", &calls)["ok"][0].clone()
    };
    assert_eq!(ended(Invocation::MAX_SUB_CALLS - 1)["tool_error"]["reason"], "not_found");
    assert!(ended(Invocation::MAX_SUB_CALLS)["limit"].is_string());
}

#[test]
fn sub_calls_use_the_callers_fuel() {
    let host = Host::new(&engine(Placement::Cells, 4), &["relay"]);
    let spins = |times: u64| json!({"calls": [["relay", json!({"calls": [], "rounds": 100_000}).to_string()]], "times": times});
    let options = || CallOptions {
        limits: Limits { fuel: SOME_FUEL, ..Limits::unlimited() },
        ..CallOptions::default()
    };
    let one = host.completion(&spins(1), options());
    let used = one.usage.fuel.expect("it is metered");
    assert!(one.result.value().is_some() && used > 100_000, "{one:?}");
    // There is enough fuel for each call alone, and not for all together.
    let all = host.completion(&spins(2 * SOME_FUEL / used + 2), options());
    let ended = serde_json::to_value(&all.result).expect("JSON");
    assert_eq!(ended["tool_error"]["reason"], "timeout", "{ended}");
    assert_eq!(all.usage.fuel, Some(SOME_FUEL));
}

/// The tool that waits for another tool has the only cell.
#[test]
fn nested_calls_do_not_deadlock_on_one_cell() {
    for placement in PLACEMENTS {
        let host = Host::new(&engine(placement, 1), &["relay"]);
        let (executor, relay) = (host.executor.clone(), host.relay.clone());
        let calls = async move {
            let mut calls = JoinSet::new();
            for _ in 0..8 {
                let (executor, relay) = (executor.clone(), relay.clone());
                let arguments = nested(Executor::DEFAULT_CALL_DEPTH);
                let call = ToolCall::with_value("1", "relay", &arguments);
                calls.spawn(
                    async move { executor.call(&relay, call, CallOptions::default()).await },
                );
            }
            calls.join_all().await
        };
        for made in wait(calls) {
            let ended = json!({"ok": value(&made.result)});
            assert_eq!(innermost(&ended), &json!({"ok": []}), "{placement:?}");
        }
    }
}

#[test]
fn sub_calls_resolve_in_the_runs_registry() {
    let host = Host::new(&engine(Placement::Cells, 2), &["greet"]);
    let registry = Registry::new();
    registry.register(host.relay.clone()).expect("registered");
    let run = |registry: &Registry| {
        let runner = Runner::new(registry.clone());
        let call = ToolCall::with_value("1", "relay", &relayed("greet", &greeting()));
        let run = wait(async move { runner.run([call], Default::default()).await });
        run.expect("it runs").messages.remove(0).content
    };
    assert!(run(&registry).contains("not_found"), "the run has no such tool");
    let engine = engine(Placement::Cells, 2);
    let loaded = load(&engine, bytes("hello")).expect("it loads");
    registry.register(loaded.tools()[0].clone()).expect("registered");
    assert!(run(&registry).contains("Hello, Ada!"));
}
