//! The format of each model provider, both ways: definitions and results out, calls in.
//!
//! One module for each API, with functions that `Provider` calls. Each writes a tool's definition
//! and the messages of a run as JSON of that API, and reads the calls from a response. They open no
//! connections.

pub(super) mod agui;
pub(super) mod anthropic;
pub(super) mod gemini;
pub(super) mod mcp;
pub(super) mod openai;

use serde_json::Value;
use toolcell_contract::definition::Definition;

/// Sets a member of an object, if there is a value for it.
fn set(object: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object[name] = value.into();
    }
}

/// Returns the description of a tool, unless it is empty.
fn description(definition: &Definition) -> Option<&str> {
    Some(definition.description.as_str()).filter(|text| !text.is_empty())
}
