//! A closure and a component in one registry. The closure is visible to some callers only, and
//! checks its arguments beyond their schema.
//!
//! `cargo run --example mixed`, from the repository's root after `cargo xtask demo`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::{Value, json};
use toolcell::{
    CallContext, CallOptions, Component, Definition, Engine, Executor, Json, Registry, RunOptions,
    Runner, Tool, ToolCall,
};

/// The number of pieces of each article in the warehouse.
const STOCK: [(&str, u32); 2] = [("chair", 12), ("lamp", 3)];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::new();
    registry.register(stock()?)?;
    let engine = Engine::builder().build()?;
    let component = Component::load(&engine, toolcell_examples::component("calculator")?).await?;
    registry.register_all(component.tools().iter().cloned())?;
    for role in ["customer", "staff"] {
        let visible = registry.visible_tools(&Executor::new(), &context(role)).await;
        let names: Vec<_> = visible.iter().map(|tool| tool.definition().name.as_str()).collect();
        println!("{role} sees {}", names.join(", "));
    }

    let runner = Runner::new(registry);
    for (role, tool, arguments) in [
        ("customer", "stock", json!({"article": "chair"})),
        ("staff", "stock", json!({"article": "sofa"})),
        ("staff", "stock", json!({"article": "chair"})),
        ("staff", "calculator", json!({"expression": "12 * 49.90"})),
    ] {
        let call = CallOptions { context: context(role).into(), ..CallOptions::default() };
        let options = RunOptions { call, ..RunOptions::default() };
        let call = ToolCall::with_value("call-1", tool, &arguments);
        for message in runner.run([call], options).await?.messages {
            println!("{role}: {tool} {arguments} -> {}", message.content);
        }
    }
    Ok(())
}

fn stock() -> Result<Tool, toolcell::Error> {
    let definition = Definition::new("stock", "How many pieces of an article are in stock.")?
        .with_parameters(json!({
            "type": "object",
            "properties": {"article": {"type": "string"}},
            "required": ["article"],
            "additionalProperties": false,
        }));
    let tool = Tool::native(definition, async |arguments: Value| -> Value {
        json!({"pieces": pieces(&arguments)})
    })?;
    // A role that does not see the tool cannot call it either.
    let tool = tool.with_visibility(|_arguments, context| role(context) == "staff");
    // A check that a schema cannot express. The handler gets only arguments that pass it.
    Ok(tool.with_validator(|arguments| match pieces(arguments) {
        Some(_) => Vec::new(),
        None => vec!["there is no such article; there are: chair, lamp".into()],
    }))
}

fn pieces(arguments: &Value) -> Option<u32> {
    let article = arguments["article"].as_str()?;
    STOCK.iter().find(|(name, _)| *name == article).map(|(_, pieces)| *pieces)
}

fn context(role: &str) -> CallContext {
    let mut context = CallContext::default();
    context.metadata = Some(json!({"role": role}).into());
    context
}

fn role(context: &CallContext) -> String {
    let metadata = context.metadata.as_ref().map(Json::to_value).unwrap_or_default();
    metadata["role"].as_str().unwrap_or_default().to_owned()
}
