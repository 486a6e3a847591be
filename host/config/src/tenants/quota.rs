//! The quota of each tenant of a server: calls and fuel in a minute, concurrent calls, bytes of
//! artifacts.
//!
//! Reading a configuration calls [`overlaid`] with the section `[defaults.quota]`, then with
//! `[tenants.NAME.quota]` and the result as the base. It returns a [`TenantQuota`]: for each limit
//! the section's own value, otherwise that of the base; `None` means that no limit is configured.
//! The server enforces it. Fuel counts executed instructions; an artifact is content that the
//! server stores outside of an agent's messages.

use std::fmt;

use serde::Serialize;

use crate::grants::limits::amount;
use crate::problem::Problems;
use crate::schema;
use crate::text::units::{Count, Size};

/// The quota of one tenant of a server. `None`: no limit is configured.
///
/// # Shape
/// As JSON: its fields by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TenantQuota {
    /// Calls that start in a minute.
    pub calls_per_minute: Option<u64>,
    /// Fuel units in a minute.
    pub fuel_per_minute: Option<u64>,
    /// Concurrent calls.
    pub concurrent_calls: Option<u64>,
    /// Bytes of all artifacts.
    pub artifact_bytes: Option<u64>,
}

/// Returns the quota of a section, with missing values from the default.
pub(crate) fn overlaid(
    problems: &mut Problems<'_>,
    said: &schema::Quota,
    base: TenantQuota,
) -> TenantQuota {
    let schema::Quota { calls_per_minute, fuel_per_minute, concurrent_calls, artifact_bytes } =
        said;
    let mut count = |said: &Option<_>| amount(problems, said.as_ref()).map(|Count(count)| count);
    let (calls, fuel, at_once) =
        (count(calls_per_minute), count(fuel_per_minute), count(concurrent_calls));
    let bytes = amount(problems, artifact_bytes.as_ref()).map(|Size(bytes)| bytes);
    TenantQuota {
        calls_per_minute: calls.or(base.calls_per_minute),
        fuel_per_minute: fuel.or(base.fuel_per_minute),
        concurrent_calls: at_once.or(base.concurrent_calls),
        artifact_bytes: bytes.or(base.artifact_bytes),
    }
}

impl TenantQuota {
    /// Returns true if nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// In words: `60 calls a minute, 10G fuel a minute, 4 calls at once, 64MiB of artifacts`.
impl fmt::Display for TenantQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.calls_per_minute.map(|calls| format!("{} calls a minute", Count(calls))),
            self.fuel_per_minute.map(|fuel| format!("{} fuel a minute", Count(fuel))),
            self.concurrent_calls.map(|calls| format!("{} calls at once", Count(calls))),
            self.artifact_bytes.map(|bytes| format!("{} of artifacts", Size(bytes))),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        f.write_str(
            if parts.is_empty() { "no quota".to_owned() } else { parts.join(", ") }.as_str(),
        )
    }
}
