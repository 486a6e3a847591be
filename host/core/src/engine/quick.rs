//! The quick lane: threads that run the first slice of most calls.
//!
//! Most calls are over before a sleeping thread would have woken for them (on a virtual machine that takes longer than the
//! call), so the threads stay awake for a moment after their work, and a caller whose call is picked up at once polls for its
//! answer for a moment too, between its other tasks.
//! Invariants: a job is one slice: it ends at the guest's next tick, or the one after where that comes at once, and what the
//! guest had the host do meanwhile (copy, fill) is bounded by its memory; with one core no thread waits awake; idle threads
//! sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::fair::{FairQueue, Turns};
use super::pulse::Pulse;
use crate::cores::cores;
use crate::error::Error;
use crate::fence::fenced;

/// How long a thread stays awake for the next call: longer while calls come so often that it is likely to get one.
const LINGER: Duration = Duration::from_micros(50);
const LINGER_IF_BUSY: Duration = Duration::from_micros(200);
/// Time between two calls up to which they come often: the work for one request that makes one call.
const BUSY: Duration = Duration::from_micros(250);
/// How long a caller polls for the answer of a call that was picked up at once: several short calls long.
pub(super) const PATIENCE: Duration = Duration::from_micros(30);

type Slice = Box<dyn FnOnce(&mut Turn<'_>) + Send>;

/// The threads.
#[derive(Debug)]
pub(super) struct Quick(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// The queue's length, to be read without its lock.
    waiting: AtomicUsize,
    /// Threads that will look at the queue without being woken.
    awake: AtomicUsize,
    /// Whether calls come often.
    is_busy: AtomicBool,
    /// How many may stay awake for the next call: a core is left to the thread that makes it.
    most_awake: usize,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Queue {
    slices: FairQueue<(Arc<Pulse>, Slice)>,
    /// Threads that sleep until they are woken: without one, waking would cost a system call for nothing.
    asleep: usize,
    /// When the last call came.
    last: Option<Instant>,
}

/// A thread's turn at a slice.
pub(super) struct Turn<'a> {
    lane: &'a Shared,
    /// The thread counts as awake.
    ended: bool,
}

impl Turn<'_> {
    /// The slice is over but for sending its answer. The receiver can hand over the next call before this thread is back at
    /// the queue, and then need not wake another.
    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.lane.awake.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn begin(&mut self) {
        if std::mem::take(&mut self.ended) {
            self.lane.awake.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Quick {
    /// Starts this many threads; each begins with `setup`.
    pub(super) fn start(threads: usize, setup: fn()) -> Result<Self, Error> {
        let cores = cores();
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
            awake: AtomicUsize::new(0),
            is_busy: AtomicBool::new(false),
            most_awake: cores - 1,
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

    /// Hands over a slice of this owner; it ends at once when it was cancelled. Whether it is worth to wait awake for it.
    pub(super) fn run(&self, whose: &Arc<Turns>, pulse: Arc<Pulse>, slice: Slice) -> bool {
        let shared = &self.0;
        let now = Instant::now();
        let mut queue = shared.queue.lock();
        let last = queue.last.replace(now);
        let is_busy = last.is_some_and(|last| now.saturating_duration_since(last) <= BUSY);
        shared.is_busy.store(is_busy, Ordering::Relaxed);
        queue.slices.push_new(whose, (pulse, slice));
        shared.waiting.store(queue.slices.len(), Ordering::Release);
        shared.see_to_it(queue)
    }
}

impl Drop for Quick {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Release);
        let _queue = self.0.queue.lock();
        self.0.wake.notify_all();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Shared {
    fn work(&self) {
        let mut turn = Turn { lane: self, ended: false };
        while let Some(slice) = self.next(&mut turn) {
            // A panic in it drops what the caller waits on, who then knows; the thread lives.
            let _ = fenced(|| slice(&mut turn));
        }
    }

    /// The next slice: at once, within the time that a thread stays awake, or after a sleep. None: the lane is closed.
    fn next(&self, turn: &mut Turn<'_>) -> Option<Slice> {
        loop {
            if self.stopped.load(Ordering::Acquire) {
                return None;
            }
            if let Some(slice) = self.take(turn) {
                return Some(slice);
            }
            turn.end();
            let may_linger = self.awake.load(Ordering::Acquire) <= self.most_awake;
            let linger = if self.is_busy.load(Ordering::Relaxed) { LINGER_IF_BUSY } else { LINGER };
            if may_linger && wait_awake(linger, || self.waiting.load(Ordering::Acquire) > 0) {
                continue;
            }
            turn.begin();
            // A caller that hands over after this look sees that no thread is awake: the queue's lock orders the two.
            let mut queue = self.queue.lock();
            while queue.slices.len() == 0 && !self.stopped.load(Ordering::Acquire) {
                queue.asleep += 1;
                self.wake.wait(&mut queue);
                queue.asleep -= 1;
            }
        }
    }

    fn take(&self, turn: &mut Turn<'_>) -> Option<Slice> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let (_, slice) = queue.slices.pop(|(pulse, _)| !pulse.is_cancelled())?;
        turn.begin();
        self.waiting.store(queue.slices.len(), Ordering::Release);
        if queue.slices.len() > 0 {
            // Its caller may have counted on this thread, which has something else to do now.
            self.see_to_it(queue);
        }
        Some(slice)
    }

    /// Sees to it that a thread looks at the queue. Whether one is awake anyway.
    fn see_to_it(&self, queue: MutexGuard<'_, Queue>) -> bool {
        let awake = self.awake.load(Ordering::Acquire) > 0;
        let asleep = queue.asleep > 0;
        drop(queue);
        if !awake && asleep {
            self.wake.notify_one();
        }
        awake
    }
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
        // The thread that makes the next call can have the processor.
        thread::yield_now();
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
        let (whose, (done, seen)) = (Arc::default(), mpsc::channel());
        for number in 0..1000 {
            let done = done.clone();
            quick.run(
                &whose,
                Arc::default(),
                Box::new(move |_| {
                    assert!(number % 100 != 7, "one in a hundred");
                    done.send(number).unwrap();
                }),
            );
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

    /// Seen to fail with first come, first served.
    #[test]
    fn each_owner_has_a_turn_after_the_others() {
        let quick = Quick::start(1, || ()).unwrap();
        let ((begun, begins), (opens, gate), (tells, served)) =
            (mpsc::channel(), mpsc::channel::<()>(), mpsc::channel());
        let held = move |_: &mut Turn<'_>| {
            begun.send(()).unwrap();
            gate.recv().unwrap_err();
        };
        quick.run(&Arc::default(), Arc::default(), Box::new(held));
        begins.recv().unwrap();
        let owners: [Arc<Turns>; 2] = Default::default();
        for name in "aaab".chars() {
            let tells = tells.clone();
            let whose = &owners[usize::from(name == 'b')];
            quick.run(whose, Arc::default(), Box::new(move |_| tells.send(name).unwrap()));
            // Its caller went away: that costs no owner a turn.
            let cancelled = Arc::<Pulse>::default();
            cancelled.cancel();
            quick.run(whose, cancelled, Box::new(|_| ()));
        }
        drop((opens, tells));
        assert_eq!(served.iter().collect::<String>(), "abaa");
    }
}
