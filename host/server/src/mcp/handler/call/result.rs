//! Converts a call's completion (its result and usage) to a result of `tools/call` or an error.
//!
//! The module `call` calls [`of`] with the end of a call, and [`of_refused`] if the service refused
//! to make it. The failure of a call becomes a result with `isError`, which the model reads, except
//! for an answer to a question that cannot be accepted. A refusal becomes a result if waiting
//! helps, otherwise an error of the protocol. The metadata of a result have the typed reason, the
//! time after which to retry, and the usage (the resources that the call took). A value is
//! structured content if it is an object, and in the era without sessions (revision 2026-07-28)
//! whenever the tool has an output schema.
//!
//! Unknown tools, invisible tools and tools without code of their own have the same error.
//!
//! Source: docs/mcp.md, "Results".

use std::time::Duration;

use rmcp::model::{ContentBlock, ErrorCode, ErrorData};
use serde_json::json;
use toolcell::message::{Failure, Message};
use toolcell::outcome::{Halt, Output, Part};
use toolcell::{CallResult, Completion, Json, Outcome, Provider, Refusal};

use super::question;
use super::tool_result::{META_ERROR, META_RETRY, ToolResult, value_result};
use crate::artifacts::members::is_object;
use crate::tenants::refused::RequestError;

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
    let failed = |mut text: String, retry: Option<u64>| {
        // For a command that was ended, this is what it had printed.
        let failure = completion.failure();
        if let Some(data) = failure.as_ref().and_then(Failure::data) {
            text = format!("{text}\n{data}");
        }
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
            halted.add_meta("toolcell/halt", &json!({"reason": reason}));
            halted
        }
        CallResult::Outcome(Outcome::AskUser(question)) => {
            question::as_result(question, is_promised)
        }
        CallResult::Outcome(Outcome::Error(error)) => {
            failed(error.message.clone(), error.retry_after_ms)
        }
        CallResult::ToolError(error) => failed(error.to_string(), None),
        CallResult::Refusal(Refusal::Resume(fault)) => return Err(question::refusal(*fault)),
        CallResult::Refusal(refusal) => failed(
            format!("{refusal}\nhint: {}", refusal.hint()),
            refusal.retry_after().map(millis),
        ),
    };
    result.add_meta("toolcell/usage", &completion.usage);
    if !completion.attributes.is_empty() {
        result.add_meta("toolcell/attributes", &completion.attributes);
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
            result.add_meta("toolcell/message", message);
        }
        result
    };
    if output.end_turn {
        result.add_meta("toolcell/end_turn", &true);
    }
    result
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Converts a refusal of the service: to a result if waiting helps, otherwise to an error.
pub(super) fn of_refused(refused: &RequestError) -> Result<ToolResult, ErrorData> {
    let Some(wait) = refused.retry_after() else { return Err(error_of(refused)) };
    let wait = millis(wait);
    let text = format!("{refused}; try again in {wait} ms");
    let mut result = ToolResult::new(vec![ContentBlock::text(text)], true);
    let refusal = json!({"refusal": {"kind": refused.code(), "message": refused.to_string(), "retry_after_ms": wait}});
    result.add_meta(META_ERROR, &refusal);
    result.add_meta(META_RETRY, &wait);
    Ok(result)
}

/// Converts a refusal to an error of the protocol.
pub(in crate::mcp) fn error_of(refused: &RequestError) -> ErrorData {
    let code = match refused {
        RequestError::UnknownTool { .. }
        | RequestError::InvalidCursor
        | RequestError::InvalidAnswer(_) => ErrorCode::INVALID_PARAMS,
        RequestError::Draining => ErrorCode::INTERNAL_ERROR,
        RequestError::NoAccess
        | RequestError::Quota { .. }
        | RequestError::TooManyCalls { .. }
        | RequestError::Overloaded { .. }
        | RequestError::DuplicateRequest
        | RequestError::NotRunning
        | RequestError::Run(_) => ErrorCode::INVALID_REQUEST,
    };
    let mut data = json!({"code": refused.code(), "hint": refused.hint()});
    if let Some(wait) = refused.retry_after() {
        data["retry_after_ms"] = millis(wait).into();
    }
    ErrorData::new(code, refused.to_string(), Some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails without: the handler's data; the output of a command that was ended.
    #[test]
    fn model_reads_data_of_a_failure() {
        let usage = r#"{"fuel": 5, "wall_us": 1, "peak_memory": 1, "bytes_in": 2, "bytes_out": 0, "host_calls": 0, "log_bytes": 0, "log_bytes_dropped": 0}"#;
        for (outcome, expected) in [
            (r#"{"error": {"message": "full", "data": {"free": 0}}}"#, r#"full {"free": 0}"#),
            (
                r#"{"tool_error": {"reason": "timeout", "cause": {"kind": "fuel", "budget": 5, "used": 5, "stdout": "part"}, "message": ""}}"#,
                r#"the tool used up its 5 units of fuel {"stdout":"part"}"#,
            ),
        ] {
            let text =
                format!(r#"{{"id": "1", "tool": "t", "outcome": {outcome}, "usage": {usage}}}"#);
            let completion: Completion = serde_json::from_str(&text).unwrap();
            let result = serde_json::to_value(of(&completion, false, false).unwrap()).unwrap();
            let shown = result["content"][0]["text"].as_str().unwrap().replace('\n', " ");
            assert_eq!(shown, expected);
        }
    }
}
