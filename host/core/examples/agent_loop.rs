//! An agent loop: makes the calls of a model, and sends it the results, until it makes no further
//! call.
//!
//! `cargo run --example agent_loop`, from the repository's root after `cargo xtask demo`. The model
//! is a script here. A real model is a request over HTTP with the same JSON.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::bail;
use serde_json::{Value, json};
use toolcell::step::Step;
use toolcell::{Component, Engine, Provider, Registry, Stepper, Turn};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::new();
    let engine = Engine::builder().build()?;
    for name in ["calculator", "hello"] {
        let component = Component::load(&engine, toolcell_examples::component(name)?).await?;
        registry.register_all(component.tools().iter().cloned())?;
    }
    let stepper = Stepper::new(registry.clone());
    let mut turn = Turn::default();

    // If this format cannot express a part of a definition, `notes` says so, beside the `value`.
    let tools = Provider::OpenAi.definitions(&registry.list())?.value;
    let question = "I am Ada. What do two dinners at 40 each cost, plus 10 %?";
    let mut messages = vec![json!({"role": "user", "content": question})];
    let mut done = false;
    while !done {
        let request = json!({"messages": messages, "tools": tools});
        let response = respond(turn.iteration, &request);
        let said = &response["choices"][0]["message"];
        messages.push(said.clone());

        let asked = Provider::OpenAi.calls(&response)?;
        done = asked.calls.is_empty() && asked.unreadable.is_empty();
        // The tools of one answer run side by side.
        let steps = stepper.step_all(asked.calls.clone(), &mut turn).await;
        let mut results = Vec::new();
        for (call, step) in asked.calls.iter().zip(steps) {
            // A mistake of the model, such as an unknown tool, becomes an entry that the model can
            // read. After too many mistakes in a row, the step ends the turn.
            let Step::History { entry, .. } = step else { bail!("the turn is over") };
            let message = entry.message();
            println!("model: {} {}\n tool: {}", call.name, call.arguments, message.content);
            results.push(message);
            // A tool can halt the loop as well, or ask a person: see the example `question`.
            done |= entry.halted.is_some();
        }
        // Calls that could not be parsed get an answer too, so that the model can try again.
        if let Value::Array(results) = Provider::OpenAi.results(&asked.answered(results)).value {
            messages.extend(results);
        }
        turn.iteration += 1;
        if let Some(text) = said["content"].as_str() {
            println!("model: {text}");
        }
    }
    Ok(())
}

/// A scripted model: calls an unknown tool, then two tools that exist, and ends with a text. It
/// ignores the request.
fn respond(iteration: u32, _request: &Value) -> Value {
    let call = |id: &str, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    let sum = r#"{"expression": "2 * 40 * 1.1"}"#;
    let greeting = call("call-3", "greet", r#"{"name": "Ada"}"#);
    let message = match iteration {
        0 => json!({"tool_calls": [call("call-1", "calculate", sum)]}),
        1 => json!({"tool_calls": [call("call-2", "calculator", sum), greeting]}),
        _ => json!({"content": "Hello, Ada! The dinners cost 88."}),
    };
    json!({"choices": [{"index": 0, "message": message}]})
}
