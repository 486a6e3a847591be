//! Tests of the redactor: each form in which a secret may be echoed, in one piece and in many.

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::*;
use crate::secrets::redact::REPLACEMENT;

const SECRETS: [&str; 4] =
    ["hunter2-canary", "k\u{fc}y/+?&= \"'\\~!*()", "AAAAAAAAAAAA", "????>>>>~~~~"];

fn looking_for(values: &[&str]) -> Redactor {
    Redactor::new(values.iter().map(|value| Secret::new(*value).unwrap()).collect()).unwrap()
}

/// Redacts text in one piece, and checks that pieces of these sizes give the same result.
fn redacted(redactor: &Redactor, text: &str, sizes: &[usize]) -> Vec<u8> {
    let whole = redactor.redact(text.as_bytes());
    for size in sizes {
        let mut pieces = redactor.in_pieces();
        let mut all: Vec<u8> =
            text.as_bytes().chunks(*size).flat_map(|piece| pieces.push(piece)).collect();
        all.extend(pieces.finish());
        assert_eq!(all, whole, "{text:?} in pieces of {size}");
    }
    whole
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn in_chunks(text: &str, size: usize) -> Vec<String> {
    text.as_bytes().chunks(size).map(|chunk| String::from_utf8_lossy(chunk).into()).collect()
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let escape =
        |c: char| c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    text.chars().map(|c| if is_kept(c) { c.to_string() } else { escape(c) }).collect()
}

fn numbered(text: &str, form: impl Fn(u16) -> String) -> String {
    text.encode_utf16().map(form).collect()
}

/// The forms, each with the number of characters that may remain because they depend on a
/// neighbouring byte too.
fn forms(secret: &str) -> Vec<(String, usize)> {
    let form = escaped(secret, |c| c.is_ascii_alphanumeric() || "-_.*".contains(c));
    let form = form.replace("%20", "+");
    let twice = escaped(secret, |c| c.is_ascii_alphanumeric());
    let twice = escaped(&twice, |c| c.is_ascii_alphanumeric());
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
        (form, 0),
        (escaped(secret, |c| c.is_ascii() && !" \"#<>".contains(c)), 0),
        (serde_json::Value::from(secret).to_string().trim_matches('"').to_owned(), 1),
        (serde_json::Value::from(secret).to_string().replace('/', "\\/"), 3),
        (twice, 0),
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
fn secret_is_redacted_in_every_form_and_chunking() {
    let redactor = looking_for(&SECRETS);
    for secret in SECRETS {
        for (form, left) in forms(secret) {
            let text = format!("<{form}> and <{form}>");
            let whole = redacted(&redactor, &text, &[1, 2, 7, 64]);
            let shown = String::from_utf8_lossy(&whole);
            assert_eq!(shown.matches("[redacted]").count(), 2, "{form}: {shown}");
            let most = "<> and <>".len() + 2 * (REPLACEMENT.len() + left);
            assert!(shown.len() <= most, "{form}: {shown}");
        }
    }
}

/// Encoders escape different characters.
#[test]
fn secret_is_redacted_as_each_encoder_writes_it() {
    let redactor = looking_for(&["cl\u{e9}+\u{fc}n\u{ef}/&<se\u{f1}>=\"\u{f6}l'`9"]);
    for (encoder, form) in rows::<(&str, &str)>("capability/http/redaction", "encoders") {
        let shown = redacted(&redactor, &format!("({form})"), &[1]);
        assert_eq!(String::from_utf8_lossy(&shown), "([redacted])", "{encoder}");
    }
}

#[test]
fn text_without_secrets_is_unchanged() {
    let redactor = looking_for(&SECRETS);
    for text in rows::<&str>("capability/http/redaction", "text_without_secrets_is_unchanged") {
        assert_eq!(redactor.redact(text.as_bytes()), text.as_bytes());
    }
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    assert_eq!(redactor.redact(&bytes), bytes);
    assert!(looking_for(&[]).redact(b"text") == b"text");
}

#[test]
fn overlapping_secrets_are_fully_redacted() {
    let redactor = looking_for(&["abcdefgh", "abcdefghijkl", "efghijkl"]);
    for (text, expected) in rows::<(&str, &str)>("capability/http/redaction", "overlapping") {
        let shown = String::from_utf8(redactor.redact(text.as_bytes())).unwrap();
        assert_eq!(shown, expected, "{text}");
    }
}

#[test]
fn separators_do_not_hide_a_secret() {
    let secret = "canary-4711-of-the-test";
    let redactor = looking_for(&[secret]);
    let (base64, hex) = (STANDARD.encode(secret), hex(secret.as_bytes()));
    let spread = |text: &str, between: &str| text.split("").collect::<Vec<_>>().join(between);
    let wrapped = |text: &str| in_chunks(text, 10).join("\r\n");
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
        let shown = String::from_utf8(redacted(&redactor, &text, &[1])).unwrap();
        let is_framed = shown.starts_with('<') && shown.ends_with('>');
        assert!(is_framed && shown.contains("[redacted]"), "{text:?}: {shown:?}");
        let left = shown.chars().filter(|c| c.is_alphanumeric()).count();
        assert!(left < "redacted".len() + 7, "{text:?}: {shown:?}");
        assert!(redactor.contains_value(text.as_bytes()), "{text:?}");
    }
    let far = spread(secret, &" ".repeat(1000));
    assert_eq!(redactor.redact(far.as_bytes()), far.as_bytes(), "so far apart it is no value");
}

/// Base32 as most encoders write it, computed bit by bit.
fn base32(bytes: &[u8]) -> String {
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let characters = bits.as_bytes().chunks(5).map(|group| {
        let group = format!("{:0<5}", String::from_utf8_lossy(group));
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from_str_radix(&group, 2).unwrap()])
    });
    characters.collect()
}

/// Checks that redaction in one piece and byte by byte leaves nothing of the form except a few
/// characters at both ends.
fn hidden(redactor: &Redactor, form: &str) {
    let text = format!("<{form}> and so on");
    let shown = String::from_utf8_lossy(&redacted(redactor, &text, &[1])).into_owned();
    let left: String = shown.trim_end_matches(" and so on").replace("[redacted]", "");
    assert!(shown.contains("[redacted]") && left.len() <= 2 + 18, "{text:?}: {shown:?}");
}

#[test]
fn double_and_rare_encodings_are_redacted() {
    for secret in
        ["canary-4711-of-the-test", "correct horse battery staple", "k\u{fc}y/+?&= \"'\\~!*()"]
    {
        let redactor = looking_for(&[secret]);
        let lower = hex(secret.as_bytes());
        let list: Vec<_> = secret.bytes().map(|byte| byte.to_string()).collect();
        for form in [
            base32(secret.as_bytes()),
            base32(format!("a{secret}").as_bytes()),
            base32(format!("user:{secret}xyz").as_bytes()).to_lowercase(),
            STANDARD.encode(STANDARD.encode(secret)),
            URL_SAFE.encode(URL_SAFE_NO_PAD.encode(format!("a:{secret}"))),
            STANDARD.encode(STANDARD.encode(format!("ab{secret}"))),
            STANDARD.encode(&lower),
            STANDARD_NO_PAD.encode(format!("x{}", lower.to_uppercase())),
            list.join(","),
            format!("[{}]", list.join(", ")),
            list.join("\n"),
            list.join(" "),
            secret.bytes().map(|byte| format!("{byte:03}")).collect(),
            secret.bytes().map(|byte| format!("={byte:02X}")).collect(),
        ] {
            hidden(&redactor, &form);
        }
    }
    let soft = "canary-4711=\r\n-of-the=\r\n-test";
    hidden(&looking_for(&["canary-4711-of-the-test"]), soft);
    hidden(&looking_for(&["canary=4711=of=the=test"]), "canary=3D4711=3Dof=\r\n=3Dthe=3Dtest");
}

#[test]
fn spelled_out_secret_is_redacted() {
    for secret in ["canary-4711-of-the-test", "correct-horse-battery", "4711081504711"] {
        let redactor = looking_for(&[secret]);
        for between in
            ["-", ".", "_", "/", ":", ";", "|", " ", "\n", "\r\n", " - ", "\", \"", "\u{200b}", "*"]
        {
            hidden(&redactor, &in_chunks(secret, 1).join(between));
            hidden(&redactor, &in_chunks(&hex(secret.as_bytes()), 2).join(between));
            hidden(&redactor, &in_chunks(&STANDARD_NO_PAD.encode(secret), 4).join(between));
        }
        let skeleton: String = secret.chars().filter(char::is_ascii_alphanumeric).collect();
        hidden(&redactor, &in_chunks(&skeleton, 4).join("-"));
    }
}

/// Text of many kinds that contains none of these values.
#[test]
fn ordinary_text_is_not_redacted() {
    let redactor =
        looking_for(&["correct-horse-battery", "password_of_mine", "4711081504711", "abcdefgh"]);
    for text in rows::<&str>("capability/http/redaction", "ordinary_text_is_not_redacted") {
        assert_eq!(String::from_utf8(redactor.redact(text.as_bytes())).unwrap(), text);
    }
    let base64: String = (0..60_000_u32)
        .map(|n| char::from(b'A' + (n.wrapping_mul(2_654_435_761) >> 27) as u8 % 26))
        .collect();
    assert_eq!(redactor.redact(base64.as_bytes()), base64.as_bytes());
}

/// The search looks at each byte a bounded number of times: text that is almost a form costs no
/// more.
#[test]
fn redaction_time_is_bounded_for_hostile_text() {
    let secret = "aaaaaaaaaaaaaaa1";
    let redactor = looking_for(&[secret]);
    for text in
        ["a".repeat(1 << 20), "a-".repeat(1 << 19), "YWFh".repeat(1 << 18), "97,".repeat(1 << 18)]
    {
        assert_eq!(redactor.redact(text.as_bytes()), text.as_bytes());
    }
}

#[test]
fn larger_half_of_a_split_secret_is_redacted() {
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
    for word in ["the password of mine", "canary-4", &"the-test+5up"[..7]] {
        // A short piece, or words of a language.
        assert_eq!(redactor.redact(word.as_bytes()), word.as_bytes(), "{word}");
    }
}

#[test]
fn all_of_many_secrets_are_found_in_fewer_forms() {
    let values: Vec<_> =
        (0..3000).map(|number| format!("secret-{number:08}-{}", "x".repeat(20))).collect();
    let redactor = looking_for(&values.iter().map(String::as_str).collect::<Vec<_>>());
    for value in values.iter().step_by(100) {
        assert_eq!(redactor.redact(value.as_bytes()), REPLACEMENT, "{value}");
    }
    assert!(!redactor.contains_value(&values[0].bytes().rev().collect::<Vec<_>>()));
}
