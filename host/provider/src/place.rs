//! Reads values from a provider's response, and names the place where an expected one is missing.
//!
//! A [`Place`] is one JSON value of the response with the pointer to it. The formats walk from
//! place to place: an optional member, a required one, the items of a list. A missing or wrong
//! value is an error with its pointer and the expected form. [`Place::read`] reads one tool call,
//! so that an error in it makes only that call unreadable. A call that arrives without an id gets
//! one from its index ([`placed_id`]).

use serde_json::Value;
use toolcell_contract::call::ToolCall;
use toolcell_contract::json::or_empty_object;

use super::calls::{Read, UnreadableCall};
use super::{Converted, Provider, ProviderError};

/// One value of a response, and the path to it.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    provider: Provider,
    pub(super) value: &'a Value,
    pointer: String,
}

impl<'a> Place<'a> {
    pub(super) fn root(provider: Provider, value: &'a Value) -> Self {
        Self { provider, value, pointer: String::new() }
    }

    fn inside(&self, name: &str, value: &'a Value) -> Self {
        Self { provider: self.provider, value, pointer: format!("{}/{name}", self.pointer) }
    }

    /// Returns an optional member. `null` counts as missing, because several APIs write it for an
    /// empty list.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        self.value.get(name).filter(|value| !value.is_null()).map(|value| self.inside(name, value))
    }

    /// Returns a required member.
    pub(super) fn need(&self, name: &str, expected: &'static str) -> Converted<Self> {
        self.get(name).ok_or_else(|| self.inside(name, &Value::Null).malformed(expected))
    }

    /// Returns a required string that is not empty.
    pub(super) fn text(&self, name: &str, expected: &'static str) -> Converted<&'a str> {
        let place = self.need(name, expected)?;
        let text = place.value.as_str().filter(|text| !text.is_empty());
        text.ok_or_else(|| place.malformed(expected))
    }

    /// Returns the items of a list.
    pub(super) fn items(&self, expected: &'static str) -> Converted<Vec<Self>> {
        let items = self.value.as_array().ok_or_else(|| self.malformed(expected))?;
        let items = items.iter().enumerate();
        Ok(items.map(|(index, item)| self.inside(&index.to_string(), item)).collect())
    }

    /// Returns the calls among the items of a list. Other items are left out, unless one is a call
    /// in another form.
    pub(super) fn calls_among(
        items: Vec<Self>,
        is_call: impl Fn(&Self) -> bool,
    ) -> Converted<Vec<Self>> {
        let (calls, others): (Vec<_>, Vec<_>) = items.into_iter().partition(is_call);
        others.iter().try_for_each(Self::check_is_own)?;
        Ok(calls)
    }

    /// Fails for an item that is a call in another form.
    pub(super) fn check_is_own(&self) -> Converted<()> {
        const EXPECTED: &str =
            "an item of this form; it looks like a call in another form, or a piece of a stream";
        let is_foreign = self.provider.is_foreign_item(self.value);
        if is_foreign { Err(self.malformed(EXPECTED)) } else { Ok(()) }
    }

    /// Returns the one item of a list of alternatives, or `None` if the list is empty.
    pub(super) fn only(&self, expected: &'static str) -> Converted<Option<Self>> {
        let mut items = self.items(expected)?;
        let last = items.pop();
        if items.is_empty() { Ok(last) } else { Err(self.malformed(expected)) }
    }

    /// Returns true if a member is this string.
    pub(super) fn is_word(&self, name: &str, word: &str) -> bool {
        self.word(name, &[word]).is_some()
    }

    /// Returns a member that is one of these strings.
    pub(super) fn word(&self, name: &str, words: &[&str]) -> Option<&'a str> {
        self.value.get(name).and_then(Value::as_str).filter(|word| words.contains(word))
    }

    pub(super) fn malformed(&self, expected: &'static str) -> ProviderError {
        let (provider, pointer) = (self.provider, self.pointer.clone());
        ProviderError::Malformed { provider, pointer, expected }
    }

    /// Reads the call at this place of a list. Its name and arguments are at `function`.
    pub(super) fn read(
        &self,
        id: Converted<&str>,
        function: Converted<Self>,
        arguments: &str,
    ) -> Read {
        let name = function.as_ref().ok().and_then(|function| function.value.get("name")?.as_str());
        let known = id.as_ref().ok().copied();
        let call = id.and_then(|id| function?.call(id, arguments));
        call.map_err(|error| UnreadableCall::new(known, name, error))
    }

    /// Reads a function's name and arguments at this place as a call.
    pub(super) fn call(&self, id: &str, arguments: &str) -> Converted<ToolCall> {
        let name = self.text("name", "the function's name")?;
        let arguments = match self.get(arguments).map(|place| place.value) {
            None => "{}".to_owned(),
            Some(Value::String(text)) => or_empty_object(text.clone()),
            Some(value) => value.to_string(),
        };
        Ok(ToolCall::new(id, name, arguments))
    }
}

/// Prefix of the ids that are generated here.
const GENERATED_ID_PREFIX: &str = "toolcell-call-";

/// Returns the id of a call that arrived without one: its index among the calls of the response.
pub(super) fn placed_id(index: usize) -> String {
    format!("{GENERATED_ID_PREFIX}{index}")
}

/// Returns true if an id was generated here, so that the provider does not know it.
pub(super) fn is_placed(id: &str) -> bool {
    id.strip_prefix(GENERATED_ID_PREFIX).is_some_and(|index| index.parse::<usize>().is_ok())
}
