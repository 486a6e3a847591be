//! Tests of the grants of a tool, and of the resources behind them.

mod copies;
mod file_size;
mod files;
mod grants;
mod invoke;
mod requests;
mod same;
mod secrets;
mod sockets;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcell::component::LoadOptions;
use toolcell::grants::Denial;
use toolcell::{
    CallOptions, Completion, Component, Engine, Error, Event, Executor, Grants, Tool, ToolCall,
};
use toolcell_test_guests::bytes;
use toolcell_tests::{context, wait};

/// Loads a component that was built for the tests. It is refused if it imports more than these
/// grants cover.
fn load(engine: &Engine, name: &str, grants: Grants) -> Result<Component, Error> {
    let (engine, bytes) = (engine.clone(), bytes(name));
    let options = LoadOptions { grants, ..LoadOptions::default() };
    wait(async move { Component::load_with(&engine, bytes, options).await })
}

/// Loads a component, and returns its first tool.
fn first_tool(engine: &Engine, name: &str, grants: Grants) -> Tool {
    load(engine, name, grants).expect("it loads").tools()[0].clone()
}

/// Returns an executor, and all that `pick` takes from its events.
fn observed<T: Send + 'static>(
    pick: impl Fn(Event) -> Option<T> + Send + Sync + 'static,
) -> (Executor, Arc<Mutex<Vec<T>>>) {
    let taken = Arc::<Mutex<Vec<T>>>::default();
    let sink = Arc::clone(&taken);
    let executor = Executor::new().with_events(move |event: Event| {
        sink.lock().expect("no panic").extend(pick(event));
    });
    (executor, taken)
}

fn denial(event: Event) -> Option<Denial> {
    if let Event::Denied { denial, .. } = event { Some(denial) } else { None }
}

fn complete(
    executor: &Executor,
    tool: &Tool,
    arguments: &Value,
    options: CallOptions,
) -> Completion {
    let call = ToolCall::with_value("1", tool.definition().name.as_str(), arguments);
    let (executor, tool) = (executor.clone(), tool.clone());
    wait(async move { executor.call(&tool, call, options).await })
}

/// Makes a call, and returns its result as JSON.
fn outcome(executor: &Executor, tool: &Tool, arguments: &Value, options: CallOptions) -> Value {
    serde_json::to_value(complete(executor, tool, arguments, options).result).expect("JSON")
}

/// Returns the options of a call on behalf of this tenant.
fn of(tenant: &str) -> CallOptions {
    CallOptions { context: context(&json!({ "tenant": tenant })).into(), ..CallOptions::default() }
}

/// Returns the message of a tool's own failure.
fn message(result: &Value) -> &str {
    result["error"]["message"].as_str().unwrap_or_else(|| panic!("{result}"))
}
