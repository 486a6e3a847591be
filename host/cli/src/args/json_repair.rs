//! Guesses the JSON that a text with typing mistakes means, for a hint: single quotes, names and
//! words without quotes, an extra comma.
//!
//! A shell removes quotes, so users often pass text such as `{name: Ada}`. When an argument or a
//! context is not valid JSON, the error calls [`hint`] with the text and prints the returned "did
//! you mean", with the object that was probably meant: such a text is an object of YAML. It returns
//! `None` for valid JSON, for text over 500 bytes and for text that is too far from JSON. The object
//! is never used as arguments.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::config::quoted;
use crate::print::clean;

/// Bytes of a text that is parsed: a hint is one line.
const MAX_TEXT: usize = 500;

/// Returns the hint with the object that a text probably means.
pub(crate) fn hint(text: &str) -> Option<String> {
    let meant = clean::json_line(&repaired(text)?);
    Some(format!("did you mean {}?", quoted(&meant)))
}

/// Returns the object that a text probably means, as JSON. `None` for a text that is JSON, or too
/// far from it.
fn repaired(text: &str) -> Option<String> {
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    if text.len() > MAX_TEXT || !text.trim_start().starts_with('{') || is_json() {
        return None;
    }
    let straight = text.replace(['“', '”'], "\"");
    // YAML needs the space in `{name: Ada}`. A text with a colon must not get one.
    let spaced = || read(&straight.replace(':', ": ")).filter(|meant| !meant.contains(": "));
    read(&straight).or_else(spaced)
}

/// Reads an object of YAML, and returns it as JSON. `None` if it may mean something else to the
/// user, or is not an object.
fn read(text: &str) -> Option<String> {
    let has = |mark: &str| text.contains(mark);
    // Python and JavaScript have these words for null, and escapes in single quotes. Aliases could
    // repeat a part many times.
    if ["None", "undefined", "‘"].into_iter().any(has)
        || has("'") && has("\\")
        || has("&") && has("*")
    {
        return None;
    }
    let object: Map<String, Value> = serde_norway::from_str(text).ok()?;
    let meant = Value::from(object).to_string();
    // YAML takes a missing value for null.
    let nulls = |text: &str| text.matches("null").count();
    (nulls(&meant) <= nulls(text)).then_some(meant)
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn lenient_parse_recovers_intended_json() {
        for (typed, expected) in
            rows::<(&str, Value)>("json_repair", "lenient_parse_recovers_intended_json")
        {
            let expected = expected.to_string();
            assert_eq!(repaired(typed), Some(expected), "{typed}");
        }
        let (deep, long) = ("{a: ".repeat(100), format!("{{a: {}}}", "x".repeat(500)));
        for none in rows("json_repair", "unclear_texts").into_iter().chain([&*deep, &long]) {
            assert_eq!(repaired(none), None, "{none}");
        }
    }
}
