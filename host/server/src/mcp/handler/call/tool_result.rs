//! The result of `tools/call` as it is written: content, structured value, metadata.
//!
//! The modules `result` and `question` build a [`ToolResult`], and its method `answer` writes it as
//! JSON for the era of the request (protocol revisions with sessions, or without). Values and
//! metadata stay JSON text, because a tree takes many times their memory. A structured value is
//! also written as text for the model; if that text is longer than 64 KiB, only its first 4 KiB are
//! written. Names of metadata begin with `toolcell/`.
//!
//! Source: docs/mcp.md, "Results".

use std::collections::BTreeMap;

use rmcp::model::{ContentBlock, ErrorData, ResultType};
use serde::Serialize;
use toolcell::Json;

use crate::mcp::request::{self, Answer};

/// The failure: `{"error" | "tool_error" | "refusal" | "question": …}`, as in `docs/json.md`.
pub(super) const META_ERROR: &str = "toolcell/error";
/// Milliseconds after which the same call can succeed.
pub(super) const META_RETRY: &str = "toolcell/retry_after_ms";

/// Bytes. The text of a longer structured value is cut to its head.
const MAX_TWIN: usize = 64 << 10;
/// Bytes of that head.
const HEAD: usize = 4 << 10;

/// A result of `tools/call`. Values and metadata are JSON text, because a tree takes up to a
/// hundred times its memory.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<ResultType>,
    pub(super) content: Vec<ContentBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) structured_content: Option<Json>,
    pub(super) is_error: bool,
    /// True if the text of the value is only its head.
    #[serde(skip)]
    is_cut: bool,
    #[serde(rename = "_meta", skip_serializing_if = "BTreeMap::is_empty")]
    meta: BTreeMap<&'static str, Answer>,
}

impl ToolResult {
    pub(in crate::mcp::handler) fn new(content: Vec<ContentBlock>, is_error: bool) -> Self {
        Self { content, is_error, ..Self::default() }
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

/// Returns a value as text for the model, and as structured content for programs. The text of a
/// large structured value is its head.
pub(super) fn value_result(
    value: &Json,
    parts: Vec<ContentBlock>,
    is_structured: bool,
) -> ToolResult {
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
