//! Every way to misbehave, in every place where guest code runs, at both placements: the same typed end each time, and
//! a process that goes on.

use std::time::Duration;

use toolcell::{Engine, Limits, Placement};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};
use toolcell_tests::{PLACEMENTS, call, ending, engine, load, load_ending};

/// Enough for a guest that behaves, and soon spent by one that does not.
fn tight() -> Limits {
    Limits::default().with_fuel(20_000_000).with_memory(4 << 20).with_host_calls(1000)
}

fn no_fuel_limit(timeout: Duration) -> Limits {
    tight().with_fuel(u64::MAX).with_timeout(timeout)
}

fn cell(placement: Placement) -> Engine {
    engine(placement, env!("CARGO_TARGET_TMPDIR"))
}

/// A misdeed, the limits it is done under, and how it ends.
fn table() -> Vec<(Misdeed, Limits, &'static str)> {
    let short = no_fuel_limit(Duration::from_millis(150));
    vec![
        (Misdeed::None, tight(), "ok"),
        (Misdeed::Spin, tight(), "timeout/fuel"),
        (Misdeed::Spin, short, "timeout/deadline"),
        (Misdeed::Sleep, short, "timeout/blocked"),
        (Misdeed::AwaitAbort, short, "timeout/blocked"),
        (Misdeed::Abort, tight(), "handler_raised/unreachable"),
        (Misdeed::Recurse, tight(), "handler_raised/stack_overflow"),
        (Misdeed::DivideByZero, tight(), "handler_raised/division_by_zero"),
        (Misdeed::Overflow, tight(), "handler_raised/arithmetic_overflow"),
        (Misdeed::ReadOutside, tight(), "handler_raised/memory_out_of_bounds"),
        (Misdeed::TableOutside, tight(), "handler_raised/table_out_of_bounds"),
        (Misdeed::CallNull, tight(), "handler_raised/bad_indirect_call"),
        (Misdeed::Hoard, tight(), "handler_raised/unreachable+memory"),
        (Misdeed::HoardTable, tight(), "handler_raised/unreachable+table_elements"),
        (Misdeed::HoardTable, tight().with_memory(512 << 10), "handler_raised/unreachable+memory"),
        (Misdeed::Exit, tight(), "handler_exit/called"),
        (Misdeed::Chatter, tight(), "handler_raised/host_call+host_calls"),
        (Misdeed::ReadClock, tight().with_fuel(u64::MAX), "handler_raised/host_call+host_calls"),
    ]
}

/// The component model forbids calls out of a component while the host copies into or out of it.
fn calls_out(misdeed: Misdeed) -> bool {
    match misdeed {
        Misdeed::Exit | Misdeed::Sleep | Misdeed::AwaitAbort | Misdeed::Chatter | Misdeed::ReadClock => true,
        Misdeed::None
        | Misdeed::Spin
        | Misdeed::Abort
        | Misdeed::Recurse
        | Misdeed::DivideByZero
        | Misdeed::Overflow
        | Misdeed::ReadOutside
        | Misdeed::TableOutside
        | Misdeed::CallNull
        | Misdeed::Hoard
        | Misdeed::LeaveMarks
        | Misdeed::HoardTable => false,
    }
}

fn in_a_call(place: Place) {
    for placement in PLACEMENTS {
        let engine = cell(placement);
        for (misdeed, limits, expected) in table() {
            let forbidden = matches!(place, Place::Realloc | Place::PostReturn) && calls_out(misdeed);
            let expected = if forbidden { "handler_raised/broken_abi" } else { expected };
            let component = load(&engine, Hostile::new(place, misdeed).component()).expect("describe behaves");
            let completion = call(&component, "hostile", r#"{"a": 1}"#, limits);
            let what = format!("{misdeed:?} in {place:?}, {placement:?}: {completion:?}");
            assert_eq!(ending(&completion.result), expected, "{what}");
            assert!(completion.usage.fuel.is_some_and(|fuel| fuel > 0), "no receipt: {what}");
            // The same engine, the next call: nothing is left behind.
            let good = load(&engine, Hostile::new(place, Misdeed::None).component()).expect("a guest that behaves");
            assert_eq!(ending(&call(&good, "hostile", "{}", tight()).result), "ok", "after {what}");
        }
    }
}

#[test]
fn in_realloc() {
    in_a_call(Place::Realloc);
}

#[test]
fn in_validate() {
    in_a_call(Place::Validate);
}

#[test]
fn in_visible() {
    in_a_call(Place::Visible);
}

#[test]
fn in_execute() {
    in_a_call(Place::Execute);
}

#[test]
fn after_the_return() {
    in_a_call(Place::PostReturn);
}

/// What runs before there is a tool ends the load, with the same typed end. `describe` has limits of its own.
fn at_load(place: Place) {
    for placement in PLACEMENTS {
        let engine = cell(placement);
        for (misdeed, _, expected) in table() {
            let loaded = load(&engine, Hostile::new(place, misdeed).component());
            // The limits of `describe` are not ours: there a guest that spins is always out of fuel first, and a
            // hoarder of table elements always out of those.
            let expected = match (misdeed, place) {
                // Which of its budgets is spent first is a matter of how busy the machine is.
                (Misdeed::Spin, _) if load_ending(&loaded) == "timeout/deadline" => "timeout/deadline",
                (Misdeed::Spin, _) => "timeout/fuel",
                (Misdeed::HoardTable, _) => "handler_raised/unreachable+table_elements",
                // Imports that take text go through a table that is filled after the start functions have run.
                (Misdeed::Chatter, Place::Start) => "handler_raised/bad_indirect_call",
                _ => expected,
            };
            assert_eq!(load_ending(&loaded), expected, "{misdeed:?} in {place:?}, {placement:?}");
            assert!(loaded.err().is_none_or(|error| error.is_component()));
        }
    }
}

#[test]
fn in_describe() {
    at_load(Place::Describe);
}

#[test]
fn in_start() {
    at_load(Place::Start);
}

#[test]
fn returns_that_are_no_answer() {
    let nested: &'static str = "[".repeat(200).leak();
    let table = [
        (Answer::Echo, "ok"),
        (Answer::Value("nonsense"), "invalid_return/not_json"),
        (Answer::Value(""), "invalid_return/not_json"),
        (Answer::Value("{} {}"), "invalid_return/not_json"),
        (Answer::Value(nested), "invalid_return/not_json"),
        (Answer::Megabytes(1), "invalid_return/too_large"),
        (Answer::Megabytes(16), "invalid_return/unreadable"),
        (Answer::Halt("done"), "halt"),
        (Answer::Halt("cancelled"), "invalid_return/reserved_halt"),
        (Answer::Halt("max_turns"), "invalid_return/reserved_halt"),
        (Answer::NoShape, "invalid_return/unreadable"),
        (Answer::Outside, "invalid_return/unreadable"),
        (Answer::NotText, "invalid_return/unreadable"),
    ];
    for placement in PLACEMENTS {
        let engine = cell(placement);
        for (answer, expected) in table {
            let component = load(&engine, Hostile::answering(answer).component()).expect("describe behaves");
            let limits = Limits::default().with_result((1 << 20) - 1);
            let completion = call(&component, "hostile", "{}", limits);
            assert_eq!(ending(&completion.result), expected, "{answer:?}: {completion:?}");
        }
        let lie = Hostile { output: Some(r#"{"type":"integer"}"#), ..Hostile::answering(Answer::Value("\"x\"")) };
        let component = load(&engine, lie.component()).expect("describe behaves");
        assert_eq!(ending(&call(&component, "hostile", "{}", tight()).result), "invalid_return/schema");
    }
}

#[test]
fn a_handlers_own_checks_refuse() {
    let engine = cell(Placement::Cells);
    let picky = Hostile { problem: Some("not on a Sunday"), ..Hostile::answering(Answer::Echo) };
    let completion = call(&load(&engine, picky.component()).expect("loads"), "hostile", "{}", tight());
    assert_eq!(ending(&completion.result), "refusal/invalid_arguments");
    assert!(serde_json::to_string(&completion).expect("JSON").contains("not on a Sunday"));
    let shy = Hostile { visible: false, ..Hostile::answering(Answer::Echo) };
    let completion = call(&load(&engine, shy.component()).expect("loads"), "hostile", "{}", tight());
    assert_eq!(ending(&completion.result), "refusal/not_visible");
}

/// Between two calls a guest counts its fuel in a register. The receipt of a loop that its deadline ends shows the work all
/// the same: the longer it ran, the more. (How long it takes to do two million steps is the machine's business.)
#[test]
fn a_killed_loop_has_a_receipt() {
    for placement in PLACEMENTS {
        let component = load(&cell(placement), Hostile::new(Place::Execute, Misdeed::Spin).component()).expect("loads");
        let shown = (0..8).map(|doubled| {
            let limits = no_fuel_limit(Duration::from_millis(50 << doubled));
            let completion = call(&component, "hostile", "{}", limits);
            assert_eq!(ending(&completion.result), "timeout/deadline", "{completion:?}");
            completion.usage.fuel.expect("a metered call")
        });
        assert!(shown.into_iter().any(|fuel| fuel > 2_000_000), "{placement:?}");
    }
}

/// Slots are reused, what was in them is not: 16 MiB of memory and 20,000 table elements, kept and not kept resident.
#[test]
fn nothing_is_left_in_a_slot() {
    for placement in PLACEMENTS {
        let engine = cell(placement);
        let component = load(&engine, Hostile::new(Place::Execute, Misdeed::LeaveMarks).component()).expect("loads");
        for round in 0..40 {
            let completion = call(&component, "hostile", "{}", Limits::default());
            assert_eq!(ending(&completion.result), "ok", "{placement:?}, round {round}: {completion:?}");
        }
    }
}

/// What stands in memory at the start counts too: a component that does not fit is told so, by limit.
#[test]
fn a_component_that_does_not_fit_its_limit() {
    for placement in PLACEMENTS {
        let engine = cell(placement);
        let component = load(&engine, Hostile::answering(Answer::Echo).component()).expect("loads");
        let completion = call(&component, "hostile", "{}", tight().with_memory(65_536));
        assert_eq!(ending(&completion.result), "handler_raised/limit_at_start+memory", "{completion:?}");
    }
}
