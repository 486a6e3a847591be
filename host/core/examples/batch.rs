//! A batch: all calls of one answer of a model. Each call gets one message, however it ended, and
//! one policy decides about failures.
//!
//! `cargo run --example batch [COMPONENT …]`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::Context as _;
use serde_json::json;
use toolcell::message::Failure;
use toolcell::run::Verdict;
use toolcell::{
    CallOptions, Component, Engine, Limits, OnToolError, Registry, RunOptions, Runner, ToolCall,
};

const COMPONENTS: [&str; 3] = [
    "example-tools/target/wasm32-wasip2/release/calculator.wasm",
    "example-tools/target/wasm32-wasip2/release/desk.wasm",
    "example-tools/target/wasm32-wasip2/release/jq.wasm",
];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::new();
    let engine = Engine::builder().build()?;
    for path in paths() {
        let component = Component::load(&engine, std::fs::read(&path).context(path)?).await?;
        registry.register_all(component.tools().iter().cloned())?;
    }

    let calls = [
        ToolCall::new("good", "calculator", r#"{"expression": "6 * 7"}"#),
        ToolCall::new("fails", "calculator", r#"{"expression": "6 *"}"#),
        ToolCall::new(
            "asks",
            "book_table",
            r#"{"name": "Ada", "party_size": 2, "date": "2026-03-03"}"#,
        ),
        ToolCall::new(
            "hostile",
            "jq",
            r#"{"filter": "def forever: forever; forever", "input": null}"#,
        ),
    ];

    // Called once for each failure, while the other calls still run.
    let policy = OnToolError::decide(|call, failure| match failure {
        // The tool's own error, or the host's refusal of the arguments: the model can correct it.
        Failure::Error(_) | Failure::Refusal(_) => Verdict::Continue(
            json!({"error": failure.to_string(), "advice": "correct the call and repeat it"})
                .into(),
        ),
        // The tool could not answer: a person should look before the loop goes on.
        Failure::ToolError(error) => {
            println!("policy: `{}` is stopped ({})", call.id, error.reason());
            Verdict::Halt
        }
    });
    let limits = Limits { fuel: 100_000_000, ..Limits::unlimited() };
    let call = CallOptions { limits, ..CallOptions::default() };
    let options = RunOptions { call, on_tool_error: policy, ..RunOptions::default() };

    // An error here means that no call was made, for example because a tool is unknown. A failed
    // call is not an error: it has a message.
    let outcome = Runner::new(registry).run(calls, options).await?;
    for message in &outcome.messages {
        println!("{:>8} {:<10} {}", message.tool_call_id, message.name, message.content);
    }
    // Two calls halt the loop. The halting call that is earliest in the list decides what `halted`
    // says. The other calls end as usual.
    if let Some(halted) = &outcome.halted {
        println!("halted: {}", serde_json::to_string_pretty(halted)?);
    }
    Ok(())
}

/// Returns the paths of the components on the command line, or those of the example tools.
fn paths() -> Vec<String> {
    let given: Vec<_> = std::env::args().skip(1).collect();
    if given.is_empty() { COMPONENTS.map(Into::into).into() } else { given }
}
