//! Tests the compile quota: each tenant may compile N times a minute, without effect on other
//! tenants.

use std::future::poll_fn;
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use toolcell::clock::ManualClock;
use toolcell::component::LoadOptions;
use toolcell::runtime::{EngineBuilder, Optimise};
use toolcell::{CallOptions, Component, Engine, Error, Event, Executor, ToolCall};
use toolcell_test_guests::Misdeed;
use toolcell_tests::binary::{CUSTOM, section};
use toolcell_tests::{load, wait, wait_here};

use super::tiers::Workshop;
use super::{Scratch, answers, echo};
use crate::load_misdeed;

/// Uploads that are refused: for each, the host reads the bytes.
const FLOOD: usize = 1000;

fn load_for(engine: &Engine, tenant: &str, bytes: Vec<u8>) -> Result<Component, Error> {
    let (engine, options) =
        (engine.clone(), LoadOptions { tenant: Some(tenant.into()), ..LoadOptions::default() });
    wait(async move { Component::load_with(&engine, bytes, options).await })
}

/// Returns an engine that gives each tenant one compilation a minute by this clock.
fn engine(builder: EngineBuilder, clock: &ManualClock) -> Engine {
    let builder = builder.optimise(Optimise::Never).compiles_per_minute(1);
    builder.quota_clock(Arc::new(clock.clone())).build().expect("an engine")
}

/// One tool in different bytes: with a custom section that has no effect.
fn version(number: usize) -> Vec<u8> {
    let text = [&[1, b'n'], number.to_string().as_bytes()].concat();
    [echo().component(), section(CUSTOM, &text)].concat()
}

#[test]
fn compile_quota_refuses_only_the_flooding_tenant() {
    let (scratch, clock) = (Scratch::new(), ManualClock::new());
    let engine = engine(scratch.builder(), &clock);
    assert!(!load_for(&engine, "a", version(0)).expect("the first of the minute").is_cached());
    for number in 1..FLOOD {
        let refused = load_for(&engine, "a", version(number)).expect_err("the minute's is spent");
        let found = (refused.is_quota(), refused.retry_after());
        assert_eq!(found, (true, Some(Duration::from_secs(60))), "{refused:?}");
    }
    // Kept code costs nothing, no matter which tenant compiled it.
    for tenant in ["a", "b"] {
        let kept = load_for(&engine, tenant, version(0)).expect("it is kept");
        assert!(kept.is_cached() && answers(&kept), "{tenant}");
    }
    assert!(!load_for(&engine, "b", version(FLOOD)).expect("another tenant's first").is_cached());
    for number in 1..4 {
        assert!(!load(&engine, version(FLOOD + number)).expect("the embedder's own").is_cached());
    }
    clock.advance(Duration::from_secs(60));
    assert!(!load_for(&engine, "a", version(1)).expect("the first of the next minute").is_cached());
}

/// Four tenants with one compilation each load the same at once: it counts for one of them.
#[test]
fn concurrent_equal_loads_are_charged_once() {
    let shop = Workshop::new(echo().component());
    let engine = engine(shop.builder(":"), &ManualClock::new());
    let tenants = ["a", "b", "c", "d"];
    std::thread::scope(|scope| {
        for tenant in tenants {
            scope.spawn(|| {
                assert!(answers(&load_for(&engine, tenant, shop.guest.clone()).expect("it loads")))
            });
        }
    });
    assert_eq!(shop.orders(), ["quick"]);
    let refused = tenants.iter().enumerate().filter(|(number, tenant)| {
        let loaded = load_for(&engine, tenant, version(*number));
        loaded.inspect_err(|error| assert!(error.is_quota(), "{error}")).is_err()
    });
    assert_eq!(refused.count(), 1);
}

/// Concurrent loads of one tenant run one after the other, and all succeed.
#[test]
fn concurrent_loads_of_a_tenant_all_succeed() {
    let scratch = Scratch::new();
    let engine = scratch.builder().optimise(Optimise::Never).build().expect("an engine");
    std::thread::scope(|scope| {
        for number in 0..6 {
            let engine = &engine;
            scope.spawn(move || {
                assert!(answers(&load_for(engine, "a", version(number)).expect("its turn came")))
            });
        }
    });
}

/// The host's only cell is busy for the whole time that `describe` may wait. The compiled code is
/// kept for the next time; if it cannot be kept, the tenant's quota is not charged. Fails without:
/// either of these.
#[test]
fn load_without_a_free_cell_loses_nothing() {
    let scratch = Scratch::new();
    std::thread::scope(|scope| {
        for (builder, is_kept) in [(scratch.builder(), true), (Engine::builder(), false)] {
            scope.spawn(move || {
                let engine = engine(builder.cells(1), &ManualClock::new());
                let sleeper = load_misdeed(&engine, Misdeed::Sleep);
                let (begins, begun) = mpsc::channel();
                let executor =
                    Executor::new().with_events(move |event: Event| drop(begins.send(event)));
                let (tool, call) = (&sleeper.tools()[0], ToolCall::new("1", "hostile", "{}"));
                let mut busy = Box::pin(executor.call(tool, call, CallOptions::default()));
                wait_here(poll_fn(|context| match busy.as_mut().poll(context) {
                    Poll::Ready(ended) => panic!("it has slept: {ended:?}"),
                    Poll::Pending if begun.try_recv().is_ok() => Poll::Ready(()),
                    Poll::Pending => Poll::Pending,
                }));
                let refused = load_for(&engine, "a", version(0)).expect_err("no cell");
                assert!(refused.is_environment() && refused.retry_after().is_some(), "{refused:?}");
                assert!(!refused.is_component(), "{refused:?}");
                assert!(refused.hint().contains("more cells"), "{refused:?}");
                drop(busy);
                let loaded = load_for(&engine, "a", version(0)).expect("it loads");
                assert!(loaded.is_cached() == is_kept && answers(&loaded), "{is_kept}");
                let spent = load_for(&engine, "a", version(1)).expect_err("the minute's is spent");
                assert!(spent.is_quota(), "{spent:?}");
                match load_for(&engine, "a", version(0)) {
                    Ok(again) => assert!(is_kept && answers(&again)),
                    Err(spent) => assert!(!is_kept && spent.is_quota(), "{spent:?}"),
                }
            });
        }
    });
}

#[test]
fn failed_compiler_start_is_not_charged() {
    let builder =
        Engine::builder().compile_in("/nowhere/compiler", [""; 0], Duration::from_secs(1));
    let engine = engine(builder, &ManualClock::new());
    for attempt in 0..3 {
        let failed = load_for(&engine, "a", version(0)).expect_err("no compiler");
        assert!(failed.is_environment(), "{attempt}: {failed:?}");
    }
}
