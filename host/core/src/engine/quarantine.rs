//! The host's panics in calls of one component, and the end of its calls after too many.
//!
//! In: how a cell ended. Out: whether there is to be another.
//! Invariants: only the host's own panics count, and the engine's word that it found a mistake of its own: no trap of a
//! guest's ever does; who is let in again begins at nothing.
//! Source: security design, row 82.

use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::defence::{Defence, stands};
use crate::event::LogLevel;
use crate::handler::Invocation;
use crate::refusal::Refusal;
use crate::tool_error::{Raised, RaisedKind, ToolError};

/// Panics of the host in calls of one component until it is not run any more: one may be chance, three are a way that a
/// stranger has found.
pub const DEFAULT_PANICS: NonZero<u32> = NonZero::new(3).expect("it is three");

/// What a component has cost the host.
#[derive(Debug)]
pub(super) struct Quarantine {
    /// As many are too many.
    most: Option<NonZero<u32>>,
    panics: AtomicU32,
}

impl Quarantine {
    pub(super) fn after(most: Option<NonZero<u32>>) -> Self {
        Self { most, panics: AtomicU32::new(0) }
    }

    /// Lets a call in, or not.
    pub(super) fn admit(&self) -> Result<(), Refusal> {
        if self.is_closed() && stands(Defence::Quarantine) { Err(Refusal::Quarantined) } else { Ok(()) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.most.is_some_and(|most| self.panics.load(Ordering::Relaxed) >= most.get())
    }

    pub(super) fn lift(&self) {
        self.panics.store(0, Ordering::Relaxed);
    }

    /// Takes note of how a cell ended, and tells of it where the host is to blame.
    pub(super) fn note<T>(&self, ended: &Result<T, ToolError>, invocation: &Invocation) {
        if !matches!(ended, Err(ToolError::HandlerRaised(Raised { kind: RaisedKind::HostPanic, .. }))) {
            return;
        }
        let panics = self.panics.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let (tool, id) = (&invocation.call.name, &invocation.call.id);
        tracing::error!(tool, id, panics, "the host panicked as it served a tool");
        if self.most.is_some_and(|most| panics == most.get()) {
            tracing::error!(tool, panics, "the tool's component is not run any more");
            invocation
                .noted(LogLevel::Error, format!("the host panicked {panics} times: the tool is not run any more"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::call::{CallContext, ToolCall};
    use crate::limits::Limits;
    use crate::tool_error::Exit;

    #[test]
    fn panics_of_the_host_count_and_nothing_else() {
        let call = ToolCall::new("1", "t", "{}");
        let invocation = Invocation::aside(call, Value::Null, CallContext::default(), Limits::default());
        let raised = |kind| Err(ToolError::HandlerRaised(Raised::new(kind)));
        let quarantine = Quarantine::after(NonZero::new(2));
        for ended in [
            Ok(()),
            raised(RaisedKind::Unreachable),
            raised(RaisedKind::HostCall),
            raised(RaisedKind::NativePanic),
            Err(ToolError::HandlerExit(Exit::Died)),
        ] {
            (0..9).for_each(|_| quarantine.note(&ended, &invocation));
        }
        assert_eq!(quarantine.admit(), Ok(()));
        let never = Quarantine::after(None);
        for round in 0..2 {
            for after in [Ok(()), Err(Refusal::Quarantined), Err(Refusal::Quarantined)] {
                [&quarantine, &never]
                    .into_iter()
                    .for_each(|each| each.note(&raised(RaisedKind::HostPanic), &invocation));
                assert_eq!(quarantine.admit(), after, "round {round}");
                assert_eq!(never.admit(), Ok(()));
            }
            quarantine.lift();
        }
    }
}
