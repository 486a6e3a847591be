//! Retries and a circuit breaker for a tool whose service fails: a call has several attempts, and
//! after several failed calls the tool is paused.
//!
//! `cargo run --example retry`, from the repository's root.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::outcome::HandlerError;
use toolcell::tool::{Breaker, Invocation, Retry};
use toolcell::{Definition, Outcome, Registry, RunOptions, Runner, Tool, ToolCall};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let stock = stock()?
        // A call has up to three attempts. After two failed calls the breaker opens for 30 seconds.
        .with_retry(Retry::exponential_with_jitter(Duration::from_millis(2)).with_attempts(3))
        .with_breaker(Breaker::default().with_failures(2));
    let registry = Registry::new();
    registry.register(stock.clone())?;

    let runner = Runner::new(registry);
    for article in ["chair", "lamp", "lamp", "chair"] {
        let call = ToolCall::with_value("call-1", "stock", &json!({"article": article}));
        for message in runner.run([call], RunOptions::default()).await?.messages {
            println!("{article}: {}", message.content);
        }
    }

    // A clone of a tool has the same statistics and the same breaker.
    let seen = stock.statistics();
    println!("{} calls, {} good, {} not", seen.count, seen.success, seen.failure);
    if let Some(state) = stock.breaker_state() {
        println!("breaker: {state:?}");
    }
    Ok(())
}

/// Asks a warehouse service that fails often: it answers for chairs at the second attempt, and
/// never for lamps.
fn stock() -> Result<Tool, toolcell::Error> {
    let definition = Definition::new("stock", "How many pieces of an article are in stock.")?;
    // Shared by all calls. The handler's captures are cloned for each call.
    let warehouse = Arc::new(HashMap::from([("chair", 12)]));
    let handler = async move |arguments: Value, invocation: Arc<Invocation>| -> Outcome {
        let again = invocation.context.attempt.is_some_and(|attempt| attempt > 1);
        let pieces = arguments["article"].as_str().and_then(|article| warehouse.get(article));
        if let Some(pieces) = pieces.filter(|_| again) {
            return Outcome::ok(json!({"pieces": pieces}));
        }
        // A retryable error: the call is repeated. If every attempt fails, the breaker counts a
        // failure.
        let pause = Duration::from_millis(1);
        Outcome::Error(HandlerError::new("the warehouse hung up").retryable_after(pause))
    };
    Tool::native(definition, handler)
}
