//! Parses the text of a provider's response into a JSON tree, so that one bad value spoils only its
//! own call.
//!
//! An embedder (the program that uses this library) passes the text to `Provider::document`, and
//! the tree to `Provider::calls`. A tree cannot hold some JSON texts, such as `1e400` or half a
//! surrogate pair, and the host refuses a member that appears twice. In a call's arguments such a
//! value stays text, and the executor refuses that one call by its id. Elsewhere, a value that a
//! tree cannot hold becomes `null`. Long integers become strings with all their digits. A text that
//! is not JSON is an error.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolcell_contract::json::{Json, JsonFault, Members, exact, fits, parse_strict};

use super::Provider;

/// Names of members that hold a call's arguments, or a piece of them.
const ARGUMENTS: [&str; 4] = ["args", "arguments", "delta", "input"];

impl Provider {
    /// Parses the text of a response into the tree that [`detect`](Self::detect) and
    /// [`calls`](Self::calls) read. A tree cannot hold `1e400` or half of a surrogate pair
    /// (`"\ud83d"`), and arguments may be nested too deeply or name a member twice: such arguments
    /// stay text, so that only their call is refused. Outside of arguments, a value that a tree
    /// cannot hold becomes `null`. An integer that a tree cannot hold exactly becomes a string with
    /// all its digits.
    ///
    /// # Errors
    /// [`JsonFault`] for a text that is not JSON, and outside of arguments for more than
    /// [`Json::MAX_DEPTH`] levels and for a member that is named twice. [`JsonFault::TooManyNodes`]
    /// for more than [`Json::MAX_NODES`] values.
    ///
    /// ```
    /// # use toolcell_provider::Provider;
    /// let text = r#"[{"type": "tool_use", "id": "a", "name": "now", "input": {"zone": 1e400}}]"#;
    /// let asked = Provider::Anthropic.calls(&Provider::document(text)?)?;
    /// assert_eq!(asked.calls[0].arguments, r#"{"zone": 1e400}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn document(text: &str) -> Result<Value, JsonFault> {
        let text: &RawValue =
            serde_json::from_str(text).map_err(|error| JsonFault::syntax(&error))?;
        read(text.get(), Json::MAX_DEPTH)
    }
}

/// Reads one value. Its text is valid JSON, but a tree may be unable to hold it.
fn read(text: &str, levels: usize) -> Result<Value, JsonFault> {
    let (fault, levels) = match (whole(text), levels.checked_sub(1)) {
        (Err(fault), Some(levels)) if !matches!(fault, JsonFault::TooManyNodes(_)) => {
            (fault, levels)
        }
        (read, _) => return read,
    };
    if text.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| fault)?;
        items.into_iter().map(|item| read(item.get(), levels)).collect()
    } else if text.starts_with('{') {
        let Members(members) =
            serde_json::from_str::<Members<&RawValue>>(text).map_err(|_| fault)?;
        let read = |(name, value): (String, &RawValue)| {
            let value = value.get();
            let is_arguments = ARGUMENTS.contains(&name.as_str());
            let kept = if is_arguments {
                whole(value).unwrap_or_else(|_| text_of(value).into())
            } else {
                read(value, levels)?
            };
            Ok((name, kept))
        };
        members.into_iter().map(read).collect::<Result<Map<_, _>, _>>().map(Value::Object)
    } else {
        Ok(Value::Null)
    }
}

/// Returns the text of arguments that no tree can hold. In a string, half of a surrogate pair stays
/// an escape: a stream may cut the text of arguments between the halves, and the next piece may
/// have the other one.
fn text_of(arguments: &str) -> String {
    let half = |at: usize| {
        let digits = arguments.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
    };
    let (mut kept, mut at) = (String::with_capacity(arguments.len()), 0);
    while let Some(next) = arguments[at..].find('\\').map(|length| at + length) {
        kept.push_str(&arguments[at..next]);
        let is_pair = half(next).is_some_and(|unit| unit < 0xdc00)
            && half(next + 6).is_some_and(|unit| unit >= 0xdc00);
        if half(next).is_some() && !is_pair {
            kept.push('\\');
        }
        at = next + if is_pair { 12 } else { 2 };
        kept.push_str(&arguments[next..at]);
    }
    kept.push_str(&arguments[at..]);
    serde_json::from_str(&kept).unwrap_or_else(|_| arguments.to_owned())
}

/// Parses a whole text as a tree.
fn whole(text: &str) -> Result<Value, JsonFault> {
    parse_strict(&exact(text, fits))
}

#[cfg(test)]
mod tests {
    use toolcell_contract::call::ToolCall;
    use toolcell_contract::json::check;

    use super::*;
    use crate::cases::rows;

    #[test]
    fn bad_arguments_leave_the_other_calls_readable() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let bad = rows::<&str>("document", "bad_arguments_leave_the_other_calls_readable");
        for bad in bad.into_iter().chain([deep.as_str()]) {
            for (provider, template) in
                rows::<(&str, &str)>("document", "unrepresentable_arguments")
            {
                let provider: Provider = provider.parse().unwrap();
                let text = template.replace("BAD", bad);
                let document = Provider::document(&text).expect(&text);
                let read = provider.calls(&document).expect(&text);
                let expected = [ToolCall::new("a", "t", bad), ToolCall::new("b", "t", "{}")];
                assert_eq!(read.calls, expected, "{text}");
                assert!(check(bad).is_err(), "the executor refuses {bad}");
            }
        }
    }

    #[test]
    fn unrepresentable_values_outside_arguments_are_null() {
        for (text, expected) in
            rows::<(&str, Value)>("document", "unrepresentable_values_outside_arguments_are_null")
        {
            assert_eq!(Provider::document(text), Ok(expected), "{text}");
        }
        let deep = format!("{}1e400{}", "[".repeat(100_000), "]".repeat(100_000));
        let many = format!("[1e400{}]", ",0".repeat(Json::MAX_NODES));
        for text in [r#"{"id":1,"id":2}"#, "{} {}", "", "[1,]", r#"{"input":nul}"#, &deep, &many] {
            assert!(Provider::document(text).is_err(), "{:.40}", text);
        }
    }
}
