//! Strict isolation: cells that no slot connects, in an engine of their own.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use toolcell::{Engine, Isolation, Limits, Placement};
use toolcell_test_guests::{Hostile, Misdeed, Place, bytes};
use toolcell_tests::{PLACEMENTS, call, ending, load};

fn engine(isolation: Isolation, placement: Placement, cache: &Path) -> Engine {
    Engine::builder().isolation(isolation).placement(placement).cells(4).cache(cache).build().expect("an engine")
}

fn strict(placement: Placement) -> Engine {
    engine(Isolation::Strict, placement, Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/artefacts")))
}

/// The two kinds differ in their allocators alone, and share what was compiled.
#[test]
fn a_strict_engine_has_no_pool_and_shares_the_cache() {
    let cache = TempDir::new().expect("a directory");
    for (isolation, pooled, cached) in [
        (Isolation::Pooled, true, false),
        (Isolation::Strict, false, true),
        (Isolation::Strict, false, true),
        (Isolation::Pooled, true, true),
    ] {
        let component = load(&engine(isolation, Placement::Cells, cache.path()), bytes("mischief")).expect("it loads");
        assert_eq!((component.is_pooled(), component.is_cached()), (pooled, cached), "{isolation:?}");
        assert_eq!(ending(&call(&component, "remembers", r#"{"secret": "s"}"#, Limits::default()).result), "ok");
    }
}

/// The pairs of writers and readers of the pool's tests. Source: security design, row 54.
#[test]
fn nothing_is_left_under_strict_isolation() {
    for placement in PLACEMENTS {
        let engine = strict(placement);
        let mischief = load(&engine, bytes("mischief")).expect("it loads");
        let marks = Hostile::new(Place::Execute, Misdeed::LeaveMarks).component();
        let marks = load(&engine, marks).expect("it loads");
        assert!(!mischief.is_pooled() && !marks.is_pooled());
        for round in 0..20 {
            let secret = format!(r#"{{"secret": "s{round}"}}"#);
            let remembered = call(&mischief, "remembers", &secret, Limits::default());
            assert_eq!(remembered.result.value().expect("an answer").to_value(), Value::Null, "{placement:?}");
            let left = call(&marks, "hostile", "{}", Limits::default());
            assert_eq!(ending(&left.result), "ok", "{placement:?}, round {round}: {left:?}");
        }
    }
}
