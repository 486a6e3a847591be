//! Time: the process's timers, and the [`Clock`] that retries and breakers use.
//!
//! The timers have two threads of normal priority, the second for the last milliseconds ([`fine`]).
//! They never run a guest, so no guest can delay a deadline, and need nothing from the caller's
//! runtime. They are started at the first use. Invariants: a call's deadline is always real time;
//! only retries, breakers and quotas take another [`Clock`].

mod fine;
mod manual;

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::Instant;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::Error;

pub use manual::ManualClock;

/// Threads that wait for disks on behalf of guests, over all engines; more work than that waits for
/// one of them.
const BLOCKING_THREADS: usize = 32;

/// The future that [`Clock::sleep_until`] returns.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the time and sleeps. A [`Retry`](crate::Retry) and a [`Breaker`](crate::Breaker) can be
/// given one, so that a test controls their time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Instant;

    /// Completes at this time, or immediately if it has passed.
    ///
    /// # Cancel safety
    /// May be dropped.
    fn sleep_until(&self, at: Instant) -> Sleep;
}

/// Real time. It works in any async runtime, because the timers are on a thread of this library.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Box::pin(reached(Some(at)))
    }
}

static DEADLINES: LazyLock<io::Result<Runtime>> = LazyLock::new(|| timers("toolcell-timer"));
static SLEEPS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| timers("toolcell-sleep"));

fn timers(name: &str) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name(name)
        .enable_time()
        .build()
}

/// Where guests sleep. What runs inside of a guest's poll, an observer's code above all, finds this
/// runtime as the current one and may spawn onto it: so it is not the one that keeps deadlines.
///
/// # Errors
/// [`Error::is_environment`] when the process cannot have one more thread.
pub(crate) fn sleeps() -> Result<&'static Handle, Error> {
    handle(&SLEEPS)
}

fn handle(runtime: &'static io::Result<Runtime>) -> Result<&'static Handle, Error> {
    match runtime {
        Ok(runtime) => Ok(runtime.handle()),
        Err(error) => Err(Error::engine(format!("no thread for timers: {error}"))),
    }
}

/// Waits for a future until a deadline; for ever where there is none.
///
/// # Cancel safety
/// That of the future, which is polled first: an answer that is there counts, however late.
pub(crate) async fn before<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = reached(deadline) => None,
    }
}

/// Ends at the deadline, to within 0.2 ms on a machine at rest. Never, where there is none or where
/// the process cannot have one more thread.
pub(crate) async fn reached(deadline: Option<Instant>) {
    let is_fine = fine::is_running();
    let timer = deadline.zip(handle(&DEADLINES).ok()).map(|(deadline, timers)| {
        let _here = timers.enter();
        let first =
            if is_fine { deadline.checked_sub(fine::SPAN).unwrap_or(deadline) } else { deadline };
        (tokio::time::sleep_until(first.into()), deadline)
    });
    match timer {
        Some((timer, deadline)) => {
            timer.await;
            if is_fine {
                fine::until(deadline).await;
            }
        }
        None => std::future::pending().await,
    }
}
