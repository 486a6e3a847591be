//! Assembles tool calls from the fragments of a provider's stream.
//!
//! A model provider streams an answer in pieces: the start of a call, pieces of its arguments as
//! JSON text, its end. The HTTP client of the embedder (the program that uses this library) passes
//! each piece to an [`Assembler`], by the call's id or by its index in the model's answer. The
//! result is a [`ToolCall`] when a call ends, or an [`AssembleError`]. Several calls may be
//! interleaved, and an error in one does not affect the others. All open calls together hold a
//! bounded number of bytes. A call of an answer that was cut off never counts as complete.
//!
//! Not here: validation of the arguments against the tool's schema, in `executor`.
//!
//! Source: docs/contract.md, section 4.

mod error;

use std::collections::BTreeMap;

use toolcell_contract::call::ToolCall;
use toolcell_contract::controls::bound;
use toolcell_contract::json::{check, or_empty_object};
use toolcell_contract::limits::Limits;

pub use error::AssembleError;

/// Bytes that each open call is charged beside its own text, so that many empty calls cannot bypass
/// the limit.
const OPEN_CALL: usize = 64;

/// A fragment of a call, as a provider streams it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fragment {
    /// A call begins.
    Start {
        /// Its id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of the call's arguments.
    Delta {
        /// The call.
        id: String,
        /// The next piece of JSON text, cut anywhere.
        text: String,
    },
    /// The call's arguments are complete.
    End {
        /// The call.
        id: String,
    },
    /// A fragment of the call at this index of the model's answer, as OpenAI streams it in
    /// `delta.tool_calls`. Id and name may arrive in different fragments.
    Indexed {
        /// The index.
        index: u64,
        /// The call's id, if this fragment has it.
        id: Option<String>,
        /// The tool's name or the next piece of it, if this fragment has one.
        name: Option<String>,
        /// The next piece of JSON text, cut anywhere.
        text: Option<String>,
    },
    /// The arguments of the call at this index are complete.
    EndIndexed {
        /// The index.
        index: u64,
    },
}

/// Assembles a stream of fragments into calls.
///
/// A call that can no longer be assembled is *broken*. The fragment that broke it returns the
/// error, further fragments of it are ignored, and its end returns the error again, so a caller
/// that looks only at ends misses nothing. A call that has ended is forgotten: its id or index can
/// be used again.
///
/// If the stream ends each call, use [`end`](Self::end). If only the whole answer has an end, use
/// [`end_all`](Self::end_all) when the provider reports it, and
/// [`end_truncated`](Self::end_truncated) when it reports that it cut the answer
/// (`finish_reason: length`, `stop_reason: max_tokens`). Anthropic ends each call's block also when
/// it cuts the answer, and reports the cut afterwards, in `message_delta`: end its calls there too.
/// [`open`](Self::open) lists the open calls. [`finish`](Self::finish) returns an error for each
/// call that is still open.
///
/// ```
/// # use toolcell_contract::call::ToolCall;
/// # use toolcell_provider::Assembler;
/// let mut assembler = Assembler::new();
/// assembler.start("call-1", "calculator")?;
/// assembler.delta("call-1", r#"{"expression": "#)?;
/// assembler.delta("call-1", r#""6 * 7"}"#)?;
/// assert_eq!(assembler.end("call-1")?, ToolCall::new("call-1", "calculator", r#"{"expression": "6 * 7"}"#));
/// assert!(assembler.finish().is_empty());
/// # Ok::<(), toolcell_provider::AssembleError>(())
/// ```
///
/// The chunks of OpenAI's chat completions:
///
/// ```
/// # use serde_json::json;
/// # use toolcell_contract::call::ToolCall;
/// # use toolcell_provider::Assembler;
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
/// # Ok::<(), toolcell_provider::AssembleError>(())
/// ```
#[derive(Debug)]
pub struct Assembler {
    calls: BTreeMap<Key, Open>,
    /// The call that the last fragment belonged to.
    last: Option<Key>,
    /// Bytes held by `calls`, as counted by [`cost`].
    held: usize,
    limit: u64,
}

/// Identifies a call among the open ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Id(String),
    Index(u64),
}

/// A call between its start and its end.
#[derive(Debug, Default)]
struct Open {
    /// Empty until it arrives.
    id: String,
    /// Empty until it arrives.
    name: String,
    arguments: String,
    broken: Option<AssembleError>,
}

/// A call that has not ended yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall<'a> {
    /// Its index in the model's answer, if the stream identifies calls by index.
    pub index: Option<u64>,
    /// Its id, or an empty text if it has not arrived yet.
    pub id: &'a str,
    /// The tool's name, or an empty text if it has not arrived yet or the call is broken.
    pub name: &'a str,
    /// The arguments so far, as JSON text. Empty if the call is broken.
    pub arguments: &'a str,
    /// The error that broke the call, if it is broken.
    pub broken: Option<&'a AssembleError>,
}

impl Default for Assembler {
    fn default() -> Self {
        Self::new()
    }
}

impl Assembler {
    /// Creates an assembler that holds [`Limits::DEFAULT_ARGUMENTS`] bytes at most: ids, names and
    /// arguments of all open calls, and a small charge for each call.
    #[must_use]
    pub fn new() -> Self {
        Self { calls: BTreeMap::new(), last: None, held: 0, limit: Limits::DEFAULT_ARGUMENTS }
    }

    /// Takes a fragment. Returns the call if the fragment ends one.
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

    /// Starts a call.
    ///
    /// # Errors
    /// [`AssembleError::StartedTwice`] if a call with this id is open. That call is then broken,
    /// because the arguments of the two could not be told apart. [`AssembleError::TooLarge`]: the
    /// call is not opened.
    pub fn start(&mut self, id: &str, name: &str) -> Result<(), AssembleError> {
        let key = Key::Id(id.into());
        if let Some(open) = self.calls.get_mut(&key) {
            let error = AssembleError::StartedTwice { id: id.into() };
            return Err(open.break_with(&mut self.held, error));
        }
        self.open_call(key, Open { id: id.into(), name: name.into(), ..Open::default() })
    }

    /// Appends to a call's arguments.
    ///
    /// # Errors
    /// [`AssembleError::NotOpen`]; [`AssembleError::TooLarge`], which breaks this call and frees
    /// its bytes.
    pub fn delta(&mut self, id: &str, text: &str) -> Result<(), AssembleError> {
        let key = Key::Id(id.into());
        let Some(open) = self.calls.get_mut(&key) else {
            return Err(AssembleError::NotOpen { id: id.into() });
        };
        let added = open.add(&key, &mut self.held, self.limit, ["", "", text]);
        self.last = Some(key);
        added
    }

    /// Takes a fragment of the call at this index of the model's answer. The first fragment opens
    /// the call. An empty id or name counts as absent. A name equal to the name so far is a
    /// repetition; any other is the next piece of the name.
    ///
    /// # Errors
    /// [`AssembleError::StartedTwice`] if the call at this index already has another id, which
    /// breaks the call. [`AssembleError::TooLarge`], which breaks the call and frees its bytes; if
    /// the fragment was the first one, the call is not opened.
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
        self.last = Some(key.clone());
        if open.broken.is_some() {
            return Ok(());
        }
        if !id.is_empty() && !open.id.is_empty() && open.id != id {
            let error = AssembleError::StartedTwice { id: open.label(&key) };
            return Err(open.break_with(&mut self.held, error));
        }
        let id = if open.id.is_empty() { id } else { "" };
        let name = name.filter(|name| *name != open.name).unwrap_or_default();
        open.add(&key, &mut self.held, self.limit, [id, name, text])
    }

    /// Ends a call whose arguments are complete. Empty arguments count as `{}`, which providers
    /// send for a tool without parameters.
    ///
    /// # Errors
    /// [`AssembleError::Malformed`] if the arguments are not JSON; [`AssembleError::NotOpen`] for
    /// an id that was never started or has ended; the error that broke the call, if it is broken.
    pub fn end(&mut self, id: &str) -> Result<ToolCall, AssembleError> {
        self.end_of(&Key::Id(id.into()))
    }

    /// Ends the call at this index of the model's answer.
    ///
    /// # Errors
    /// As [`end`](Self::end), and [`AssembleError::Incomplete`] if its id or its name has not
    /// arrived.
    pub fn end_indexed(&mut self, index: u64) -> Result<ToolCall, AssembleError> {
        self.end_of(&Key::Index(index))
    }

    /// Ends every open call, because the provider reports that its answer is complete. Each result
    /// is that of [`end`](Self::end) or [`end_indexed`](Self::end_indexed), in the order of
    /// [`open`](Self::open).
    pub fn end_all(&mut self) -> Vec<Result<ToolCall, AssembleError>> {
        let keys: Vec<_> = self.calls.keys().cloned().collect();
        keys.iter().map(|key| self.end_of(key)).collect()
    }

    /// Ends every open call, because the provider reports that it cut its answer. Works as
    /// [`end_all`](Self::end_all), but the call of the last fragment fails as incomplete, even if
    /// its arguments are valid JSON.
    pub fn end_truncated(&mut self) -> Vec<Result<ToolCall, AssembleError>> {
        if let Some(key) = self.last.take()
            && let Some(open) = self.calls.get_mut(&key)
        {
            let unfinished = AssembleError::Unfinished { id: open.label(&key) };
            open.break_with(&mut self.held, unfinished);
        }
        self.end_all()
    }

    /// Returns the open calls, broken ones included: first those with ids, sorted by id, then the
    /// others by index.
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
        let error = |(key, open): (Key, Open)| {
            let unfinished = AssembleError::Unfinished { id: open.label(&key) };
            open.broken.unwrap_or(unfinished)
        };
        self.calls.into_iter().map(error).collect()
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
        let missing = [("id", &id), ("name", &name)].into_iter().find(|(_, text)| text.is_empty());
        if let (Key::Index(_), Some((missing, _))) = (key, missing) {
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
    /// Bytes that this call is charged.
    fn cost(&self) -> usize {
        OPEN_CALL + self.id.len() + self.text()
    }

    /// Bytes that this call frees when it breaks.
    fn text(&self) -> usize {
        self.name.len() + self.arguments.len()
    }

    /// Appends to the id, the name and the arguments of the call with this key. Breaks the call if
    /// the limit is exceeded.
    fn add(
        &mut self,
        key: &Key,
        held: &mut usize,
        limit: u64,
        [id, name, text]: [&str; 3],
    ) -> Result<(), AssembleError> {
        if self.broken.is_some() {
            return Ok(());
        }
        let more = held.saturating_add(id.len() + name.len() + text.len());
        if more as u64 > bound!(Fragments, limit) {
            let error = AssembleError::TooLarge { id: self.label(key), limit };
            return Err(self.break_with(held, error));
        }
        *held = more;
        self.id.push_str(id);
        self.name.push_str(name);
        self.arguments.push_str(text);
        Ok(())
    }

    /// Records the first error, drops the call's text and no longer counts it as held.
    fn break_with(&mut self, held: &mut usize, error: AssembleError) -> AssembleError {
        *held -= self.text();
        (self.name, self.arguments) = Default::default();
        self.broken.get_or_insert_with(|| error.clone());
        error
    }

    /// The call's name in errors: its id, or its index if the id has not arrived.
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
