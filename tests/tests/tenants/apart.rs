//! Two tenants use one engine, one registry and one store at the same time: nothing that one of
//! them is told names the other.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcell::component::LoadOptions;
use toolcell::kv::SqliteStore;
use toolcell::secrets::{Secret, StoredSecrets};
use toolcell::{
    CallOptions, Component, Definition, Engine, Event, Executor, Grants, Registry, RunOptions,
    Runner, Tool, ToolCall,
};
use toolcell_test_guests::bytes;
use toolcell_tests::{context, wait};

/// Batches of each tenant, all at the same time.
const BATCHES: usize = 8;

/// Returns a random word that only this tenant uses.
fn canary(of: &str) -> String {
    format!("{of}_{:016x}", RandomState::new().hash_one(of))
}

fn load(engine: &Engine, name: &'static str) -> Tool {
    let mut grants = Grants::default();
    grants.kv.push("write *".parse().expect("a rule"));
    grants.reveal.insert("gossip_key".into());
    grants.http.push("https://granted.example".parse().expect("a rule"));
    let (engine, options) = (engine.clone(), LoadOptions { grants, ..LoadOptions::default() });
    let loaded = wait(async move { Component::load_with(&engine, bytes(name), options).await });
    loaded.expect("it loads").tools()[0].clone()
}

/// Returns a tool that only one tenant sees; its name contains the tenant's.
fn own(tenant: &str) -> Tool {
    let (name, tenant) = (format!("only_for_{tenant}"), tenant.to_owned());
    let definition = Definition::new(&name, &name).expect("a name");
    let tool = Tool::native(definition, async |_: Value| json!("done")).expect("a tool");
    tool.with_visibility(move |_, context| context.tenant.as_ref() == Some(&tenant))
}

/// Calls that return everything that a tool can tell of its input and of what is stored for it; in
/// another order for each batch.
fn calls(tenant: &str, batch: usize) -> Vec<ToolCall> {
    let note = |arguments: Value| ("notes".to_owned(), arguments);
    let (title, text) = (format!("title of {tenant} {batch}"), format!("text of {tenant}"));
    let gossip = |how: &str| {
        let words = if how == "send" {
            format!("https://elsewhere.example/{tenant} body")
        } else {
            tenant.to_owned()
        };
        ("gossip".to_owned(), json!({"how": how, "words": words}))
    };
    let mut calls = vec![
        note(json!({"action": "add", "title": title, "text": text})),
        note(json!({"action": "get", "title": title})),
        note(json!({"action": "list"})),
    ];
    calls.extend(["keep", "recall", "value", "deep", "error", "ask", "halt", "log"].map(gossip));
    calls.extend(["stdout", "stderr", "progress", "panic", "send", tenant].map(gossip));
    calls.push((format!("only_for_{tenant}"), json!({})));
    calls.push(note(json!({ "action": tenant })));
    let first = batch * 5 % calls.len();
    calls.rotate_left(first);
    let call = |(number, (name, arguments)): (usize, (String, Value))| {
        ToolCall::with_value(number.to_string(), name, &arguments)
    };
    calls.into_iter().enumerate().map(call).collect()
}

/// Source: docs/threat-model.md, row 55.
#[test]
fn tenant_output_never_names_another_tenant() {
    let tenants = ["ann", "bob"].map(canary);
    let values = ["value_of_one", "value_of_the_other"].map(canary);
    let secrets =
        tenants.iter().zip(&values).fold(StoredSecrets::default(), |secrets, (tenant, value)| {
            secrets.with_tenant(tenant, "gossip_key", Secret::new(value).expect("a secret"))
        });
    let builder = Engine::builder().cells(4).keys(SqliteStore::in_memory()).secrets(secrets);
    let engine =
        builder.cache(concat!(env!("CARGO_TARGET_TMPDIR"), "/apart")).build().expect("an engine");
    let registry = Registry::new();
    registry.register_all([load(&engine, "notes"), load(&engine, "gossip")]).expect("two names");
    registry.register_all(tenants.iter().map(|tenant| own(tenant))).expect("two more");

    let told = [(); 2].map(|()| Arc::new(Mutex::new(Vec::<String>::new())));
    let runs = tenants.iter().zip(&told).flat_map(|(tenant, told)| {
        (0..BATCHES).map(|batch| {
            let (registry, tenant, told) = (registry.clone(), tenant.clone(), Arc::clone(told));
            async move {
                let tell = |text: String| told.lock().expect("texts").push(text);
                let heard = Arc::clone(&told);
                let executor = Executor::new().with_events(move |event: Event| {
                    heard.lock().expect("texts").push(serde_json::to_string(&event).expect("JSON"));
                });
                let whose = context(&json!({"tenant": tenant, "session_id": tenant}));
                let context = whose.clone().into();
                let call = CallOptions { context, ..CallOptions::default() };
                let options = RunOptions { call, ..RunOptions::default() };
                let runner = Runner::new(registry.clone()).with_executor(executor.clone());
                let messages = runner.run(calls(&tenant, batch), options).await;
                tell(format!("{messages:?}"));
                for tool in registry.visible_tools(&executor, &whose).await {
                    tell(serde_json::to_string(tool.definition()).expect("JSON"));
                    tell(format!("{:?}", registry.statistics(tool.definition().name.as_str())));
                }
            }
        })
    });
    let runs: Vec<_> = runs.collect();
    wait(async {
        let runs: Vec<_> = runs.into_iter().map(tokio::spawn).collect();
        for run in runs {
            run.await.expect("no panic");
        }
    });
    for (number, told) in told.iter().enumerate() {
        let (own, other) = (&tenants[number], &tenants[1 - number]);
        let told = told.lock().expect("texts");
        let foreign = [other, &values[1 - number]];
        let foreign: Vec<_> =
            told.iter().filter(|text| foreign.iter().any(|word| text.contains(*word))).collect();
        assert!(foreign.is_empty(), "{own} is told {foreign:?}");
        // The tenant is told much about itself: what it asked, stored and was denied.
        for said in ["title of ", "text of ", "elsewhere.example/", "only_for_"]
            .map(|words| format!("{words}{own}"))
        {
            let times = told.iter().filter(|text| text.contains(&said)).count();
            assert!(times >= 2 * BATCHES, "{own} is told of {said} only {times} times");
        }
    }
}
