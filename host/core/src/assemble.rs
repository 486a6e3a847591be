//! Calls out of fragments: a start, pieces of arguments, an end.
//!
//! In: fragments of a provider's stream, several calls interleaved. Out: a [`ToolCall`] an id, or an [`AssembleError`].
//! Invariants: what is wrong with one call touches no other; all open calls together hold a bounded number of bytes.
//! Not here: whether the arguments fit the tool (`executor`).
//! Source: contract, section 4.

use std::collections::BTreeMap;

use crate::call::ToolCall;
use crate::defence::{Defence, stands};
use crate::json::{JsonFault, check};
use crate::limits::DEFAULT_ARGUMENTS;

/// What an open call costs beside its own text, in bytes: so that many empty ones are no way around the bound.
const OPEN_CALL: usize = 64;
/// Characters of an id that an error shows.
const SHOWN: usize = 80;

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
}

/// Turns a stream of fragments into calls.
///
/// A call that cannot become one any more is *broken*: the fragment that broke it says why, further pieces of it are
/// ignored, and its end says why again, so that whoever looks at ends alone misses nothing. A call that has ended is
/// forgotten: its id may start anew.
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
#[derive(Debug)]
pub struct Assembler {
    calls: BTreeMap<String, Open>,
    /// Bytes that `calls` holds, counted by [`cost`].
    held: usize,
    limit: u64,
}

/// A call between its start and its end.
#[derive(Debug)]
struct Open {
    name: String,
    arguments: String,
    broken: Option<AssembleError>,
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
        Self { calls: BTreeMap::new(), held: 0, limit: DEFAULT_ARGUMENTS }
    }

    /// With another bound.
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
        }
    }

    /// A call begins.
    ///
    /// # Errors
    /// [`AssembleError::StartedTwice`] when a call of this id is open, which breaks that call: nobody could tell the
    /// arguments of the two apart. [`AssembleError::TooLarge`]; the call is not open then.
    pub fn start(&mut self, id: &str, name: &str) -> Result<(), AssembleError> {
        if let Some(open) = self.calls.get_mut(id) {
            self.held -= open.text();
            return Err(open.broken_by(AssembleError::StartedTwice { id: id.into() }));
        }
        let open = Open { name: name.into(), arguments: String::new(), broken: None };
        let held = self.held.saturating_add(cost(id, &open));
        if held as u64 > self.limit {
            return Err(AssembleError::TooLarge { id: id.into(), limit: self.limit });
        }
        self.held = held;
        self.calls.insert(id.into(), open);
        Ok(())
    }

    /// More of a call's arguments.
    ///
    /// # Errors
    /// [`AssembleError::NotOpen`]; [`AssembleError::TooLarge`], which breaks this call and gives its bytes back.
    pub fn delta(&mut self, id: &str, text: &str) -> Result<(), AssembleError> {
        let Some(open) = self.calls.get_mut(id) else { return Err(AssembleError::NotOpen { id: id.into() }) };
        if open.broken.is_some() {
            return Ok(());
        }
        let held = self.held.saturating_add(text.len());
        if held as u64 > self.limit && stands(Defence::Fragments) {
            self.held -= open.text();
            return Err(open.broken_by(AssembleError::TooLarge { id: id.into(), limit: self.limit }));
        }
        self.held = held;
        open.arguments.push_str(text);
        Ok(())
    }

    /// A call's arguments are complete. None at all count as `{}`: what providers send for a tool without parameters.
    ///
    /// # Errors
    /// [`AssembleError::Malformed`] when they are not JSON; [`AssembleError::NotOpen`] for an id that was never started or
    /// has ended before; what broke the call, if something did.
    pub fn end(&mut self, id: &str) -> Result<ToolCall, AssembleError> {
        let Some((id, open)) = self.calls.remove_entry(id) else {
            return Err(AssembleError::NotOpen { id: id.into() });
        };
        self.held -= cost(&id, &open);
        if let Some(error) = open.broken {
            return Err(error);
        }
        let arguments = if open.arguments.trim().is_empty() { "{}".to_owned() } else { open.arguments };
        match check(&arguments) {
            Ok(()) => Ok(ToolCall::new(id, open.name, arguments)),
            Err(fault) => Err(AssembleError::Malformed { id, fault }),
        }
    }

    /// The stream has ended. Each call that is still open is an error, in the order of their ids.
    #[must_use = "an open call that nobody hears of is a call that the model waits for"]
    pub fn finish(self) -> Vec<AssembleError> {
        let errors = self.calls.into_iter();
        errors.map(|(id, open)| open.broken.unwrap_or(AssembleError::Unfinished { id })).collect()
    }
}

impl Open {
    /// Bytes that it gives back when it breaks.
    fn text(&self) -> usize {
        self.name.len() + self.arguments.len()
    }

    /// Keeps the first thing that went wrong, and nothing else.
    fn broken_by(&mut self, error: AssembleError) -> AssembleError {
        (self.name, self.arguments) = Default::default();
        self.broken.get_or_insert_with(|| error.clone());
        error
    }
}

/// Bytes that an open call holds.
fn cost(id: &str, open: &Open) -> usize {
    OPEN_CALL + id.len() + open.text()
}

/// Why fragments did not become a call. Each names the one call that it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// A piece or an end of a call that has not started, or has ended.
    #[error("no call `{}` is open", shown(.id))]
    NotOpen {
        /// The call.
        id: String,
    },
    /// A start of a call that is open.
    #[error("the call `{}` was started twice", shown(.id))]
    StartedTwice {
        /// The call.
        id: String,
    },
    /// All open calls together would be over the bound.
    #[error("the call `{}` brings the arguments over {limit} bytes", shown(.id))]
    TooLarge {
        /// The call.
        id: String,
        /// The bound in bytes.
        limit: u64,
    },
    /// The arguments are not JSON.
    #[error("the arguments of the call `{}` are {fault}", shown(.id))]
    Malformed {
        /// The call.
        id: String,
        /// Where they break.
        fault: JsonFault,
    },
    /// The stream ended before the call did.
    #[error("the stream ended inside of the call `{}`", shown(.id))]
    Unfinished {
        /// The call.
        id: String,
    },
}

impl AssembleError {
    /// The call.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::NotOpen { id }
            | Self::StartedTwice { id }
            | Self::TooLarge { id, .. }
            | Self::Malformed { id, .. }
            | Self::Unfinished { id } => id,
        }
    }

    /// What to do about it, in one line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotOpen { .. } => "send the call's start first, and nothing after its end",
            Self::StartedTwice { .. } => "give each call of a stream an id of its own",
            Self::TooLarge { .. } => "have the model write shorter arguments, or raise the assembler's limit",
            Self::Malformed { .. } => "tell the model what is wrong with its JSON and let it call again",
            Self::Unfinished { .. } => "the stream was cut off, by a token limit perhaps: ask the model again",
        }
    }
}

/// An id of a stranger, fit to be shown.
fn shown(id: &str) -> String {
    id.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
