//! Fast lane: threads that run the first slice of most calls.
//!
//! A guest is the WebAssembly code of a tool. A slice is the time until the guest's next tick (an
//! interrupt about every millisecond), or until the one after if that comes at once. `guest` hands
//! a slice to [`FastLane::run`], with the flow (tenant) that it counts for. One of the threads runs
//! it. Slices of different flows are served in turn, and a cancelled slice costs no turn.
//! Most calls end before a sleeping thread would have woken for them. So the threads stay awake for
//! a moment after their work, and a caller whose call is picked up at once polls for its answer for
//! a moment, between its other tasks. A thread that waits awake spins. It does not call
//! `sched_yield`: kernels of 2025 and later make the caller forfeit its claim to the processor, and
//! a loop of the slow lane then runs to the kernel's next tick.
//! Invariants: with one core no thread waits awake. Idle threads sleep. A thread that waits awake
//! and lost its processor does not count as awake. The host's work for the guest in a slice (copy,
//! fill) is bounded by the guest's memory. A panic in a slice ends that call only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use toolcell_contract::{controls::bound, error::Error, panic_guard::guarded};

use super::fair_queue::{FairQueue, FlowState};
use crate::engine::cell::bounds::run_state::RunState;
use crate::os::cores::cores;

/// The time for which a thread stays awake for the next call: longer while calls come so often that
/// it is likely to get one.
const LINGER: Duration = Duration::from_micros(50);
const LINGER_IF_BUSY: Duration = Duration::from_micros(200);
/// The time between two calls up to which they come often: the work for one request that makes one
/// call.
const BUSY: Duration = Duration::from_micros(250);
/// The time for which a caller polls for the answer of a call that was picked up at once: several
/// short calls long.
pub(super) const POLL_TIME: Duration = Duration::from_micros(30);

/// The longest interval at which a thread that waits awake reads the clock while it has a
/// processor. After a longer pause the system has given the processor to another thread.
const PAUSE: Duration = Duration::from_micros(5);

type Slice = Box<dyn FnOnce(&mut Turn<'_>) + Send>;

/// The threads of the lane; they end when it is dropped.
pub(super) struct FastLane(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// The queue's length, readable without its lock.
    waiting: AtomicUsize,
    /// Threads that will look at the queue without being woken.
    awake: AtomicUsize,
    /// The time at which one of them last read the clock, in nanoseconds since `start`.
    last_seen: AtomicU64,
    start: Instant,
    /// True while calls come often.
    is_busy: AtomicBool,
    /// The most threads that may stay awake for the next call: one core is left to the thread that
    /// makes it.
    most_awake: usize,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Queue {
    slices: FairQueue<(Arc<RunState>, Slice)>,
    /// Threads that sleep until they are woken. If there are none, no system call is spent on
    /// waking one.
    asleep: usize,
    /// The time of the last call.
    last: Option<Instant>,
}

/// A thread's turn at a slice.
pub(in crate::engine) struct Turn<'a> {
    lane: &'a Shared,
    /// True if the thread counts as awake.
    ended: bool,
}

impl Turn<'_> {
    /// Marks the slice as over except for sending its answer. The receiver can hand over the next
    /// call before this thread is back at the queue, and then need not wake another.
    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.lane.mark_seen(Instant::now());
            self.lane.awake.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn begin(&mut self) {
        if std::mem::take(&mut self.ended) {
            self.lane.awake.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl FastLane {
    /// Starts this many threads; each begins with `setup`.
    pub(super) fn start(threads: usize, setup: fn()) -> Result<Self, Error> {
        let cores = cores();
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
            awake: AtomicUsize::new(0),
            last_seen: AtomicU64::new(0),
            start: Instant::now(),
            is_busy: AtomicBool::new(false),
            most_awake: cores - 1,
            stopped: AtomicBool::new(false),
        });
        let lane = Self(Arc::clone(&shared));
        for _ in 0..threads {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("toolcell-fast".into())
                .spawn(move || {
                    setup();
                    shared.work();
                })
                .map_err(|error| Error::engine("no threads").with_source(error))?;
        }
        Ok(lane)
    }

    /// Queues a slice of this flow. A cancelled slice takes no turn, and ends at once. Returns true
    /// if a caller should poll for its answer.
    pub(super) fn run(
        &self,
        whose: &Arc<FlowState>,
        run_state: Arc<RunState>,
        slice: Slice,
    ) -> bool {
        let shared = &self.0;
        let now = Instant::now();
        let mut queue = shared.queue.lock();
        let last = queue.last.replace(now);
        let is_busy = last.is_some_and(|last| now.saturating_duration_since(last) <= BUSY);
        shared.is_busy.store(is_busy, Ordering::Relaxed);
        queue.slices.push_new(whose, (run_state, slice));
        shared.waiting.store(queue.slices.len(), Ordering::Release);
        // With one core, a caller that polls would keep the core from the thread.
        shared.notify(queue, now) && shared.most_awake > 0
    }
}

impl Drop for FastLane {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Release);
        let _queue = self.0.queue.lock();
        self.0.wake.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        let mut turn = Turn { lane: self, ended: false };
        while let Some(slice) = self.next(&mut turn) {
            // A panic in it drops the sender of the answer, which ends the caller's wait; the
            // thread continues.
            let _ = guarded(|| slice(&mut turn));
        }
    }

    /// Returns the next slice: at once, within the time that a thread stays awake, or after a
    /// sleep. `None`: the lane is closed.
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
            if may_linger && self.wait_awake(linger) {
                continue;
            }
            turn.begin();
            // A caller that queues a slice after this check sees that no thread is awake: the
            // queue's lock orders the two.
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
        let (_, slice) = queue.slices.pop(|(run_state, _)| !run_state.is_cancelled())?;
        turn.begin();
        self.waiting.store(queue.slices.len(), Ordering::Release);
        if queue.slices.len() > 0 {
            // Its caller may have relied on this thread, which is busy from now on.
            self.notify(queue, Instant::now());
        }
        Some(slice)
    }

    /// Spins until the queue has a slice, and returns true. Returns false when the time is over, or
    /// when the system gave this processor to another thread meanwhile, which then needs it more.
    fn wait_awake(&self, most: Duration) -> bool {
        let begin = Instant::now();
        let mut last = begin;
        loop {
            for _ in 0..16 {
                if self.waiting.load(Ordering::Acquire) > 0 {
                    return true;
                }
                std::hint::spin_loop();
            }
            let now = Instant::now();
            if now - begin >= most || now - last >= PAUSE {
                return false;
            }
            self.mark_seen(now);
            last = now;
        }
    }

    /// Records that a thread that looks at the queue without being woken runs now.
    fn mark_seen(&self, now: Instant) {
        self.last_seen.store(self.nanoseconds(now), Ordering::Release);
    }

    /// Returns true if a thread runs that will look at the queue without being woken.
    fn is_awake(&self, now: Instant) -> bool {
        let since = self.nanoseconds(now).saturating_sub(self.last_seen.load(Ordering::Acquire));
        let is_recent = Duration::from_nanos(since) < bound!(Awake, PAUSE);
        self.awake.load(Ordering::Acquire) > 0 && is_recent
    }

    fn nanoseconds(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Wakes a thread unless one is awake. Returns true if one is awake.
    fn notify(&self, queue: MutexGuard<'_, Queue>, now: Instant) -> bool {
        let awake = self.is_awake(now);
        let asleep = queue.asleep > 0;
        drop(queue);
        if !awake && asleep {
            self.wake.notify_one();
        }
        awake
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn until_asleep(fast_lane: &FastLane, threads: usize) {
        while fast_lane.0.queue.lock().asleep < threads {
            thread::yield_now();
        }
    }

    /// Fails without: the check that an awake thread has a processor.
    #[test]
    fn slice_runs_when_the_awake_thread_has_no_core() {
        let (fast_lane, (done, seen)) = (FastLane::start(1, || ()).unwrap(), mpsc::channel());
        for number in 0..100 {
            until_asleep(&fast_lane, 1);
            // The state of a thread that the system has stopped after it last read the clock.
            fast_lane.0.awake.fetch_add(1, Ordering::AcqRel);
            fast_lane.0.last_seen.store(0, Ordering::Release);
            let done = done.clone();
            let is_awake = fast_lane.run(
                &Arc::default(),
                Arc::default(),
                Box::new(move |_| done.send(number).unwrap()),
            );
            assert!(!is_awake, "its caller would poll in vain");
            assert_eq!(seen.recv_timeout(Duration::from_secs(20)), Ok(number));
            fast_lane.0.awake.fetch_sub(1, Ordering::AcqRel);
        }
    }

    #[test]
    fn thread_counts_as_awake_until_a_long_pause() {
        let fast_lane = FastLane::start(1, || ()).unwrap();
        until_asleep(&fast_lane, 1);
        let lane = &fast_lane.0;
        let now = Instant::now();
        for (awake, pause, expected) in [
            (0, Duration::ZERO, false),
            (1, Duration::ZERO, true),
            (1, PAUSE - Duration::from_nanos(1), true),
            (1, PAUSE, false),
            (2, Duration::from_secs(1), false),
        ] {
            lane.awake.store(awake, Ordering::Release);
            lane.mark_seen(now);
            assert_eq!(lane.is_awake(now + pause), expected, "{awake} threads, seen {pause:?} ago");
        }
        lane.awake.store(0, Ordering::Release);
    }

    #[test]
    fn every_slice_runs_despite_panics_of_others() {
        let fast_lane = FastLane::start(2, || ()).unwrap();
        let (whose, (done, seen)) = (Arc::default(), mpsc::channel());
        for number in 0..1000 {
            let done = done.clone();
            fast_lane.run(
                &whose,
                Arc::default(),
                Box::new(move |_| {
                    assert!(number % 100 != 7, "one in a hundred");
                    done.send(number).unwrap();
                }),
            );
            if number % 50 == 0 {
                until_asleep(&fast_lane, 2);
            }
        }
        drop(done);
        let mut seen: Vec<i32> = seen.iter().collect();
        seen.sort_unstable();
        assert_eq!(seen.len(), 990);
    }

    /// Fails without: turns (first come, first served).
    #[test]
    fn flows_are_served_in_turn() {
        let fast_lane = FastLane::start(1, || ()).unwrap();
        let ((begun, begins), (opens, gate), (tells, served)) =
            (mpsc::channel(), mpsc::channel::<()>(), mpsc::channel());
        let held = move |_: &mut Turn<'_>| {
            begun.send(()).unwrap();
            gate.recv().unwrap_err();
        };
        fast_lane.run(&Arc::default(), Arc::default(), Box::new(held));
        begins.recv().unwrap();
        let owners: [Arc<FlowState>; 2] = Default::default();
        for name in "aaab".chars() {
            let tells = tells.clone();
            let whose = &owners[usize::from(name == 'b')];
            fast_lane.run(whose, Arc::default(), Box::new(move |_| tells.send(name).unwrap()));
            // A cancelled slice costs no flow a turn.
            let cancelled = Arc::<RunState>::default();
            cancelled.cancel();
            fast_lane.run(whose, cancelled, Box::new(|_| ()));
        }
        drop((opens, tells));
        assert_eq!(served.iter().collect::<String>(), "abaa");
    }
}
