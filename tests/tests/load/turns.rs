//! What tenants have compiled: so many components a minute, and nobody else has fewer for it.

use std::time::Duration;

use toolcell::{Component, Engine, Error, Grants, Missing, Optimise};
use toolcell_tests::binary::{CUSTOM, section};
use toolcell_tests::{load, wait};

use crate::tiers::Workshop;
use crate::{Scratch, answers, echo};

/// Uploads that are refused: each of them costs the host a look at its bytes.
const FLOOD: usize = 300;

fn load_for(engine: &Engine, tenant: &str, bytes: Vec<u8>) -> Result<Component, Error> {
    let (engine, tenant) = (engine.clone(), tenant.to_owned());
    wait(async move { Component::load_for(&engine, &tenant, bytes, Grants::default(), Missing::Refused).await })
}

/// The same tool in other bytes: a section that says nothing.
fn version(number: usize) -> Vec<u8> {
    let text = [&[1, b'n'], number.to_string().as_bytes()].concat();
    [echo().component(), section(CUSTOM, &text)].concat()
}

#[test]
fn a_flood_of_uploads_is_refused_and_nobody_elses() {
    let scratch = Scratch::new();
    let engine = scratch.builder().optimise(Optimise::Never).compiles_per_minute(1).build().expect("an engine");
    assert!(!load_for(&engine, "a", version(0)).expect("the first of the minute").is_cached());
    for number in 1..FLOOD {
        let refused = load_for(&engine, "a", version(number)).expect_err("the minute's is spent");
        let after = refused.retry_after().expect("a time");
        assert!(refused.is_quota() && !after.is_zero() && after <= Duration::from_secs(60), "{refused:?}");
    }
    // Whoever compiled it: what is kept costs nothing.
    for tenant in ["a", "b"] {
        let kept = load_for(&engine, tenant, version(0)).expect("it is kept");
        assert!(kept.is_cached() && answers(&kept), "{tenant}");
    }
    assert!(!load_for(&engine, "b", version(FLOOD)).expect("another tenant's first").is_cached());
    for number in 1..4 {
        assert!(!load(&engine, version(FLOOD + number)).expect("the embedder's own").is_cached());
    }
}

/// Four tenants with one compilation each want the same at once: one of them has spent it.
#[test]
fn equal_loads_at_once_count_once() {
    let shop = Workshop::new(echo().component());
    let builder = shop.builder(":").optimise(Optimise::Never);
    let engine = builder.compiles_per_minute(1).build().expect("an engine");
    let tenants = ["a", "b", "c", "d"];
    std::thread::scope(|scope| {
        for tenant in tenants {
            scope.spawn(|| assert!(answers(&load_for(&engine, tenant, shop.guest.clone()).expect("it loads"))));
        }
    });
    assert_eq!(shop.orders(), ["quick"]);
    let refused = tenants.iter().enumerate().filter(|(number, tenant)| {
        let loaded = load_for(&engine, tenant, version(*number));
        loaded.inspect_err(|error| assert!(error.is_quota(), "{error}")).is_err()
    });
    assert_eq!(refused.count(), 1);
}

/// Loads of one tenant at once are served one after the other, and each of them is.
#[test]
fn a_tenants_loads_at_once_are_all_served() {
    let scratch = Scratch::new();
    let engine = scratch.builder().optimise(Optimise::Never).build().expect("an engine");
    std::thread::scope(|scope| {
        for number in 0..6 {
            let engine = &engine;
            scope.spawn(move || assert!(answers(&load_for(engine, "a", version(number)).expect("its turn came"))));
        }
    });
}
