//! Whose turn it is to have a component loaded, and how many a tenant has compiled.
//!
//! In: a tenant with a component. Out: a [`Turn`] for as long as it is being loaded, or when to
//! come again.
//! Invariants: a tenant's loads stand in a line of its own, of which one is served at a time: it
//! keeps one of the compilers, and no other tenant waits behind it; only what is really compiled
//! counts, or was the component's own failure; who is forgotten has all that a new tenant has, and
//! a line has an end.
//! Source: docs/threat-model.md, rows 8 and 10.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::clock::Clock;
use crate::defence::{Defence, stands};
use crate::error::Error;

/// Components that one tenant has compiled a minute: one every six seconds, each of which takes up
/// to [`DEFAULT_COMPILE_TIME`](crate::DEFAULT_COMPILE_TIME). After a quiet minute it is as many at
/// once.
pub const DEFAULT_COMPILES: u32 = 10;
/// What is counted in.
const MINUTE: Duration = Duration::from_secs(60);
/// Loads of one tenant at once: one is served, and each that waits keeps its bytes in memory.
const MAX_IN_LINE: usize = 16;
/// Tenants that are remembered: a megabyte or two.
const MAX_TENANTS: usize = 10_000;
/// When to come again where it is not known how long the line takes: most components are compiled
/// by then.
const MOMENT: Duration = Duration::from_secs(1);

/// The lines of an engine's tenants.
#[derive(Debug)]
pub(super) struct Turns {
    /// From one compilation to the next, over long.
    interval: Duration,
    clock: Arc<dyn Clock>,
    tenants: Mutex<HashMap<String, Arc<Line>>>,
}

/// One tenant's.
#[derive(Debug)]
struct Line {
    free: Arc<Semaphore>,
    /// When there are as many compilations left as ever.
    whole: Mutex<Option<Instant>>,
}

/// One load's place in its tenant's line, and then its turn.
#[derive(Debug)]
pub(super) struct Turn {
    tenant: String,
    line: Arc<Line>,
    interval: Duration,
    clock: Arc<dyn Clock>,
    /// Never an error: no code closes it.
    _served: Result<OwnedSemaphorePermit, AcquireError>,
}

impl Turns {
    /// So many compilations a minute for each tenant, and at least one.
    pub(super) fn new(per_minute: u32, clock: Arc<dyn Clock>) -> Self {
        Self { interval: MINUTE / per_minute.max(1), clock, tenants: Mutex::default() }
    }

    /// Waits for the tenant's turn.
    ///
    /// # Errors
    /// [`Error::is_quota`] where too many wait already.
    ///
    /// # Cancel safety
    /// May be dropped: then the load leaves the line.
    pub(super) async fn turn(&self, tenant: &str) -> Result<Turn, Error> {
        let line = self.line(tenant)?;
        let served = Arc::clone(&line.free).acquire_owned().await;
        Ok(Turn {
            tenant: tenant.to_owned(),
            line,
            interval: self.interval,
            clock: Arc::clone(&self.clock),
            _served: served,
        })
    }

    /// A place at the end of the tenant's line.
    fn line(&self, tenant: &str) -> Result<Arc<Line>, Error> {
        let mut tenants = self.tenants.lock();
        if let Some(line) = tenants.get(tenant) {
            // One is the map's own, each of the others a load's.
            if Arc::strong_count(line) > MAX_IN_LINE && stands(Defence::CompileLine) {
                return Err(Error::quota(
                    "too many components of the tenant wait to be loaded",
                    MOMENT,
                ));
            }
            return Ok(Arc::clone(line));
        }
        if tenants.len() >= MAX_TENANTS {
            let now = self.clock.now();
            tenants.retain(|_, line| {
                Arc::strong_count(line) > 1 || line.whole.lock().is_some_and(|whole| whole > now)
            });
        }
        if tenants.len() >= MAX_TENANTS {
            return Err(Error::quota("too many tenants compile components at the moment", MOMENT));
        }
        let line = Arc::new(Line::new());
        tenants.insert(tenant.to_owned(), Arc::clone(&line));
        Ok(line)
    }
}

impl Line {
    fn new() -> Self {
        let at_once = if stands(Defence::CompileTurn) { 1 } else { Semaphore::MAX_PERMITS };
        Self { free: Arc::new(Semaphore::new(at_once)), whole: Mutex::default() }
    }
}

impl Turn {
    /// Whose it is.
    pub(super) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Counts one compilation.
    ///
    /// # Errors
    /// [`Error::is_quota`] where the tenant has none left, with the time until it has.
    pub(super) fn compile(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let mut whole = self.line.whole.lock();
        // Each compilation takes an interval of the minute that comes, and is there again when that
        // has passed.
        let later = whole.map_or(now, |whole| whole.max(now)) + self.interval;
        let over = later.saturating_duration_since(now).saturating_sub(MINUTE);
        if !over.is_zero() && stands(Defence::CompileQuota) {
            return Err(Error::quota(
                "the tenant has reached its limit of compiled components per minute",
                over,
            ));
        }
        *whole = Some(later);
        Ok(())
    }

    /// Takes back the last of them: for the host's own reasons nothing came of it.
    pub(super) fn give_back(&self) {
        let mut whole = self.line.whole.lock();
        *whole = whole.and_then(|whole| whole.checked_sub(self.interval));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::clock::ManualClock;

    const SECOND: Duration = Duration::from_secs(1);

    fn turns(per_minute: u32) -> (Turns, ManualClock) {
        let clock = ManualClock::new();
        (Turns::new(per_minute, Arc::new(clock.clone())), clock)
    }

    /// The tenant's turn, if it has come.
    fn turn(turns: &Turns, tenant: &str) -> Option<Turn> {
        turns.turn(tenant).now_or_never().map(Result::unwrap)
    }

    /// Asked after so many more seconds, with six a minute: 0 for a yes, seconds for when to come
    /// again.
    #[test]
    fn compilations_are_counted_a_minute() {
        let (turns, clock) = turns(6);
        let ask = |tenant: &str, later: u32| {
            clock.advance(SECOND * later);
            let Err(refused) = turn(&turns, tenant).unwrap().compile() else { return 0 };
            assert!(
                refused.is_quota() && !refused.hint().is_empty() && refused.reason() == "quota"
            );
            refused.retry_after().unwrap().as_secs()
        };
        // What is refused costs nothing, however often.
        let each = [
            (0, 0),
            (0, 0),
            (0, 0),
            (1, 0),
            (1, 0),
            (7, 0),
            (0, 1),
            (0, 1),
            (1, 0),
            (0, 10),
            (9, 1),
            (1, 0),
            (1, 9),
        ];
        for (number, (later, expected)) in each.into_iter().enumerate() {
            assert_eq!(ask("a", later), expected, "question {number}");
        }
        assert_eq!(ask("b", 0), 0, "the other tenant's are its own");
        assert_eq!(
            [180, 0, 0, 0, 0, 0, 0].map(|later| ask("a", later)),
            [0, 0, 0, 0, 0, 0, 10],
            "after quiet minutes"
        );
    }

    #[test]
    fn what_was_given_back_is_there_again() {
        let (turns, clock) = turns(2);
        let turn = turn(&turns, "a").unwrap();
        for _ in 0..3 {
            turn.compile().unwrap();
            turn.compile().unwrap();
            assert!(turn.compile().is_err());
            turn.give_back();
            clock.advance(SECOND * 30);
        }
        turn.give_back();
        assert!(turn.compile().is_ok());
    }

    #[test]
    fn a_tenant_has_one_turn_at_a_time() {
        let (turns, _) = turns(1);
        let first = turn(&turns, "a").unwrap();
        let mut second = Box::pin(turns.turn("a"));
        assert!(second.as_mut().now_or_never().is_none() && turn(&turns, "b").is_some());
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    /// Who leaves the line makes room in it.
    #[test]
    fn a_line_has_an_end() {
        let (turns, _) = turns(1);
        let _first = turn(&turns, "a").unwrap();
        let mut line = Vec::new();
        for _ in 1..MAX_IN_LINE {
            line.push(Box::pin(turns.turn("a")));
            assert!(line.last_mut().unwrap().as_mut().now_or_never().is_none());
        }
        let refused = turns.turn("a").now_or_never().expect("no wait").unwrap_err();
        assert!(refused.is_quota() && refused.retry_after() == Some(MOMENT), "{refused}");
        assert!(turn(&turns, "b").is_some());
        line.pop();
        assert!(turns.turn("a").now_or_never().is_none());
    }

    /// A tenant is forgotten when that gives it no more than before. One that compiled within the
    /// minute, or still does, is remembered.
    #[test]
    fn tenants_are_forgotten_when_they_have_all_their_turns() {
        let (turns, clock) = turns(1);
        let busy = turn(&turns, "busy").unwrap();
        for tenant in 1..MAX_TENANTS {
            turn(&turns, &tenant.to_string()).unwrap().compile().unwrap();
        }
        clock.advance(SECOND * 59);
        assert!(turns.turn("one more").now_or_never().unwrap().unwrap_err().is_quota());
        clock.advance(SECOND);
        assert!(turn(&turns, "one more").is_some());
        assert_eq!(turns.tenants.lock().len(), 2);
        drop(busy);
    }
}
