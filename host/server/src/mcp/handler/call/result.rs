//! Converts a completion to a result of `tools/call` or an error.
//!
//! In: a [`Completion`], or [`Refused`]. Out: the SDK's result or error.
//! Invariants: a failure that the model can correct is a result with `isError`. Unknown tools,
//! invisible tools and tools without a handler have the same error. Metadata have the typed reason,
//! the limits and the receipt.
//! Source: docs/mcp.md, "Results".

use std::collections::BTreeMap;

use rmcp::model::{ContentBlock, ErrorCode, ErrorData, ResultType};
use serde::Serialize;
use serde_json::json;
use toolcell::message::Message;
use toolcell::outcome::{Halt, HandlerError, Output, Part};
use toolcell::{CallResult, Completion, Json, Outcome, Provider, Refusal};

use crate::artifacts::members::is_object;
use crate::mcp::request::{self, Answer};
use crate::tenants::refused::Refused;

/// The receipt.
const META_USAGE: &str = "toolcell/usage";
/// The failure: `{"error" | "tool_error" | "refusal" | "question": …}`, as in `docs/json.md`.
pub(super) const META_ERROR: &str = "toolcell/error";
/// The reason of a halt.
const META_HALT: &str = "toolcell/halt";
/// A question to a client to which none can be sent.
pub(super) const META_QUESTION: &str = "toolcell/question";
/// A line for a person beside the value.
const META_MESSAGE: &str = "toolcell/message";
/// True if the model's turn can end.
const META_END_TURN: &str = "toolcell/end_turn";
/// The attributes of the tool.
const META_ATTRIBUTES: &str = "toolcell/attributes";
/// Milliseconds after which the same call can succeed.
const META_RETRY: &str = "toolcell/retry_after_ms";

/// Bytes. The text of a longer structured value is cut to its head.
const MAX_TWIN: usize = 64 << 10;
/// Bytes of that head.
const HEAD: usize = 4 << 10;

/// A result of `tools/call`. Values and metadata are JSON text, because a tree takes up to a
/// hundred times its memory.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<ResultType>,
    pub(super) content: Vec<ContentBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Json>,
    is_error: bool,
    /// True if the text of the value is only its head.
    #[serde(skip)]
    is_cut: bool,
    #[serde(rename = "_meta", skip_serializing_if = "BTreeMap::is_empty")]
    meta: BTreeMap<&'static str, Answer>,
}

impl ToolResult {
    pub(in crate::mcp::handler) fn new(content: Vec<ContentBlock>, is_error: bool) -> Self {
        Self {
            result_type: None,
            content,
            structured_content: None,
            is_error,
            is_cut: false,
            meta: BTreeMap::new(),
        }
    }

    /// Returns the value, if its text is only its head.
    pub(super) fn cut_value(&self) -> Option<&Json> {
        self.structured_content.as_ref().filter(|_| self.is_cut)
    }

    /// Adds a member of the metadata.
    pub(super) fn add_meta(&mut self, name: &'static str, value: &impl Serialize) {
        // Serializing these values does not fail.
        if let Ok(value) = request::to_raw_json(value) {
            self.meta.insert(name, value);
        }
    }

    /// Serializes the result for the era. Only the era without sessions names the type of a result.
    pub(in crate::mcp::handler) fn answer(mut self, is_modern: bool) -> Result<Answer, ErrorData> {
        self.result_type = is_modern.then_some(ResultType::COMPLETE);
        request::to_raw_json(&self)
    }
}

/// Converts a completion to a result. `is_promised`: the tool has an output schema. In the era
/// without sessions its values are then structured, whatever their type.
///
/// # Errors
/// An answer to a question that cannot be accepted.
pub(super) fn of(
    completion: &Completion,
    is_promised: bool,
    is_modern: bool,
) -> Result<ToolResult, ErrorData> {
    let is_structured = is_promised && is_modern;
    let failed = |text: String, retry: Option<u64>| {
        let mut result = ToolResult::new(vec![ContentBlock::text(text)], true);
        result.add_meta(META_ERROR, &completion.result);
        if let Some(retry) = retry {
            result.add_meta(META_RETRY, &retry);
        }
        result
    };
    let mut result = match &completion.result {
        CallResult::Outcome(Outcome::Ok(output)) => success(output, is_structured),
        CallResult::Outcome(Outcome::Halt(Halt { reason, result, .. })) => {
            // The schema describes the tool's values. In a result that is not an error, clients
            // refuse structured content that breaks it.
            let mut halted =
                value_result(result, Vec::new(), !is_promised && is_object(result.as_str()));
            halted.is_error = is_promised;
            halted.add_meta(META_HALT, &json!({"reason": reason}));
            halted
        }
        CallResult::Outcome(Outcome::AskUser(question)) => {
            super::question::as_result(question, is_promised)
        }
        CallResult::Outcome(Outcome::Error(error)) => {
            failed(error_text(error), error.retry_after_ms)
        }
        CallResult::ToolError(error) => failed(error.to_string(), None),
        CallResult::Refusal(Refusal::Resume(fault)) => {
            return Err(super::question::refusal(*fault));
        }
        CallResult::Refusal(refusal) => {
            let retry = refusal
                .retry_after()
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            failed(format!("{refusal}\nhint: {}", refusal.hint()), retry)
        }
    };
    result.add_meta(META_USAGE, &completion.usage);
    if !completion.attributes.is_empty() {
        result.add_meta(META_ATTRIBUTES, &completion.attributes);
    }
    Ok(result)
}

fn success(output: &Output, is_structured: bool) -> ToolResult {
    let parts = blocks(&output.parts);
    let mut result = if output.value.as_str() == "null" {
        // Without a value the model gets the message, or only the parts.
        let message =
            output.message.iter().filter(|message| !message.is_empty()).map(ContentBlock::text);
        let mut content: Vec<_> = message.chain(parts).collect();
        if content.is_empty() {
            content.push(ContentBlock::text("null"));
        }
        let mut result = ToolResult::new(content, false);
        result.structured_content = is_structured.then(Json::null);
        result
    } else {
        let mut result =
            value_result(&output.value, parts, is_structured || is_object(output.value.as_str()));
        if let Some(message) = &output.message {
            result.add_meta(META_MESSAGE, message);
        }
        result
    };
    if output.end_turn {
        result.add_meta(META_END_TURN, &true);
    }
    result
}

/// Returns a value as text for the model, and as structured content for programs. The text of a
/// large structured value is its head.
fn value_result(value: &Json, parts: Vec<ContentBlock>, is_structured: bool) -> ToolResult {
    let text = serde_json::from_str::<String>(value.as_str()).ok();
    let mut text = text.unwrap_or_else(|| value.as_str().to_owned());
    let is_cut = is_structured && text.len() > MAX_TWIN;
    if is_cut {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(HEAD));
        text = format!(
            "{text}\n… (the first {HEAD} of {bytes} bytes; `structuredContent` has all of the value)"
        );
    }
    let content = std::iter::once(ContentBlock::text(text)).chain(parts).collect();
    ToolResult {
        structured_content: is_structured.then(|| value.clone()),
        is_cut,
        ..ToolResult::new(content, false)
    }
}

fn error_text(error: &HandlerError) -> String {
    match &error.data {
        Some(data) => format!("{}\n{data}", error.message),
        None => error.message.clone(),
    }
}

/// Converts the parts of a result to the protocol's form.
fn blocks(parts: &[Part]) -> Vec<ContentBlock> {
    if parts.is_empty() {
        return Vec::new();
    }
    let mut message = Message::new("", "", "");
    message.parts = parts.to_vec();
    let mut result = Provider::Mcp.results(&[message]).value;
    let read = serde_json::from_value(result[0]["content"].take());
    read.unwrap_or_else(|error| {
        vec![ContentBlock::text(format!("[{} parts cannot be shown: {error}]", parts.len()))]
    })
}

/// Converts a refusal of the service: to a result if waiting helps, otherwise to an error.
pub(super) fn of_refused(refused: &Refused) -> Result<ToolResult, ErrorData> {
    let Some(wait) = refused.retry_after() else { return Err(error_of(refused)) };
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let mut result = ToolResult::new(
        vec![ContentBlock::text(format!("{refused}; try again in {wait} ms"))],
        true,
    );
    let refusal = json!({"refusal": {"kind": refused.code(), "message": refused.to_string(), "retry_after_ms": wait}});
    result.add_meta(META_ERROR, &refusal);
    result.add_meta(META_RETRY, &wait);
    Ok(result)
}

/// Converts a refusal to an error of the protocol.
pub(in crate::mcp) fn error_of(refused: &Refused) -> ErrorData {
    let code = match refused {
        Refused::UnknownTool { .. } | Refused::BadCursor | Refused::InvalidAnswer(_) => {
            ErrorCode::INVALID_PARAMS
        }
        Refused::Draining => ErrorCode::INTERNAL_ERROR,
        Refused::NoAccess
        | Refused::Quota { .. }
        | Refused::TooManyCalls { .. }
        | Refused::Overloaded { .. }
        | Refused::DuplicateRequest
        | Refused::NotRunning
        | Refused::Run(_) => ErrorCode::INVALID_REQUEST,
    };
    let mut data = json!({"code": refused.code(), "hint": refused.hint()});
    if let Some(wait) = refused.retry_after() {
        data["retry_after_ms"] = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).into();
    }
    ErrorData::new(code, refused.to_string(), Some(data))
}
