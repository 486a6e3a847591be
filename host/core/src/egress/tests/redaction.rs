//! The forms in which a secret comes back, in one piece and in many.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::super::redact::MARK;
use super::*;
use crate::secret::Secret;

const SECRETS: [&str; 4] = ["hunter2-canary", "k\u{fc}y/+?&= \"'\\~!*()", "AAAAAAAAAAAA", "????>>>>~~~~"];

fn looking_for(values: &[&str]) -> Redactor {
    Redactor::new(values.iter().map(|value| Secret::new(*value).unwrap()).collect()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let escape = |c: char| c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    text.chars().map(|c| if is_kept(c) { c.to_string() } else { escape(c) }).collect()
}

fn numbered(text: &str, form: impl Fn(u16) -> String) -> String {
    text.encode_utf16().map(form).collect()
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
        (escaped(&escaped(secret, |c| c.is_ascii_alphanumeric()), |c| c.is_ascii_alphanumeric()), 0),
        (secret.chars().rev().collect(), 0),
        (secret.replace('&', "&amp;").replace('"', "&quot;").replace('\'', "&#39;"), 0),
        (numbered(secret, |unit| format!("\\u{unit:04x}")), 0),
        (numbered(secret, |unit| format!("\\u{unit:04X}")), 0),
        (numbered(secret, |unit| format!("\\u{{{unit:x}}}")), 0),
        (numbered(secret, |unit| format!("&#{unit};")), 0),
        (numbered(secret, |unit| format!("&#x{unit:x};")), 0),
        (numbered(secret, |unit| format!("&#X{unit:X};")), 0),
        (secret.bytes().map(|byte| format!("\\x{byte:02X}")).collect(), 0),
        (secret.bytes().map(|byte| format!("\\{byte:03o}")).collect(), 0),
        (secret.bytes().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"), 0),
        (secret.bytes().map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>().join(", "), 0),
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
    let redactor = looking_for(&SECRETS);
    for secret in SECRETS {
        for (form, left) in forms(secret) {
            let text = format!("<{form}> and <{form}>");
            let whole = redactor.redact(text.as_bytes());
            let shown = String::from_utf8_lossy(&whole);
            assert_eq!(shown.matches("[redacted]").count(), 2, "{form}: {shown}");
            assert!(shown.len() <= "<> and <>".len() + 2 * (MARK.len() + left), "{form}: {shown}");
            for size in [1, 2, 7, 64] {
                let mut pieces = redactor.in_pieces();
                let mut all: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| pieces.feed(piece)).collect();
                all.extend(pieces.finish());
                assert_eq!(all, whole, "{form} in pieces of {size}");
            }
        }
    }
}

#[test]
fn everything_else_stays_as_it_is() {
    let redactor = looking_for(&SECRETS);
    for text in ["", "hunter2", "unter2-", "-canary", "nothing of it", "68756e746572", "AAAAAAA", "A A A A A A A"] {
        assert_eq!(redactor.redact(text.as_bytes()), text.as_bytes());
    }
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    assert_eq!(redactor.redact(&bytes), bytes);
    assert!(looking_for(&[]).redact(b"text") == b"text");
}

#[test]
fn secrets_that_are_parts_of_each_other_leave_nothing() {
    let redactor = looking_for(&["abcdefgh", "abcdefghijkl", "efghijkl"]);
    for (text, expected) in [
        ("abcdefghijkl", "[redacted]"),
        ("abcdefghijk", "[redacted]ijk"),
        ("xefghijklx", "x[redacted]x"),
        ("abcdefghabcdefgh", "[redacted][redacted]"),
    ] {
        assert_eq!(String::from_utf8(redactor.redact(text.as_bytes())).unwrap(), expected);
    }
}

#[test]
fn what_stands_between_its_characters_hides_nothing() {
    let secret = "canary-4711-of-the-test";
    let (redactor, base64, hex) = (looking_for(&[secret]), STANDARD.encode(secret), hex(secret.as_bytes()));
    let spread = |text: &str, between: &str| text.split("").collect::<Vec<_>>().join(between);
    let wrapped = |text: &str| text.as_bytes().chunks(10).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\r\n");
    for text in [
        spread(secret, " "),
        spread(secret, "\n"),
        spread(secret, "\u{200b}"),
        spread(secret, "\" + \""),
        spread(secret, "\0"),
        spread(&hex, " "),
        wrapped(secret),
        wrapped(&base64),
        wrapped(&hex),
        format!("{}\"\n + '{}", &secret[..9], &secret[9..]),
        secret.chars().rev().map(|c| format!("{c} ")).collect(),
    ] {
        let text = format!("<{text}>");
        let shown = String::from_utf8(redactor.redact(text.as_bytes())).unwrap();
        assert!(shown.starts_with('<') && shown.ends_with('>') && shown.contains("[redacted]"), "{text:?}: {shown:?}");
        assert!(shown.chars().filter(|c| c.is_alphanumeric()).count() < "redacted".len() + 7, "{text:?}: {shown:?}");
        assert!(redactor.finds(text.as_bytes()), "{text:?}");
        let mut pieces = redactor.in_pieces();
        let mut all: Vec<u8> = text.bytes().flat_map(|byte| pieces.feed(&[byte])).collect();
        all.extend(pieces.finish());
        assert_eq!(String::from_utf8(all).unwrap(), shown, "{text:?}");
    }
    let far = spread(secret, &" ".repeat(1000));
    assert_eq!(redactor.redact(far.as_bytes()), far.as_bytes(), "so far apart it is no value");
}

#[test]
fn of_a_value_in_two_pieces_each_of_at_least_half_is_found() {
    let secret = "canary-4711-of-the-test+5up";
    let redactor = looking_for(&[secret, "password-of-mine"]);
    for at in 8..secret.len() - 8 {
        let (one, other) = secret.split_at(at);
        let text = format!("<{one}> first, and then <{other}>");
        let shown = String::from_utf8(redactor.redact(text.as_bytes())).unwrap();
        let larger = if one.len() > other.len() { one } else { other };
        assert!(!shown.contains(larger), "{shown}");
        let is_middle = at.abs_diff(secret.len() - at) <= 1;
        assert!(!is_middle || shown.matches("<[redacted]>").count() == 2, "{shown}");
    }
    for word in ["the password of mine", "canary-4", "the-test+5up"[..7].into()] {
        assert_eq!(redactor.redact(word.as_bytes()), word.as_bytes(), "a short piece, or a word of a language");
    }
}

#[test]
fn many_values_are_looked_for_in_fewer_forms_and_none_is_forgotten() {
    let values: Vec<_> = (0..3000).map(|number| format!("secret-{number:08}-{}", "x".repeat(20))).collect();
    let redactor = looking_for(&values.iter().map(String::as_str).collect::<Vec<_>>());
    for value in values.iter().step_by(100) {
        assert_eq!(redactor.redact(value.as_bytes()), MARK, "{value}");
    }
    assert!(!redactor.finds(&values[0].bytes().rev().collect::<Vec<_>>()));
}
