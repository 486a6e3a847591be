//! Error messages for a filter that does not compile, with line and column.

use jaq_core::compile::{self, Undefined};
use jaq_core::load;

/// Number of errors in one message. The first is usually the cause of the others.
const MAX_COMPLAINTS: usize = 3;

/// The message for a filter that cannot be parsed.
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

/// The message for a filter that uses undefined names.
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
    // The lexer returns everything from the error on: the first word is enough.
    let word: String =
        found.split_whitespace().next().unwrap_or_default().chars().take(20).collect();
    let expected = if expected == "nothing" { "an operator or the end" } else { expected };
    let found_words = if word.is_empty() { "the end".to_owned() } else { format!("`{word}`") };
    at(filter, found, &format!("expected {expected}, found {found_words}"))
}

/// Appends the position of `part` in `filter`; the line only if there are several.
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

/// Byte offset of `part` in `filter`, or the end if `part` is not a slice of it.
fn offset(filter: &str, part: &str) -> usize {
    let start = (part.as_ptr() as usize).wrapping_sub(filter.as_ptr() as usize);
    if filter.is_char_boundary(start) { start } else { filter.len() }
}

fn joined(complaints: impl Iterator<Item = String>) -> String {
    complaints.take(MAX_COMPLAINTS).collect::<Vec<_>>().join("; ")
}
