//! Repairs JSON with typing mistakes, for a hint: single quotes, names and words without quotes, an
//! extra comma.
//!
//! A shell removes quotes, so users often pass text such as `{name: Ada}`. When an argument or a
//! context is not valid JSON, the error calls [`hint`] with the text and prints the returned "did
//! you mean", with the object that was probably meant. It returns `None` for valid JSON and for
//! text that is too far from it. The object is never used as arguments. Text over 500 bytes and
//! deep nesting are not repaired.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Value};

use crate::config::quoted;
use crate::print::clean;

/// Bytes of a text that is parsed: a hint is one line.
const MAX_TEXT: usize = 500;
/// Levels of objects and arrays.
const MAX_DEPTH: usize = 16;

/// Returns the hint with the object that a text probably means.
pub(crate) fn hint(text: &str) -> Option<String> {
    let meant = clean::json_line(&repaired(text)?.to_string());
    Some(format!("did you mean {}?", quoted(&meant)))
}

/// Returns the object that a text probably means. `None` for a text that is JSON, or too far from
/// it.
fn repaired(text: &str) -> Option<Value> {
    if text.len() > MAX_TEXT || serde_json::from_str::<Value>(text).is_ok() {
        return None;
    }
    let mut reader = Reader { chars: text.chars().peekable() };
    let value = reader.value(0)?;
    reader.space();
    reader.chars.next().is_none().then_some(value).filter(Value::is_object)
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.chars.next_if(|c| c.is_whitespace()).is_some() {}
    }

    /// Skips white space and reads this character. Returns false if another one comes next.
    fn takes(&mut self, wanted: char) -> bool {
        self.space();
        self.chars.next_if_eq(&wanted).is_some()
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.takes('{') {
            let mut members = Map::new();
            while !self.takes('}') {
                let name = self.text()?;
                if !self.takes(':') {
                    return None;
                }
                members.insert(name.0, self.value(depth + 1)?);
                self.separator('}')?;
            }
            return Some(Value::Object(members));
        }
        if self.takes('[') {
            let mut items = Vec::new();
            while !self.takes(']') {
                items.push(self.value(depth + 1)?);
                self.separator(']')?;
            }
            return Some(Value::Array(items));
        }
        let (text, is_quoted) = self.text()?;
        let word = || match text.as_str() {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" | "undefined" => Value::Null,
            word => serde_json::from_str(word).unwrap_or_else(|_| word.into()),
        };
        // A number that JSON cannot have, such as `1e400` or `0x10`, does not count as a text.
        let is_number =
            text.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit());
        let value = if is_quoted { Value::from(text.as_str()) } else { word() };
        (is_quoted || !is_number || !value.is_string()).then_some(value)
    }

    /// Reads a comma, or finds the end.
    fn separator(&mut self, end: char) -> Option<()> {
        let is_apart = self.takes(',') || self.chars.peek() == Some(&end);
        is_apart.then_some(())
    }

    /// Reads a text in quotes of any kind, or a bare word. Returns it with true if it has quotes.
    fn text(&mut self) -> Option<(String, bool)> {
        self.space();
        let mut text = String::new();
        if let Some(quote) = self.chars.next_if(|c| matches!(c, '"' | '\'' | '“' | '‘')) {
            let end = match quote {
                '“' => '”',
                '‘' => '’',
                same => same,
            };
            loop {
                match self.chars.next()? {
                    '\\' => text.push(escaped(self.chars.next()?)?),
                    c if c == end => return Some((text, true)),
                    c => text.push(c),
                }
            }
        }
        while let Some(c) =
            self.chars.next_if(|c| !matches!(c, ',' | ':' | '{' | '}' | '[' | ']' | '"' | '\''))
        {
            text.push(c);
        }
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some((text, false))
    }
}

/// Returns the character of a one-letter escape.
fn escaped(letter: char) -> Option<char> {
    match letter {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        '"' | '\'' | '\\' | '/' => Some(letter),
        _ => None,
    }
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
            assert_eq!(repaired(typed), Some(expected), "{typed}");
        }
        let (deep, long) = ("{a: ".repeat(100), "x".repeat(501));
        for none in rows("json_repair", "unclear_texts").into_iter().chain([&*deep, &long]) {
            assert_eq!(repaired(none), None, "{none}");
        }
    }
}
