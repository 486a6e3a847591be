//! Every misdeed, in every place where guest code runs, at both placements: the ending is the same
//! typed one each time, and the process goes on.

use std::time::Duration;

use toolcell::outcome::Halt;
use toolcell::runtime::Placement;
use toolcell::{
    CallContext, CallResult, Completion, Component, Engine, Limits, Outcome, ToolError,
};
use toolcell_test_guests::{Answer, CallsOut, Hostile, Misdeed, Place, rows};
use toolcell_tests::binary::{list, of_component, section};
use toolcell_tests::{PLACEMENTS, call, ending, engine, load, load_ending, wait};

use crate::{call_guest, load_guest, load_misdeed, tight};

fn no_fuel_limit(timeout: Duration) -> Limits {
    Limits { fuel: u64::MAX, timeout, ..tight() }
}

fn cell(placement: Placement) -> Engine {
    engine(placement, env!("CARGO_TARGET_TMPDIR"))
}

/// Returns each misdeed with its limits and its endings under them.
fn endings() -> Vec<(Misdeed, Limits, &'static str)> {
    let short = no_fuel_limit(Duration::from_millis(150));
    let limits = |words: &str| match words {
        "tight" => tight(),
        "short" => short,
        "short, any number of host calls" => Limits { host_calls: u64::MAX, ..short },
        "tight, any fuel" => Limits { fuel: u64::MAX, ..tight() },
        "tight, 512 KiB" => Limits { memory: 512 << 10, ..tight() },
        "tight, 16 MiB" => Limits { memory: 16 << 20, ..tight() },
        _ => panic!("{words}"),
    };
    let named = |name: &str| Misdeed::named(name).expect(name);
    let table = rows::<(&str, &str, &str)>("sandbox/hostile", "endings_of_misdeeds");
    table.into_iter().map(|(name, words, end)| (named(name), limits(words), end)).collect()
}

#[test]
fn every_misdeed_has_an_ending() {
    let endings = endings();
    // Not a misdeed by itself: see `isolation::pool_slot_keeps_nothing_between_calls`.
    for misdeed in Misdeed::ALL.iter().filter(|misdeed| **misdeed != Misdeed::LeaveMarks) {
        assert!(endings.iter().any(|(known, ..)| known == misdeed), "{misdeed:?}");
    }
}

/// The places that run while a component loads: all others run in its calls.
const AT_LOAD: [Place; 2] = [Place::Start, Place::Describe];

/// Calls the tool, and once more with four times the time as long as the deadline passes before the
/// guest runs, as it does on a busy machine: such a call has no fuel in its receipt.
fn started(component: &Component, mut limits: Limits) -> Completion {
    for _ in 0..4 {
        let completion = call(component, "hostile", r#"{"a": 1}"#, limits);
        if completion.usage.fuel.is_some() {
            return completion;
        }
        limits.timeout *= 4;
    }
    call(component, "hostile", r#"{"a": 1}"#, limits)
}

fn in_a_call(place: Place) {
    // The component model forbids calls out of a component while the host copies into or out of it.
    let is_copying = matches!(place, Place::Realloc | Place::PostReturn);
    for placement in PLACEMENTS {
        let engine = cell(placement);
        for (misdeed, limits, expected) in endings() {
            let forbidden = is_copying && misdeed.calls_out() != CallsOut::Never;
            let expected = if forbidden { "handler_raised/broken_abi" } else { expected };
            let component = load_guest(&engine, Hostile::new(place, misdeed));
            let tool = component.tools()[0].clone();
            let is_visible = wait(async move { tool.is_visible(&CallContext::default()).await });
            // If the tool cannot say that its caller may see it, the failure is not shown.
            let is_hidden = matches!(place, Place::Visible) && !is_visible;
            let expected = if is_hidden { "refusal/not_visible" } else { expected };
            let completion = started(&component, limits);
            let what = format!("{misdeed:?} in {place:?}, {placement:?}: {completion:?}");
            assert_eq!(ending(&completion.result), expected, "{what}");
            assert!(completion.usage.fuel.is_some_and(|fuel| fuel > 0), "no receipt: {what}");
            // The next call on the same engine finds nothing left behind.
            let good = load_guest(&engine, Hostile::new(place, Misdeed::None));
            assert_eq!(ending(&call_guest(&good, tight()).result), "ok", "after {what}");
        }
    }
}

/// A misdeed before there is a tool ends the load, with the same typed ending, under the host's own
/// limits.
fn at_load(place: Place) {
    for placement in PLACEMENTS {
        let engine = cell(placement);
        let mut tried = Vec::new();
        for (misdeed, _, expected) in endings() {
            // The host has one set of limits: no second row.
            if depends(misdeed) || tried.contains(&misdeed) {
                continue;
            }
            tried.push(misdeed);
            let unlinked = place == Place::Start && misdeed.calls_out() == CallsOut::WithMemory;
            let expected = if unlinked { "handler_raised/bad_indirect_call" } else { expected };
            let loaded = load(&engine, Hostile::new(place, misdeed).component());
            assert_eq!(load_ending(&loaded), expected, "{misdeed:?} in {place:?}, {placement:?}");
            assert!(loaded.err().is_none_or(|error| error.is_component()));
        }
    }
}

/// Returns true if it depends on the machine which of the host's limits a misdeed reaches first at
/// load.
fn depends(misdeed: Misdeed) -> bool {
    let loops = [Misdeed::Spin, Misdeed::TailCall, Misdeed::TailCallIndirect];
    let host_calls = [Misdeed::DrawRandom, Misdeed::ReadClock];
    let long = [Misdeed::Fill, Misdeed::Copy, Misdeed::FillTable, Misdeed::GrowStorm];
    [&loops[..], &host_calls, &long].concat().contains(&misdeed)
}

#[test]
fn misdeeds_in_execute_have_typed_endings() {
    in_a_call(Place::Execute);
}

#[test]
fn misdeeds_in_other_calls_have_typed_endings() {
    let is_other = |place: &Place| *place != Place::Execute && !AT_LOAD.contains(place);
    Place::ALL.iter().copied().filter(is_other).for_each(in_a_call);
}

#[test]
fn misdeeds_at_load_have_typed_endings() {
    AT_LOAD.into_iter().for_each(at_load);
}

/// Bounds that no caller sets lie where they are documented: the receipt shows how far the guest
/// came.
#[test]
fn object_and_handle_limits_are_as_documented() {
    for placement in PLACEMENTS {
        let engine = cell(placement);
        let usage = |misdeed| {
            let completion = call_guest(&load_misdeed(&engine, misdeed), tight());
            let end = ending(&completion.result);
            assert_eq!(end, "handler_raised/host_call", "{misdeed:?}: {completion:?}");
            completion.usage
        };
        // A pollable is two objects of 256: the thing that it waits for, and itself.
        assert_eq!(usage(Misdeed::HoardObjects).host_calls, 128 + 1);
        // Three instructions a round, 4096 handles, and a few instructions before the first.
        let fuel = usage(Misdeed::HoardHandles).fuel.expect("a metered call");
        assert!((4096..4146).contains(&(fuel / 3)), "{fuel}");
    }
}

/// The bound holds for the cell, over all instances that hold handles.
#[test]
fn handle_limit_spans_all_instances() {
    let keeps = Hostile::new(Place::Start, Misdeed::KeepSome).component();
    let holding = |instances: usize| {
        let copies =
            section(of_component::INSTANCES, &list(instances, &[0, 1, 0].repeat(instances)));
        // Instances of component 1; component 0 is the guest's own interface.
        let guest = Hostile::answering(Answer::Echo).component();
        [guest, section(of_component::COMPONENT, &keeps), copies].concat()
    };
    for placement in PLACEMENTS {
        let engine = cell(placement);
        for (instances, expected) in [(1, "ok"), (2, "ok"), (3, "handler_raised/host_call")] {
            let end = load_ending(&load(&engine, holding(instances)));
            assert_eq!(end, expected, "{instances}, {placement:?}");
        }
    }
}

#[test]
fn invalid_returns_have_typed_reasons() {
    let nested: &'static str = "[".repeat(200).leak();
    let table = [
        (Answer::Echo, "ok"),
        (Answer::Value("nonsense"), "invalid_return/not_json"),
        (Answer::Value(""), "invalid_return/not_json"),
        (Answer::Value("{} {}"), "invalid_return/not_json"),
        (Answer::Value(nested), "invalid_return/not_json"),
        (Answer::Megabytes(1), "invalid_return/too_large"),
        (Answer::Megabytes(16), "invalid_return/too_large"),
        (Answer::Parts(Outcome::MAX_PARTS), "ok"),
        (Answer::Parts(Outcome::MAX_PARTS + 1), "invalid_return/too_many_parts"),
        (Answer::Halt("done"), "halt"),
        (Answer::NoShape, "invalid_return/unreadable"),
        (Answer::Outside, "invalid_return/unreadable"),
        (Answer::NotText, "invalid_return/unreadable"),
    ];
    for placement in PLACEMENTS {
        let engine = cell(placement);
        for (answer, expected) in table {
            let limits = Limits { result: (1 << 20) - 1, ..Limits::default() };
            let completion = call_guest(&load_guest(&engine, Hostile::answering(answer)), limits);
            assert_eq!(ending(&completion.result), expected, "{answer:?}: {completion:?}");
        }
        let lie = Hostile {
            output: Some(r#"{"type":"integer"}"#),
            ..Hostile::answering(Answer::Value("\"x\""))
        };
        let result = call_guest(&load_guest(&engine, lie), tight()).result;
        assert_eq!(ending(&result), "invalid_return/schema");
    }
}

#[test]
fn guest_reserved_or_empty_halt_is_invalid() {
    for placement in PLACEMENTS {
        let engine = cell(placement);
        let result = |reason| {
            let guest = load_guest(&engine, Hostile::answering(Answer::Halt(reason)));
            call_guest(&guest, tight()).result
        };
        for word in Halt::RESERVED_REASONS {
            let result = result(word);
            assert_eq!(ending(&result), "invalid_return/reserved_halt", "{word}");
            let json = serde_json::to_string(&result).expect("JSON");
            assert!(json.contains(&format!(r#""reserved_halt_atom":"{word}""#)), "{json}");
        }
        for blank in ["", " \n"] {
            assert_eq!(ending(&result(blank)), "invalid_return/empty_halt", "{blank:?}");
        }
    }
}

#[test]
fn guest_validate_and_visible_refuse_calls() {
    let engine = cell(Placement::Cells);
    let picky = Hostile { problem: Some("not on a Sunday"), ..Hostile::answering(Answer::Echo) };
    let completion = call_guest(&load_guest(&engine, picky), tight());
    assert_eq!(ending(&completion.result), "refusal/invalid_arguments");
    assert!(serde_json::to_string(&completion).expect("JSON").contains("not on a Sunday"));
    let shy = Hostile { visible: false, ..Hostile::answering(Answer::Echo) };
    let secret =
        Hostile { parameters: Some(r#"{"properties":{"code":{"enum":["xyzzy"]}}}"#), ..shy };
    for (guest, arguments) in
        [(shy, "{}"), (secret, r#"{"code": "xyzzy"}"#), (secret, r#"{"code": "guess"}"#)]
    {
        let result = call(&load_guest(&engine, guest), "hostile", arguments, tight()).result;
        // A caller that may not see the tool learns nothing of it.
        assert_eq!(ending(&result), "refusal/not_visible", "{arguments}");
    }
}

/// Between two calls a guest counts its fuel in a register. The receipt of a loop that its deadline
/// ends still shows the work: the longer it ran, the more. (The time for two million steps depends
/// on the machine.)
#[test]
fn timed_out_loop_reports_its_fuel() {
    for placement in PLACEMENTS {
        let component = load_misdeed(&cell(placement), Misdeed::Spin);
        let shown = (0..8).map(|doubled| {
            let limits = no_fuel_limit(Duration::from_millis(50 << doubled));
            let completion = call_guest(&component, limits);
            assert_eq!(ending(&completion.result), "timeout/deadline", "{completion:?}");
            completion.usage.fuel.expect("a metered call")
        });
        assert!(shown.into_iter().any(|fuel| fuel > 2_000_000), "{placement:?}");
    }
}

/// Memory that exists at the start counts too: the ending of a component that does not fit names
/// the limit.
#[test]
fn initial_memory_over_limit_names_the_limit() {
    for placement in PLACEMENTS {
        let component = load_guest(&cell(placement), Hostile::answering(Answer::Echo));
        let completion = call_guest(&component, Limits { memory: 65_536, ..tight() });
        let end = ending(&completion.result);
        assert_eq!(end, "handler_raised/limit_at_start+memory", "{completion:?}");
    }
}

/// A guest chooses the names of its functions: in the receipt of a trap they are short and escaped.
#[test]
fn trap_backtrace_names_are_short_and_escaped() {
    // An escape sequence that sets a terminal's clipboard, a line break, text in reversed order;
    // and nearly the longest possible name.
    let symbol: String = "\u{1b}]52;c;Y3VybA==\u{7}\n\u{202e}evil\u{0}".repeat(3000);
    let mut hostile = Hostile::new(Place::Execute, Misdeed::Recurse);
    hostile.symbol = symbol.leak();
    let completion = call_guest(&load_guest(&cell(Placement::Cells), hostile), tight());
    let CallResult::ToolError(ToolError::HandlerRaised(raised)) = &completion.result else {
        panic!("{completion:?}")
    };
    assert!(raised.backtrace.iter().any(|name| name.contains("52")), "{raised:?}");
    assert!(raised.backtrace.len() <= 32, "{}", raised.backtrace.len());
    for name in &raised.backtrace {
        let is_escaped = name.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        assert!(name.len() <= 120 && is_escaped, "{name:?}");
    }
}

#[test]
fn blocked_timeout_names_the_wait() {
    let component = load_misdeed(&cell(Placement::Cells), Misdeed::Sleep);
    let result = call_guest(&component, no_fuel_limit(Duration::from_secs(1))).result;
    let CallResult::ToolError(error) = result else { panic!("{result:?}") };
    assert_eq!(error.to_string(), "the tool was still waiting for a timer after 1s");
}
