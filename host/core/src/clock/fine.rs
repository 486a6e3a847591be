//! The last milliseconds before a deadline, on a thread that sleeps to within 0.1 ms.
//!
//! Tokio's timers count milliseconds, and round up when they are set and when they are waited for:
//! a limit of 50 ms would end after 51 to 52.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

/// Longest time that a deadline is waited for here: by so much a timer of tokio may be late.
pub(super) const SPAN: Duration = Duration::from_millis(2);

/// Deadlines that are waited for, with a number for those of equal time. An entry whose receiver is
/// gone stays until its time.
static DUE: Mutex<BTreeMap<(Instant, u64), oneshot::Sender<()>>> = Mutex::new(BTreeMap::new());
static COUNT: AtomicU64 = AtomicU64::new(0);
static SOONER: Condvar = Condvar::new();
static IS_RUNNING: LazyLock<bool> =
    LazyLock::new(|| thread::Builder::new().name("toolcell-deadline".into()).spawn(run).is_ok());

/// Starts the thread at the first use. False where the process cannot have one more.
pub(super) fn is_running() -> bool {
    *IS_RUNNING
}

/// Completes at this time, or immediately if it has passed.
pub(super) async fn until(deadline: Instant) {
    let (reach, reached) = oneshot::channel();
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    {
        let mut due = DUE.lock();
        due.insert((deadline, number), reach);
        if due.first_key_value().is_some_and(|(first, _)| *first == (deadline, number)) {
            SOONER.notify_one();
        }
    }
    let _ = reached.await;
}

fn run() {
    let mut due = DUE.lock();
    loop {
        match due.first_key_value().map(|((first, _), _)| *first) {
            None => SOONER.wait(&mut due),
            Some(first) if first > Instant::now() => drop(SOONER.wait_until(&mut due, first)),
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
    async fn a_near_deadline_ends_before_a_far_one() {
        assert!(is_running());
        let (start, near) = (Instant::now(), Duration::from_millis(10));
        tokio::select! {
            biased;
            () = until(start + Duration::from_secs(3600)) => unreachable!("an hour has not passed"),
            () = until(start + near) => assert!(start.elapsed() >= near),
        }
        until(start).await;
    }
}
