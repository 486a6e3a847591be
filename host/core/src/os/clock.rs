//! Time: timers for deadlines, timers for the sleeps of guests, and the [`Clock`] that tests can
//! replace.
//!
//! [`until_deadline`] and [`before`] end a wait at a deadline, to within 0.2 ms. They use two
//! threads of this library, one with tokio's timers and one for the last milliseconds ([`fine`]),
//! which never run a guest (the WebAssembly code of a tool): no guest can delay a deadline. Guests
//! sleep on a runtime of their own ([`sleeps`]). All threads start at the first use, and need
//! nothing from the caller's runtime.
//!
//! A call's deadline is always in real time. Only retries, circuit breakers, quotas and the expiry
//! of questions accept another [`Clock`], such as the one that a test controls ([`ManualClock`]).

mod fine;
mod manual;

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime};
use std::{fmt, io};

use tokio::runtime::{Builder, Handle, Runtime};
use toolcell_contract::error::Error;

pub use manual::ManualClock;

use super::threads::shorten_slices;

/// Threads for blocking disk I/O on behalf of guests, shared by all engines. Further work waits for
/// a free thread.
const BLOCKING_THREADS: usize = 32;

/// The future that [`Clock::sleep_until`] returns.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the time and sleeps. A [`Retry`](crate::tool::Retry), a [`Breaker`](crate::tool::Breaker)
/// and a [`Sealer`](crate::Sealer) accept one, so that a test can control their time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current time, which never goes back.
    fn now(&self) -> Instant;

    /// The time of day: by default, the system's.
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Completes at this time, or immediately if the time has passed.
    ///
    /// # Cancel safety
    /// May be dropped.
    fn sleep_until(&self, at: Instant) -> Sleep;
}

/// Real time. Works in any async runtime, because the timers run on threads of this library.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Box::pin(until_deadline(Some(at)))
    }
}

static DEADLINES: LazyLock<io::Result<Runtime>> =
    LazyLock::new(|| timers("toolcell-timer", shorten_slices));
static SLEEPS: LazyLock<io::Result<Runtime>> = LazyLock::new(|| timers("toolcell-sleep", || ()));

fn timers(name: &str, setup: fn()) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name(name)
        .on_thread_start(setup)
        .enable_time()
        .build()
}

/// The runtime for the sleeps of guests. Code that runs inside a guest's poll, such as an observer,
/// sees this runtime as the current one and may spawn onto it. That is why deadlines have a runtime
/// of their own.
///
/// # Errors
/// [`Error::is_environment`] if the process cannot start another thread.
pub(crate) fn sleeps() -> Result<&'static Handle, Error> {
    handle(&SLEEPS)
}

fn handle(runtime: &'static io::Result<Runtime>) -> Result<&'static Handle, Error> {
    match runtime {
        Ok(runtime) => Ok(runtime.handle()),
        Err(error) => Err(Error::engine(format!("no thread for timers: {error}"))),
    }
}

/// Awaits a future until a deadline, or without limit if there is no deadline. Returns `None` if
/// the deadline came first.
///
/// # Cancel safety
/// As the future's. The future is polled first: an output that is ready counts, even after the
/// deadline.
pub(crate) async fn before<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = until_deadline(deadline) => None,
    }
}

/// Completes at the deadline, to within 0.2 ms on an idle machine. Never completes if there is no
/// deadline or if the process cannot start another thread.
pub(crate) async fn until_deadline(deadline: Option<Instant>) {
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
                fine::wait_until(deadline).await;
            }
        }
        None => std::future::pending().await,
    }
}
