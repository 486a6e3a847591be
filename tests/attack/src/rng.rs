//! A seeded random number generator: the same seed, scenario and case give the same numbers.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::RangeBounds;

/// The random number generator of one case.
pub(crate) struct SeededRng(fastrand::Rng);

impl SeededRng {
    /// Seeds the generator from seed, scenario and case.
    pub(crate) fn of(seed: u64, theatre: &str, case: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        (seed, theatre, case).hash(&mut hasher);
        Self(fastrand::Rng::with_seed(hasher.finish()))
    }

    pub(crate) fn number(&mut self, range: impl RangeBounds<u64>) -> u64 {
        self.0.u64(range)
    }

    /// Returns an index below `count`.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        self.0.usize(..count)
    }

    /// Returns true once in `times` calls on average.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.0.u64(..times) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())].clone()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.u8(..)
    }

    pub(crate) fn letters(&mut self, count: usize) -> String {
        std::iter::repeat_with(|| self.0.alphanumeric()).take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_depend_on_seed_scenario_and_case() {
        let rolled = |seed, theatre, case| SeededRng::of(seed, theatre, case).letters(20);
        let first = rolled(1, "a", 1);
        assert_eq!(first, rolled(1, "a", 1));
        for other in [rolled(2, "a", 1), rolled(1, "b", 1), rolled(1, "a", 2)] {
            assert_ne!(first, other);
        }
    }
}
