//! The remaining budget of the call.

use std::time::Duration;

use super::imports;

/// The remaining budget of a call at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remaining {
    /// Units of the engine's instruction budget. `None`: not metered.
    pub fuel: Option<u64>,
    /// Wall time.
    pub time: Duration,
    /// Bytes by which memories and tables may still grow.
    pub memory: u64,
}

/// Asks the host for the remaining budget. In native tests there is no limit.
pub fn remaining() -> Remaining {
    imports::remaining()
}
