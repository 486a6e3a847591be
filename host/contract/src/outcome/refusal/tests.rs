//! Tests of refusals and faults: every refusal has a hint, and a fault's texts are bounded.
//!
//! They also read faults from the JSON of an earlier and of a later version.

use super::*;

#[test]
fn every_refusal_kind_has_a_hint() {
    let wait = Duration::from_secs(1);
    let others = [
        Refusal::InvalidArguments(Vec::new()),
        Refusal::NotVisible,
        Refusal::NotAllowed,
        Refusal::CircuitOpen { retry_after: wait },
        Refusal::Overloaded { retry_after: wait },
        Refusal::Restarting { retry_after: wait },
        Refusal::Quarantined,
        Refusal::Unavailable,
        Refusal::UnsetSecret(vec!["token".into()]),
        Refusal::UnknownTenant,
        Refusal::NoTenant,
        Refusal::InvalidAnswer(Vec::new()),
    ];
    let all: Vec<_> = others.into_iter().chain(ResumeFault::ALL.map(Refusal::Resume)).collect();
    assert_eq!(all.iter().map(Refusal::kind).collect::<Vec<_>>(), KINDS);
    for refusal in all {
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
