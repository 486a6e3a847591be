//! Tests of the server: its HTTP API, MCP, and the search among many tools.
#![expect(clippy::unwrap_used, reason = "a test")]

mod http;
mod many;
mod mcp;
mod recall;
mod setup;
mod trees;

use serde_json::Value;

/// Returns the names of the tools on a page of their list.
fn names(page: &Value) -> Vec<&str> {
    let tools = page["tools"].as_array().expect("a list");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}
