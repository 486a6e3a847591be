//! The compile quota: one load of a component at a time for each tenant, and at most N compilations
//! a minute.
//!
//! Compiling untrusted code is expensive, so an engine with tenants calls [`CompileQuota::acquire`]
//! before it loads a component for one. The load waits in the tenant's own line (of at most 16
//! loads, with the one that runs) and gets a [`LoadPermit`]; no other tenant waits behind it.
//! [`LoadPermit::compile`] counts a compilation, or fails with the time after which to try again.
//! Only real compilations count, and failures that the component caused. A tenant that was
//! forgotten has the full quota, as a new one has.
//!
//! Source: docs/threat-model.md, rows 8 and 10.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use toolcell_contract::controls::bound;
use toolcell_contract::error::Error;

use super::state::{PerTenant, TenantPart, TenantState};
use crate::os::clock::Clock;

/// The period of the quota.
const MINUTE: Duration = Duration::from_secs(60);
/// Loads of one tenant that are served at once.
const AT_ONCE: usize = 1;
/// Loads of one tenant at once: one is served, and each that waits keeps its bytes in memory.
const MAX_IN_LINE: usize = 16;
/// Tenants that are remembered: a megabyte or two.
const MAX_TENANTS: usize = 10_000;
/// The time after which to try again if it is not known how long the line takes: most components
/// are compiled by then.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The lines of an engine's tenants.
#[derive(Debug)]
pub(crate) struct CompileQuota {
    /// The time in which one compilation becomes available again.
    interval: Duration,
    clock: Arc<dyn Clock>,
    tenants: PerTenant<Line>,
    /// The lines that are remembered.
    lines: Mutex<Vec<Arc<TenantPart<Line>>>>,
}

/// The line of one tenant.
#[derive(Debug)]
struct Line {
    free: Arc<Semaphore>,
    /// The time at which the quota is full again. `None`: it was never used.
    whole: Mutex<Option<Instant>>,
}

/// A load's turn in its tenant's line.
#[derive(Debug)]
pub(crate) struct LoadPermit {
    line: Arc<TenantPart<Line>>,
    interval: Duration,
    clock: Arc<dyn Clock>,
    /// Never an error: the semaphore is never closed.
    _served: Result<OwnedSemaphorePermit, AcquireError>,
}

impl CompileQuota {
    /// Builds a quota of this many compilations a minute for each tenant, and at least one.
    pub(crate) fn new(per_minute: u32, clock: Arc<dyn Clock>) -> Self {
        let (tenants, lines) = (PerTenant::default(), Mutex::default());
        Self { interval: MINUTE / per_minute.max(1), clock, tenants, lines }
    }

    /// Waits for the tenant's turn.
    ///
    /// # Errors
    /// [`Error::is_quota`] if too many loads wait already.
    ///
    /// # Cancel safety
    /// May be dropped: then the load leaves the line.
    pub(crate) async fn acquire(&self, tenant: &str) -> Result<LoadPermit, Error> {
        let line = self.line(tenant)?;
        let served = Arc::clone(&line.free).acquire_owned().await;
        Ok(LoadPermit {
            line,
            interval: self.interval,
            clock: Arc::clone(&self.clock),
            _served: served,
        })
    }

    /// Returns the tenant's line, if it has a place left.
    fn line(&self, tenant: &str) -> Result<Arc<TenantPart<Line>>, Error> {
        let tenant = TenantState::of(Some(tenant));
        let mut lines = self.lines.lock();
        if let Some(line) = self.tenants.find(&tenant) {
            // The list has one reference, each load one, and this call one.
            if Arc::strong_count(&line) - 1 > bound!(CompileLine, MAX_IN_LINE) {
                return Err(Error::quota(
                    "too many components of the tenant wait to be loaded",
                    RETRY_AFTER,
                ));
            }
            return Ok(line);
        }
        if lines.len() >= MAX_TENANTS {
            let now = self.clock.now();
            lines.retain(|line| {
                Arc::strong_count(line) > 1 || line.whole.lock().is_some_and(|whole| whole > now)
            });
        }
        if lines.len() >= MAX_TENANTS {
            return Err(Error::quota(
                "too many tenants compile components at the moment",
                RETRY_AFTER,
            ));
        }
        let line = self.tenants.get(&tenant, Line::new);
        lines.push(Arc::clone(&line));
        Ok(line)
    }
}

impl Line {
    fn new() -> Self {
        let at_once = bound!(CompileTurn, AT_ONCE).min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(at_once)), whole: Mutex::default() }
    }
}

impl LoadPermit {
    /// Returns the tenant of the load.
    pub(crate) fn tenant(&self) -> &str {
        self.line.tenant().name().unwrap_or_default()
    }

    /// Counts one compilation.
    ///
    /// # Errors
    /// [`Error::is_quota`] if the tenant has none left, with the time until it has.
    pub(crate) fn compile(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let mut whole = self.line.whole.lock();
        // Each compilation takes an interval of the next minute, which is available again when the
        // interval has passed.
        let later = whole.map_or(now, |whole| whole.max(now)) + self.interval;
        let over =
            later.saturating_duration_since(now).saturating_sub(bound!(CompileQuota, MINUTE));
        if !over.is_zero() {
            return Err(Error::quota(
                "the tenant has reached its limit of compiled components per minute",
                over,
            ));
        }
        *whole = Some(later);
        Ok(())
    }

    /// Takes back the last of them: it failed for a reason of the host.
    pub(crate) fn refund(&self) {
        let mut whole = self.line.whole.lock();
        *whole = whole.and_then(|whole| whole.checked_sub(self.interval));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use toolcell_test_guests::rows;

    use super::*;
    use crate::os::clock::ManualClock;

    const SECOND: Duration = Duration::from_secs(1);

    fn quota(per_minute: u32) -> (CompileQuota, ManualClock) {
        let clock = ManualClock::new();
        (CompileQuota::new(per_minute, Arc::new(clock.clone())), clock)
    }

    /// Returns the tenant's turn, if it has come.
    fn try_acquire(turns: &CompileQuota, tenant: &str) -> Option<LoadPermit> {
        turns.acquire(tenant).now_or_never().map(Result::unwrap)
    }

    /// Cases: seconds since the last compilation, and the seconds after which to try again (0: it
    /// was allowed), with six a minute.
    #[test]
    fn compilations_per_minute_are_limited() {
        let (turns, clock) = quota(6);
        let ask = |tenant: &str, later: u32| {
            clock.advance(SECOND * later);
            let Err(refused) = try_acquire(&turns, tenant).unwrap().compile() else { return 0 };
            assert!(refused.is_quota() && !refused.hint().is_empty(), "{refused}");
            assert_eq!(refused.reason(), "quota_exceeded");
            refused.retry_after().unwrap().as_secs()
        };
        // A refused compilation costs nothing, however often.
        let each = rows::<(_, u64)>("tenant/compile_quota", "compilations_per_minute_are_limited");
        for (number, (later, expected)) in each.into_iter().enumerate() {
            assert_eq!(ask("a", later), expected, "question {number}");
        }
        assert_eq!(ask("b", 0), 0, "the other tenant's are its own");
        let later = [180, 0, 0, 0, 0, 0, 0].map(|later| ask("a", later));
        assert_eq!(later, [0, 0, 0, 0, 0, 0, 10], "after quiet minutes");
    }

    #[test]
    fn returned_compilation_can_be_used_again() {
        let (turns, clock) = quota(2);
        let turn = try_acquire(&turns, "a").unwrap();
        for _ in 0..3 {
            turn.compile().unwrap();
            turn.compile().unwrap();
            assert!(turn.compile().is_err());
            turn.refund();
            clock.advance(SECOND * 30);
        }
        turn.refund();
        assert!(turn.compile().is_ok());
    }

    #[test]
    fn tenant_loads_one_component_at_a_time() {
        let (turns, _) = quota(1);
        let first = try_acquire(&turns, "a").unwrap();
        let mut second = Box::pin(turns.acquire("a"));
        assert!(second.as_mut().now_or_never().is_none() && try_acquire(&turns, "b").is_some());
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    /// A load that leaves the line frees a place in it.
    #[test]
    fn tenants_load_queue_is_bounded() {
        let (turns, _) = quota(1);
        let _first = try_acquire(&turns, "a").unwrap();
        let mut line = Vec::new();
        for _ in 1..MAX_IN_LINE {
            line.push(Box::pin(turns.acquire("a")));
            assert!(line.last_mut().unwrap().as_mut().now_or_never().is_none());
        }
        let refused = turns.acquire("a").now_or_never().expect("no wait").unwrap_err();
        assert!(refused.is_quota() && refused.retry_after() == Some(RETRY_AFTER), "{refused}");
        assert!(try_acquire(&turns, "b").is_some());
        line.pop();
        assert!(turns.acquire("a").now_or_never().is_none());
    }

    /// A tenant is forgotten when its quota is full again. One that compiled within the minute, or
    /// is being served, is remembered.
    #[test]
    fn tenants_with_full_quota_are_forgotten() {
        let (turns, clock) = quota(1);
        let busy = try_acquire(&turns, "busy").unwrap();
        for tenant in 1..MAX_TENANTS {
            try_acquire(&turns, &tenant.to_string()).unwrap().compile().unwrap();
        }
        clock.advance(SECOND * 59);
        assert!(turns.acquire("one more").now_or_never().unwrap().unwrap_err().is_quota());
        clock.advance(SECOND);
        assert!(try_acquire(&turns, "one more").is_some());
        assert_eq!(turns.lines.lock().len(), 2);
        drop(busy);
    }
}
