//! Waits for the last two milliseconds before a deadline, on a thread that wakes to within 0.1 ms.
//!
//! Tokio's timers have a resolution of one millisecond, and round up both when they are set and
//! when they fire: a limit of 50 ms would end after 51 to 52 ms. So the parent module lets tokio's
//! timer fire early and awaits [`wait_until`] for the rest. The thread sleeps on a condition
//! variable until the earliest pending deadline. If it cannot be started, [`is_running`] is false
//! and deadlines are up to 2 ms late.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::os::threads::shorten_slices;

/// Longest wait on this thread. A timer of tokio may be late by this much.
pub(super) const SPAN: Duration = Duration::from_millis(2);

/// Pending deadlines, each with a number that distinguishes equal times. An entry whose receiver
/// was dropped stays until its time.
static DUE: Mutex<BTreeMap<(Instant, u64), oneshot::Sender<()>>> = Mutex::new(BTreeMap::new());
static COUNT: AtomicU64 = AtomicU64::new(0);
static EARLIER_DEADLINE: Condvar = Condvar::new();
static IS_RUNNING: LazyLock<bool> =
    LazyLock::new(|| thread::Builder::new().name("toolcell-deadline".into()).spawn(run).is_ok());

/// Starts the thread at the first use. Returns false if the process cannot start another thread.
pub(super) fn is_running() -> bool {
    *IS_RUNNING
}

/// Completes at this time, or immediately if the time has passed.
pub(super) async fn wait_until(deadline: Instant) {
    let (reach, reached) = oneshot::channel();
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    {
        let mut due = DUE.lock();
        due.insert((deadline, number), reach);
        if due.first_key_value().is_some_and(|(first, _)| *first == (deadline, number)) {
            EARLIER_DEADLINE.notify_one();
        }
    }
    let _ = reached.await;
}

fn run() {
    shorten_slices();
    let mut due = DUE.lock();
    loop {
        match due.first_key_value().map(|((first, _), _)| *first) {
            None => EARLIER_DEADLINE.wait(&mut due),
            Some(first) if first > Instant::now() => {
                EARLIER_DEADLINE.wait_until(&mut due, first);
            }
            Some(_) => {
                if let Some((_, reach)) = due.pop_first() {
                    let _ = parking_lot::MutexGuard::unlocked(&mut due, || reach.send(()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn near_deadline_fires_before_far_one() {
        assert!(is_running());
        let (start, near) = (Instant::now(), Duration::from_millis(10));
        tokio::select! {
            biased;
            () = wait_until(start + Duration::from_secs(3600)) => unreachable!("an hour has not passed"),
            () = wait_until(start + near) => assert!(start.elapsed() >= near),
        }
        wait_until(start).await;
    }
}
