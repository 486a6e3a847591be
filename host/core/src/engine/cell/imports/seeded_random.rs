//! Random number generator that gives equal bytes for an equal seed, call id and purpose.
//!
//! An embedder (the program that uses this library) can set a seed for an engine, so that calls can
//! be repeated. The cell of each call (its fresh wasmtime store) then gets a [`SeededRandom`] for
//! each [`Purpose`]: the two kinds of random numbers of WASI, the insecure seed, and
//! `/dev/urandom`. The bytes are the extended output of the hash BLAKE3 under a key derived from
//! the three values, so they cannot be predicted without the seed.
//! Without a seed, wasmtime's own generators are used, seeded for each cell from the operating
//! system.

use std::convert::Infallible;

use rand_core::TryRng;
use toolcell_contract::controls::enforced;

/// The context from which the key of a call's randomness is derived. Source: BLAKE3, key
/// derivation.
const CONTEXT: &str = "toolcell 2026 randomness of a call";

/// The purpose of random bytes; each gives different bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Secure,
    Insecure,
    InsecureSeed,
    Device,
}

/// A generator that cannot be predicted without the seed: the extended output of BLAKE3.
pub(super) struct SeededRandom(blake3::OutputReader);

impl SeededRandom {
    pub(super) fn new(seed: u64, call: &str, purpose: Purpose) -> Self {
        let mut key = blake3::Hasher::new_derive_key(CONTEXT);
        key.update(&seed.to_le_bytes()).update(&[purpose as u8]);
        if enforced!(RandomnessOfACall) {
            key.update(call.as_bytes());
        }
        Self(key.finalize_xof())
    }

    fn next<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes);
        bytes
    }

    pub(super) fn number(mut self) -> u128 {
        u128::from_le_bytes(self.next())
    }
}

impl TryRng for SeededRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.next()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(self.next()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Fails without: the call's id or the purpose in the key.
    #[test]
    fn seeded_randomness_repeats_but_differs_per_call() {
        let first = |seed, call: &str, purpose| SeededRandom::new(seed, call, purpose).next::<16>();
        assert_eq!(first(7, "call-1", Purpose::Secure), first(7, "call-1", Purpose::Secure));
        let mut seen = HashSet::new();
        for call in 0..10_000 {
            for purpose in [Purpose::Secure, Purpose::Insecure, Purpose::InsecureSeed] {
                let is_new = seen.insert(first(7, &format!("call-{call}"), purpose));
                assert!(is_new, "call {call}, {purpose:?}");
            }
        }
        assert!(seen.insert(first(8, "call-1", Purpose::Secure)), "another seed");
    }
}
