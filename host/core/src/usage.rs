//! The receipt of a call.
//!
//! In: what the cell's meters read when the call ended. Out: [`Usage`].
//! Invariants: present on success and on failure; made by the host only.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fence::fenced;

/// What one call used.
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
    /// Instruction units of the engine; absent where nothing was metered (native handlers,
    /// refusals).
    pub fuel: Option<u64>,
    /// Wall time.
    #[serde(rename = "wall_us", with = "micros")]
    pub wall: Duration,
    /// The most that all memories and tables of the cell held at once.
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
    pub log_bytes_lost: u64,
}

/// Whole microseconds.
mod micros {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        u64::try_from(time.as_micros()).unwrap_or(u64::MAX).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

/// The meters of one running call, read when it ends, however it ends: answered, killed or dropped.
/// All attempts at it share them, each counts on from where the one before ended.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) fuel: AtomicU64,
    pub(crate) metered: AtomicBool,
    pub(crate) peak_memory: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) host_calls: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    pub(crate) log_bytes_lost: AtomicU64,
    pub(crate) denials: AtomicU64,
    /// Calls of other tools.
    pub(crate) sub_calls: AtomicU64,
    /// Hears of the fuel of a question beside a call, which is on no receipt.
    check: Option<CheckFuel>,
    /// Fuel that it has heard of.
    told: AtomicU64,
}

/// Hears how much fuel a tool's checks use beside its calls.
#[derive(Clone)]
pub(crate) struct CheckFuel(pub(crate) Arc<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for CheckFuel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckFuel")
    }
}

impl Meter {
    /// The meter of a question beside a call.
    pub(crate) fn of_check(check: Option<CheckFuel>) -> Self {
        let mut meter = Self::default();
        meter.check = check;
        meter
    }

    /// Tells the fuel that was not told yet. The rest is told when the cell, which may outlive its
    /// question, is gone.
    pub(crate) fn tell_check(&self) {
        let Some(CheckFuel(tell)) = &self.check else { return };
        let fuel = self.fuel.load(Relaxed);
        let more = fuel.saturating_sub(self.told.fetch_max(fuel, Relaxed));
        if more > 0 {
            // An observer's mistake must not become the tool's failure.
            let _ = fenced(|| tell(more));
        }
    }

    /// What was used until now.
    pub(crate) fn read(&self, wall: Duration, bytes_in: u64) -> Usage {
        Usage {
            fuel: self.metered.load(Relaxed).then(|| self.fuel.load(Relaxed)),
            wall,
            peak_memory: self.peak_memory.load(Relaxed),
            bytes_in,
            bytes_out: self.bytes_out.load(Relaxed),
            host_calls: self.host_calls.load(Relaxed),
            log_bytes: self.log_bytes.load(Relaxed),
            log_bytes_lost: self.log_bytes_lost.load(Relaxed),
        }
    }

    /// Notes what the call used until now. Readings only go up: a cell that is killed may write its
    /// last one late.
    pub(crate) fn note(&self, fuel: u64, peak_memory: u64, host_calls: u64) {
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
