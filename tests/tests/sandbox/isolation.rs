//! Nothing passes from one cell to the next, with pool slots and without.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use toolcell::runtime::{Isolation, Placement};
use toolcell::{CallOptions, Component, Engine, Executor, Limits, ToolCall};
use toolcell_test_guests::{Hostile, Misdeed, Place, bytes};
use toolcell_tests::{PLACEMENTS, call, ending, load, wait};

use crate::{call_guest, load_guest};

fn engine(isolation: Isolation, placement: Placement, cells: u32, cache: &Path) -> Engine {
    let builder = Engine::builder().isolation(isolation).placement(placement);
    builder.cells(cells).cache(cache).build().expect("an engine")
}

fn one_cell(isolation: Isolation, placement: Placement) -> Engine {
    engine(isolation, placement, 1, Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/artifacts")))
}

/// The two kinds of engine differ only in their allocators, and share compiled code.
#[test]
fn strict_engine_has_no_pool_but_shares_the_cache() {
    let cache = TempDir::new().expect("a directory");
    for (isolation, pooled, cached) in [
        (Isolation::Pooled, true, false),
        (Isolation::Strict, false, true),
        (Isolation::Strict, false, true),
        (Isolation::Pooled, true, true),
    ] {
        let engine = engine(isolation, Placement::Cells, 4, cache.path());
        let component = load(&engine, bytes("mischief")).expect("it loads");
        let found = (component.is_pooled(), component.is_cached());
        assert_eq!(found, (pooled, cached), "{isolation:?}");
        let remembered =
            call(&component, "remembers", r#"{"secret": "s"}"#, Limits::default()).result;
        assert_eq!(ending(&remembered), "ok");
    }
}

/// Returns guests with different numbers of pages, which look for marks and leave some, each a
/// component of its own. Those with three more memories take all memories of a slot, so that no
/// other component finds the last memory untouched.
fn markers(engine: &Engine) -> Vec<Component> {
    let guest = |pages, more_memories| {
        let guest =
            Hostile { pages, more_memories, ..Hostile::new(Place::Execute, Misdeed::LeaveMarks) };
        load_guest(engine, guest)
    };
    [1, 16, 256, 1000].into_iter().flat_map(|pages| [guest(pages, 0), guest(pages, 3)]).collect()
}

/// Fails without: the reset of any one of the things that the guests look at.
fn assert_nothing_is_left(isolation: Isolation, placement: Placement, rounds: usize) {
    let engine = one_cell(isolation, placement);
    let mischief = load(&engine, bytes("mischief")).expect("it loads");
    let markers = markers(&engine);
    let is_pooled = isolation == Isolation::Pooled;
    assert!(
        [&mischief].into_iter().chain(&markers).all(|component| component.is_pooled() == is_pooled)
    );
    for round in 0..rounds {
        let secret = format!(r#"{{"secret": "s{round}"}}"#);
        let remembered = call(&mischief, "remembers", &secret, Limits::default());
        let found = remembered.result.value().expect("an answer").to_value();
        assert_eq!(found, Value::Null, "{placement:?}");
        for (index, marker) in markers.iter().enumerate() {
            let left = call_guest(marker, Limits::default());
            let case = format!("{placement:?}, round {round}, {index}");
            assert_eq!(ending(&left.result), "ok", "{case}: {left:?}");
        }
    }
}

/// One cell, so that each call gets what the call before it had. Source: docs/threat-model.md, row
/// 54.
#[test]
fn pool_slot_keeps_nothing_between_calls() {
    for placement in PLACEMENTS {
        assert_nothing_is_left(Isolation::Pooled, placement, 6);
    }
}

/// Like the test above, without slots.
#[test]
fn strict_isolation_keeps_nothing_between_calls() {
    for placement in PLACEMENTS {
        assert_nothing_is_left(Isolation::Strict, placement, 3);
    }
}

/// A guest that runs more than once in a call finds its own marks.
#[test]
fn guest_finds_its_own_marks_within_a_call() {
    let marks = Hostile { pages: 1, ..Hostile::new(Place::Realloc, Misdeed::LeaveMarks) };
    let marks = load_guest(&one_cell(Isolation::Pooled, Placement::Cells), marks);
    assert_eq!(ending(&call_guest(&marks, Limits::default()).result), "handler_raised/unreachable");
}

/// Calls small guests one after the other, for a moment. A campaign makes a hundred thousand calls.
#[test]
fn thousands_of_calls_leave_nothing_behind() {
    let engine = one_cell(Isolation::Pooled, Placement::Inline);
    let marks = |pages| {
        let guest = Hostile { pages, ..Hostile::new(Place::Execute, Misdeed::LeaveMarks) };
        load_guest(&engine, guest).tools()[0].clone()
    };
    let pair = [marks(1), marks(2)];
    wait(async move {
        let executor = Executor::new();
        for round in 0..10_000 {
            let call = ToolCall::new("1", "hostile", "{}");
            let left = executor.call(&pair[round % 2], call, CallOptions::default()).await;
            assert_eq!(ending(&left.result), "ok", "round {round}: {left:?}");
        }
    });
}
