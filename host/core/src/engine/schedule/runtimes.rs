//! Starts and owns the threads of an engine, the lanes that cells (fresh WebAssembly instances, one
//! for each call) run in.
//!
//! An engine builds one [`Lanes`] with a number of threads for each set. A guest (the code of a
//! call) starts in the fast lane. If it still runs after a tick, about a millisecond, it continues
//! in the slow lane, whose threads have a far lower priority. So a short call seldom waits behind a
//! loop: it preempts it. A guest that waited for the host is resumed on a third set of threads,
//! with the priority of the fast lane. All of them have a lower priority than the host's own
//! threads.
//! Dropping an engine, even inside of an async task, never blocks.

use tokio::runtime::Builder;
use toolcell_contract::error::Error;

use super::fast_lane::FastLane;
use super::slow_lane::SlowLane;
use crate::os::threads::{Threads, less_urgent, shorten_slices};

/// The `nice` value that the fast lane adds to the host's own.
const FAST_NICENESS: i32 = 3;
/// The `nice` value that the slow lane adds: a fifteenth of the fast lane's share while both have
/// work, and never zero.
const SLOW_NICENESS: i32 = 15;
/// Tasks that a guest thread runs before it checks timers. Low, since a guest's poll is long.
const EVENT_INTERVAL: u32 = 4;
/// Tasks of its own queue that a thread runs before it takes new ones. Low, since the fair queue
/// has ordered the new ones already.
const NEW_CALLS_INTERVAL: u32 = 1;

/// The threads for cells that do not run in their caller's task.
pub(in crate::engine) struct Lanes {
    pub(super) fast_lane: FastLane,
    pub(super) woken: Threads,
    pub(super) slow_lane: SlowLane,
    /// Separate from the handle: guests have the handle, and a guest must not be the last owner of
    /// its own threads.
    _slow_threads: Threads,
}

impl Lanes {
    /// Starts this many threads for each lane.
    pub(in crate::engine) fn new(threads: usize) -> Result<Self, Error> {
        let slow = Threads::build(guests(threads, "toolcell-slow", become_slow))?;
        Ok(Self {
            fast_lane: FastLane::start(threads, become_fast)?,
            woken: Threads::build(guests(threads, "toolcell-woken", become_fast))?,
            slow_lane: SlowLane::new(slow.handle().clone(), threads),
            _slow_threads: slow,
        })
    }
}

fn become_fast() {
    // Its slices stay long: with short ones an idle lane answers in twice the time.
    less_urgent(FAST_NICENESS);
}

/// Sets the priority and the time slice of the slow lane; the background compiler has them too.
/// With the default slice, a thread would often run until the kernel's next tick, up to 4 ms, while
/// a timer or a short call of the host waits.
pub(in crate::engine) fn become_slow() {
    less_urgent(SLOW_NICENESS);
    shorten_slices();
}

fn guests(threads: usize, name: &str, setup: fn()) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(threads)
        .thread_name(name)
        .event_interval(EVENT_INTERVAL)
        .global_queue_interval(NEW_CALLS_INTERVAL)
        .on_thread_start(setup);
    builder
}
