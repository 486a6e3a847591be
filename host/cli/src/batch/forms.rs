//! Calls that a model's provider sent: a whole response, a message, or the list of its calls.
//!
//! In: a document, and its form where that was typed. Out: its calls, and those that cannot be read.
//! Not here: the forms (`toolcell::Provider`), and our own list (`calls`).

use serde_json::Value;
use toolcell::{Calls, Provider, ProviderError};

/// The calls of a document, which has this form or tells it by itself.
///
/// # Errors
/// What is wrong, in words; where the form cannot be told, with the forms that there are.
pub(super) fn read(document: &Value, form: Option<Provider>) -> Result<Calls, String> {
    let provider = form.map_or_else(|| Provider::detect(document), Ok).map_err(|error| told(&error))?;
    match (provider, document) {
        // The protocol has no batches, but a file may hold several of its requests.
        (Provider::Mcp, Value::Array(requests)) => requests_of_mcp(requests),
        _ => provider.calls(document).map_err(|error| told(&error)),
    }
}

/// The name of the form of a text that has calls: of its first line, where each is a document.
pub(super) fn of(text: &str) -> Option<&'static str> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let document: Value = serde_json::from_str(first).or_else(|_| serde_json::from_str(text)).ok()?;
    let provider = Provider::detect(&document).ok()?;
    let Calls { calls, unreadable, .. } = read(&document, Some(provider)).ok()?;
    (!calls.is_empty() || !unreadable.is_empty()).then(|| provider.name())
}

/// The calls of several requests, among which may be others.
fn requests_of_mcp(requests: &[Value]) -> Result<Calls, String> {
    let mut all = Calls::default();
    for (index, request) in requests.iter().enumerate() {
        if request.get("method").is_none_or(|method| method == "tools/call") {
            let read = Provider::Mcp.calls(request);
            all.calls.extend(read.map_err(|error| format!("request {}: {}", index + 1, told(&error)))?.calls);
        }
    }
    Ok(all)
}

fn told(error: &ProviderError) -> String {
    if matches!(error, ProviderError::UnknownForm | ProviderError::AmbiguousForm { .. }) {
        let forms = Provider::ALL.map(Provider::name).join(", ");
        format!("{error}; the forms are: calls (our own), {forms}")
    } else {
        error.to_string()
    }
}
