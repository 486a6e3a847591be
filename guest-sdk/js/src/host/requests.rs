//! HTTP requests in progress, and the clock of the call.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use toolcell_guest::bindings::toolcell::tool::http::Pending;
use toolcell_guest::bindings::wasi::io::poll::{Pollable, poll};

use crate::wasi::wasi::clocks::monotonic_clock;

/// A request and the pollable of its response. Fields are dropped in order of declaration, and the
/// request must outlive the pollable.
struct Flight {
    ready: Pollable,
    pending: Pending,
}

thread_local! {
    static FLIGHTS: RefCell<BTreeMap<u32, Flight>> = const { RefCell::new(BTreeMap::new()) };
    static LAST: Cell<u32> = const { Cell::new(0) };
    static BEGAN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Stores a request and returns its number.
pub(crate) fn add(pending: Pending) -> u32 {
    let number = LAST.get() + 1;
    LAST.set(number);
    let ready = pending.subscribe();
    FLIGHTS.with_borrow_mut(|flights| flights.insert(number, Flight { ready, pending }));
    number
}

/// Removes and returns a request.
pub(crate) fn take(number: u32) -> Option<Pending> {
    FLIGHTS.with_borrow_mut(|flights| flights.remove(&number)).map(|Flight { ready, pending }| {
        drop(ready);
        pending
    })
}

/// Waits for this many milliseconds or for a response, and returns the numbers of the requests that
/// have one. A negative time means no timeout.
pub(crate) fn wait(milliseconds: f64) -> Vec<u32> {
    let timer = (milliseconds >= 0.0)
        .then(|| monotonic_clock::subscribe_duration((milliseconds * 1e6).ceil() as u64));
    FLIGHTS.with_borrow(|flights| {
        let numbers: Vec<u32> = flights.keys().copied().collect();
        let all: Vec<&Pollable> =
            flights.values().map(|flight| &flight.ready).chain(&timer).collect();
        if all.is_empty() {
            return Vec::new();
        }
        poll(&all).into_iter().filter_map(|at| numbers.get(at as usize).copied()).collect()
    })
}

/// Milliseconds since the call began.
pub(crate) fn now() -> f64 {
    let now = monotonic_clock::now();
    let began = BEGAN.get().unwrap_or_else(|| {
        BEGAN.set(Some(now));
        now
    });
    now.saturating_sub(began) as f64 / 1e6
}
