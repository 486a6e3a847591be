//! Tools to be timed, and calls to them.

use anyhow::{Result, ensure};
use toolcell::{Code, Component, Engine, Grants, Missing, Tool, ToolCall};

/// A tool that runs on optimised code.
///
/// # Errors
/// When it does not load, or is not optimised in the end.
pub async fn optimised(engine: &Engine, bytes: &[u8], name: &str) -> Result<Tool> {
    optimised_with(engine, bytes, name, Grants::default()).await
}

/// The same with these grants.
///
/// # Errors
/// As [`optimised`].
pub async fn optimised_with(
    engine: &Engine,
    bytes: &[u8],
    name: &str,
    grants: Grants,
) -> Result<Tool> {
    let component = Component::load_with(engine, bytes.to_vec(), grants, Missing::Refused).await?;
    ensure!(component.optimised().await == Code::Optimised, "{name} is not optimised");
    Ok(component.tool(name)?.clone())
}

/// A call of it.
#[must_use]
pub fn to(tool: &Tool, arguments: &str) -> ToolCall {
    ToolCall::new("call-1", tool.definition().name.as_str(), arguments)
}
