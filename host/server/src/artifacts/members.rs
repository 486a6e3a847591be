//! Reads single members of a JSON object as text, without building a tree of the object.
//!
//! The middleware for artifacts and the MCP code use it on arguments and messages of clients, whose
//! trees could take many times the bytes of the text. [`members`] takes the text of an object and
//! some names, and returns the JSON text of each member with one of these names. [`each_member`]
//! calls a closure for every member. Both return `None` for a text that is not an object. They do
//! not check the text for duplicate names; the callers check it before.

use std::borrow::Cow;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// Returns the members of these names. `None` if the text is not an object.
pub(crate) fn members<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Option<[Option<&'a str>; N]> {
    let mut found = [None; N];
    each_member(text, |name, value| {
        if let Some(at) = names.iter().position(|wanted| *wanted == name) {
            found[at] = Some(value);
        }
    })?;
    Some(found)
}

/// Calls `see` with the name and the text of each member. `None` if the text is not an object.
pub(crate) fn each_member<'a>(text: &'a str, see: impl FnMut(&str, &'a str)) -> Option<()> {
    struct Members<F>(F);

    impl<'de, F: FnMut(&str, &'de str)> Visitor<'de> for Members<F> {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
            while let Some(name) = members.next_key::<Cow<'de, str>>()? {
                (self.0)(&name, members.next_value::<&'de RawValue>()?.get());
            }
            Ok(())
        }
    }

    let mut parser = serde_json::Deserializer::from_str(text);
    parser.deserialize_map(Members(see)).ok()
}

/// Returns true if the text, which must be JSON, is an object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_as_text() {
        let text = r#" {"a" : [1, {"b":2}], "\u0062":"x", "c":null} "#;
        let found = members(text, ["b", "a", "d"]);
        assert_eq!(found, Some([Some("\"x\""), Some("[1, {\"b\":2}]"), None]));
        assert_eq!(members("[1]", ["a"]), None);
        assert!(is_object(" {}") && !is_object("[]"));
    }
}
