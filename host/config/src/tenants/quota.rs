//! The quota of each tenant of a server: calls and fuel in a minute, concurrent calls, bytes of
//! artifacts.
//!
//! Reading a configuration calls [`overlaid`] with the section `[defaults.quota]`, then with
//! `[tenants.NAME.quota]` and the result as the base. It returns a [`Quota`]: for each limit the
//! section's own value, otherwise that of the base; `None` means that no limit is configured. The
//! server enforces it. Fuel counts executed instructions; an artifact is content that the server
//! stores outside of an agent's messages.

use toolcell::tenant::Quota;

use crate::grants::limits::amount;
use crate::problem::Problems;
use crate::schema;
use crate::text::units::{Count, Size};

/// Returns the quota of a section, with missing values from the default.
pub(crate) fn overlaid(problems: &mut Problems<'_>, said: &schema::Quota, base: Quota) -> Quota {
    let schema::Quota { calls_per_minute, fuel_per_minute, concurrent_calls, artifact_bytes } =
        said;
    let mut count = |said: &Option<_>| amount(problems, said.as_ref()).map(|Count(count)| count);
    let (calls, fuel, at_once) =
        (count(calls_per_minute), count(fuel_per_minute), count(concurrent_calls));
    let bytes = amount(problems, artifact_bytes.as_ref()).map(|Size(bytes)| bytes);
    Quota {
        calls_per_minute: calls.or(base.calls_per_minute),
        fuel_per_minute: fuel.or(base.fuel_per_minute),
        concurrent_calls: at_once.or(base.concurrent_calls),
        artifact_bytes: bytes.or(base.artifact_bytes),
    }
}
