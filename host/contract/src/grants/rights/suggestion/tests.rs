//! Tests that suggested lines of configuration are complete, and never grant more than they say.
//!
//! They parse the lines as TOML, with hostile names among the texts, and check the warnings for
//! risky grants.

use super::*;
use crate::cases::rows;
use crate::grants::rights::{Decision, Rights};

#[test]
fn suggested_lines_match_the_denials_grant() {
    for asked in rows::<&str>("grants/rights/suggestion", "suggested_lines_match_the_denials_grant")
    {
        let request = Request::parse(asked).unwrap();
        let Decision::Denied(denial) = Rights::default().allows(&request) else {
            panic!("{asked}")
        };
        assert_eq!(Suggestion::of(&request).lines(), [denial.grant.expect("a grant")], "{asked}");
    }
    let need = Need { kind: "invoke".into(), pattern: ANY_TOOL.into(), reason: "to work".into() };
    assert_eq!(Suggestion::of_need(&need).lines(), [r#"invoke = ["…"]"#], "the operator decides");
    let need = Need::new("http", "GET http://.app.localhost", "to work");
    let expected = r#"http = [{ rule = "GET http://.app.localhost", private_networks = ["127.0.0.1/32", "::1/128"] }]"#;
    assert_eq!(Suggestion::of_need(&need).to_paste(), [expected]);
}

/// Names from a guest may contain text that looks like the end of a line and a grant of everything.
#[test]
fn guest_text_in_a_suggestion_grants_nothing() {
    let table = |lines: Vec<String>| {
        let text = lines.join("\n");
        text.parse::<toml::Table>().unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    for name in
        rows::<&str>("grants/rights/suggestion", "guest_text_in_a_suggestion_grants_nothing")
    {
        for asked in
            [format!("secret {name}"), format!("reveal {name}"), format!("kv write k{name}")]
        {
            let Ok(request) = Request::parse(&asked) else { continue };
            let suggestion = Suggestion::of(&request);
            let lines = table(suggestion.lines());
            assert_eq!((lines.len(), lines.contains_key("http")), (1, false), "{asked}");
            assert!(!table(suggestion.to_paste()).contains_key("http"), "{asked}");
        }
    }
}

/// Pasted lines are valid configuration, except for values that only the operator knows.
#[test]
fn pasted_suggestion_is_valid_configuration() {
    let pasted = |asked: &[&str]| {
        let mut suggestion = Suggestion::default();
        asked.iter().for_each(|asked| suggestion.add(&Request::parse(asked).unwrap()));
        suggestion.to_paste().join("\n")
    };
    for (asked, expected) in rows::<(Vec<&str>, &str)>(
        "grants/rights/suggestion",
        "pasted_suggestion_is_valid_configuration",
    ) {
        assert_eq!(pasted(&asked), expected);
        expected.parse::<toml::Table>().unwrap();
    }
    for (asked, expected) in
        rows::<(Vec<&str>, Option<&str>)>("grants/rights/suggestion", "secret_destinations")
    {
        let lines = pasted(&[&["secret key"], asked.as_slice()].concat());
        let (_, rest) = lines.split_once("destination = \"").unwrap();
        let bound = rest.split_once('"').unwrap().0;
        assert_eq!(bound, expected.unwrap_or(Suggestion::PLACEHOLDER), "{asked:?}");
    }
}

#[test]
fn risky_suggestions_carry_a_warning() {
    for (asked, expected) in
        rows::<(&str, bool)>("grants/rights/suggestion", "risky_suggestions_carry_a_warning")
    {
        let suggestion = Suggestion::of(&Request::parse(asked).unwrap());
        assert_eq!(!suggestion.warnings().is_empty(), expected, "{asked}");
    }
}

#[test]
fn suggestion_lists_each_kind_once() {
    let mut both = Suggestion::default();
    for asked in
        ["kv read b", "GET https://b.example/", "kv read a", "GET https://a.example/", "kv read a"]
    {
        both.add(&Request::parse(asked).unwrap());
    }
    let expected = [
        "http = [\"GET https://a.example/\", \"GET https://b.example/\"]",
        "kv = [\"read a\", \"read b\"]",
    ];
    assert_eq!(both.lines(), expected);
}
