//! A tool that implements `wit/toolcell.wit` directly, without an SDK.

mod bindings;

use bindings::exports::toolcell::tool::tool::{
    Checks, Context, Definition, Failure, Guest, Hints, Outcome, Output, ToolCall,
};

/// The component, whose functions `bindings` exports.
pub(crate) struct Component;

impl Guest for Component {
    fn describe() -> Vec<Definition> {
        let parameters = r#"{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}"#;
        vec![Definition {
            name: "reverse".into(),
            description: "Writes a text backwards, character by character.".into(),
            parameters: Some(parameters.into()),
            output: Some(r#"{"type": "string"}"#.into()),
            attributes: Vec::new(),
            hints: Hints::READ_ONLY | Hints::IDEMPOTENT,
            checks: Checks::empty(),
            max_execution_ms: None,
            needs: Vec::new(),
            extensions: Vec::new(),
        }]
    }

    fn execute(call: ToolCall, _: Context) -> Outcome {
        match reversed(&call.arguments) {
            Ok(text) => Outcome::Ok(Output {
                value: serde_json::Value::from(text).to_string(),
                message: None,
                parts: Vec::new(),
                end_turn: false,
                extensions: Vec::new(),
            }),
            Err(message) => Outcome::Error(Failure {
                message,
                data: None,
                retryable: None,
                retry_after_ms: None,
            }),
        }
    }

    // The definition declares neither check, so the host never calls these two functions.
    fn validate(_: ToolCall) -> Vec<String> {
        Vec::new()
    }

    fn visible(_: String, _: Context) -> bool {
        true
    }
}

/// Returns the argument `text` with its characters in reverse order. The host has already checked
/// the arguments against the schema.
fn reversed(arguments: &str) -> Result<String, String> {
    let arguments: serde_json::Value =
        serde_json::from_str(arguments).map_err(|error| error.to_string())?;
    let text = arguments["text"].as_str().ok_or("`text` is missing")?;
    Ok(text.chars().rev().collect())
}
