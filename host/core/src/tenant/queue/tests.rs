//! Tests of the queue for cells (fresh WebAssembly instances, one for each call): who gets a cell,
//! who waits, and in which order. Scripts of letters name the tenants of calls.

use std::pin::Pin;
use std::task::{Context, Waker};

use futures_util::FutureExt as _;

use toolcell_test_guests::rows;

use super::*;

type Taking<'a> = Pin<Box<dyn Future<Output = Option<Slot>> + 'a>>;

/// Takes a cell for a call of this tenant, a letter; `n` is no tenant.
fn call(queue: &Arc<Queue>, tenant: char) -> Taking<'_> {
    let name = tenant.to_string();
    let tenant = TenantState::of((tenant != 'n').then_some(name.as_str()));
    Box::pin(async move { queue.take(&tenant, false, None, 0).await })
}

/// Takes a cell for a call with this many bytes of text.
fn with_text<'a>(queue: &'a Arc<Queue>, tenant: Option<&str>, text: u64) -> Taking<'a> {
    let tenant = TenantState::of(tenant);
    Box::pin(async move { queue.take(&tenant, false, None, text).await })
}

fn now(queue: &Arc<Queue>, tenant: char) -> Option<Slot> {
    call(queue, tenant).now_or_never().flatten()
}

fn is_as_new(queue: &Queue, cells: usize) -> bool {
    let state = queue.state.lock();
    let nothing = |account: &Account| account.cells == 0 && account.line.is_empty();
    (state.free, state.waiting) == (cells, 0) && state.accounts.iter().all(nothing)
}

/// Cases: cells, and calls in order, with a capital letter for each that has to wait. Fails
/// without: a tenant's bound.
#[test]
fn tenant_leaves_others_as_many_cells_as_it_holds() {
    for (cells, calls) in rows::<(_, &str)>("tenant/queue", "taken") {
        let queue = Queue::new(cells);
        let mut taken = Vec::new();
        for (number, tenant) in calls.chars().enumerate() {
            let slot = now(&queue, tenant.to_ascii_lowercase());
            let is_served = tenant.is_ascii_lowercase();
            assert_eq!(slot.is_some(), is_served, "{cells} cells, {calls}: call {number}");
            taken.extend(slot);
        }
        drop(taken);
        assert!(is_as_new(&queue, cells), "{calls}");
    }
}

/// A tenant whose executor defines others leaves half of the cells before any of them makes a call.
/// Its waiting call gets a cell when one of its own is given back.
#[test]
fn tenant_leaves_cells_to_other_defined_tenants() {
    let queue = Queue::new(4);
    let tenant = TenantState::of;
    let take = |name| queue.take(&tenant(name), true, None, 0).now_or_never().flatten();
    let held: Vec<_> = std::iter::from_fn(|| take(Some("a"))).collect();
    assert_eq!(held.len(), 2);
    let a = tenant(Some("a"));
    let mut waits = Box::pin(queue.take(&a, true, None, 0));
    assert!(waits.as_mut().now_or_never().is_none());
    assert!(take(Some("b")).is_some());
    drop(held);
    assert!(waits.now_or_never().flatten().is_some());
    let own: Vec<_> = std::iter::from_fn(|| take(None)).collect();
    assert_eq!(own.len(), 4, "calls of the embedder's own have them all");
    drop(own);
    assert!(is_as_new(&queue, 4));
}

/// Cases: cells, the tenants that have one, the tenants that wait, the tenants whose calls end, and
/// the tenants that get a cell then; `-` is no tenant. Fails without: turns (first come, first
/// served).
#[test]
fn freed_cell_goes_to_tenant_with_fewest_cells() {
    let freed = rows::<(_, &str, &str, &str, &str)>("tenant/queue", "freed");
    for (cells, have, wait, end, next) in freed {
        let queue = Queue::new(cells);
        let mut held: Vec<_> =
            have.chars().map(|tenant| (tenant, now(&queue, tenant).expect(have))).collect();
        let mut line: Vec<_> = wait.chars().map(|tenant| (tenant, call(&queue, tenant))).collect();
        assert!(line.iter_mut().all(|(_, call)| call.now_or_never().is_none()), "{wait}");
        for (number, (ends, next)) in end.chars().zip(next.chars()).enumerate() {
            let place = held.iter().position(|(tenant, _)| *tenant == ends).expect("it has one");
            drop(held.remove(place));
            let mut who = String::new();
            line.retain_mut(|(tenant, call)| {
                let Some(slot) = call.now_or_never() else { return true };
                who.push(*tenant);
                held.push((*tenant, slot.expect("a cell")));
                false
            });
            let next = String::from(next).replace('-', "");
            assert_eq!(who, next, "{have} {wait} {end}: end {number}");
        }
        drop((held, line));
        assert!(is_as_new(&queue, cells), "{have} {wait}");
    }
}

/// Also if it leaves after the cell was sent and before it was received.
#[test]
fn cancelled_waiter_takes_no_cell() {
    let queue = Queue::new(1);
    let slot = now(&queue, 'a').expect("a cell");
    let mut line = ['a', 'a', 'b', 'a'].map(|who| call(&queue, who));
    assert!(line.iter_mut().all(|call| call.now_or_never().is_none()));
    let [first, second, third, mut last] = line;
    drop(first);
    drop(slot);
    drop(third);
    drop(second);
    assert!(last.as_mut().now_or_never().flatten().is_some());
    drop(last);
    assert!(is_as_new(&queue, 1));
}

/// Fails without: a tenant's bound.
#[test]
fn tenant_leaves_as_many_queue_places_as_it_takes() {
    let queue = Queue::new(1);
    let _slot = now(&queue, 'n').expect("a cell");
    let fill = |tenant| {
        let calls = (0..=MAX_WAITING).map(|_| call(&queue, tenant));
        calls
            .map_while(|mut call| call.as_mut().now_or_never().is_none().then_some(call))
            .collect::<Vec<_>>()
    };
    let (hog, other) = (fill('a'), fill('b'));
    assert_eq!((hog.len(), other.len()), (MAX_WAITING / 2, MAX_WAITING / 4));
    let own = fill('n');
    assert_eq!(own.len(), MAX_WAITING / 4, "the embedder may have the rest");
    drop(hog);
    assert_eq!(fill('c').len(), MAX_WAITING / 4);
}

#[test]
fn tenants_without_cells_or_calls_are_forgotten() {
    let queue = Queue::new(2);
    let kept = now(&queue, 'k');
    for number in 0..10 * NAMES {
        let take = |name: String| with_text(&queue, Some(&name), 0).now_or_never();
        let slot = take(number.to_string()).flatten().expect("a cell");
        assert!(take(format!("{number} waits")).is_none());
        drop(slot);
    }
    let state = queue.state.lock();
    let is_kept = state.tenants.find(&TenantState::of(Some("k"))).is_some();
    assert!(state.known() <= NAMES + 1 && is_kept);
    assert!(state.accounts.len() <= NAMES + 3, "{} accounts", state.accounts.len());
    drop(state);
    drop(kept);
}

/// Fails without: the bound; the release of the text of a call that has left.
#[test]
fn queued_text_is_bounded_in_bytes() {
    let queue = Queue::new(1);
    let slot = now(&queue, 'n').expect("a cell");
    let wait = |tenant, text| with_text(&queue, tenant, text);
    let waits = |call: &mut Taking<'_>| {
        call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
    };
    let mut half = wait(Some("a"), WAITING_BYTES / 2);
    assert!(waits(&mut half));
    assert!(!waits(&mut wait(Some("a"), 1)), "a tenant leaves as many as it has");
    let mut rest = wait(None, WAITING_BYTES / 2);
    assert!(waits(&mut rest));
    assert!(!waits(&mut wait(None, 1)));
    assert!(waits(&mut wait(None, 0)), "there are places");
    drop(half);
    assert!(waits(&mut wait(None, WAITING_BYTES / 2)));
    drop((rest, slot));
    // A call that need not wait holds nothing.
    assert!(wait(Some("a"), u64::MAX).now_or_never().flatten().is_some());
    assert!(is_as_new(&queue, 1));
}

#[test]
fn cells_and_waiting_calls_are_counted() {
    let queue = Queue::new(2);
    assert_eq!(queue.counts(), (2, 0, 0));
    let held = [now(&queue, 'n'), now(&queue, 'n')];
    let mut waits = call(&queue, 'n');
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(queue.counts(), (2, 2, 1));
    drop((held, waits));
    assert_eq!(queue.counts(), (2, 0, 0));
}
