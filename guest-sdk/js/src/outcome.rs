//! Converts the prelude's answers to the types of the contract.

#![allow(unsafe_code, reason = "the bytes of a typed array")]

use rquickjs::{Array, Object, Result, TypedArray, Value};
use serde::Deserialize;
use toolcell_guest::bindings::exports::toolcell::tool::tool as abi;

/// A definition as the prelude writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    description: String,
    parameters: Option<serde_json::Value>,
    output: Option<serde_json::Value>,
    attributes: serde_json::Map<String, serde_json::Value>,
    read_only: bool,
    idempotent: bool,
    destructive: bool,
    open_world: bool,
    validates: bool,
    hides: bool,
    max_execution_ms: Option<u64>,
    needs: Vec<Need>,
}

#[derive(Deserialize)]
struct Need {
    kind: String,
    pattern: String,
    reason: String,
}

/// Reads the definitions.
pub(crate) fn definitions(text: &str) -> std::result::Result<Vec<abi::Definition>, String> {
    let definitions: Vec<Definition> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(definitions.into_iter().map(definition).collect())
}

fn definition(from: Definition) -> abi::Definition {
    let mut hints = abi::Hints::empty();
    hints.set(abi::Hints::READ_ONLY, from.read_only);
    hints.set(abi::Hints::IDEMPOTENT, from.idempotent);
    hints.set(abi::Hints::DESTRUCTIVE, from.destructive);
    hints.set(abi::Hints::OPEN_WORLD, from.open_world);
    let mut checks = abi::Checks::empty();
    checks.set(abi::Checks::VALIDATE, from.validates);
    checks.set(abi::Checks::VISIBLE, from.hides);
    let needs = from.needs.into_iter();
    let needs: Vec<_> = needs
        .map(|need| abi::Need { kind: need.kind, pattern: need.pattern, reason: need.reason })
        .collect();
    // Without this, a host would derive the needs from the imports of the component, and those are
    // the imports of the runtime.
    let extensions =
        if needs.is_empty() { vec![("needs".to_owned(), "[]".to_owned())] } else { Vec::new() };
    abi::Definition {
        name: from.name,
        description: from.description,
        parameters: from.parameters.map(|schema| schema.to_string()),
        output: from.output.map(|schema| schema.to_string()),
        attributes: from
            .attributes
            .into_iter()
            .map(|(name, value)| (name, value.to_string()))
            .collect(),
        hints,
        checks,
        max_execution_ms: from.max_execution_ms,
        needs,
        extensions,
    }
}

/// Reads the answer to a call: a text that is the value of a success, a list with the JSON of one,
/// or an object. An object takes longer to read.
pub(crate) fn read(answer: Value<'_>) -> Result<abi::Outcome> {
    if let Some(text) = answer.as_string() {
        return Ok(success(serde_json::Value::String(text.to_string()?).to_string()));
    }
    if let Some(list) = answer.as_array() {
        return Ok(success(list.get(0)?));
    }
    let answer = Object::from_value(answer)?;
    Ok(match answer.get::<_, String>("kind")?.as_str() {
        "error" => abi::Outcome::Error(abi::Failure {
            message: answer.get("message")?,
            data: answer.get("data")?,
            retryable: answer.get("retryable")?,
            retry_after_ms: answer.get::<_, Option<f64>>("retryAfterMs")?.map(|ms| ms as u64),
        }),
        "ask_user" => abi::Outcome::AskUser(abi::Question {
            question: answer.get("question")?,
            options: answer.get("options")?,
            answer_schema: answer.get("answerSchema")?,
            state: answer.get("state")?,
        }),
        "halt" => abi::Outcome::Halt(abi::Halt {
            reason: answer.get("reason")?,
            result: answer.get("result")?,
        }),
        _ => abi::Outcome::Ok(abi::Output {
            value: answer.get("value")?,
            message: answer.get("message")?,
            parts: parts(answer.get("parts")?)?,
            end_turn: answer.get("endTurn")?,
            extensions: Vec::new(),
        }),
    })
}

fn success(value: String) -> abi::Outcome {
    let (message, parts, extensions) = (None, Vec::new(), Vec::new());
    abi::Outcome::Ok(abi::Output { value, message, parts, end_turn: false, extensions })
}

fn parts(from: Option<Array<'_>>) -> Result<Vec<abi::Part>> {
    let Some(from) = from else { return Ok(Vec::new()) };
    from.iter::<Object<'_>>().map(|part| part.and_then(|part| read_part(&part))).collect()
}

fn read_part(part: &Object<'_>) -> Result<abi::Part> {
    let media = || -> Result<abi::Media> {
        let data = bytes(part.get("data")?)?;
        Ok(abi::Media { mime_type: part.get("mimeType")?, data })
    };
    Ok(match part.get::<_, String>("type")?.as_str() {
        "image" => abi::Part::Image(media()?),
        "audio" => abi::Part::Audio(media()?),
        "resource_link" => abi::Part::ResourceLink(abi::Link {
            uri: part.get("uri")?,
            name: part.get("name")?,
            description: part.get("description")?,
            mime_type: part.get("mimeType")?,
        }),
        _ => abi::Part::Text(part.get("text")?),
    })
}

/// Copies the bytes of a `Uint8Array`.
pub(crate) fn bytes(from: Value<'_>) -> Result<Vec<u8>> {
    let bytes = TypedArray::<'_, u8>::from_value(from)?;
    // SAFETY: no JavaScript runs while the bytes are borrowed, so that none detaches or changes
    // them.
    Ok(unsafe { bytes.as_bytes() }.map(<[u8]>::to_vec).unwrap_or_default())
}
