//! Tests the quarantine of components.

use std::num::NonZero;

use toolcell::call::{LogLevel, LogSource};
use toolcell::{Definition, Event, Tool};
use toolcell_test_guests::Misdeed;
use toolcell_tests::PLACEMENTS;

use super::parts::Parts;
use super::{Guest, ON_PURPOSE, Visitor, lock, silence_intended_panics};
use crate::load_misdeed;

#[test]
fn component_that_panics_the_host_is_quarantined() {
    silence_intended_panics();
    for placement in PLACEMENTS {
        let parts = Parts::default();
        let host = parts.host(placement, NonZero::new(3));
        let component = host.load("visitor");
        let visitor = Visitor { guest: Guest::of(&component), url: host.url.clone() };
        let panics = || {
            parts.panic_in("list", 1);
            let ended = visitor.stays();
            let entered = parts.was_entered("secret");
            parts.calm_down();
            (ended, entered)
        };
        for round in 0..2 {
            for _ in 0..3 {
                assert_eq!(visitor.stays(), "ok", "good calls change nothing");
                assert!(!component.is_quarantined());
                let expected = ("handler_raised/host_panic".to_owned(), true);
                assert_eq!(panics(), expected, "{placement:?}, {round}");
            }
            let is_told = component.is_quarantined() && visitor.guest.tells_of_it();
            assert!(is_told, "{placement:?}, {round}");
            // It is refused before it has a cell, which would ask for the secret first.
            let expected = ("refusal/quarantined".to_owned(), false);
            assert_eq!(panics(), expected, "{placement:?}, {round}");
            let neighbour = Guest::of(&host.load("hello"));
            assert_eq!(neighbour.call(r#"{"name": "Ada"}"#), "ok", "another component");
            component.reinstate();
        }
        for _ in 0..3 {
            panics();
        }
        assert_eq!(visitor.stays(), "refusal/quarantined");
        assert_eq!(Visitor::at(&host).stays(), "ok", "the same component, loaded anew");
    }
}

/// Calls that wait for a cell when the quarantine begins are refused as well.
#[test]
fn quarantine_refuses_waiting_calls() {
    const CALLS: usize = 12;
    silence_intended_panics();
    let parts = Parts::default();
    let visitor = Visitor::at(&parts.host(PLACEMENTS[0], NonZero::new(3)));
    parts.panic_in("list", u32::MAX);
    let mut ended = visitor.stays_at_once(CALLS);
    ended.sort();
    let expected = [vec!["handler_raised/host_panic"; 3], vec!["refusal/quarantined"; CALLS - 3]];
    assert_eq!(ended, expected.concat());
}

/// Failures of the guest itself, and panics of an embedder's handler, do not count for the
/// quarantine.
#[test]
fn guest_traps_do_not_cause_quarantine() {
    silence_intended_panics();
    let host = Parts::default().host(PLACEMENTS[0], NonZero::new(1));
    for (misdeed, expected) in [
        (Misdeed::Abort, "handler_raised/unreachable"),
        (Misdeed::Recurse, "handler_raised/stack_overflow"),
    ] {
        let component = load_misdeed(&host.engine, misdeed);
        let guest = Guest::of(&component);
        for _ in 0..5 {
            assert_eq!(guest.call("{}"), expected);
        }
        assert!(!component.is_quarantined() && guest.statistics().panics == 0);
    }
    let panics = async |_: serde_json::Value| -> serde_json::Value { panic!("{ON_PURPOSE}") };
    let native = Definition::new("native", "").expect("a name");
    let guest = Guest::new(Tool::native(native, panics).expect("a tool"));
    for panics in 1..4 {
        assert_eq!(guest.call("{}"), "handler_raised/native_panic");
        assert_eq!(guest.statistics().panics, panics, "it is a panic all the same");
    }
}

impl Guest {
    /// Returns true if observers of the last call got the message that the component is not run any
    /// more.
    fn tells_of_it(&self) -> bool {
        let is_it = |event: &Event| {
            let Event::Log { source: LogSource::Host, level: LogLevel::Error, message, .. } = event
            else {
                return false;
            };
            message.contains("not run any more")
        };
        lock(&self.events).iter().any(is_it)
    }
}
