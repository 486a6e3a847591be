//! Tests of cells and worker processes: their bounds, their isolation, and how calls end.

mod alone;
mod ceiling;
mod ending;
mod hostile;
mod isolation;
mod load;
mod mischief;
mod panics;
mod watched_store;
mod worker_process;
mod workers;

use std::time::Duration;

use toolcell::{Completion, Component, Engine, Limits};
use toolcell_test_guests::{Hostile, Misdeed, Place};
use toolcell_tests::{call, load};

/// Limits that a good guest does not reach, and a bad one soon does.
fn tight() -> Limits {
    // On a busy machine the host calls take longer than the default deadline.
    let timeout = Duration::from_mins(5);
    Limits { fuel: 20_000_000, memory: 4 << 20, host_calls: 1000, timeout, ..Limits::default() }
}

/// Limits without a bound on fuel.
fn any_fuel(timeout: Duration) -> Limits {
    Limits { fuel: u64::MAX, timeout, ..Limits::default() }
}

fn load_guest(engine: &Engine, guest: Hostile) -> Component {
    load(engine, guest.component()).expect("the guest describes itself")
}

/// Loads a guest that commits this misdeed in its calls.
fn load_misdeed(engine: &Engine, misdeed: Misdeed) -> Component {
    load_guest(engine, Hostile::new(Place::Execute, misdeed))
}

/// Calls the tool of a guest without arguments.
fn call_guest(component: &Component, limits: Limits) -> Completion {
    call(component, "hostile", "{}", limits)
}
