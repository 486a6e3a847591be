//! Calls out of fragments: a start, pieces of arguments, an end.
//!
//! In: fragments of a provider's stream, several calls interleaved, told apart by their ids or by
//! their places in the model's answer. Out: a [`ToolCall`] each, or an [`AssembleError`].
//! Invariants: what is wrong with one call touches no other; all open calls together hold a bounded
//! number of bytes.
//! Not here: whether the arguments fit the tool (`executor`).
//! Source: docs/contract.md, section 4.

mod error;

use std::collections::BTreeMap;

use crate::call::ToolCall;
use crate::defence::{Defence, stands};
use crate::json::{check, or_empty_object};
use crate::limits::DEFAULT_ARGUMENTS;

pub use error::AssembleError;

/// What an open call costs beside its own text, in bytes: so that many empty ones are no way around
/// the bound.
const OPEN_CALL: usize = 64;

/// A piece of a call, as a provider streams it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fragment {
    /// A call begins.
    Start {
        /// Its id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of its arguments.
    Delta {
        /// The call.
        id: String,
        /// The next piece of JSON text, cut anywhere.
        text: String,
    },
    /// Its arguments are complete.
    End {
        /// The call.
        id: String,
    },
    /// A piece of the call at this place of the model's answer: what OpenAI streams as an item of
    /// `delta.tool_calls`. Id and name may come in different pieces.
    Indexed {
        /// The place.
        index: u64,
        /// Its id, if this piece has it.
        id: Option<String>,
        /// The tool's name, or the next piece of it, if this piece has one.
        name: Option<String>,
        /// The next piece of JSON text, cut anywhere.
        text: Option<String>,
    },
    /// The arguments of the call at this place are complete.
    EndIndexed {
        /// The place.
        index: u64,
    },
}

/// Turns a stream of fragments into calls.
///
/// A call that cannot become one any more is *broken*: the fragment that broke it says why, further
/// pieces of it are ignored, and its end says why again, so that a caller who looks at ends alone
/// misses nothing. A call that has ended is forgotten: its id, or its place, may start anew.
///
/// If the stream ends each call, use [`end`](Self::end). If only the whole answer has an end, use
/// [`end_all`](Self::end_all) when the provider reports it, and [`end_cut`](Self::end_cut) when it
/// reports that it cut the answer (`finish_reason: length`, `stop_reason: max_tokens`). Anthropic
/// ends each call's block also when it cuts the answer, and says so afterwards, in `message_delta`:
/// end its calls there too. [`open`](Self::open) lists the open calls. [`finish`](Self::finish)
/// returns an error for each call that is still open.
///
/// ```
/// # use toolcell::{Assembler, ToolCall};
/// let mut assembler = Assembler::new();
/// assembler.start("call-1", "calculator")?;
/// assembler.delta("call-1", r#"{"expression": "#)?;
/// assembler.delta("call-1", r#""6 * 7"}"#)?;
/// assert_eq!(assembler.end("call-1")?, ToolCall::new("call-1", "calculator", r#"{"expression": "6 * 7"}"#));
/// assert!(assembler.finish().is_empty());
/// # Ok::<(), toolcell::AssembleError>(())
/// ```
///
/// The chunks of OpenAI's chat completions:
///
/// ```
/// # use serde_json::json;
/// # use toolcell::{Assembler, ToolCall};
/// let mut assembler = Assembler::new();
/// for delta in [
///     json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "now", "arguments": ""}}),
///     json!({"index": 0, "function": {"arguments": "{\"zone\":"}}),
///     json!({"index": 0, "function": {"arguments": " \"UTC\"}"}}),
/// ] {
///     let (index, function) = (delta["index"].as_u64().unwrap_or(0), &delta["function"]);
///     assembler.indexed(index, delta["id"].as_str(), function["name"].as_str(), function["arguments"].as_str())?;
/// }
/// // `finish_reason` came: the calls are complete.
/// let calls: Result<Vec<_>, _> = assembler.end_all().into_iter().collect();
/// assert_eq!(calls?, [ToolCall::new("call_1", "now", r#"{"zone": "UTC"}"#)]);
/// # Ok::<(), toolcell::AssembleError>(())
/// ```
#[derive(Debug)]
pub struct Assembler {
    calls: BTreeMap<Key, Open>,
    /// The call that the last piece belonged to.
    last: Option<Key>,
    /// Bytes that `calls` holds, counted by [`cost`].
    held: usize,
    limit: u64,
}

/// What tells a call's pieces from those of others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Id(String),
    Index(u64),
}

/// A call between its start and its end.
#[derive(Debug, Default)]
struct Open {
    /// Empty until it comes.
    id: String,
    /// Likewise.
    name: String,
    arguments: String,
    broken: Option<AssembleError>,
}

/// A call whose end has not come yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall<'a> {
    /// Its place in the model's answer, if the stream identifies calls by their place.
    pub index: Option<u64>,
    /// Its id, or an empty text if it has not come yet.
    pub id: &'a str,
    /// The tool's name, or an empty text if it has not come yet or the call is broken.
    pub name: &'a str,
    /// The arguments so far, as JSON text. Empty if the call is broken.
    pub arguments: &'a str,
    /// Why the call is broken, if it is.
    pub broken: Option<&'a AssembleError>,
}

impl Default for Assembler {
    fn default() -> Self {
        Self::new()
    }
}

impl Assembler {
    /// An assembler that holds [`DEFAULT_ARGUMENTS`] bytes at most.
    #[must_use]
    pub fn new() -> Self {
        Self { calls: BTreeMap::new(), last: None, held: 0, limit: DEFAULT_ARGUMENTS }
    }

    /// Sets another limit.
    ///
    /// # Units
    /// Bytes of all open calls together: ids, names, arguments, and a little for each.
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Takes a fragment. The end of a call gives the call.
    ///
    /// # Errors
    /// As [`start`](Self::start), [`delta`](Self::delta) and [`end`](Self::end).
    pub fn push(&mut self, fragment: Fragment) -> Result<Option<ToolCall>, AssembleError> {
        match fragment {
            Fragment::Start { id, name } => self.start(&id, &name).map(|()| None),
            Fragment::Delta { id, text } => self.delta(&id, &text).map(|()| None),
            Fragment::End { id } => self.end(&id).map(Some),
            Fragment::Indexed { index, id, name, text } => {
                self.indexed(index, id.as_deref(), name.as_deref(), text.as_deref()).map(|()| None)
            }
            Fragment::EndIndexed { index } => self.end_indexed(index).map(Some),
        }
    }

    /// A call begins.
    ///
    /// # Errors
    /// [`AssembleError::StartedTwice`] when a call of this id is open, which breaks that call: the
    /// arguments of the two could not be told apart. [`AssembleError::TooLarge`]; the call is not
    /// open then.
    pub fn start(&mut self, id: &str, name: &str) -> Result<(), AssembleError> {
        let key = Key::Id(id.into());
        if let Some(open) = self.calls.get_mut(&key) {
            self.held -= open.text();
            return Err(open.broken_by(AssembleError::StartedTwice { id: id.into() }));
        }
        self.open_call(key, Open { id: id.into(), name: name.into(), ..Open::default() })
    }

    /// More of a call's arguments.
    ///
    /// # Errors
    /// [`AssembleError::NotOpen`]; [`AssembleError::TooLarge`], which breaks this call and gives
    /// its bytes back.
    pub fn delta(&mut self, id: &str, text: &str) -> Result<(), AssembleError> {
        let key = Key::Id(id.into());
        let Some(open) = self.calls.get_mut(&key) else {
            return Err(AssembleError::NotOpen { id: id.into() });
        };
        self.last = Some(key);
        let added = open.add(&mut self.held, self.limit, ["", "", text]);
        added.map_err(|()| {
            open.broken_by(AssembleError::TooLarge { id: id.into(), limit: self.limit })
        })
    }

    /// A piece of the call at this place of the model's answer, which opens it if it is the first.
    /// An empty id or name is none. A name that comes again is the same one, or its next piece.
    ///
    /// # Errors
    /// [`AssembleError::StartedTwice`] when the place has another id already, which breaks the
    /// call. [`AssembleError::TooLarge`], which breaks it and gives its bytes back; with the first
    /// piece the call is not open then.
    pub fn indexed(
        &mut self,
        index: u64,
        id: Option<&str>,
        name: Option<&str>,
        text: Option<&str>,
    ) -> Result<(), AssembleError> {
        let key = Key::Index(index);
        let (id, text) = (id.unwrap_or_default(), text.unwrap_or_default());
        if !self.calls.contains_key(&key) {
            self.open_call(key.clone(), Open { id: id.into(), ..Open::default() })?;
        }
        let Some(open) = self.calls.get_mut(&key) else { return Ok(()) };
        let label = open.label(&key);
        self.last = Some(key);
        if open.broken.is_some() {
            return Ok(());
        }
        if !id.is_empty() && !open.id.is_empty() && open.id != id {
            self.held -= open.text();
            return Err(open.broken_by(AssembleError::StartedTwice { id: label }));
        }
        let id = if open.id.is_empty() { id } else { "" };
        let name = name.filter(|name| *name != open.name).unwrap_or_default();
        let added = open.add(&mut self.held, self.limit, [id, name, text]);
        added.map_err(|()| open.broken_by(AssembleError::TooLarge { id: label, limit: self.limit }))
    }

    /// A call's arguments are complete. None at all count as `{}`: what providers send for a tool
    /// without parameters.
    ///
    /// # Errors
    /// [`AssembleError::Malformed`] when they are not JSON; [`AssembleError::NotOpen`] for an id
    /// that was never started or has ended before; what broke the call, if something did.
    pub fn end(&mut self, id: &str) -> Result<ToolCall, AssembleError> {
        self.end_of(&Key::Id(id.into()))
    }

    /// The same for the call at this place of the model's answer.
    ///
    /// # Errors
    /// As [`end`](Self::end), and [`AssembleError::Incomplete`] when its id or its name has not
    /// come.
    pub fn end_indexed(&mut self, index: u64) -> Result<ToolCall, AssembleError> {
        self.end_of(&Key::Index(index))
    }

    /// The provider says that its answer is complete, and so every call that is open: each as
    /// [`end`](Self::end) or [`end_indexed`](Self::end_indexed) gives it, in the order of
    /// [`open`](Self::open).
    pub fn end_all(&mut self) -> Vec<Result<ToolCall, AssembleError>> {
        let keys: Vec<_> = self.calls.keys().cloned().collect();
        keys.iter().map(|key| self.end_of(key)).collect()
    }

    /// The provider says that it cut its answer: as [`end_all`](Self::end_all), but the call that
    /// the last piece belonged to is not complete, also if its arguments are valid.
    pub fn end_cut(&mut self) -> Vec<Result<ToolCall, AssembleError>> {
        if let Some((key, open)) = self.last.take().and_then(|last| self.calls.get_key_value(&last))
        {
            let (key, unfinished) =
                (key.clone(), AssembleError::Unfinished { id: open.label(key) });
            if let Some(open) = self.calls.get_mut(&key) {
                self.held -= open.text();
                open.broken_by(unfinished);
            }
        }
        self.end_all()
    }

    /// The calls that are open, the broken ones included: first those with ids, in the order of
    /// these, then the others by their places.
    pub fn open(&self) -> impl Iterator<Item = OpenCall<'_>> {
        self.calls.iter().map(|(key, open)| OpenCall {
            index: if let Key::Index(index) = key { Some(*index) } else { None },
            id: &open.id,
            name: &open.name,
            arguments: &open.arguments,
            broken: open.broken.as_ref(),
        })
    }

    /// Ends the stream. Returns an error for each call that is still open, in the order of
    /// [`open`](Self::open): its arguments may be incomplete. Call [`end_all`](Self::end_all) first
    /// if the end of the stream completes its calls.
    #[must_use = "each error is a tool call that is incomplete, and the model waits for an answer to it"]
    pub fn finish(self) -> Vec<AssembleError> {
        let errors = self.calls.into_iter().map(|(key, open)| {
            let unfinished = AssembleError::Unfinished { id: open.label(&key) };
            open.broken.unwrap_or(unfinished)
        });
        errors.collect()
    }

    fn open_call(&mut self, key: Key, open: Open) -> Result<(), AssembleError> {
        let held = self.held.saturating_add(open.cost());
        if held as u64 > self.limit {
            return Err(AssembleError::TooLarge { id: open.label(&key), limit: self.limit });
        }
        self.held = held;
        self.last = Some(key.clone());
        self.calls.insert(key, open);
        Ok(())
    }

    fn end_of(&mut self, key: &Key) -> Result<ToolCall, AssembleError> {
        let Some(open) = self.calls.remove(key) else {
            return Err(AssembleError::NotOpen { id: Open::default().label(key) });
        };
        self.held -= open.cost();
        let label = open.label(key);
        let Open { id, name, arguments, broken } = open;
        if let Some(error) = broken {
            return Err(error);
        }
        if let Key::Index(_) = key
            && let Some((missing, _)) =
                [("id", &id), ("name", &name)].into_iter().find(|(_, text)| text.is_empty())
        {
            return Err(AssembleError::Incomplete { id: label, missing });
        }
        let arguments = or_empty_object(arguments);
        match check(&arguments) {
            Ok(()) => Ok(ToolCall::new(id, name, arguments)),
            Err(fault) => Err(AssembleError::Malformed { id: label, fault }),
        }
    }
}

impl Open {
    /// Bytes that it holds.
    fn cost(&self) -> usize {
        OPEN_CALL + self.id.len() + self.text()
    }

    /// Bytes that it gives back when it breaks.
    fn text(&self) -> usize {
        self.name.len() + self.arguments.len()
    }

    /// Takes more of its id, its name and its arguments, if there is room for them.
    fn add(&mut self, held: &mut usize, limit: u64, [id, name, text]: [&str; 3]) -> Result<(), ()> {
        if self.broken.is_some() {
            return Ok(());
        }
        let more = held.saturating_add(id.len() + name.len() + text.len());
        if more as u64 > limit && stands(Defence::Fragments) {
            *held -= self.text();
            return Err(());
        }
        *held = more;
        self.id.push_str(id);
        self.name.push_str(name);
        self.arguments.push_str(text);
        Ok(())
    }

    /// Keeps the first thing that went wrong, and nothing else.
    fn broken_by(&mut self, error: AssembleError) -> AssembleError {
        (self.name, self.arguments) = Default::default();
        self.broken.get_or_insert_with(|| error.clone());
        error
    }

    /// What an error calls it: its id, or its place where that has not come.
    fn label(&self, key: &Key) -> String {
        match key {
            Key::Id(id) => id.clone(),
            Key::Index(index) if self.id.is_empty() => format!("#{index}"),
            Key::Index(_) => self.id.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
