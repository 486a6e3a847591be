//! How much one call may use, over every dimension at once.
//!
//! In: an embedder's choice, tightened per call. Out: [`Limits`].
//! Invariants: a limit is always set; an overlay can only tighten.
//! Not here: what a tool may reach (grants).

use std::time::Duration;

/// The budget of one call.
///
/// # Units
/// Bytes, unless the field says otherwise.
///
/// # Defaults
/// [`DEFAULT_FUEL`], [`DEFAULT_TIMEOUT`], [`DEFAULT_MEMORY`], [`DEFAULT_ARGUMENTS`], [`DEFAULT_RESULT`], [`DEFAULT_LOG`],
/// [`DEFAULT_HOST_CALLS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Instruction units of the engine, about one a wasm instruction.
    pub fuel: u64,
    /// Wall time of the call, waiting included.
    pub timeout: Duration,
    /// All memories and tables of the cell together.
    pub memory: u64,
    /// Arguments as JSON text.
    pub arguments: u64,
    /// Everything that the handler returns, together.
    pub result: u64,
    /// Log that is kept, in bytes as the tool writes them: `log`, standard output and standard error together.
    pub log: u64,
    /// Calls from the guest into the host.
    pub host_calls: u64,
}

/// Instruction units. A few seconds of one core in a tight loop: far beyond what a tool computes, short of what hurts.
pub const DEFAULT_FUEL: u64 = 10_000_000_000;
/// Wall time. Source: docs/contract.md, section 3 (`tool_timeout`).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes. Room for a language runtime and its data; filling it in one instruction stays near 30 ms, the longest time that a
/// guest can run without looking at the clock.
pub const DEFAULT_MEMORY: u64 = 64 << 20;
/// Bytes. More than any model writes in one call.
pub const DEFAULT_ARGUMENTS: u64 = 1 << 20;
/// Bytes. More than any model reads in one result.
pub const DEFAULT_RESULT: u64 = 1 << 20;
/// Bytes. A few hundred lines.
pub const DEFAULT_LOG: u64 = 64 << 10;
/// Calls. Enough for a chatty tool, a second of host time at most.
pub const DEFAULT_HOST_CALLS: u64 = 100_000;

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: DEFAULT_FUEL,
            timeout: DEFAULT_TIMEOUT,
            memory: DEFAULT_MEMORY,
            arguments: DEFAULT_ARGUMENTS,
            result: DEFAULT_RESULT,
            log: DEFAULT_LOG,
            host_calls: DEFAULT_HOST_CALLS,
        }
    }
}

impl Limits {
    /// With this many instruction units.
    #[must_use]
    pub fn with_fuel(mut self, fuel: u64) -> Self {
        self.fuel = fuel;
        self
    }

    /// With this wall time.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// With this many bytes of memory.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// With this many bytes of result.
    #[must_use]
    pub fn with_result(mut self, bytes: u64) -> Self {
        self.result = bytes;
        self
    }

    /// With this many bytes of arguments.
    #[must_use]
    pub fn with_arguments(mut self, bytes: u64) -> Self {
        self.arguments = bytes;
        self
    }

    /// With this many bytes of log.
    #[must_use]
    pub fn with_log(mut self, bytes: u64) -> Self {
        self.log = bytes;
        self
    }

    /// With this many calls into the host.
    #[must_use]
    pub fn with_host_calls(mut self, calls: u64) -> Self {
        self.host_calls = calls;
        self
    }

    /// The smaller of the two in every dimension.
    #[must_use]
    pub fn tightened(self, other: &Self) -> Self {
        Self {
            fuel: self.fuel.min(other.fuel),
            timeout: self.timeout.min(other.timeout),
            memory: self.memory.min(other.memory),
            arguments: self.arguments.min(other.arguments),
            result: self.result.min(other.result),
            log: self.log.min(other.log),
            host_calls: self.host_calls.min(other.host_calls),
        }
    }

    /// No limit in any dimension: the neutral element of [`tightened`](Self::tightened), for overlays that set a few.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            fuel: u64::MAX,
            timeout: Duration::MAX,
            memory: u64::MAX,
            arguments: u64::MAX,
            result: u64::MAX,
            log: u64::MAX,
            host_calls: u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_only_tightens() {
        let base = Limits::default();
        assert_eq!(base.tightened(&Limits::unlimited()), base);
        let overlay = Limits::unlimited().with_fuel(5).with_timeout(Duration::from_secs(90));
        assert_eq!(base.tightened(&overlay), base.with_fuel(5));
    }
}
