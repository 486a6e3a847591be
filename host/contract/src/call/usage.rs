//! Counts the resources that one call uses.
//!
//! The executor creates a [`Meter`] for each call. The cell (a fresh WebAssembly instance for one
//! call) and the host functions add to it while the call runs: fuel (the engine's instruction
//! units), peak memory, bytes, calls into the host. At the end the executor reads a [`Usage`],
//! which is part of every completion and of the last event, on success and on failure. All attempts
//! of a retried call share one meter, and its values only increase.
//!
//! A tool's visibility check can also run outside of a call, when tools are listed. Its fuel is
//! part of no usage and goes to a [`CheckFuel`] callback instead, with which a server charges the
//! tenant.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::panic_guard::guarded;

/// The resources that one call used.
///
/// # Units
/// Time is wall time from the call's start to its end, waiting included. Memory and sizes are
/// bytes.
///
/// # Shape
/// As JSON: its fields by name; `fuel` may be `null`, the wall time is whole microseconds, as
/// `wall_us`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Instruction units of the engine; absent if nothing was metered (native handlers, refusals).
    pub fuel: Option<u64>,
    /// Wall time.
    #[serde(rename = "wall_us", with = "micros")]
    pub wall: Duration,
    /// The maximum size of all memories and tables of the cell together.
    pub peak_memory: u64,
    /// Size of the arguments.
    pub bytes_in: u64,
    /// Size of everything that the handler returned.
    pub bytes_out: u64,
    /// Calls from the guest into the host.
    pub host_calls: u64,
    /// Log that was kept: `log`, standard output and standard error together, each byte as the tool
    /// wrote it, and one for the end of each message of `log`.
    pub log_bytes: u64,
    /// Log over the limit, counted likewise and dropped.
    pub log_bytes_dropped: u64,
}

/// Whole microseconds.
mod micros {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}

/// The meters of one running call, read at its end: answered, killed or dropped. All attempts of a
/// call share them, and each attempt continues the count of the one before.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Meter {
    pub fuel: AtomicU64,
    pub metered: AtomicBool,
    pub peak_memory: AtomicU64,
    pub bytes_out: AtomicU64,
    pub host_calls: AtomicU64,
    pub log_bytes: AtomicU64,
    pub log_bytes_dropped: AtomicU64,
    pub denials: AtomicU64,
    /// Calls of other tools.
    pub sub_calls: AtomicU64,
    /// Receives the fuel of a check outside of a call, which is part of no usage.
    check: Option<CheckFuel>,
    /// Fuel that was already reported to `check`.
    reported: AtomicU64,
}

/// A callback for the fuel of a tool's checks outside of its calls.
#[derive(Clone)]
#[doc(hidden)]
pub struct CheckFuel(pub Arc<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for CheckFuel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckFuel")
    }
}

impl Meter {
    /// Creates the meter of a check outside of a call.
    pub fn of_check(check: Option<CheckFuel>) -> Self {
        let mut meter = Self::default();
        meter.check = check;
        meter
    }

    /// Reports the fuel that was not reported yet. The rest is reported when the cell, which may
    /// outlive its check, is dropped.
    pub fn tell_check(&self) {
        let Some(CheckFuel(tell)) = &self.check else { return };
        let fuel = self.fuel.load(Relaxed);
        let more = fuel.saturating_sub(self.reported.fetch_max(fuel, Relaxed));
        if more > 0 {
            // A panic of the observer must not become a failure of the tool.
            let _ = guarded(|| tell(more));
        }
    }

    /// Returns the usage until now.
    pub fn read(&self, wall: Duration, bytes_in: u64) -> Usage {
        Usage {
            fuel: self.metered.load(Relaxed).then(|| self.fuel.load(Relaxed)),
            wall,
            peak_memory: self.peak_memory.load(Relaxed),
            bytes_in,
            bytes_out: self.bytes_out.load(Relaxed),
            host_calls: self.host_calls.load(Relaxed),
            log_bytes: self.log_bytes.load(Relaxed),
            log_bytes_dropped: self.log_bytes_dropped.load(Relaxed),
        }
    }

    /// Records the usage until now. Values only increase: a cell that is killed may write its last
    /// one late.
    pub fn note(&self, fuel: u64, peak_memory: u64, host_calls: u64) {
        self.fuel.fetch_max(fuel, Relaxed);
        self.metered.store(true, Relaxed);
        self.peak_memory.fetch_max(peak_memory, Relaxed);
        self.host_calls.fetch_max(host_calls, Relaxed);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.tell_check();
    }
}
