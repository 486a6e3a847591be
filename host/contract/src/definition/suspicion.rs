//! Finds texts in a tool's definition that seem to be written to steer the model that reads it.
//!
//! Such a text hides characters, imitates a system message, or tells the model to ignore
//! instructions or to keep something from the user. The command line calls
//! [`Definition::suspicions`] when it shows a tool to the person who decides about it. The result
//! is a list of at most 32 places, each with a reason and an excerpt. Every text of the definition
//! is searched, also the names of members in its schemas.
//!
//! This helps a reader and is not a defence: a text can always be worded so that no pattern
//! matches, and an empty list proves nothing. The defence is that a person approves the definition
//! and that only the approved form is used.
//!
//! Source: the published attacks on tool descriptions (hidden instructions, shadowing of other
//! tools, secrecy).

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;

use super::Definition;
use crate::json::inside;

/// The maximum number of suspicions of one definition. More would tell the reader nothing new.
const MAX_SUSPICIONS: usize = 32;
/// The maximum number of characters of an excerpt.
const EXCERPT: usize = 80;
/// Blank lines, or blanks in a line, that push the following text out of sight.
const HIDING_BLANKS: &str = r"(?:\n[ \t\r]*){5}|[ \t]{30}";

/// The reason why a text is suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SuspicionKind {
    /// It has characters that no reader sees, or whitespace that pushes text out of sight.
    HiddenText,
    /// It pretends to come from another source: the system, the user, or another tool.
    Impersonation,
    /// It tells the model to ignore instructions, or to follow others.
    InstructionOverride,
    /// It tells the model to keep something from the user.
    Concealment,
    /// It says how other tools are to be used, or that they are not to be used.
    ToolSteering,
    /// It asks for the conversation, for files or for credentials.
    DataRequest,
    /// It contains encoded text, or tells the model to follow encoded text.
    EncodedText,
}

impl fmt::Display for SuspicionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::HiddenText => "has characters or text that a reader does not see",
            Self::Impersonation => "imitates a message of the system or the user",
            Self::InstructionOverride => "tells the model to ignore or replace instructions",
            Self::Concealment => "tells the model to keep something from the user",
            Self::ToolSteering => "tells the model how to use other tools",
            Self::DataRequest => "asks for the conversation, files or credentials",
            Self::EncodedText => "has encoded text",
        })
    }
}

/// A suspicious text in a definition.
///
/// # Shape
/// As JSON: `{"pointer", "kind", "excerpt"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Suspicion {
    /// A JSON pointer into the definition.
    pub pointer: String,
    /// The reason why the text is suspicious.
    pub kind: SuspicionKind,
    /// The text around it in one line: at most 80 characters, without invisible ones.
    pub excerpt: String,
}

impl Definition {
    /// Returns the texts that seem to be written to steer a model: at most 32, in the order of the
    /// definition. An empty list does not mean that the definition is harmless.
    #[must_use]
    pub fn suspicions(&self) -> Vec<Suspicion> {
        let mut found = Vec::new();
        if let Ok(value) = serde_json::to_value(self) {
            search_value(&value, &mut String::new(), &mut found);
        }
        found.truncate(MAX_SUSPICIONS);
        found
    }
}

/// Returns true if a character is invisible, or changes how a terminal shows the text around it.
///
/// These are: the soft hyphen, direction marks and overrides, characters of zero width, line
/// separators, invisible operators, interlinear marks, tags, and variation selectors that can carry
/// hidden bytes. The zero-width joiners are among them, although emoji and some scripts need them,
/// because sequences of them can encode a text. U+FE0F is not, because emoji need it.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0e}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => c.is_control(),
    }
}

/// Adds the suspicions of a value at this place. The place is one buffer, because a copy for each
/// item below a long name would cost their product.
fn search_value(value: &Value, place: &mut String, found: &mut Vec<Suspicion>) {
    let length = place.len();
    match value {
        _ if found.len() >= MAX_SUSPICIONS => {}
        Value::String(text) => suspect(text, place, found),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                place.push_str(&format!("/{index}"));
                search_value(item, place, found);
                place.truncate(length);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                place.push_str(&inside("", name));
                suspect(name, place, found);
                search_value(member, place, found);
                place.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn suspect(text: &str, place: &str, found: &mut Vec<Suspicion>) {
    static HIDING: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(HIDING_BLANKS).ok());
    let seen: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let plain =
        seen.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase().replace('’', "'");
    let mut add = |kind, at: usize| {
        found.push(Suspicion { pointer: place.to_owned(), kind, excerpt: excerpt(&plain, at) });
    };
    let far = HIDING.as_ref().and_then(|far| far.find(text)).map(|far| far.start());
    if seen.len() < text.len() || far.is_some() {
        add(SuspicionKind::HiddenText, 0);
    }
    let mut last = None;
    for (kind, pattern) in PATTERNS.iter() {
        if last != Some(*kind)
            && let Some(there) = pattern.find(&plain)
        {
            add(*kind, there.start());
            last = Some(*kind);
        }
    }
}

/// Returns the text around a place.
fn excerpt(text: &str, at: usize) -> String {
    let before = text.get(..at).map_or(0, |before| before.chars().count());
    let skipped = before.saturating_sub(EXCERPT / 4);
    let mut excerpt: String = text.chars().skip(skipped).take(EXCERPT - 2).collect();
    if skipped > 0 {
        excerpt.insert(0, '…');
    }
    if text.chars().nth(skipped + EXCERPT - 2).is_some() {
        excerpt.push('…');
    }
    excerpt
}

static PATTERNS: LazyLock<Vec<(SuspicionKind, Regex)>> = LazyLock::new(|| {
    let compiled =
        words::ALL.iter().map(|(kind, pattern)| Some((*kind, Regex::new(pattern).ok()?)));
    compiled.collect::<Option<_>>().unwrap_or_default()
});

mod words;

#[cfg(test)]
mod tests;
