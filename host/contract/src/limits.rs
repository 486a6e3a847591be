//! Limits on the resources that one call may use: fuel, time, memory, bytes, calls into the host.
//!
//! An embedder (the program that uses this library) sets [`Limits`] for the executor, and tightens
//! them for a tool, a tenant or a single call. For each call the executor takes the smallest limit
//! of all of them with [`Limits::tightened`]; nothing can raise a limit. Every limit always has a
//! value. Fuel counts instruction units of the engine, about one for each wasm instruction.
//!
//! Not here: what a tool may access, in `grants`.

use std::time::Duration;

/// The budget of one call.
///
/// # Units
/// Bytes, unless the field says otherwise.
///
/// # Defaults
/// [`Limits::DEFAULT_FUEL`], [`Limits::DEFAULT_TIMEOUT`], [`Limits::DEFAULT_MEMORY`],
/// [`Limits::DEFAULT_ARGUMENTS`], [`Limits::DEFAULT_RESULT`], [`Limits::DEFAULT_LOG`],
/// [`Limits::DEFAULT_HOST_CALLS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Instruction units of the engine: about one for each wasm instruction.
    pub fuel: u64,
    /// Wall time of the call, waiting included.
    pub timeout: Duration,
    /// All memories and tables of the cell together.
    pub memory: u64,
    /// The arguments as JSON text.
    pub arguments: u64,
    /// Everything that the handler returns, in total.
    pub result: u64,
    /// The log that is kept, in bytes as the tool writes them: `log`, standard output and standard
    /// error together.
    pub log: u64,
    /// Calls of the guest into the host.
    pub host_calls: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: Self::DEFAULT_FUEL,
            timeout: Self::DEFAULT_TIMEOUT,
            memory: Self::DEFAULT_MEMORY,
            arguments: Self::DEFAULT_ARGUMENTS,
            result: Self::DEFAULT_RESULT,
            log: Self::DEFAULT_LOG,
            host_calls: Self::DEFAULT_HOST_CALLS,
        }
    }
}

impl Limits {
    /// 10 billion instruction units: a few seconds of one core in a tight loop.
    pub const DEFAULT_FUEL: u64 = 10_000_000_000;
    /// 30 s of wall time. Source: docs/contract.md, section 3 (`tool_timeout`).
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
    /// 64 MiB, in bytes. It is enough for a language runtime and its data. Filling it with one
    /// instruction takes about 30 ms, which is the longest time that a guest runs without checking
    /// the clock.
    pub const DEFAULT_MEMORY: u64 = 64 << 20;
    /// 1 MiB, in bytes: more than a model writes in one call.
    pub const DEFAULT_ARGUMENTS: u64 = 1 << 20;
    /// 1 MiB, in bytes: more than a model reads in one result.
    pub const DEFAULT_RESULT: u64 = 1 << 20;
    /// 64 KiB, in bytes: a few hundred lines.
    pub const DEFAULT_LOG: u64 = 64 << 10;
    /// 100,000 calls: at most about a second of host time.
    pub const DEFAULT_HOST_CALLS: u64 = 100_000;
    /// 16 MiB, in bytes: the host's own memory that the objects of one cell may keep (requests,
    /// bodies, streams, listings), beside the cell's memory limit. It is as much as a key-value
    /// store holds. A process with N cells needs N times both.
    pub const HOST_BYTES: u64 = 16 << 20;

    /// Returns the smaller limit of the two for each resource.
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

    /// Returns limits that restrict nothing. Start with them to set a few limits that tighten
    /// others.
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
    fn overlay_only_tightens_limits() {
        let base = Limits::default();
        assert_eq!(base.tightened(&Limits::unlimited()), base);
        let overlay = Limits { fuel: 5, timeout: Duration::from_secs(90), ..Limits::unlimited() };
        assert_eq!(base.tightened(&overlay), Limits { fuel: 5, ..base });
    }
}
