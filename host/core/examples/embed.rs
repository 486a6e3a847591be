//! The smallest embedding: an engine, a component, a call, and its completion.
//!
//! `cargo run --example embed [COMPONENT]`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::Context as _;
use toolcell::{CallOptions, CallResult, Component, Engine, Executor, Limits, ToolCall};

const CALCULATOR: &str = "example-tools/target/wasm32-wasip2/release/calculator.wasm";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).unwrap_or(CALCULATOR.into());

    // One engine a process. A component is validated, compiled, and queried for its tools.
    let engine = Engine::builder().build()?;
    let component = Component::load(&engine, std::fs::read(&path).context(path)?).await?;
    let tool = component.tool("calculator")?;

    // Limits for every call. The arguments can come from a model unchecked: the host validates
    // them.
    let limits = Limits { timeout: Duration::from_secs(2), ..Limits::default() };
    let executor = Executor::new().with_limits(limits);
    let call = ToolCall::new("call-1", "calculator", r#"{"expression": "6 * 7"}"#);

    // No `?` here: a call that fails is an answer too, and has its usage.
    let completion = executor.call(tool, call, CallOptions::default()).await;
    match &completion.result {
        CallResult::Outcome(outcome) => {
            println!("the tool says: {}", serde_json::to_string(outcome)?)
        }
        CallResult::ToolError(error) => println!("the tool could not answer: {error}"),
        CallResult::Refusal(refusal) => println!("the host says no: {refusal}"),
    }
    println!("the usage: {}", serde_json::to_string(&completion.usage)?);
    Ok(())
}
