//! The quick lane: threads that run the first slice of every call.
//!
//! Most calls are over before a sleeping thread would have woken for them (on a virtual machine that takes longer than the
//! call), so the threads stay awake for a moment after their work, and a caller whose call is picked up at once waits awake
//! for a moment too.
//! Invariants: a job is one slice: it ends at the guest's next tick, and what the guest had the host do meanwhile (copy,
//! fill) is bounded by its memory; with one core nobody waits awake; idle threads sleep.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::fence::fenced;

/// How long a thread stays awake for the next call.
const LINGER: Duration = Duration::from_micros(50);
/// How long a caller waits awake for a call that was picked up at once: several short calls long.
const PATIENCE: Duration = Duration::from_micros(30);

type Slice = Box<dyn FnOnce() + Send>;

/// The threads.
#[derive(Debug)]
pub(super) struct Quick(Arc<Shared>);

struct Shared {
    slices: Mutex<VecDeque<Slice>>,
    wake: Condvar,
    /// The queue's length, to be read without its lock.
    waiting: AtomicUsize,
    awake: AtomicUsize,
    linger: Duration,
    stopped: AtomicBool,
}

impl Quick {
    /// Starts this many threads; each begins with `setup`.
    pub(super) fn start(threads: usize, setup: fn()) -> Result<Self, Error> {
        let many_cores = thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
        let shared = Arc::new(Shared {
            slices: Mutex::default(),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
            awake: AtomicUsize::new(0),
            linger: if many_cores { LINGER } else { Duration::ZERO },
            stopped: AtomicBool::new(false),
        });
        let quick = Self(Arc::clone(&shared));
        for _ in 0..threads {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("toolcell-quick".into())
                .spawn(move || {
                    setup();
                    shared.work();
                })
                .map_err(|error| Error::engine("no threads").with_source(error))?;
        }
        Ok(quick)
    }

    /// Hands over a slice. Whether it is worth to wait awake for it.
    pub(super) fn run(&self, slice: Slice) -> bool {
        let shared = &self.0;
        let mut slices = shared.slices();
        slices.push_back(slice);
        shared.waiting.store(slices.len(), Ordering::Release);
        drop(slices);
        shared.see_to_it()
    }
}

impl Drop for Quick {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Release);
        let _slices = self.0.slices();
        self.0.wake.notify_all();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Shared {
    fn slices(&self) -> MutexGuard<'_, VecDeque<Slice>> {
        // No slice runs while the queue is held.
        self.slices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(slice) = self.next() {
            // A panic in it drops what the caller waits on, who then knows; the thread lives.
            let _ = fenced(slice);
        }
    }

    /// The next slice: at once, within the time that a thread stays awake, or after a sleep. None: the lane is closed.
    fn next(&self) -> Option<Slice> {
        loop {
            if self.stopped.load(Ordering::Acquire) {
                return None;
            }
            if let Some(slice) = self.take() {
                return Some(slice);
            }
            self.awake.fetch_add(1, Ordering::AcqRel);
            let more = wait_awake(self.linger, || self.waiting.load(Ordering::Acquire) > 0);
            self.awake.fetch_sub(1, Ordering::AcqRel);
            if more {
                continue;
            }
            // Whoever hands over after this look sees that nobody is awake: the queue's lock orders the two.
            let mut slices = self.slices();
            while slices.is_empty() && !self.stopped.load(Ordering::Acquire) {
                slices = self.wake.wait(slices).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn take(&self) -> Option<Slice> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut slices = self.slices();
        let slice = slices.pop_front()?;
        let left = slices.len();
        self.waiting.store(left, Ordering::Release);
        drop(slices);
        if left > 0 {
            // Whoever handed it over may have counted on this thread, which has something else to do now.
            self.see_to_it();
        }
        Some(slice)
    }

    /// Sees to it that a thread looks at the queue. Whether one is awake anyway.
    fn see_to_it(&self) -> bool {
        let awake = self.awake.load(Ordering::Acquire) > 0;
        if !awake {
            self.wake.notify_one();
        }
        awake
    }
}

/// Waits awake for a call that was picked up at once.
pub(super) fn be_patient(is_over: impl FnMut() -> bool) {
    wait_awake(PATIENCE, is_over);
}

fn wait_awake(most: Duration, mut is_over: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + most;
    loop {
        for _ in 0..16 {
            if is_over() {
                return true;
            }
            std::hint::spin_loop();
        }
        if Instant::now() >= until {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn every_slice_runs_and_a_panic_costs_only_its_own() {
        let quick = Quick::start(2, || ()).unwrap();
        let (done, seen) = mpsc::channel();
        for number in 0..1000 {
            let done = done.clone();
            quick.run(Box::new(move || {
                assert!(number % 100 != 7, "one in a hundred");
                done.send(number).unwrap();
            }));
            if number % 50 == 0 {
                // Long enough for the threads to fall asleep now and then.
                assert!(!wait_awake(LINGER * 4, || false));
            }
        }
        drop(done);
        let mut seen: Vec<i32> = seen.iter().collect();
        seen.sort_unstable();
        assert_eq!(seen.len(), 990);
    }
}
