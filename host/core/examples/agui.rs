//! AG-UI: prints the events of a run as a user interface reads them, one JSON object a line.
//!
//! `cargo run --example agui`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::provider::{agui_events, agui_run_end};
use toolcell::tool::Invocation;
use toolcell::{
    Component, Definition, Engine, Outcome, Question, Registry, RunOptions, Runner, Tool, ToolCall,
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let engine = Engine::builder().build()?;
    let component = Component::load(&engine, toolcell_examples::component("calculator")?).await?;
    let registry = Registry::new();
    registry.register_all(component.tools().iter().cloned())?;
    registry.register(delivery()?)?;

    // The first and the last event are the agent's: between them it can make several runs of calls.
    let (thread_id, run_id) = ("thread-1", "run-1");
    send(&json!({"type": "RUN_STARTED", "threadId": thread_id, "runId": run_id}));

    let calls = [
        ToolCall::new("sum", "calculator", r#"{"expression": "6 * 7"}"#),
        ToolCall::new("date", "delivery", r#"{"order": 7}"#),
    ];
    // One call after the other, so that their events do not mix.
    let options = RunOptions { max_concurrency: Some(1), ..RunOptions::default() };
    let mut events = Runner::new(registry).stream(calls, options);
    while let Some(event) = events.next().await {
        agui_events(&event).iter().for_each(send);
    }

    // The question of `delivery` is an interrupt: the user interface shows it, and starts the next
    // run with the answer.
    send(&agui_run_end(thread_id, run_id, events.halted()));
    Ok(())
}

/// Sends an event to the user interface. A server writes it to a stream of server-sent events.
fn send(event: &Value) {
    println!("{event}");
}

/// A tool that reports its progress, and asks a person for a day.
fn delivery() -> Result<Tool, toolcell::Error> {
    let definition = Definition::new("delivery", "Arranges the delivery of an order.")?;
    let handler = async |_arguments: Value, invocation: Arc<Invocation>| -> Outcome {
        invocation.progress(1, Some(2), Some("two days are free".into()));
        let days = json!(["Monday", "Friday"]);
        Outcome::AskUser(Question::new("Which day?").with_options(days))
    };
    Tool::native(definition, handler)
}
