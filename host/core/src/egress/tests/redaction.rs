//! The forms in which a secret comes back, in one piece and in many.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::super::redact::MARK;
use super::*;

const SECRETS: [&str; 4] = ["hunter2-canary", "k\u{fc}y/+?&= \"'\\~!*()", "AAAAAAAAAAAA", "????>>>>~~~~"];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let escape = |c: char| c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    text.chars().map(|c| if is_kept(c) { c.to_string() } else { escape(c) }).collect()
}

/// The forms, and how many characters of each may be left over: those that belong to a neighbour too.
fn forms(secret: &str) -> Vec<(String, usize)> {
    let mut forms = vec![
        (secret.to_owned(), 0),
        (secret.to_uppercase().replace('\u{dc}', "\u{fc}"), 0),
        (hex(secret.as_bytes()), 0),
        (hex(secret.as_bytes()).to_uppercase(), 0),
        (escaped(secret, |_| false), 0),
        (escaped(secret, |_| false).to_lowercase(), 0),
        (escaped(secret, |c| c.is_ascii_alphanumeric()), 0),
        (escaped(secret, |c| c.is_ascii_alphanumeric() || "-_.~".contains(c)), 0),
        (escaped(secret, |c| c.is_ascii_alphanumeric() || "-_.~!*'()".contains(c)), 0),
        (escaped(secret, |c| c.is_ascii_alphanumeric() || "-_.*".contains(c)).replace("%20", "+"), 0),
        (escaped(secret, |c| c.is_ascii() && !" \"#<>".contains(c)), 0),
        (serde_json::Value::from(secret).to_string().trim_matches('"').to_owned(), 1),
        (serde_json::Value::from(secret).to_string().replace('/', "\\/"), 3),
    ];
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "z", "zy"] {
            let bytes = format!("{before}{secret}{after}");
            for engine in [&STANDARD, &URL_SAFE, &STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                forms.push((engine.encode(&bytes), (before.len() + after.len()) * 4 / 3 + 6));
            }
        }
    }
    forms
}

#[test]
fn every_form_of_a_secret_is_found_in_one_piece_and_in_many() {
    let redactor = Redactor::new(SECRETS.iter().map(|secret| secret.as_bytes())).unwrap();
    for secret in SECRETS {
        for (form, left) in forms(secret) {
            let text = format!("<{form}> and <{form}>");
            let whole = redactor.redact(text.as_bytes());
            let shown = String::from_utf8_lossy(&whole);
            assert_eq!(shown.matches("[redacted]").count(), 2, "{form}: {shown}");
            assert!(shown.len() <= "<> and <>".len() + 2 * (MARK.len() + left), "{form}: {shown}");
            for size in [1, 2, 7, 64] {
                let mut pieces = redactor.clone().in_pieces();
                let mut all: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| pieces.feed(piece)).collect();
                all.extend(pieces.finish());
                assert_eq!(all, whole, "{form} in pieces of {size}");
            }
        }
    }
}

#[test]
fn everything_else_stays_as_it_is() {
    let redactor = Redactor::new(SECRETS.iter().map(|secret| secret.as_bytes())).unwrap();
    for text in ["", "hunter2", "hunter2-canar", "-canary", "nothing of it", "68756e746572", "AAAAAAA"] {
        assert_eq!(redactor.redact(text.as_bytes()), text.as_bytes());
    }
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    assert_eq!(redactor.redact(&bytes), bytes);
    assert!(Redactor::new([]).unwrap().redact(b"text") == b"text");
}

#[test]
fn secrets_that_are_parts_of_each_other_leave_nothing() {
    let redactor = Redactor::new([&b"abcdefgh"[..], b"abcdefghijkl", b"efghijkl"]).unwrap();
    for (text, expected) in [
        ("abcdefghijkl", "[redacted]"),
        ("abcdefghijk", "[redacted]ijk"),
        ("xefghijklx", "x[redacted]x"),
        ("abcdefghabcdefgh", "[redacted][redacted]"),
    ] {
        assert_eq!(String::from_utf8(redactor.redact(text.as_bytes())).unwrap(), expected);
    }
}
