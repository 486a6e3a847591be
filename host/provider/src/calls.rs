//! The tool calls of one response of a model: those that can be made, and those that cannot be
//! read.
//!
//! `Provider::calls` returns [`Calls`]. The embedder (the program that uses this library) makes the
//! readable ones. An [`UnreadableCall`], for example one without a name, or the last one of an
//! answer that the provider cut, must be answered too, because the model waits for it:
//! [`Calls::answered`] puts its error message at the right position among the results. An error in
//! one call of a list does not affect the others.

use serde_json::json;
use toolcell_contract::call::ToolCall;
use toolcell_contract::message::Message;
use toolcell_contract::names::shorten;

use super::{Provider, ProviderError};

/// Longest quote of a provider's reason in an error, in characters.
const REASON: usize = 60;

/// The calls of one response.
///
/// ```
/// # use serde_json::json;
/// # use toolcell_provider::Provider;
/// # use toolcell_contract::message::Message;
/// let asked = Provider::OpenAi.calls(&json!([
///     {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
///     {"id": "call_2", "type": "function", "function": {"arguments": "{}"}},
/// ]))?;
/// assert_eq!((asked.calls.len(), asked.unreadable.len()), (1, 1));
/// // The messages of a run of `asked.calls`, for instance.
/// let messages = asked.answered(vec![Message::new("call_1", "now", "noon")]);
/// assert_eq!(messages[1].tool_call_id, "call_2");
/// assert!(messages[1].is_error);
/// # Ok::<(), toolcell_provider::ProviderError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Calls {
    /// The calls that can be made, in order.
    pub calls: Vec<ToolCall>,
    /// The unreadable calls, in order. The model waits for an answer to these too:
    /// [`UnreadableCall::message`].
    pub unreadable: Vec<UnreadableCall>,
}

/// A call that cannot be read: it is unfinished, does not have the provider's form, or is the last
/// one of an answer that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableCall {
    /// Its index among all calls of the response, from 0.
    pub index: usize,
    /// Its id, if that can be read.
    pub id: Option<String>,
    /// The tool's name, if that can be read.
    pub name: Option<String>,
    /// The reason why it cannot be read.
    pub error: ProviderError,
}

/// One call of a list.
pub(super) type Read = Result<ToolCall, Box<UnreadableCall>>;

impl Calls {
    pub(super) fn of(read: impl IntoIterator<Item = Read>) -> Self {
        let mut calls = Self::default();
        for (index, read) in read.into_iter().enumerate() {
            match read {
                Ok(call) => calls.calls.push(call),
                Err(unreadable) => calls.unreadable.push(UnreadableCall { index, ..*unreadable }),
            }
        }
        calls
    }

    /// Makes the last call unreadable if the provider gave a reason for a cut. The arguments of
    /// that call may be incomplete, or `{}`, even if they are valid JSON.
    pub(super) fn cut(mut self, provider: Provider, reason: Option<&str>) -> Self {
        let Some(reason) = reason else { return self };
        let index = self.calls.len() + self.unreadable.len();
        let is_read = self.unreadable.last().is_none_or(|last| last.index + 1 < index);
        if let Some(ToolCall { id, name, .. }) = self.calls.pop_if(|_| is_read) {
            let error = ProviderError::Truncated { provider, reason: shorten(reason, REASON) };
            self.unreadable.push(UnreadableCall {
                index: index - 1,
                id: Some(id),
                name: Some(name),
                error,
            });
        }
        self
    }

    /// Returns the messages that answer the response: `messages`, one for each of
    /// [`calls`](Self::calls) in order, and the answers of the unreadable calls at their positions.
    #[must_use]
    pub fn answered(&self, mut messages: Vec<Message>) -> Vec<Message> {
        // A call without an id has no message, so later indices shift by one.
        let mut silent = 0;
        for unreadable in &self.unreadable {
            match unreadable.message() {
                Some(message) => {
                    messages.insert((unreadable.index - silent).min(messages.len()), message)
                }
                None => silent += 1,
            }
        }
        messages
    }
}

impl UnreadableCall {
    pub(super) fn new(id: Option<&str>, name: Option<&str>, error: ProviderError) -> Box<Self> {
        Box::new(Self { index: 0, id: id.map(str::to_owned), name: name.map(str::to_owned), error })
    }

    /// Returns the answer to the model: `{"error": …}` of a failed call. `None` for a call without
    /// an id, which cannot be answered.
    #[must_use]
    pub fn message(&self) -> Option<Message> {
        let content = json!({"error": self.error.to_string()}).to_string();
        Some(
            Message::new(self.id.clone()?, self.name.clone().unwrap_or_default(), content).failed(),
        )
    }
}
