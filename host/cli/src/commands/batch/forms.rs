//! Reads the calls of a model provider: a whole response, a message, or the list of its calls.
//!
//! The reader of a batch's calls passes a parsed JSON document and the form, if the user gave one;
//! otherwise the form is detected. [`read`] returns the calls and those that cannot be read, or a
//! sentence about the fault. A single item of a provider's list is accepted, and so are several MCP
//! requests in a list. A message of text alone has no calls.
//!
//! Not here: the formats themselves, in `toolcell::Provider`, and toolcell's own form, in
//! `calls.rs`.

use serde_json::Value;
use toolcell::Provider;
use toolcell::provider::{Calls, ProviderError};

/// Returns the calls of a document in this form, or in the form that is detected.
///
/// # Errors
/// A sentence about the fault. If the form cannot be detected, it lists the supported forms.
pub(super) fn read(document: &Value, form: Option<Provider>) -> Result<Calls, String> {
    if form.is_none() && is_silent(document) {
        return Ok(Calls::default());
    }
    let provider =
        form.map_or_else(|| Provider::detect(document), Ok).map_err(|error| error_text(&error))?;
    match (provider, document) {
        // The protocol has no batches, but a file may hold several of its requests.
        (Provider::Mcp, Value::Array(requests)) => requests_of_mcp(requests),
        _ => {
            let read =
                provider.calls(document).or_else(|error| alone(provider, document).ok_or(error));
            read.map_err(|error| error_text(&error))
        }
    }
}

/// Returns the calls of a document that is one item of a provider's list. An AG-UI event is
/// excluded: it is only a part of a call.
fn alone(provider: Provider, document: &Value) -> Option<Calls> {
    let is_item = provider != Provider::AgUi && Provider::detect(document) == Ok(provider);
    let read = provider.calls(&Value::Array(vec![document.clone()])).ok().filter(|_| is_item)?;
    (!read.calls.is_empty()).then_some(read)
}

/// Returns true if the document is a message of text alone. It has no calls, whichever API sent it.
fn is_silent(document: &Value) -> bool {
    let is_text =
        document.get("content").is_none_or(|content| content.is_string() || content.is_null());
    document.get("role").is_some_and(Value::is_string)
        && is_text
        && Provider::detect(document).is_err()
}

/// Returns the name of the form of a text that has calls. If each line is a document, the first
/// line decides.
pub(super) fn provider_name(text: &str) -> Option<&'static str> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let document = Provider::document(first).or_else(|_| Provider::document(text)).ok()?;
    let provider = Provider::detect(&document).ok()?;
    let Calls { calls, unreadable, .. } = read(&document, Some(provider)).ok()?;
    (!calls.is_empty() || !unreadable.is_empty()).then(|| provider.name())
}

/// Returns true if the text is one document whose form is detected and is not OpenAI's, which is
/// read as our own.
pub(super) fn is_known(text: &str) -> bool {
    Provider::document(text).is_ok_and(|document| {
        Provider::detect(&document).is_ok_and(|provider| provider != Provider::OpenAi)
    })
}

/// Returns a description of the documents of a form.
pub(super) fn members(provider: Provider) -> &'static str {
    match provider {
        Provider::OpenAi => "a response with `choices`, a message with `tool_calls`, or that list",
        Provider::OpenAiResponses => "a response with `output`, or that list",
        Provider::Anthropic => "a message with `content`, or that list",
        Provider::Gemini => "a response with `candidates`, a content with `parts`, or that list",
        Provider::Mcp => {
            "a request with `id`, `method` (`tools/call`) and `params`, or a list of requests"
        }
        Provider::AgUi => "a message with `toolCalls`, or a list of events",
    }
}

/// Returns the calls of several MCP requests; other requests among them are skipped.
fn requests_of_mcp(requests: &[Value]) -> Result<Calls, String> {
    const EXPECTED: &str = "a request (`id`, `method`, `params`)";
    let mut all = Calls::default();
    for (index, request) in requests.iter().enumerate() {
        let within = |pointer: &str, expected| {
            error_text(&ProviderError::Malformed {
                provider: Provider::Mcp,
                pointer: format!("/{index}{pointer}"),
                expected,
            })
        };
        match request.get("method") {
            // `params` alone have no id, so several of them could not be told apart.
            None => return Err(within("", EXPECTED)),
            Some(method) if method == "tools/call" => {
                let read = Provider::Mcp.calls(request).map_err(|error| {
                    if let ProviderError::Malformed { pointer, expected, .. } = &error {
                        within(pointer, expected)
                    } else {
                        error_text(&error)
                    }
                });
                all.calls.extend(read?.calls);
            }
            Some(_) => {}
        }
    }
    Ok(all)
}

fn error_text(error: &ProviderError) -> String {
    if matches!(error, ProviderError::UnknownForm | ProviderError::AmbiguousForm { .. }) {
        let forms = Provider::ALL.map(Provider::name).join(", ");
        format!("{error}; the forms are: calls (our own), {forms}")
    } else {
        error.to_string()
    }
}
