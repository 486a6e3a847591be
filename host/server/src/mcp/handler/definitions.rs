//! Converts a tool's definition to its form in the MCP method `tools/list`.
//!
//! The handler of requests (`mcp/handler.rs`) calls [`listed`] for each tool of a page; it returns
//! the SDK's `Tool`. In the era without sessions (revision 2026-07-28) the output schema is passed
//! on whatever its type is; in a session a structured result must be an object. A definition that
//! cannot be converted is logged and left out of the list; the others stay.
//! [`has_header_parameters`] tells if a client sends arguments of the tool also as HTTP headers.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::Value;
use toolcell::{Definition, Provider};

/// Returns the tool as it is listed in this era. In the session era a result is structured only if
/// it is an object.
pub(super) fn listed(definition: &Definition, stateless: bool) -> Option<Tool> {
    let written = Provider::Mcp.definitions([definition]).ok().map(|converted| converted.value);
    let tool = written.and_then(|mut tools| tools.get_mut(0).map(Value::take));
    let tool = tool.and_then(|tool| serde_json::from_value::<Tool>(tool).ok());
    if tool.is_none() {
        tracing::warn!(
            tool = definition.name,
            "the definition cannot be written for MCP; the tool is not listed"
        );
    }
    let mut tool = tool?;
    if stateless && let Some(Value::Object(output)) = &definition.output {
        tool.output_schema = Some(Arc::new(output.clone()));
    }
    Some(tool)
}

/// Returns true if a client sends one of these parameters also as a header (`x-mcp-header`).
pub(super) fn has_header_parameters(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().any(|(_, property)| {
        property.get("x-mcp-header").is_some() || has_header_parameters(property)
    })
}
