//! Tools to measure, and calls to them.

use anyhow::{Result, ensure};
use toolcell::component::{CodeTier, LoadOptions};
use toolcell::{CallOptions, Component, Engine, Executor, Grants, Tool, ToolCall};

/// Loads a tool and waits for its optimised code.
///
/// # Errors
/// Fails if the component does not load, or does not get optimised.
pub async fn optimised(engine: &Engine, bytes: &[u8], name: &str) -> Result<Tool> {
    optimised_with(engine, bytes, name, Grants::default()).await
}

/// Like [`optimised`], with these grants.
///
/// # Errors
/// As [`optimised`].
pub async fn optimised_with(
    engine: &Engine,
    bytes: &[u8],
    name: &str,
    grants: Grants,
) -> Result<Tool> {
    let options = LoadOptions { grants, ..LoadOptions::default() };
    let component = Component::load_with(engine, bytes.to_vec(), options).await?;
    ensure!(component.optimised().await == CodeTier::Optimised, "{name} is not optimised");
    Ok(component.tool(name)?.clone())
}

/// Returns a call of the tool.
#[must_use]
pub fn to(tool: &Tool, arguments: &str) -> ToolCall {
    ToolCall::new("call-1", tool.definition().name.as_str(), arguments)
}

/// Makes a call, which must answer with a value.
///
/// # Panics
/// If it ends in another way.
pub async fn must_answer(executor: &Executor, tool: &Tool, arguments: &str) {
    let answered = executor.call(tool, to(tool, arguments), CallOptions::default()).await;
    assert!(answered.result.value().is_some(), "{answered:?}");
}
