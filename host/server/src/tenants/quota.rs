//! The rates of a tenant's quota: its use per minute.
//!
//! An operator, or the embedder (the program that uses this library), sets a
//! [`Quota`](toolcell::tenant::Quota); the tenant's account enforces its rates with one [`Bucket`]
//! each. A bucket is a token bucket: it fills at the rate up to one minute's worth, and a call
//! takes tokens from it. [`Bucket::wait_for`] returns the time until enough tokens are there. Fuel
//! (instruction units) is charged after a call, so a bucket can go into debt; calls are refused
//! until it is paid.
//!
//! The caller gives the time. A bucket is exact: it loses nothing by rounding between two fills.
//! Not here: the counting of concurrent calls, in `tenants/account.rs`.

use std::fmt;
use std::time::{Duration, Instant};

/// Parts of one token: at a rate of one token a minute, one part is added each millisecond.
const PARTS: i128 = 60_000;

/// The part of a quota that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaKind {
    /// Calls a minute.
    Calls,
    /// Fuel a minute.
    Fuel,
    /// Calls at once.
    Concurrent,
}

impl fmt::Display for QuotaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calls => "calls a minute",
            Self::Fuel => "fuel a minute",
            Self::Concurrent => "calls at once",
        })
    }
}

/// A token bucket that holds at most the tokens of one minute.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// Parts of a token. Below zero: debt.
    level: i128,
    per_minute: u64,
    at: Instant,
}

impl Bucket {
    /// Creates a full bucket.
    pub(crate) fn new(per_minute: u64, now: Instant) -> Self {
        Self { level: i128::from(per_minute) * PARTS, per_minute, at: now }
    }

    /// Adds the tokens since the last fill at the old rate, and sets the new rate.
    pub(crate) fn fill(&mut self, per_minute: u64, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        // Whole milliseconds only: the rest counts at the next fill.
        self.at = self.at.checked_add(Duration::from_millis(elapsed)).unwrap_or(now);
        self.level = self.level.saturating_add(i128::from(self.per_minute) * i128::from(elapsed));
        self.per_minute = per_minute;
        self.level = self.level.min(i128::from(per_minute) * PARTS);
    }

    /// Returns the time until the bucket holds this many tokens. Zero if it does.
    pub(crate) fn wait_for(&self, tokens: u64) -> Duration {
        let missing = i128::from(tokens) * PARTS - self.level;
        match u128::try_from(missing) {
            Err(_) | Ok(0) => Duration::ZERO,
            Ok(_) if self.per_minute == 0 => Duration::from_secs(60),
            Ok(missing) => {
                let millis = missing.div_ceil(u128::from(self.per_minute));
                Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
            }
        }
    }

    /// Takes tokens, into debt if necessary.
    pub(crate) fn take(&mut self, tokens: u64) {
        self.level = self.level.saturating_sub(i128::from(tokens) * PARTS);
    }

    /// Returns the whole tokens that are left.
    pub(crate) fn left(&self) -> u64 {
        u64::try_from(self.level.div_euclid(PARTS)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_allows_a_minutes_burst_then_the_rate() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut bucket = Bucket::new(60, start);
        let mut admitted = 0;
        // Ten times the rate for two minutes: a full bucket, and the tokens added meanwhile.
        for step in 0..1200 {
            bucket.fill(60, at(step * 100));
            if bucket.wait_for(1).is_zero() {
                bucket.take(1);
                admitted += 1;
            }
        }
        assert_eq!(admitted, 60 + 119);
        assert_eq!(bucket.wait_for(2), Duration::from_millis(1100));
        bucket.take(10);
        assert_eq!((bucket.left(), bucket.wait_for(1)), (0, Duration::from_millis(10_100)));
        bucket.fill(60, at(10_000_000));
        assert_eq!((bucket.left(), bucket.wait_for(60)), (60, Duration::ZERO));
        // A lower rate takes effect at once, and a rate of zero never fills.
        bucket.fill(0, at(10_000_000));
        assert_eq!((bucket.left(), bucket.wait_for(1)), (0, Duration::from_secs(60)));
    }
}
