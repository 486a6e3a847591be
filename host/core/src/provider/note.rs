//! What a conversion changed, for the operator.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{Provider, ProviderError};

/// A value in a provider's format, and what was changed for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Converted {
    /// The JSON for the API.
    pub value: Value,
    /// What the API cannot express as it was.
    pub notes: Vec<Note>,
}

/// One thing that an API cannot express.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Note {
    /// The tool's name.
    pub tool: String,
    /// Where in its definition or message, as a JSON pointer (RFC 6901). What was reached by a
    /// reference is named by the reference's place.
    pub pointer: String,
    /// What was changed.
    pub change: String,
    /// Why.
    pub reason: String,
}

impl Note {
    /// Says that a tool is left out of a list.
    pub(super) fn left_out(error: &ProviderError) -> Option<Self> {
        let ProviderError::Inexpressible { tool, pointer, problem, .. } = error else {
            return None;
        };
        let change = "the tool is left out of the list".to_owned();
        Some(Self { tool: tool.clone(), pointer: pointer.clone(), change, reason: problem.clone() })
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
}

impl<'a> Changes<'a> {
    pub(super) fn new(provider: Provider, tool: &'a str, notes: &'a mut Vec<Note>) -> Self {
        Self { provider, tool, notes }
    }

    pub(super) fn note(&mut self, pointer: &str, change: &str, reason: &str) {
        let note = Note {
            tool: self.tool.to_owned(),
            pointer: pointer.to_owned(),
            change: change.to_owned(),
            reason: reason.to_owned(),
        };
        // What stands in a definition that is referred to often needs saying once.
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// How many notes there are.
    pub(super) fn count(&self) -> usize {
        self.notes.len()
    }

    /// Takes back the notes after the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        self.notes.truncate(count);
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
