//! The threads of an engine: lanes of cells.
//!
//! A guest starts in the quick lane. If it still runs after a tick it goes on in the slow lane,
//! whose threads are far less urgent, and where guests of its kind start once that is their habit:
//! a short call seldom stands in line behind a loop, it takes the processor from one. One that
//! waits for the host is woken on threads of the quick lane's urgency.
//! Invariants: dropping an engine, even inside of a task, never blocks.

use tokio::runtime::{Builder, Handle, Runtime};

use super::quick::Quick;
use super::slow::Slow;
use crate::error::Error;

/// How much less urgent the quick lane is than the host's own threads, in steps of `nice`.
const QUICK_NICENESS: i32 = 3;
/// The same for the slow lane, and for compilers that no call waits for: a fifteenth of the quick
/// lane's share while both have work, and never nothing. At a fifth (10) Linux sometimes lets a
/// loop run on to the kernel's next tick, up to 4 ms, while a short call waits: in a third of the
/// runs that was its 99th percentile.
pub(super) const SLOW_NICENESS: i32 = 15;
/// Tasks that a guest thread runs before it looks at timers: guests poll long, so after each few.
const EVENT_INTERVAL: u32 = 4;
/// Tasks of its own that a thread runs before it looks for new ones: those have their place in line
/// already.
const NEW_CALLS_INTERVAL: u32 = 1;

/// A runtime that can be dropped anywhere.
#[derive(Debug)]
pub(super) struct Threads(Option<Runtime>);

/// Where cells run that do not run in their caller's task.
#[derive(Debug)]
pub(super) struct Lanes {
    quick: Quick,
    woken: Threads,
    slow: Slow,
    /// Apart from the way to them: guests have that, and a guest must not be who ends its own
    /// threads.
    _slow_threads: Threads,
}

impl Lanes {
    /// This many threads for each lane.
    pub(super) fn new(threads: usize) -> Result<Self, Error> {
        let slow = Threads::build(guests(threads, "toolcell-slow", SLOW_NICENESS))?;
        Ok(Self {
            quick: Quick::start(threads, || less_urgent(QUICK_NICENESS))?,
            woken: Threads::build(guests(threads, "toolcell-woken", QUICK_NICENESS))?,
            slow: Slow::new(slow.handle().clone(), threads),
            _slow_threads: slow,
        })
    }

    pub(super) fn quick(&self) -> &Quick {
        &self.quick
    }

    pub(super) fn woken(&self) -> &Handle {
        self.woken.handle()
    }

    pub(super) fn slow(&self) -> &Slow {
        &self.slow
    }
}

impl Threads {
    pub(super) fn build(mut builder: Builder) -> Result<Self, Error> {
        let runtime =
            builder.build().map_err(|error| Error::engine("no threads").with_source(error))?;
        Ok(Self(Some(runtime)))
    }

    /// The way to these threads.
    pub(super) fn handle(&self) -> &Handle {
        match &self.0 {
            Some(runtime) => runtime.handle(),
            None => unreachable!("the runtime is taken only on drop"),
        }
    }
}

fn guests(threads: usize, name: &str, niceness: i32) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(threads)
        .thread_name(name)
        .event_interval(EVENT_INTERVAL)
        .global_queue_interval(NEW_CALLS_INTERVAL)
        .on_thread_start(move || less_urgent(niceness));
    builder
}

/// Makes the current thread less urgent. Refused in some containers: then guests compete as equals,
/// which the watch on their deadlines survives.
pub(crate) fn less_urgent(niceness: i32) {
    let _ = rustix::process::nice(niceness);
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
