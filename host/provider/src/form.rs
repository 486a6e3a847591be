//! Detects the API that a response comes from, by its form alone.
//!
//! An embedder (the program that uses this library), or the command that makes calls from a file,
//! may have a response without knowing its sender. `Provider::detect` takes the whole response, a
//! message, a list of calls, or one call, and returns the one [`Provider`] whose form it has. A
//! form that no API or several APIs could have sent is an error, never a guess. The module also
//! recognises items in the form of another API within a list, because to skip such an item would
//! lose a call.

use serde_json::Value;

use super::{Provider, ProviderError};

impl Provider {
    /// Detects the API whose response [`calls`](Self::calls) is to read, from the members of a
    /// response, a message or a single call, and from the items of a list. A list of `{"id",
    /// "type", "function"}` counts as [`OpenAi`](Self::OpenAi)'s, although AG-UI has the same form.
    ///
    /// # Errors
    /// [`ProviderError::UnknownForm`] if no API matches, as for an empty list or a message without
    /// calls, and [`ProviderError::AmbiguousForm`] if several match.
    ///
    /// ```
    /// # use serde_json::json;
    /// # use toolcell_provider::Provider;
    /// let response = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "now", "input": {}}]});
    /// let provider = Provider::detect(&response)?;
    /// assert_eq!(provider, Provider::Anthropic);
    /// assert_eq!(provider.calls(&response)?.calls[0].name, "now");
    /// # Ok::<(), toolcell_provider::ProviderError>(())
    /// ```
    pub fn detect(document: &Value) -> Result<Self, ProviderError> {
        let fits = |provider: &Self| match document.as_array() {
            Some(items) => items.iter().any(|item| provider.wrote_item(item)),
            None => provider.matches_form(document) || provider.wrote_item(document),
        };
        let candidates: Vec<_> = Self::ALL.into_iter().filter(fits).collect();
        match candidates.as_slice() {
            [] => Err(ProviderError::UnknownForm),
            [only] => Ok(*only),
            _ => Err(ProviderError::AmbiguousForm { candidates }),
        }
    }

    /// Returns true if a response or a message has this API's form.
    fn matches_form(self, document: &Value) -> bool {
        let has_list = |name: &str| document.get(name).is_some_and(Value::is_array);
        let holds_list = |pointer: &str| document.pointer(pointer).is_some_and(Value::is_array);
        match self {
            Self::OpenAi => {
                has_list("choices") || has_list("tool_calls") || holds_list("/message/tool_calls")
            }
            Self::OpenAiResponses => has_list("output"),
            // OpenAI's messages may also have a list there, beside their calls.
            Self::Anthropic => {
                has_list("content") && !has_list("tool_calls") && !has_list("toolCalls")
            }
            Self::Gemini => {
                let has_parts = has_list("parts") || holds_list("/content/parts");
                has_list("candidates") || has_parts || document.get("promptFeedback").is_some()
            }
            Self::Mcp => document.get("jsonrpc").is_some(),
            Self::AgUi => has_list("toolCalls"),
        }
    }

    /// Returns true if an item that is not a call in this API's form is a call in another form, a
    /// piece of a stream, a whole answer, or not an object. To leave out such an item would lose a
    /// call.
    pub(super) fn is_foreign_item(self, item: &Value) -> bool {
        let has = |name: &&str| item.get(name).is_some();
        // Items that an API sends beside its calls have a `type` or members of their own.
        let is_bare =
            !has(&"type") && ["name", "arguments", "function", "input", "args"].iter().any(has);
        // These members would contain calls.
        let is_piece = ["candidates", "choices", "content_block", "delta", "item"].iter().any(has);
        let others = || Self::ALL.into_iter().filter(|other| *other != self);
        let is_call = || is_bare || is_piece || others().any(|other| other.wrote_item(item));
        !item.is_object() || (!self.wrote_item(item) && is_call())
    }

    /// Returns true if one item of a list has this API's form.
    fn wrote_item(self, item: &Value) -> bool {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::OpenAi => item.get("function").is_some_and(Value::is_object),
            Self::OpenAiResponses => kind == "function_call",
            Self::Anthropic => kind == "tool_use",
            Self::Gemini => item.get("functionCall").is_some(),
            Self::Mcp => {
                item.get("method").is_some()
                    || (item.get("name").is_some() && item.get("_meta").is_some())
            }
            // Event names are upper case: `TOOL_CALL_START`.
            Self::AgUi => {
                kind.contains('_')
                    && kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::rows;

    #[test]
    fn each_provider_form_is_detected() {
        for (document, expected) in rows::<(Value, &str)>("form", "each_provider_form_is_detected")
        {
            let found =
                Provider::detect(&document).unwrap_or_else(|error| panic!("{document}: {error}"));
            assert_eq!(found.name(), expected, "{document}");
        }
    }

    #[test]
    fn unknown_or_ambiguous_form_error_lists_the_forms() {
        for document in rows::<Value>("form", "unknown_forms") {
            let error = Provider::detect(&document).unwrap_err();
            assert_eq!(error, ProviderError::UnknownForm, "{document}");
            assert!(
                Provider::ALL.iter().all(|provider| error.hint().contains(provider.name())),
                "{error}"
            );
        }
        for (document, said) in rows::<(Value, &str)>("form", "ambiguous_forms") {
            let error = Provider::detect(&document).unwrap_err();
            assert!(error.to_string().ends_with(said) && error.hint().contains("agui"), "{error}");
        }
    }
}
