//! Tests of sealed texts, and of all the ways in which they fail to open.

use serde_json::json;
use toolcell_test_guests::rows;

use super::*;
use crate::os::clock::ManualClock;

const KEY: [u8; KEY_BYTES] = [7; KEY_BYTES];

/// The origin of the call with these arguments.
fn origin(arguments: &Value) -> Origin<'static> {
    let arguments = fingerprint(arguments);
    Origin { tenant: Some("acme"), tool: "book", digest: Some("sha256:1"), arguments }
}

fn text(sealed: &Json) -> String {
    serde_json::from_str(sealed.as_str()).unwrap()
}

fn question_with(state: Option<&Json>) -> Question {
    let mut question = Question::new("Really?");
    question.state = state.cloned();
    question
}

fn seal(sealer: &Sealer, origin: &Origin<'_>, state: Option<&Json>) -> Result<Json, ToolError> {
    sealer.seal(origin, &question_with(state))
}

/// Opens a text and returns the state alone.
fn open(
    sealer: &Sealer,
    origin: &Origin<'_>,
    state: Option<&Json>,
) -> Result<Option<Json>, ResumeFault> {
    sealer.open_sealed(origin, state).map(|(_, state)| state)
}

fn json(text: &str) -> Json {
    Json::from(Value::from(text))
}

#[test]
fn sealed_state_round_trips() {
    let (sealer, origin) = (Sealer::new(KEY), origin(&json!({})));
    for state in
        [None, Some("null"), Some("\"\""), Some("{ \"seats\" : 2.50 }"), Some("\"ü\\u0000\"")]
    {
        let state = state.map(|state| Json::parse(state.into()).unwrap());
        let sealed = seal(&sealer, &origin, state.as_ref()).unwrap();
        let opened = open(&Sealer::new(KEY), &origin, Some(&sealed)).unwrap();
        assert_eq!(opened.as_ref().map(Json::as_str), state.as_ref().map(Json::as_str));
    }
}

#[test]
fn state_opens_only_for_the_same_call() {
    let sealer = Sealer::new(KEY);
    let asked = origin(&json!({ "day": "1", "seats": [2, { "b": 1, "a": null }] }));
    let sealed = seal(&sealer, &asked, None).unwrap();
    let respelt: Value =
        serde_json::from_str(r#" {"seats":[2,{"a":null, "b":1}],"day":"\u0031"}"#).unwrap();
    assert_eq!(open(&sealer, &origin(&respelt), Some(&sealed)), Ok(None));

    for arguments in rows::<Value>("seal", "other_arguments") {
        let opened = open(&sealer, &origin(&arguments), Some(&sealed));
        assert_eq!(opened, Err(ResumeFault::OtherArguments), "{arguments}");
    }
    for (other, fault) in [
        (Origin { tenant: Some("evil"), ..asked }, ResumeFault::Foreign),
        (Origin { tenant: Some(""), ..asked }, ResumeFault::Foreign),
        (Origin { tenant: None, ..asked }, ResumeFault::Foreign),
        (Origin { tool: "cancel", ..asked }, ResumeFault::OtherTool),
        (Origin { digest: Some("sha256:2"), ..asked }, ResumeFault::Upgraded),
        (Origin { digest: None, ..asked }, ResumeFault::Upgraded),
        // Another owner learns only that the text is foreign.
        (Origin { tenant: None, tool: "cancel", digest: None, ..asked }, ResumeFault::Foreign),
    ] {
        assert_eq!(open(&sealer, &other, Some(&sealed)), Err(fault), "{other:?}");
    }
    // Arguments as a client that parses and rewrites JSON may send them.
    let respelt = json!({ "seats": [2.0, { "a": null, "b": 1 }], "day": "1" });
    assert!(open(&sealer, &origin(&respelt), Some(&sealed)).is_ok());
    let sealed = seal(&sealer, &origin(&json!({ "n": 1e16 })), None).unwrap();
    for (n, expected) in [
        (10_000_000_000_000_000_u64, Ok(None)),
        (10_000_000_000_000_001_u64, Err(ResumeFault::OtherArguments)),
    ] {
        let opened = open(&sealer, &origin(&json!({ "n": n })), Some(&sealed));
        assert_eq!(opened, expected, "{n}");
    }
}

#[test]
fn state_opens_only_within_its_lifetime() {
    let clock = ManualClock::new();
    let sealer =
        Sealer::new(KEY).with_lifetime(Duration::from_secs(60)).with_clock(Arc::new(clock.clone()));
    let patient = sealer.clone().with_lifetime(Duration::MAX);
    let origin = origin(&json!({}));
    let sealed = seal(&sealer, &origin, None).unwrap();
    // It can be opened twice within its lifetime, and not after it. A new lifetime does not change
    // texts that are already sealed.
    for (passed, expected) in [
        (0, Ok(None)),
        (59_999, Ok(None)),
        (1, Err(ResumeFault::Expired)),
        (u64::MAX / 2, Err(ResumeFault::Expired)),
    ] {
        clock.advance(Duration::from_millis(passed));
        let opened = open(&patient, &origin, Some(&sealed));
        assert_eq!(opened, expected, "after {passed} ms more");
    }
    let ever = seal(&patient, &origin, None).unwrap();
    assert_eq!(open(&sealer, &origin, Some(&ever)), Ok(None));
}

#[test]
fn any_change_to_sealed_text_is_detected() {
    let (sealer, origin) = (Sealer::new(KEY), origin(&json!({})));
    let sealed = text(&seal(&sealer, &origin, Some(&Json::null())).unwrap());
    let tampered = |text: &str| {
        assert_eq!(open(&sealer, &origin, Some(&json(text))), Err(ResumeFault::Tampered), "{text}")
    };
    for at in 0..sealed.len() {
        for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=".chars() {
            let changed =
                [&sealed[..at], other.encode_utf8(&mut [0; 4]), &sealed[at + 1..]].concat();
            if changed != sealed {
                tampered(&changed);
            }
        }
        tampered(&sealed[..at]);
        tampered(&sealed[at + 1..]);
        tampered(&[&sealed[..at], &sealed[at + 1..]].concat());
    }
    for more in ["A", "AAAA", "=", " ", "\n", "ü"] {
        tampered(&(sealed.clone() + more));
        tampered(&(more.to_owned() + &sealed));
    }
}

#[test]
fn unsealed_or_foreign_state_does_not_open() {
    let (sealer, origin) = (Sealer::new(KEY), origin(&json!({})));
    let opened = |state: Option<Json>| open(&sealer, &origin, state.as_ref());
    assert_eq!(opened(None), Err(ResumeFault::Missing));
    let other_key = seal(&Sealer::new([8; KEY_BYTES]), &origin, None).unwrap();
    let own_key = seal(&Sealer::generate().unwrap(), &origin, None).unwrap();
    let sealed = text(&seal(&sealer, &origin, None).unwrap());
    let other_version = sealed.replacen("tc2.", "tc3.", 1);
    let huge = format!("tc2.{}", "A".repeat(MAX_SEALED));
    let states = [json!(null), json!({ "seats": 2 }), json!([sealed])].map(Json::from);
    let texts = ["", "tc2.", "tc2.AAAA", &other_version, &huge].map(json);
    for state in states.into_iter().chain(texts).chain([other_key, own_key]) {
        assert_eq!(opened(Some(state.clone())), Err(ResumeFault::Tampered), "{state}");
    }
}

/// The seal contains the schema, so a client cannot answer a different question.
#[test]
fn answer_is_checked_against_the_sealed_schema() {
    let (sealer, origin) = (Sealer::new(KEY), origin(&json!({})));
    let left = json("left");
    let question =
        question_with(Some(&left)).with_answer_schema(json!({"type": "integer", "minimum": 1}));
    let sealed = sealer.seal(&origin, &question).unwrap();
    let answered = |answer: Value| {
        sealer.open(&origin, &Resume { answer: answer.into(), state: Some(sealed.clone()) })
    };
    for _ in 0..2 {
        let Err(Refusal::InvalidAnswer(faults)) = answered(json!("two")) else {
            panic!("it was accepted")
        };
        assert_eq!(faults, question.check_answer(&json("two")).unwrap_err());
        // The question can be answered again with the same state.
        let resume = Resume { answer: json!(2).into(), state: Some(left.clone()) };
        assert_eq!(answered(json!(2)), Ok(resume));
    }
    let together = question_with(Some(&json(&"x".repeat(Sealer::MAX_STATE as usize - 10))))
        .with_answer_schema(json!({"minimum": 1}));
    assert!(matches!(
        sealer.seal(&origin, &together),
        Err(ToolError::InvalidReturn(ReturnRule::StateTooLarge { limit: Sealer::MAX_STATE, .. }))
    ));
}

#[test]
fn largest_state_fits_into_one_command_argument() {
    let (sealer, origin) = (Sealer::new(KEY), origin(&json!({})));
    let of = |bytes: u64| json(&"x".repeat(usize::try_from(bytes).unwrap() - 2));
    let sealed = seal(&sealer, &origin, Some(&of(Sealer::MAX_STATE))).unwrap();
    assert_eq!(sealed.as_str().len(), MAX_SEALED);
    const { assert!(MAX_SEALED < 128 << 10) };
    assert_eq!(open(&sealer, &origin, Some(&sealed)), Ok(Some(of(Sealer::MAX_STATE))));
    let (limit, actual) = (Sealer::MAX_STATE, Sealer::MAX_STATE + 1);
    let refused = ToolError::InvalidReturn(ReturnRule::StateTooLarge { limit, actual });
    assert_eq!(seal(&sealer, &origin, Some(&of(actual))), Err(refused));
}

#[test]
fn sealed_text_reveals_no_state_or_key() {
    let (sealer, origin) = (Sealer::new(KEY), origin(&json!({})));
    let secret = json("the name of the rose");
    let sealed = seal(&sealer, &origin, Some(&secret)).unwrap();
    let again = seal(&sealer, &origin, Some(&secret)).unwrap();
    assert_ne!(text(&sealed), text(&again), "equal states are not seen to be equal");
    let bytes = URL_SAFE_NO_PAD.decode(&text(&sealed)[PREFIX.len()..]).unwrap();
    for open in [b"rose".as_slice(), b"acme", b"book", b"sha256"] {
        assert!(!bytes.windows(open.len()).any(|window| window == open));
    }
    assert_eq!(format!("{sealer:?}"), "Sealer { lifetime: 86400s, .. }");
}
