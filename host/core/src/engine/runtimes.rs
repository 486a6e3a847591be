//! The threads of an engine: cells, timers.
//!
//! Guests run on their own threads of lower priority, so that a hostile one can hurt no caller's clock; timers run on a
//! thread of ordinary priority that never runs a guest.
//! Invariants: dropping an engine, even inside of a task, never blocks.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinError, JoinHandle};

use super::cell::Pulse;
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
        Self::build(Builder::new_multi_thread().worker_threads(threads).thread_name("toolcell-cell").on_thread_start(|| {
            // Refused in some containers: then guests compete as equals, which the watch on their deadlines survives.
            let _ = rustix::process::nice(GUEST_NICENESS);
        }))
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
    pub(super) fn handle(&self) -> Handle {
        match &self.0 {
            Some(runtime) => runtime.handle().clone(),
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

/// A guest's future, polled where timers are found and its preemption is noticed.
pub(super) struct Watched<F> {
    inner: Pin<Box<F>>,
    timers: Handle,
    pulse: Arc<Pulse>,
}

impl<F> Watched<F> {
    pub(super) fn new(inner: F, timers: Handle, pulse: Arc<Pulse>) -> Self {
        Self { inner: Box::pin(inner), timers, pulse }
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.pulse.preempted.store(false, Ordering::Relaxed);
        let this = &mut *self;
        this.pulse.waiting.store(false, Ordering::Relaxed);
        let _timers = this.timers.enter();
        let poll = this.inner.as_mut().poll(context);
        this.pulse.waiting.store(!this.pulse.preempted.load(Ordering::Relaxed), Ordering::Relaxed);
        poll
    }
}

/// A task on other threads that ends when nobody waits for it any more.
pub(super) struct Remote<T> {
    task: JoinHandle<T>,
    pulse: Arc<Pulse>,
}

impl<T: Send + 'static> Remote<T> {
    pub(super) fn spawn(on: &Handle, future: impl Future<Output = T> + Send + 'static, pulse: Arc<Pulse>) -> Self {
        Self { task: on.spawn(future), pulse }
    }
}

impl<T> Future for Remote<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context)
    }
}

impl<T> Drop for Remote<T> {
    fn drop(&mut self) {
        // The guest sees the flag at its next tick, the task when the guest next yields.
        self.pulse.cancelled.store(true, Ordering::Relaxed);
        self.task.abort();
    }
}
