//! Counts the host's panics in calls of one component, and refuses its calls after too many.
//!
//! Each loaded component has a [`Quarantine`]. `placement` asks `admit` before each call, and
//! passes the end of each cell to `note`. Panics count for an hour; by default the third one starts
//! the quarantine. From then on calls get the refusal `quarantined`, until the embedder (the
//! program that uses this library) reinstates the component, which sets the count to zero, or loads
//! it again.
//! Only panics of the host count, and errors that wasmtime reports as bugs of its own; no trap of a
//! guest (the WebAssembly code of a tool) counts. A panic on another thread that works for a cell
//! is carried to the cell, ends its call, and counts.
//! Source: docs/threat-model.md, row 82.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcell_contract::outcome::tool_error::{Crash, CrashKind, ToolError};
use toolcell_contract::{controls::bound, event::LogLevel, outcome::refusal::Refusal};

use crate::os::clock::Clock;
use crate::tool::handler::Invocation;

/// The time for which a panic counts. An author who has found an input that causes one repeats it
/// at once; three by chance do not fall into one hour.
const WINDOW: Duration = Duration::from_hours(1);

/// The host's panics in calls of one component.
#[derive(Debug)]
pub(in crate::engine) struct Quarantine {
    /// The number of panics that starts the quarantine.
    most: Option<NonZero<u32>>,
    clock: Arc<dyn Clock>,
    /// The times of the panics that still count.
    panics: Mutex<VecDeque<Instant>>,
    /// True in quarantine. It changes with `panics`, and each call reads it without a lock.
    closed: AtomicBool,
}

impl Quarantine {
    pub(in crate::engine) fn after(most: Option<NonZero<u32>>, clock: Arc<dyn Clock>) -> Self {
        Self { most, clock, panics: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// Refuses a call if the component is in quarantine.
    pub(super) fn admit(&self) -> Result<(), Refusal> {
        if self.is_closed() { Err(Refusal::Quarantined) } else { Ok(()) }
    }

    pub(in crate::engine) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(in crate::engine) fn reset(&self) {
        let mut panics = self.panics.lock();
        panics.clear();
        self.closed.store(false, Ordering::Relaxed);
    }

    /// Counts a panic. Returns true if this one starts the quarantine.
    fn count(&self) -> bool {
        let Some(most) = self.most else { return false };
        let now = self.clock.now();
        let mut panics = self.panics.lock();
        if self.is_closed() {
            return false;
        }
        panics.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        panics.push_back(now);
        let is_too_many = panics.len() >= bound!(Quarantine, most.get() as usize);
        self.closed.store(is_too_many, Ordering::Relaxed);
        is_too_many
    }

    /// Counts and reports the end of a cell if the host panicked.
    pub(super) fn note<T>(&self, ended: &Result<T, ToolError>, invocation: &Invocation) {
        if !matches!(ended, Err(ToolError::HandlerRaised(Crash { kind: CrashKind::HostPanic, .. })))
        {
            return;
        }
        let (tool, id) = (&invocation.call.name, &invocation.call.id);
        tracing::error!(tool, id, "the host panicked as it served a tool");
        if self.count() {
            tracing::error!(tool, "the tool's component is not run any more");
            let reason = "the host panicked too often: the tool is not run any more";
            invocation.noted(LogLevel::Error, reason.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_contract::limits::Limits;
    use toolcell_contract::outcome::tool_error::Exit;
    use toolcell_test_guests::rows;

    use super::*;
    use crate::os::clock::ManualClock;

    fn invocation() -> Invocation {
        Invocation::scripted("t", Limits::default())
    }

    fn handler_raised(kind: CrashKind) -> Result<(), ToolError> {
        Err(ToolError::HandlerRaised(Crash::new(kind)))
    }

    /// Three panics with these minutes between them: the fourth call is refused if all three are
    /// within an hour.
    #[test]
    fn panics_count_for_an_hour() {
        let pauses = rows::<([u64; 2], bool)>("engine/schedule/quarantine", "pauses");
        for (apart, is_admitted) in pauses {
            let expected = if is_admitted { Ok(()) } else { Err(Refusal::Quarantined) };
            let clock = ManualClock::new();
            let quarantine = Quarantine::after(NonZero::new(3), Arc::new(clock.clone()));
            for apart in [0, apart[0], apart[1]] {
                assert_eq!(quarantine.admit(), Ok(()));
                clock.advance(Duration::from_mins(apart));
                quarantine.note(&handler_raised(CrashKind::HostPanic), &invocation());
            }
            assert_eq!(quarantine.admit(), expected, "{apart:?}");
            clock.advance(Duration::from_mins(1000));
            assert_eq!(quarantine.admit(), expected, "who is out stays out");
        }
    }

    #[test]
    fn only_host_panics_count_for_quarantine() {
        let invocation = invocation();
        let after = |most| Quarantine::after(most, Arc::new(ManualClock::new()));
        let quarantine = after(NonZero::new(2));
        for ended in [
            Ok(()),
            handler_raised(CrashKind::Unreachable),
            handler_raised(CrashKind::HostCall),
            handler_raised(CrashKind::NativePanic),
            Err(ToolError::HandlerExit(Exit::ProcessEnded)),
        ] {
            (0..9).for_each(|_| quarantine.note(&ended, &invocation));
        }
        assert_eq!(quarantine.admit(), Ok(()));
        let never = after(None);
        for round in 0..2 {
            for after in [Ok(()), Err(Refusal::Quarantined), Err(Refusal::Quarantined)] {
                for each in [&quarantine, &never] {
                    each.note(&handler_raised(CrashKind::HostPanic), &invocation);
                }
                assert_eq!(quarantine.admit(), after, "round {round}");
                assert_eq!(never.admit(), Ok(()));
            }
            quarantine.reset();
        }
    }
}
