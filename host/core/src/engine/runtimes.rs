//! The threads of an engine: cells, timers.
//!
//! Guests run on their own threads of lower priority, so that a hostile one can hurt no caller's clock; timers run on a
//! thread of ordinary priority that never runs a guest.
//! Invariants: dropping an engine, even inside of a task, never blocks.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinError, JoinHandle};

use super::pulse::Pulse;
use crate::error::Error;

/// How much less urgent a guest is than the host's own threads, in steps of `nice`.
const GUEST_NICENESS: i32 = 10;
/// Tasks that a guest thread runs before it looks at timers and sockets: guests poll long, so after each few.
const EVENT_INTERVAL: u32 = 4;

/// A runtime that can be dropped anywhere.
#[derive(Debug)]
pub(super) struct Threads(Option<Runtime>);

impl Threads {
    /// Threads for guests.
    pub(super) fn cells(threads: usize) -> Result<Self, Error> {
        Self::build(Builder::new_multi_thread().worker_threads(threads).thread_name("toolcell-cell").on_thread_start(
            || {
                // Refused in some containers: then guests compete as equals, which the watch on their deadlines survives.
                let _ = rustix::process::nice(GUEST_NICENESS);
            },
        ))
    }

    /// A thread for timers.
    pub(super) fn timers() -> Result<Self, Error> {
        Self::build(Builder::new_multi_thread().worker_threads(1).thread_name("toolcell-timer"))
    }

    fn build(builder: &mut Builder) -> Result<Self, Error> {
        let runtime = builder
            .enable_time()
            .event_interval(EVENT_INTERVAL)
            .build()
            .map_err(|error| Error::engine("no threads").with_source(error))?;
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

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A guest's future, polled where timers are found. It can be killed from outside between
/// two polls, so that what it holds is given back at once, not when its thread next has time for it.
pub(super) struct Watched<F> {
    leash: Leash<F>,
    timers: Handle,
    pulse: Arc<Pulse>,
}

/// The outside end of a [`Watched`] future.
pub(super) struct Leash<F>(Arc<Mutex<Option<Pin<Box<F>>>>>);

impl<F> Leash<F> {
    /// Drops the future, unless it is being polled right now: then the guest sees the flag at its next tick.
    pub(super) fn kill(&self) {
        if let Ok(mut guest) = self.0.try_lock() {
            guest.take();
        }
    }
}

impl<F> Watched<F> {
    pub(super) fn new(guest: F, timers: Handle, pulse: Arc<Pulse>) -> (Self, Leash<F>) {
        let guest = Arc::new(Mutex::new(Some(Box::pin(guest))));
        (Self { leash: Leash(Arc::clone(&guest)), timers, pulse }, Leash(guest))
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Ok(mut guest) = self.leash.0.lock() else { return Poll::Pending };
        // Killed: nobody waits for an answer, and the task is about to be dropped.
        let Some(running) = guest.as_mut() else { return Poll::Pending };
        let _timers = self.timers.enter();
        self.pulse.poll(context, |context| running.as_mut().poll(context))
    }
}

/// A guest on other threads that ends when nobody waits for it any more.
pub(super) struct Remote<T, F> {
    task: JoinHandle<T>,
    leash: Leash<F>,
    pulse: Arc<Pulse>,
}

impl<T: Send + 'static, F: Future<Output = T> + Send + 'static> Remote<T, F> {
    pub(super) fn spawn(on: &Handle, (guest, leash): (Watched<F>, Leash<F>), pulse: Arc<Pulse>) -> Self {
        Self { task: on.spawn(guest), leash, pulse }
    }
}

impl<T, F> Future for Remote<T, F> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context)
    }
}

impl<T, F> Drop for Remote<T, F> {
    fn drop(&mut self) {
        self.pulse.cancel();
        self.leash.kill();
        self.task.abort();
    }
}
