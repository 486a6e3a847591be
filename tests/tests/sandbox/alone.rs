//! Tests each bound of a cell with all other bounds far away, so that only this one can end the
//! guest.

use std::time::Duration;

use toolcell::runtime::Placement;
use toolcell::{Engine, Limits};
use toolcell_test_guests::Misdeed;
use toolcell_tests::{PLACEMENTS, ending, engine};

use crate::{any_fuel, call_guest, load_misdeed};

/// Limits without any bound but time: as much time as a call of these tests may waste.
fn idle() -> Limits {
    Limits { host_calls: u64::MAX, ..any_fuel(Duration::from_secs(3)) }
}

/// Asserts the ending of a guest that commits this misdeed in a call.
fn assert_ends(misdeed: Misdeed, limits: Limits, expected: &str) {
    for placement in PLACEMENTS {
        let engine = engine(placement, env!("CARGO_TARGET_TMPDIR"));
        let component = load_misdeed(&engine, misdeed);
        let completion = call_guest(&component, limits);
        assert_eq!(ending(&completion.result), expected, "{placement:?}: {completion:?}");
    }
}

#[test]
fn loop_ends_when_fuel_runs_out() {
    assert_ends(Misdeed::Spin, Limits { fuel: 1_000_000, ..idle() }, "timeout/fuel");
}

#[test]
fn host_call_limit_ends_the_guest() {
    let limits = Limits { host_calls: 1000, ..idle() };
    assert_ends(Misdeed::Chatter, limits, "handler_raised/host_call+host_calls");
}

#[test]
fn host_call_copies_no_more_than_a_result() {
    assert_ends(Misdeed::SayTooMuch, idle(), "handler_raised/host_call");
}

#[test]
fn memory_growth_stops_at_its_limit() {
    let limits = Limits { memory: 4 << 20, ..idle() };
    assert_ends(Misdeed::Hoard, limits, "handler_raised/unreachable+memory");
}

/// These guests spend next to no fuel, and some spend their time in the longest instructions. The
/// caller gets its answer at the deadline in any case; the only cell is free for the next call
/// because a tick stops the guest.
#[test]
fn guest_spending_no_fuel_frees_its_cell() {
    let engine = Engine::builder().placement(Placement::Cells).cells(1).build().expect("an engine");
    let behaves = load_misdeed(&engine, Misdeed::None);
    let short = Limits { timeout: Duration::from_millis(50), ..idle() };
    for misdeed in
        [Misdeed::BurnTime, Misdeed::Fill, Misdeed::Copy, Misdeed::FillTable, Misdeed::GrowStorm]
    {
        let late = call_guest(&load_misdeed(&engine, misdeed), short);
        assert_eq!(ending(&late.result), "timeout/deadline", "{misdeed:?}: {late:?}");
        let next = call_guest(&behaves, idle()).result;
        assert_eq!(ending(&next), "ok", "after {misdeed:?}");
    }
}
