//! Ticker: a thread that makes all running guests interruptible every millisecond.
//!
//! An engine starts one [`Ticker`]. While at least one guest (the WebAssembly code of a tool) runs,
//! its thread raises the epoch of the wasmtime engines every millisecond. The epoch is a counter
//! that compiled guest code compares with its deadline; when it is reached, the tick function of
//! the cell (the fresh store of one call) decides whether the guest continues. Without guests the
//! thread sleeps. After a panic of its own it goes on within a tick.
//! Invariants: the epoch is raised for all guests and never to stop one call. Fuel (the count of
//! executed instructions) is a second, independent bound.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::{sync::Arc, thread, time::Duration};

use toolcell_contract::{controls::enforced, error::Error, panic_guard::guarded};
use wasmtime::EngineWeak;

use crate::os::threads::shorten_slices;

/// The longest time that a guest runs before the host can interrupt it.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// Idle ticks before the ticker sleeps. Calls often come in series; waking a thread for each would
/// cost more than a tick.
const LINGER: u32 = 100;

/// Raises epochs while at least one [`Running`] exists.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: thread::Thread,
}

#[derive(Default)]
struct Shared {
    running: AtomicUsize,
    ticks: AtomicU64,
    asleep: AtomicBool,
    stopped: AtomicBool,
    #[cfg(test)]
    poisoned: AtomicBool,
}

impl Ticker {
    /// Starts to tick for these engines. The thread ends when the ticker is dropped.
    pub(crate) fn start(engines: Vec<EngineWeak>) -> Result<Self, Error> {
        let shared = Arc::<Shared>::default();
        let ticking = Arc::clone(&shared);
        let spawned = thread::Builder::new().name("toolcell-tick".into()).spawn(move || {
            shorten_slices();
            while guarded(|| tick(&ticking, &engines)).is_none() && enforced!(TickerWatch) {
                tracing::error!("the ticking thread panicked, and goes on");
            }
        });
        let thread = spawned.map_err(|error| {
            Error::engine("the clock's thread cannot be started").with_source(error)
        })?;
        Ok(Self { shared, thread: thread.thread().clone() })
    }

    /// Ticks until the returned guard is dropped.
    pub(crate) fn run(&self) -> Running {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        // Pairs with the order in `Shared::sleep`: it first sets `asleep`, then checks for guests.
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(Arc::clone(&self.shared))
    }

    /// Returns the number of times that the epoch was raised.
    #[cfg(test)]
    pub(crate) fn ticks(&self) -> u64 {
        self.shared.ticks.load(Ordering::Relaxed)
    }

    /// Makes the ticking thread panic at its next tick, as a bug would.
    #[cfg(test)]
    pub(super) fn poison(&self) {
        self.shared.poisoned.store(true, Ordering::SeqCst);
    }

    #[cfg(test)]
    fn is_asleep(&self) -> bool {
        self.shared.asleep.load(Ordering::SeqCst)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// A guard that counts one running guest.
pub(crate) struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Sleeps until a guest runs or the ticker is stopped.
    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        while self.running.load(Ordering::SeqCst) == 0 && !self.stopped.load(Ordering::SeqCst) {
            thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

/// Ticks until the ticker is stopped.
fn tick(shared: &Shared, engines: &[EngineWeak]) {
    let mut idle = 0;
    while !shared.stopped.load(Ordering::SeqCst) {
        if shared.running.load(Ordering::SeqCst) > 0 {
            idle = 0;
        } else if idle < LINGER {
            idle += 1;
        } else {
            shared.sleep();
        }
        thread::sleep(TICK);
        #[cfg(test)]
        assert!(!shared.poisoned.swap(false, Ordering::SeqCst), "poisoned by a test");
        for engine in engines.iter().filter_map(EngineWeak::upgrade) {
            engine.increment_epoch();
        }
        shared.ticks.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_until(what: &str, condition: impl Fn() -> bool) {
        let patience = std::time::Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(std::time::Instant::now() < patience, "{what}");
            thread::yield_now();
        }
    }

    #[test]
    fn ticker_sleeps_when_idle_and_wakes_for_a_guest() {
        let ticker = Ticker::start(Vec::new()).unwrap();
        for _ in 0..3 {
            wait_until("never fell asleep", || ticker.is_asleep());
            let before = ticker.ticks();
            let running = ticker.run();
            wait_until("never woke", || ticker.ticks() > before + 2);
            drop(running);
        }
    }

    #[test]
    fn ticker_goes_on_after_a_panic() {
        let ticker = Ticker::start(Vec::new()).unwrap();
        let _running = ticker.run();
        for _ in 0..3 {
            ticker.poison();
            wait_until("poison not taken", || !ticker.shared.poisoned.load(Ordering::SeqCst));
            let before = ticker.ticks();
            wait_until("does not go on", || ticker.ticks() > before + 2);
        }
    }
    /// The ticking thread panics at its first tick, and fuel ends neither guest; the only cell is
    /// still free for the next call. (A guest that spends fuel yields now and then in any case, and
    /// is dropped there; `BurnTime` spends next to none.)
    #[test]
    fn guest_is_ended_though_the_ticker_dies() {
        use toolcell_contract::call::CallResult;
        use toolcell_contract::limits::Limits;
        use toolcell_contract::outcome::tool_error::{Timeout, ToolError};
        use toolcell_test_guests::{Hostile, Misdeed, Place};

        use crate::engine::compile::load::LoadedComponent;
        use crate::engine::{Engine, LoadOptions};
        use crate::tool::handler::Invocation;

        let engine = Engine::builder().cells(1).build().unwrap();
        let sleeps = engine.compiler.scheduler.sleeps;
        let loaded = |misdeed| {
            let bytes = Hostile::new(Place::Execute, misdeed).component();
            sleeps.block_on(engine.load(bytes.into(), LoadOptions::default())).unwrap()
        };
        let behaves = loaded(Misdeed::None);
        let called = |component: &LoadedComponent, timeout| {
            let limits =
                Limits { fuel: u64::MAX, host_calls: u64::MAX, timeout, ..Limits::default() };
            let call = Arc::new(Invocation::scripted("hostile", limits));
            let checks = component.definitions[0].checks;
            sleeps.block_on(component.call(call, checks, Arc::default()))
        };
        let ticker = &engine.compiler.linker.ticker;
        for runs in [loaded(Misdeed::BurnTime), loaded(Misdeed::Spin)] {
            wait_until("never fell asleep", || ticker.is_asleep());
            ticker.poison();
            let ended = called(&runs, Duration::from_millis(100));
            let CallResult::ToolError(ToolError::Timeout(Timeout::Deadline { .. })) = ended else {
                panic!("{ended:?}")
            };
            wait_until("poison not taken", || !ticker.shared.poisoned.load(Ordering::SeqCst));
            let answered = called(&behaves, Duration::from_secs(10));
            let is_free = matches!(answered, CallResult::Outcome(_));
            assert!(is_free, "its cell is not free: {answered:?}");
            let before = ticker.ticks();
            let _running = ticker.run();
            wait_until("does not go on", || ticker.ticks() > before + 2);
        }
    }
}
