//! A closure and a component in one registry: the tool's visibility, the validation of its
//! arguments, and retries and a circuit breaker for a failing service.
//!
//! `cargo run --example mixed [COMPONENT …]`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use toolcell::outcome::HandlerError;
use toolcell::tool::{Breaker, Invocation, Retry};
use toolcell::{
    CallContext, Component, Definition, Engine, Outcome, Registry, RunOptions, Runner, Tool,
    ToolCall,
};

const CALCULATOR: &str = "example-tools/target/wasm32-wasip2/release/calculator.wasm";
const ARTICLES: [&str; 2] = ["chair", "lamp"];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::new();
    registry.register(stock()?)?;
    let engine = Engine::builder().build()?;
    for path in paths() {
        let component = Component::load(&engine, std::fs::read(&path).context(path)?).await?;
        registry.register_all(component.tools().iter().cloned())?;
    }

    for role in ["customer", "staff"] {
        let visible = registry.visible_tools(&context(role)).await;
        let names: Vec<_> = visible.iter().map(|tool| tool.definition().name.as_str()).collect();
        println!("{role} sees {}", names.join(", "));
    }

    let runner = Runner::new(registry.clone());
    let stock = |article: &str| ("stock", json!({"article": article}));
    let asked = [
        ("customer", stock("chair")),
        ("staff", stock("sofa")),
        ("staff", stock("chair")),
        ("staff", stock("lamp")),
        ("staff", stock("lamp")),
        ("staff", stock("chair")),
        ("staff", ("calculator", json!({"expression": "12 * 49.90"}))),
    ];
    for (role, (tool, arguments)) in asked {
        let options = RunOptions::default().with_context(context(role));
        let outcome =
            runner.run([ToolCall::with_value("call-1", tool, &arguments)], options).await?;
        for message in outcome.messages {
            println!("{role}: {tool} {arguments} -> {}", message.content);
        }
    }

    for tool in registry.toolbox().tools() {
        let name = &tool.definition().name;
        let seen = registry.statistics(name).unwrap_or_default();
        let breaker =
            tool.breaker_state().map(|state| format!("; breaker {state:?}")).unwrap_or_default();
        println!(
            "{name}: {} calls, {} good, {} not{breaker}",
            seen.count, seen.success, seen.failure
        );
    }
    Ok(())
}

/// The number of pieces of each article in the warehouse.
type Stock = HashMap<&'static str, u32>;

/// Asks a warehouse service that fails often: it answers for chairs at the second attempt, and
/// never for lamps.
fn stock() -> Result<Tool, toolcell::Error> {
    let definition = Definition::new("stock", "How many pieces of an article are in stock.")?
        .with_parameters(json!({
            "type": "object",
            "properties": {"article": {"type": "string"}},
            "required": ["article"],
            "additionalProperties": false,
        }));
    // Shared by all calls. The handler's captures are cloned for each call.
    let warehouse = Arc::new(Stock::from([("chair", 12)]));
    let handler = async move |arguments: Value, invocation: Arc<Invocation>| -> Outcome {
        let again = invocation.context.attempt.is_some_and(|attempt| attempt > 1);
        let pieces = arguments["article"].as_str().and_then(|article| warehouse.get(article));
        if let Some(pieces) = pieces.filter(|_| again) {
            return Outcome::ok(json!({"pieces": pieces}));
        }
        // A retryable error: the call is repeated. If every attempt fails, the breaker counts a
        // failure.
        Outcome::Error(
            HandlerError::new("the warehouse hung up").retryable_after(Duration::from_millis(1)),
        )
    };
    let tool = Tool::native(definition, handler)?
        // A role that does not see the tool cannot call it either.
        .with_visibility(|_arguments, context| role(context) == "staff")
        // A check that a schema cannot express. The handler gets only arguments that pass it.
        .with_validator(|arguments| match arguments["article"].as_str() {
            Some(article) if ARTICLES.contains(&article) => Vec::new(),
            _ => vec![format!("there is no such article; there are: {}", ARTICLES.join(", "))],
        })
        // A call has up to three attempts. After two failed calls the breaker opens for 30 seconds.
        .with_retry(Retry::exponential_with_jitter(Duration::from_millis(2)).with_attempts(3))
        .with_breaker(Breaker::default().with_failures(2));
    Ok(tool)
}

fn context(role: &str) -> CallContext {
    let mut context = CallContext::default();
    context.tenant = Some("acme".into());
    context.metadata = Some(json!({"role": role}).into());
    context
}

fn role(context: &CallContext) -> String {
    let metadata =
        context.metadata.as_ref().map(|metadata| metadata.to_value()).unwrap_or_default();
    metadata["role"].as_str().unwrap_or_default().to_owned()
}

/// Returns the paths of the components on the command line, or that of the example tool.
fn paths() -> Vec<String> {
    let given: Vec<_> = std::env::args().skip(1).collect();
    if given.is_empty() { vec![CALCULATOR.into()] } else { given }
}
