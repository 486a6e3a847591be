//! Keeps the digits of whole numbers that a JSON tree cannot hold exactly.
//!
//! A tree (`serde_json::Value`) has 64-bit integers and doubles, so a longer number would be
//! rounded. [`exact`] takes valid JSON text and returns it with each such number written as a
//! string of all its digits; the text is borrowed if there is none. The caller passes the test for
//! "fits", usually [`fits`]. The executor uses it before it checks a value against a schema, and
//! the formats of model providers before they write a result as a tree. [`scalars`] gives the
//! positions of strings and numbers; the removal of secrets uses it too.

use std::borrow::Cow;
use std::ops::Range;

/// Digits. 64 bits hold every whole number of this length.
const SHORT: usize = 15;

/// Returns the text with quotes around each whole number for which `fits` is false.
pub fn exact(text: &str, fits: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let mut numbers = whole_numbers(text).filter(|number| !fits(&text[number.clone()])).peekable();
    if numbers.peek().is_none() {
        return text.into();
    }
    let (mut quoted, mut end) = (String::with_capacity(text.len() + 32), 0);
    for number in numbers {
        quoted.push_str(&text[end..number.start]);
        quoted.push('"');
        quoted.push_str(&text[number.clone()]);
        quoted.push('"');
        end = number.end;
    }
    quoted.push_str(&text[end..]);
    quoted.into()
}

/// Returns true if a 64-bit type or a double holds a whole number exactly.
pub fn fits(number: &str) -> bool {
    let is_exact = |double: f64| format!("{double:.0}") == number;
    number.parse::<u64>().is_ok()
        || number.parse::<i64>().is_ok()
        || number.parse().is_ok_and(is_exact)
}

/// Returns the positions of the long whole numbers of a text: those without a fraction or an
/// exponent, and outside of strings.
fn whole_numbers(text: &str) -> impl Iterator<Item = Range<usize>> {
    scalars(text).filter(|scalar| {
        let digits = text[scalar.clone()].strip_prefix('-').unwrap_or(&text[scalar.clone()]);
        scalar.len() > SHORT && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns the positions of the strings, with their quotes, and of the numbers of valid JSON text.
/// Names of members are strings, too.
pub fn scalars(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at;
            match *bytes.get(start)? {
                b'"' => at = end_of_string(bytes, at + 1),
                b'-' | b'0'..=b'9' => {
                    let is_of_a_number =
                        |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                    at += bytes[start..].iter().take_while(|byte| is_of_a_number(byte)).count();
                }
                _ => {
                    at += 1;
                    continue;
                }
            }
            return Some(start..at);
        }
    })
}

/// Returns the position after the quote that ends a string.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::rows;

    #[test]
    fn long_integer_keeps_its_digits() {
        for (text, expected) in rows::<(&str, &str)>("json/exact", "long_integer_keeps_its_digits")
        {
            assert_eq!(exact(text, fits), expected, "{text}");
        }
    }
}
