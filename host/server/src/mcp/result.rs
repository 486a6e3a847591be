//! How a call ended, as a result of `tools/call` or as an error.
//!
//! In: a [`Completion`], or [`Refused`]. Out: the SDK's result or error.
//! Invariants: what the model can mend is a result with `isError`; a tool that does not exist, one that is not visible, and one
//! without a handler have the same error; metadata has the typed reason, the limits and the receipt.
//! Source: docs/mcp.md, "Results".

use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, MetaObject};
use serde_json::{Map, Value, json};
use toolcell::{CallResult, Completion, Halt, HandlerError, Json, Message, Outcome, Output, Part, Provider, Refusal};

use crate::refused::Refused;

/// The receipt.
const META_USAGE: &str = "toolcell/usage";
/// Why the call failed: `{"error" | "tool_error" | "refusal" | "question": …}`, as in `docs/json.md`.
pub(super) const META_ERROR: &str = "toolcell/error";
/// The reason of a halt.
const META_HALT: &str = "toolcell/halt";
/// A question that the client cannot ask.
pub(super) const META_QUESTION: &str = "toolcell/question";
/// A line for a person beside the value.
const META_MESSAGE: &str = "toolcell/message";
/// Whether the model's turn can end.
const META_END_TURN: &str = "toolcell/end_turn";
/// The attributes of the tool.
const META_ATTRIBUTES: &str = "toolcell/attributes";
/// When the same call can succeed, in milliseconds.
const META_RETRY: &str = "toolcell/retry_after_ms";

/// The result of a call. `is_promised`: the tool promises the form of its values; in the era without sessions they are
/// structured then, whatever they are.
///
/// # Errors
/// For an answer to a question that cannot be accepted.
pub(super) fn of(completion: &Completion, is_promised: bool, stateless: bool) -> Result<CallToolResult, ErrorData> {
    let is_structured = is_promised && stateless;
    let mut meta = Map::from_iter([(META_USAGE.to_owned(), json!(completion.usage))]);
    if !completion.attributes.is_empty() {
        meta.insert(META_ATTRIBUTES.into(), json!(completion.attributes));
    }
    let mut failed = |text: String, retry: Option<u64>| {
        meta.insert(META_ERROR.into(), json!(completion.result));
        if let Some(retry) = retry {
            meta.insert(META_RETRY.into(), retry.into());
        }
        CallToolResult::error(vec![ContentBlock::text(text)])
    };
    let mut result = match &completion.result {
        CallResult::Outcome(Outcome::Ok(output)) => success(output, is_structured, &mut meta),
        CallResult::Outcome(Outcome::Halt(Halt { reason, result, .. })) => {
            meta.insert(META_HALT.into(), json!({"reason": reason}));
            let mut halted = valued(result, Vec::new(), is_structured);
            if is_promised {
                // The schema is of the tool's values, and clients accept nothing else in a result without an error.
                (halted.structured_content, halted.is_error) = (None, Some(true));
            }
            halted
        }
        CallResult::Outcome(Outcome::AskUser(question)) => super::question::told(question, is_promised),
        CallResult::Outcome(Outcome::Error(error)) => failed(error_text(error), error.retry_after_ms),
        CallResult::ToolError(error) => failed(error.to_string(), None),
        CallResult::Refusal(Refusal::Resume(fault)) => {
            return Err(super::question::refusal(*fault));
        }
        CallResult::Refusal(refusal) => {
            let retry = refusal.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            failed(format!("{refusal}\nhint: {}", refusal.hint()), retry)
        }
    };
    meta.extend(result.meta.take().unwrap_or_default().0);
    result.meta = Some(MetaObject(meta));
    Ok(result)
}

fn success(output: &Output, is_structured: bool, meta: &mut Map<String, Value>) -> CallToolResult {
    let parts = blocks(&output.parts);
    if output.end_turn {
        meta.insert(META_END_TURN.into(), true.into());
    }
    if output.value.as_str() != "null" {
        if let Some(message) = &output.message {
            meta.insert(META_MESSAGE.into(), message.as_str().into());
        }
        return valued(&output.value, parts, is_structured);
    }
    // Without a value the model gets the message, or the parts alone.
    let message = output.message.iter().filter(|message| !message.is_empty()).map(ContentBlock::text);
    let mut content: Vec<_> = message.chain(parts).collect();
    if content.is_empty() {
        content.push(ContentBlock::text("null"));
    }
    let mut result = CallToolResult::success(content);
    if is_structured {
        result.structured_content = Some(Value::Null);
    }
    result
}

/// A value as text for the model, and as it is for programs.
fn valued(value: &Json, parts: Vec<ContentBlock>, is_structured: bool) -> CallToolResult {
    let tree = value.to_value();
    let text = tree.as_str().map_or_else(|| value.as_str().to_owned(), str::to_owned);
    let mut result = CallToolResult::success(std::iter::once(ContentBlock::text(text)).chain(parts).collect());
    if is_structured || tree.is_object() {
        result.structured_content = Some(tree);
    }
    result
}

fn error_text(error: &HandlerError) -> String {
    match &error.data {
        Some(data) => format!("{}\n{data}", error.message),
        None => error.message.clone(),
    }
}

/// The parts of a result in the protocol's form.
fn blocks(parts: &[Part]) -> Vec<ContentBlock> {
    if parts.is_empty() {
        return Vec::new();
    }
    let mut message = Message::new("", "", "");
    message.parts = parts.to_vec();
    let mut result = Provider::Mcp.results(&[message]).value;
    let read = serde_json::from_value(result[0]["content"].take());
    read.unwrap_or_else(|error| vec![ContentBlock::text(format!("[{} parts cannot be shown: {error}]", parts.len()))])
}

/// What a request that the service refused is answered with: a result if waiting helps, otherwise an error.
pub(super) fn of_refused(refused: &Refused) -> Result<CallToolResult, ErrorData> {
    let Some(wait) = refused.retry_after() else { return Err(error_of(refused)) };
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let mut result = CallToolResult::error(vec![ContentBlock::text(format!("{refused}; try again in {wait} ms"))]);
    let refusal = json!({"refusal": {"kind": refused.code(), "message": refused.to_string(), "retry_after_ms": wait}});
    let meta = Map::from_iter([(META_ERROR.to_owned(), refusal), (META_RETRY.to_owned(), wait.into())]);
    result.meta = Some(MetaObject(meta));
    Ok(result)
}

/// The refusal as an error of the protocol.
pub(super) fn error_of(refused: &Refused) -> ErrorData {
    let code = match refused {
        Refused::UnknownTool { .. } | Refused::BadCursor | Refused::InvalidAnswer(_) => ErrorCode::INVALID_PARAMS,
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
