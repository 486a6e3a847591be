//! Notes for the operator on the changes that a conversion made.
//!
//! A conversion to a provider's format returns [`Conversion`]: the JSON, and a [`Note`] for each
//! thing that the API cannot express, with the tool, the place, the change and the reason. While a
//! definition is converted, [`Changes`] collects its notes, leaves out repetitions, and makes the
//! error of a tool that cannot be expressed at all.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{Provider, ProviderError};

/// A value in a provider's format, with notes on the changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Conversion {
    /// The JSON for the API.
    pub value: Value,
    /// The changes, for the features that the API lacks.
    pub notes: Vec<Note>,
}

/// A change to something that an API cannot express.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Note {
    /// The tool's name.
    pub tool: String,
    /// The place in its definition or message, as a JSON pointer (RFC 6901). For content behind a
    /// reference, the place of the reference.
    pub pointer: String,
    /// The change.
    pub change: String,
    /// The reason.
    pub reason: String,
}

impl Note {
    pub(super) fn new(tool: &str, pointer: &str, change: &str, reason: &str) -> Self {
        let [tool, pointer, change, reason] = [tool, pointer, change, reason].map(str::to_owned);
        Self { tool, pointer, change, reason }
    }

    /// Returns the note that a tool is left out of a list.
    pub(super) fn omitted(error: &ProviderError) -> Option<Self> {
        let ProviderError::Inexpressible { tool, pointer, problem, .. } = error else {
            return None;
        };
        Some(Self::new(tool, pointer, "the tool is left out of the list", problem))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, pointer, change, reason } = self;
        write!(f, "`{tool}` at `{pointer}`: {change} ({reason})")
    }
}

/// The notes of one tool, while its definition is converted.
#[derive(Debug)]
pub(super) struct Changes<'a> {
    pub(super) provider: Provider,
    tool: &'a str,
    notes: &'a mut Vec<Note>,
    /// The notes of this tool.
    seen: HashSet<Note>,
    /// The places that the schemas of the list may still have together, beside each tool's own.
    pub(super) places: &'a mut usize,
}

impl<'a> Changes<'a> {
    pub(super) fn new(
        provider: Provider,
        tool: &'a str,
        notes: &'a mut Vec<Note>,
        places: &'a mut usize,
    ) -> Self {
        Self { provider, tool, notes, seen: HashSet::new(), places }
    }

    pub(super) fn note(&mut self, pointer: &str, change: &str, reason: &str) {
        let note = Note::new(self.tool, pointer, change, reason);
        // Content that several references share is noted once.
        if self.seen.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    /// Returns the number of notes, of this tool and of those before it.
    pub(super) fn count(&self) -> usize {
        self.notes.len()
    }

    /// Takes back all notes but the first ones.
    pub(super) fn truncate(&mut self, count: usize) {
        for note in self.notes.drain(count..) {
            self.seen.remove(&note);
        }
    }

    pub(super) fn refusal(&self, pointer: &str, problem: &str) -> ProviderError {
        ProviderError::Inexpressible {
            provider: self.provider,
            tool: self.tool.chars().take(80).collect(),
            pointer: pointer.to_owned(),
            problem: problem.to_owned(),
        }
    }
}
