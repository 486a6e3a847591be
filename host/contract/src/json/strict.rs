//! Parses JSON text strictly: into a tree, or only to check that it is valid.
//!
//! JSON text of models, guests (the WebAssembly code of tools) and providers passes through it:
//! arguments, results, responses. First [`measure`] counts nesting levels and values in one pass
//! over the bytes, which allocates nothing; a text over the bounds of `Json` is refused before
//! anything is built. Then the parser reads the text. It refuses an object that names a member
//! twice, because the host would check one of the two and a guest might read the other. [`check`]
//! keeps no tree, [`parse_strict`] returns one. [`Size`] tells in advance the most memory that the
//! tree can take, so that the executor can limit how many large trees exist at once.

use std::collections::BTreeSet;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Json, JsonFault};
use crate::controls::{bound, enforced};
use crate::names::shorten;

/// Prefix of the member names that serde_json reserves for itself: a tree with such a name would
/// not be read as the same tree again.
const RESERVED: &str = "$serde_json::private::";

/// The most characters of a member's name in an error: the author of the text chooses the name.
const QUOTE: usize = 60;

/// Bytes that a value takes in an array, which grows by doubling.
const VALUE_BYTES: u64 = 2 * size_of::<Value>() as u64;
/// Bytes of an object with one member: a node of its map has room for eleven.
const OBJECT_BYTES: u64 = 640;
/// Bytes of each member: its place in a half-full node, and the allocation of its name.
const MEMBER_BYTES: u64 = 160;

/// The size of a JSON text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// The most bytes of memory that the text's tree takes. Zero for a text so short that its tree
    /// cannot be large.
    pub tree: u64,
}

/// Parses `text` into a tree. An object that names a member twice is refused, because the host
/// would check one of the two and a guest might read the other.
///
/// # Errors
/// [`JsonFault`] as for [`Json::parse`](super::Json::parse).
pub fn parse_strict(text: &str) -> Result<Value, JsonFault> {
    parse_within(text, Json::MAX_DEPTH)
}

/// Does the same as [`parse_strict`], with a maximum number of levels.
pub fn parse_within(text: &str, levels: usize) -> Result<Value, JsonFault> {
    measure(text, levels)?;
    parse_measured(text)
}

/// Does the same for a text that [`measure`] has accepted.
pub fn parse_measured(text: &str) -> Result<Value, JsonFault> {
    read::<true>(text)
}

/// Checks that [`parse_strict`] accepts `text`, without building a tree.
///
/// # Errors
/// Those of [`parse_strict`].
pub fn check(text: &str) -> Result<(), JsonFault> {
    measure(text, Json::MAX_DEPTH)?;
    read::<false>(text).map(drop)
}

/// Counts levels and values. It is linear and allocates nothing. It does not check validity: for a
/// text that is not JSON, the counts mean nothing.
///
/// # Errors
/// [`JsonFault::TooDeep`], [`JsonFault::TooManyNodes`].
pub fn measure(text: &str, levels: usize) -> Result<Size, JsonFault> {
    if text.len() <= levels {
        return Ok(Size::default());
    }
    let (most_levels, most_nodes) = (bound!(JsonDepth, levels), bound!(JsonNodes, Json::MAX_NODES));
    let (mut depth, mut nodes, mut objects, mut members) = (0_usize, 1_usize, 0_u64, 0_u64);
    let (mut in_string, mut escaped, mut just_opened) = (false, false, false);
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            continue;
        }
        let is_first = std::mem::replace(&mut just_opened, false);
        nodes += usize::from(is_first && !matches!(byte, b']' | b'}'));
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                (depth, just_opened) = (depth + 1, true);
                objects += u64::from(byte == b'{');
                if depth > most_levels {
                    return Err(JsonFault::TooDeep(levels));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => nodes += 1,
            b':' => members += 1,
            _ => {}
        }
        if nodes > most_nodes {
            return Err(JsonFault::TooManyNodes(Json::MAX_NODES));
        }
    }
    let tree = text.len() as u64
        + VALUE_BYTES * nodes as u64
        + OBJECT_BYTES * objects
        + MEMBER_BYTES * members;
    Ok(Size { tree })
}

fn read<const KEPT: bool>(text: &str) -> Result<Value, JsonFault> {
    let mut parser = serde_json::Deserializer::from_str(text);
    Strict::<KEPT>
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| JsonFault::syntax(&error))
}

/// Reads one value and refuses repeated members. If the value is not `KEPT`, each text, array and
/// object is read as `null`: no tree is built, and only the names of the members of each open
/// object are held.
#[derive(Clone, Copy)]
struct Strict<const KEPT: bool>;

impl<'de, const KEPT: bool> DeserializeSeed<'de> for Strict<KEPT> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, const KEPT: bool> Visitor<'de> for Strict<KEPT> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(if KEPT { value.into() } else { Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            if KEPT {
                array.push(item);
            }
        }
        Ok(if KEPT { array.into() } else { Value::Null })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        // The names of an object that is not kept, which take less memory than members do.
        let mut names = BTreeSet::<String>::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.starts_with(RESERVED) {
                let name = shorten(&name, QUOTE);
                return Err(A::Error::custom(format!("the member name `{name}` is not allowed")));
            }
            let is_repeated = if KEPT { object.contains_key(&name) } else { names.contains(&name) };
            if is_repeated && enforced!(JsonMembers) {
                let name = shorten(&name, QUOTE);
                let problem = format!("member `{name}` appears twice in one object");
                return Err(A::Error::custom(problem));
            }
            let value = members.next_value_seed(self)?;
            if KEPT {
                object.insert(name, value);
            } else {
                names.insert(name);
            }
        }
        Ok(if KEPT { object.into() } else { Value::Null })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Fails without: the bound on values, or members in the estimate.
    #[test]
    fn json_node_count_is_bounded() {
        let array = |items: usize| format!("[{}]", vec!["[0, {}, \"a,[b\"]"; items].join(", "));
        // Each item is an array of three values.
        let most = (Json::MAX_NODES - 1) / 4;
        assert!(parse_strict(&array(most)).is_ok());
        assert_eq!(parse_strict(&array(most + 1)), Err(JsonFault::TooManyNodes(Json::MAX_NODES)));
        assert_eq!(check(&array(most + 1)), Err(JsonFault::TooManyNodes(Json::MAX_NODES)));
        assert!(check(&format!("[{}]", "[], ".repeat(Json::MAX_NODES))).is_err());
        let exactly = |nodes: usize| format!("[{}0]", "0,".repeat(nodes - 2));
        assert!(parse_strict(&exactly(Json::MAX_NODES)).is_ok());
        assert!(parse_strict(&exactly(Json::MAX_NODES + 1)).is_err());
    }

    #[test]
    fn size_estimate_covers_the_parsed_tree() {
        // The measured size of a tree of 64-bit numbers and small maps: objects of one member take
        // 680 bytes each.
        let text = format!("[{}0]", r#"{"":0},"#.repeat(10_000));
        let Size { tree } = measure(&text, Json::MAX_DEPTH).unwrap();
        assert!((6_800_000..12_000_000).contains(&tree), "{tree}");
        let text = format!("[\"{}\"]", "x".repeat(1 << 20));
        let Size { tree } = measure(&text, Json::MAX_DEPTH).unwrap();
        assert!((1 << 20..(1 << 20) + 1000).contains(&tree), "{tree}");
        assert_eq!(measure("{}", Json::MAX_DEPTH), Ok(Size::default()));
    }

    #[test]
    fn error_quotes_the_beginning_of_a_long_name() {
        let long = "x".repeat(1 << 20);
        for (text, expected) in [
            (format!(r#"{{"{long}":1,"{long}":2}}"#), "…` appears twice in one object at"),
            (format!(r#"{{"{RESERVED}{long}":1}}"#), "…` is not allowed at"),
        ] {
            let fault = check(&text).unwrap_err();
            assert_eq!(parse_strict(&text), Err(fault.clone()));
            let words = fault.to_string();
            assert!(words.len() < 200 && words.contains(expected), "{words:.300}");
        }
    }

    #[test]
    fn check_agrees_with_the_strict_parser() {
        for text in [
            "null",
            " {\"a\": [1, -2.5e3, \"\\u00fc\"]} ",
            r#"{"a":{"a":1},"b":{"a":1}}"#,
            "[1,]",
            "\"\u{1}\"",
        ] {
            assert_eq!(check(text), parse_strict(text).map(drop), "{text}");
        }
        assert_eq!(json!({"a": 1}), parse_strict(r#"{"a":1}"#).unwrap());
    }
}
