//! Tests of refusals and faults: every refusal has a hint, and a fault's texts are bounded.
//!
//! They also read faults from the JSON of an earlier and of a later version.

use super::*;

#[test]
fn every_refusal_kind_has_a_hint() {
    assert!(KINDS.ends_with(&ResumeFault::ALL.map(ResumeFault::kind)));
    for kind in KINDS {
        let members = r#""faults": [], "secrets": ["token"], "retry_after_ms": 1000"#;
        let refusal: Refusal =
            serde_json::from_str(&format!(r#"{{"kind": "{kind}", {members}}}"#)).unwrap();
        assert_eq!(refusal.kind(), kind);
        let hint = refusal.hint();
        assert!(
            !hint.is_empty() && !hint.ends_with('.') && !hint.contains('\n'),
            "{refusal}: {hint}"
        );
        assert!(
            !refusal.to_string().contains(hint) || matches!(refusal, Refusal::Resume(_)),
            "{refusal}: {hint}"
        );
    }
}

#[test]
fn handler_problems_are_bounded_and_the_rest_counted() {
    let faults =
        Fault::of_handler(vec!["é".repeat(fault::MAX_PROBLEM + 1); Refusal::MAX_FAULTS + 2]);
    assert_eq!(faults.len(), Refusal::MAX_FAULTS + 1);
    assert_eq!(faults[0].expected(), "é".repeat(fault::MAX_PROBLEM) + "…");
    assert_eq!(faults[Refusal::MAX_FAULTS].kind, FaultKind::More { count: 2 });
    assert_eq!(Fault::of_handler(vec!["no".into()]), [Fault::new("", "no")]);
}

/// Reads JSON of an earlier and of a later version.
#[test]
fn fault_without_a_known_code_keeps_its_sentence() {
    for code in ["", r#""code": "of_tomorrow", "#] {
        let read: Fault =
            serde_json::from_str(&format!(r#"{{"path": "/a", {code}"expected": "a number"}}"#))
                .unwrap();
        assert_eq!(read, Fault::new("/a", "a number"));
    }
    assert!(serde_json::from_str::<Fault>(r#"{"path": "/a", "code": "of_tomorrow"}"#).is_err());
}
