//! Splits text into tokens, each with the column at which it starts.
//!
//! In: the expression as the caller wrote it. Out: a list of tokens that ends in [`Kind::End`].
//! Invariants: columns count characters from 1, as people do.
//! Not here: the grammar (`parse`).

use std::fmt;

/// One token and the column at which it starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) column: usize,
}

/// The kinds of tokens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Number(f64),
    Name(String),
    /// One of `+ - * / % ^ ! ( ) ,`; other spellings are already folded into these.
    Sign(char),
    End,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Number(number) => write!(out, "`{number}`"),
            Kind::Name(name) => write!(out, "`{name}`"),
            Kind::Sign(sign) => write!(out, "`{sign}`"),
            Kind::End => out.write_str("the end"),
        }
    }
}

/// Splits `text` into tokens.
///
/// # Errors
/// An unexpected character, or a malformed or too large number.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let column = at + 1;
        let (kind, length) = match character {
            blank if blank.is_whitespace() => {
                at += 1;
                continue;
            }
            '0'..='9' | '.' => number(&characters[at..], column)?,
            '*' if characters.get(at + 1) == Some(&'*') => (Kind::Sign('^'), 2),
            '+' | '-' | '*' | '/' | '%' | '^' | '!' | '(' | ')' | ',' => (Kind::Sign(character), 1),
            '×' | '·' => (Kind::Sign('*'), 1),
            '÷' => (Kind::Sign('/'), 1),
            '−' => (Kind::Sign('-'), 1),
            first if first.is_alphabetic() || first == '_' => {
                let name: String =
                    characters[at..].iter().take_while(|c| continues_name(**c)).collect();
                let length = name.chars().count();
                (Kind::Name(name), length)
            }
            other => return Err(format!("unexpected character `{other}` at column {column}")),
        };
        found.push(Token { kind, column });
        at += length;
    }
    found.push(Token { kind: Kind::End, column: characters.len() + 1 });
    Ok(found)
}

/// Returns true if a variable of this name can be written in an expression.
pub(crate) fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && text.chars().all(continues_name)
}

fn continues_name(character: char) -> bool {
    character.is_alphabetic() || character.is_ascii_digit() || character == '_'
}

/// Reads digits, a fraction and an exponent; skips `_` after a digit.
fn number(rest: &[char], column: usize) -> Result<(Kind, usize), String> {
    let mut length = 0;
    let mut text = String::new();
    while let Some(&character) = rest.get(length) {
        let exponent = text.ends_with(['e', 'E']);
        match character {
            '0'..='9' | '.' => text.push(character),
            '_' if text.ends_with(|c: char| c.is_ascii_digit()) => {}
            '+' | '-' if exponent => text.push(character),
            'e' | 'E' if !text.contains(['e', 'E']) && starts_exponent(&rest[length + 1..]) => {
                text.push(character)
            }
            _ => break,
        }
        length += 1;
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Kind::Number(value), length)),
        Ok(_) => Err(format!("the number at column {column} is too large")),
        Err(_) => Err(format!("`{text}` at column {column} is not a number")),
    }
}

/// Returns true if digits follow, so that `e` belongs to the number. `2e` is a number and then the
/// constant e.
fn starts_exponent(rest: &[char]) -> bool {
    let digits = rest.strip_prefix(&['+']).or_else(|| rest.strip_prefix(&['-'])).unwrap_or(rest);
    digits.first().is_some_and(char::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn numbers_are_parsed_in_all_their_spellings() {
        for (text, value) in
            [(".5", 0.5), ("5.", 5.0), ("1_000", 1000.0), ("1e3", 1000.0), ("2.5E-1", 0.25)]
        {
            assert_eq!(kinds(text), [Kind::Number(value), Kind::End], "{text}");
        }
        assert_eq!(tokens("1.2.3"), Err("`1.2.3` at column 1 is not a number".to_owned()));
        assert_eq!(tokens("2 + 1e999"), Err("the number at column 5 is too large".to_owned()));
    }

    #[test]
    fn typographic_signs_are_folded() {
        assert_eq!(
            kinds("×÷−**"),
            ['*', '/', '-', '^'].map(Kind::Sign).into_iter().chain([Kind::End]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn columns_count_characters() {
        let found = tokens("π + ü2").unwrap();
        assert_eq!(found[2], Token { kind: Kind::Name("ü2".to_owned()), column: 5 });
        assert_eq!(tokens("π $"), Err("unexpected character `$` at column 3".to_owned()));
    }

    #[test]
    fn e_without_digits_is_a_name() {
        assert_eq!(kinds("2e"), [Kind::Number(2.0), Kind::Name("e".to_owned()), Kind::End]);
        assert!(
            is_name("rate_2")
                && is_name("größe")
                && !is_name("2x")
                && !is_name("")
                && !is_name("a b")
        );
    }
}
