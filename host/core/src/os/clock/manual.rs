//! A clock that a test controls.
//!
//! A test passes a [`ManualClock`] to a retry or a circuit breaker in place of the system's clock,
//! and moves it with [`ManualClock::advance`]. Sleepers wake in the order of their times; sleepers
//! of one time wake in the order in which they began to sleep. An automatic clock moves to the next
//! sleeper by itself, once all other futures of that task have run. The clock never waits for real
//! time and never goes back.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use super::{Clock, Sleep};

/// A clock that moves only when a test moves it. Clones share their time. It starts at the real
/// time, so that it can be compared with deadlines set in real time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<Timeline>>);

#[derive(Debug)]
struct Timeline {
    now: Instant,
    /// The time at the start, and the time of day then.
    start: (Instant, SystemTime),
    /// True if it moves to the next sleeper by itself.
    is_automatic: bool,
    sleepers: BTreeMap<Place, Waker>,
    asked: u64,
}

/// A sleeper's deadline, and its number in the order of the calls of `sleep_until`.
type Place = (Instant, u64);

impl ManualClock {
    /// Creates a clock that only [`advance`](Self::advance) moves.
    #[must_use]
    pub fn new() -> Self {
        Self::build(false)
    }

    /// Creates a clock that moves to the time of the next sleeper by itself, once all other futures
    /// of the sleeper's task have run. A test then needs no second task to move it.
    #[must_use]
    pub fn automatic() -> Self {
        Self::build(true)
    }

    fn build(is_automatic: bool) -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(Timeline {
            now,
            start: (now, SystemTime::now()),
            is_automatic,
            sleepers: BTreeMap::new(),
            asked: 0,
        })))
    }

    /// Moves the time forward, and wakes the sleepers whose time has come, in order. Does nothing
    /// if the new time is beyond the range of [`Instant`].
    pub fn advance(&self, by: Duration) {
        let Some(end) = self.now().checked_add(by) else { return };
        // The lock is released here, because a woken task may read the clock.
        while let Some(waker) = self.pop_due(end) {
            waker.wake();
        }
        let mut timeline = self.0.lock();
        timeline.now = timeline.now.max(end);
    }

    /// Moves to the next sleeper and removes it, if its time is at or before `end`.
    fn pop_due(&self, end: Instant) -> Option<Waker> {
        let mut timeline = self.0.lock();
        let next = timeline.sleepers.first_entry().filter(|next| next.key().0 <= end)?;
        let ((at, _), waker) = next.remove_entry();
        timeline.now = timeline.now.max(at);
        Some(waker)
    }

    /// Removes the sleeper. On an automatic clock, wakes the next sleeper, which may now be the
    /// first.
    fn remove(&self, place: Place) {
        let mut timeline = self.0.lock();
        let was_here = timeline.sleepers.remove(&place).is_some();
        let wakes_next = was_here && timeline.is_automatic;
        let next = timeline.sleepers.values().next().filter(|_| wakes_next).cloned();
        drop(timeline);
        next.iter().for_each(Waker::wake_by_ref);
    }

    /// Registers the sleeper, or re-checks its deadline. An automatic clock moves to the sleeper's
    /// time if this sleeper is the next one and was registered before.
    fn poll_sleeper(&self, place: Place, context: &Context<'_>) -> Poll<()> {
        let mut timeline = self.0.lock();
        let (at, waker) = (place.0, context.waker());
        let is_new = timeline.sleepers.insert(place, waker.clone()).is_none();
        let is_next = timeline.sleepers.keys().next() == Some(&place);
        let is_automatic = timeline.is_automatic;
        if is_automatic && !is_new && is_next {
            timeline.now = timeline.now.max(at);
        }
        let is_due = timeline.now >= at;
        drop(timeline);
        if is_due {
            return Poll::Ready(());
        }
        if is_automatic && is_new {
            // Other futures of the task are polled first.
            waker.wake_by_ref();
        }
        Poll::Pending
    }

    /// The number of sleepers.
    #[cfg(test)]
    pub(crate) fn sleepers(&self) -> usize {
        self.0.lock().sleepers.len()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.0.lock().now
    }

    fn wall(&self) -> SystemTime {
        let Timeline { now, start: (start, wall), .. } = *self.0.lock();
        wall.checked_add(now - start).unwrap_or(wall)
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        let mut timeline = self.0.lock();
        timeline.asked += 1;
        let (clock, place) = (self.clone(), (at, timeline.asked));
        Box::pin(async move {
            let sleeper = scopeguard::guard(clock, |clock| clock.remove(place));
            poll_fn(|context| sleeper.poll_sleeper(place, context)).await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Sleeps for each of these durations in turn, and records each wake-up.
    async fn sleeps(
        clock: &ManualClock,
        name: char,
        seconds: &[u32],
        woken: &Mutex<Vec<(char, Duration)>>,
    ) {
        let start = clock.now();
        let mut at = start;
        for seconds in seconds {
            at += SECOND * *seconds;
            clock.sleep_until(at).await;
            woken.lock().push((name, clock.now() - start));
        }
    }

    #[tokio::test]
    async fn automatic_clock_advances_to_each_sleeper() {
        let (clock, woken) = (ManualClock::automatic(), Mutex::default());
        tokio::join!(
            sleeps(&clock, 'a', &[10, 0, 10], &woken),
            sleeps(&clock, 'b', &[4, 3, 4], &woken),
            sleeps(&clock, 'c', &[7], &woken),
        );
        let woken = woken.into_inner().into_iter().map(|(name, at)| (name, at.as_secs()));
        let expected = [('b', 4), ('c', 7), ('b', 7), ('a', 10), ('a', 10), ('b', 11), ('a', 20)];
        assert_eq!(woken.collect::<Vec<_>>(), expected);
        assert_eq!(clock.sleepers(), 0);
    }

    #[test]
    fn manual_clock_moves_only_when_advanced() {
        let (clock, woken) = (ManualClock::new(), Mutex::default());
        let mut context = Context::from_waker(Waker::noop());
        let mut sleeper = Box::pin(sleeps(&clock, 'a', &[2, 3], &woken));
        for (step, expected, sleepers) in [(0, 0, 1), (1, 0, 1), (1, 1, 1), (2, 1, 1), (9, 2, 0)] {
            clock.advance(SECOND * step);
            assert_eq!(sleeper.as_mut().poll(&mut context).is_ready(), expected == 2);
            assert_eq!((woken.lock().len(), clock.sleepers()), (expected, sleepers));
        }
        let before = clock.now();
        clock.advance(Duration::MAX);
        assert!(clock.now() == before, "no clock can say that");
        let mut dropped = clock.sleep_until(before + SECOND);
        assert!(dropped.as_mut().poll(&mut context).is_pending() && clock.sleepers() == 1);
        drop(dropped);
        assert_eq!(clock.sleepers(), 0);
    }

    #[test]
    fn sleepers_wake_in_order_of_deadline() {
        struct NamedSleeper(u32, ManualClock, Arc<Mutex<Vec<(u32, Instant)>>>);
        impl std::task::Wake for NamedSleeper {
            fn wake(self: Arc<Self>) {
                self.2.lock().push((self.0, self.1.now()));
            }
        }
        let (clock, woken) = (ManualClock::new(), Arc::default());
        let start = clock.now();
        let _sleepers = [3, 1, 2, 5].map(|second| {
            let mut sleeper = clock.sleep_until(start + SECOND * second);
            let waker = Arc::new(NamedSleeper(second, clock.clone(), Arc::clone(&woken))).into();
            assert!(sleeper.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            sleeper
        });
        clock.advance(SECOND * 4);
        assert_eq!(*woken.lock(), [1, 2, 3].map(|second| (second, start + SECOND * second)));
    }
}
