//! What a model asked for in one response: the calls that can be made, and those that cannot be
//! read.
//!
//! Invariants: what is wrong with one call of a list touches no other.

use serde_json::json;

use super::{Provider, ProviderError};
use crate::call::ToolCall;
use crate::message::Message;
use crate::refusal::shorten;

/// Characters of a provider's reason that an error repeats.
const REASON: usize = 60;

/// The calls of one response.
///
/// ```
/// # use serde_json::json;
/// # use toolcell::{Message, Provider};
/// let asked = Provider::OpenAi.calls(&json!([
///     {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
///     {"id": "call_2", "type": "function", "function": {"arguments": "{}"}},
/// ]))?;
/// assert_eq!((asked.calls.len(), asked.unreadable.len()), (1, 1));
/// // The messages of a run of `asked.calls`, for instance.
/// let messages = asked.answered(vec![Message::new("call_1", "now", "noon")]);
/// assert_eq!(messages[1].tool_call_id, "call_2");
/// assert!(messages[1].is_error);
/// # Ok::<(), toolcell::ProviderError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Calls {
    /// The calls that can be made, in their order.
    pub calls: Vec<ToolCall>,
    /// The others, in their order. The model waits for an answer to these too:
    /// [`UnreadableCall::message`].
    pub unreadable: Vec<UnreadableCall>,
}

/// A call that cannot be read: unfinished, not as the provider sends one, or the last one of an
/// answer that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableCall {
    /// Its place among all calls of the response, from 0.
    pub index: usize,
    /// Its id, where that can be read.
    pub id: Option<String>,
    /// The tool's name, where that can be read.
    pub name: Option<String>,
    /// What is wrong with it.
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

    /// The calls of an answer that its provider calls cut, if there is a reason: the last one is
    /// not made. Its arguments may be a part of what the model meant, or `{}`, also where they are
    /// valid JSON.
    pub(super) fn cut(mut self, provider: Provider, reason: Option<&str>) -> Self {
        let Some(reason) = reason else { return self };
        let index = self.calls.len() + self.unreadable.len();
        let is_read = self.unreadable.last().is_none_or(|last| last.index + 1 < index);
        if let Some(ToolCall { id, name, .. }) = self.calls.pop_if(|_| is_read) {
            let error = ProviderError::Cut { provider, reason: shorten(reason, REASON) };
            self.unreadable.push(UnreadableCall {
                index: index - 1,
                id: Some(id),
                name: Some(name),
                error,
            });
        }
        self
    }

    /// The messages that answer [`calls`](Self::calls), one each and in their order, with those of
    /// the unreadable calls in their places.
    #[must_use]
    pub fn answered(&self, mut messages: Vec<Message>) -> Vec<Message> {
        // A call without an id has no message: the places after it are one less.
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

    /// The failure as the model gets it: `{"error": …}`, of a call that failed. `None` for a call
    /// without an id, which cannot be answered.
    #[must_use]
    pub fn message(&self) -> Option<Message> {
        let content = json!({"error": self.error.to_string()}).to_string();
        Some(
            Message::new(self.id.clone()?, self.name.clone().unwrap_or_default(), content).failed(),
        )
    }
}
