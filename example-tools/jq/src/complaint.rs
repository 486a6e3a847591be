//! Words for a filter that does not compile: what is wrong, and at which line and column.

use jaq_core::compile::{self, Undefined};
use jaq_core::load;

/// Complaints in one message. The first is the cause more often than not.
const MAX_COMPLAINTS: usize = 3;

/// The filter cannot be read.
pub(crate) fn unreadable(filter: &str, errors: &load::Errors<&str, ()>) -> String {
    let complaints = errors.iter().flat_map(|(_, error)| match error {
        load::Error::Io(imports) => imports
            .iter()
            .map(|(name, _)| at(filter, name, "modules cannot be imported here"))
            .collect::<Vec<_>>(),
        load::Error::Lex(errors) => errors
            .iter()
            .map(|(expected, found)| missing(filter, expected.as_str(), found))
            .collect(),
        load::Error::Parse(errors) => errors
            .iter()
            .map(|(expected, found)| missing(filter, expected.as_str(), found))
            .collect(),
    });
    joined(complaints)
}

/// The filter uses names that are not defined.
pub(crate) fn undefined(filter: &str, errors: &compile::Errors<&str, ()>) -> String {
    joined(errors.iter().flat_map(|(_, errors)| errors).map(|(name, what)| {
        let name_only = name.trim();
        let complaint = match what {
            Undefined::Filter(0) => format!("undefined filter `{name_only}`"),
            Undefined::Filter(1) => format!("undefined filter `{name_only}` with 1 argument"),
            Undefined::Filter(arity) => {
                format!("undefined filter `{name_only}` with {arity} arguments")
            }
            Undefined::Mod | Undefined::Var | Undefined::Label | _ => {
                format!("undefined {} `{name_only}`", what.as_str())
            }
        };
        at(filter, name, &complaint)
    }))
}

fn missing(filter: &str, expected: &str, found: &str) -> String {
    // The lexer hands back everything from the fault on: its first word is enough.
    let word: String =
        found.split_whitespace().next().unwrap_or_default().chars().take(20).collect();
    let expected = if expected == "nothing" { "an operator or the end" } else { expected };
    let found_words = if word.is_empty() { "the end".to_owned() } else { format!("`{word}`") };
    at(filter, found, &format!("expected {expected}, found {found_words}"))
}

/// Appends where `part` stands in `filter`: the line only when there is more than one.
fn at(filter: &str, part: &str, complaint: &str) -> String {
    let before = &filter[..offset(filter, part)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    if filter.trim_end().contains('\n') {
        format!("{complaint} at line {line}, column {column}")
    } else {
        format!("{complaint} at column {column}")
    }
}

/// Where `part` begins. A part that is no slice of the filter has no place; the end stands for it.
fn offset(filter: &str, part: &str) -> usize {
    let start = (part.as_ptr() as usize).wrapping_sub(filter.as_ptr() as usize);
    if filter.is_char_boundary(start) { start } else { filter.len() }
}

fn joined(complaints: impl Iterator<Item = String>) -> String {
    complaints.take(MAX_COMPLAINTS).collect::<Vec<_>>().join("; ")
}
