//! Cache of redactors, so that calls with equal secrets do not build the search again.
//!
//! A redactor is a search automaton of some megabytes for one set of values. Each engine has a
//! [`Redactors`]. The call redactor and the outbound scan ask `of` or `of_whole` with the values;
//! they get the cached redactor, or one that is built on a blocking thread, or `None` if the values
//! are too many. `of_whole` is for values that the tool may not know: only whole values match, so
//! that a tool cannot learn parts of them.
//! The total size is bounded, and the least recently used redactors are removed first. A set of
//! values is identified by a hash.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::forms::Pieces;
use super::{Redactor, sort};
use crate::secrets::secret::Secret;

/// Bytes of all cached redactors. A redactor for one value takes two million bytes, one for many
/// values some twenty million.
const ROOM: usize = 128 << 20;

/// Redactors by the values that they look for.
pub(crate) struct Redactors {
    room: usize,
    cached: Mutex<VecDeque<(blake3::Hash, Redactor)>>,
}

impl Redactors {
    fn with_room(room: usize) -> Self {
        Self { room, cached: Mutex::default() }
    }

    /// Returns the redactor for these values and builds it if it is not cached. Returns `None` for
    /// too many values.
    pub(crate) async fn of(&self, values: Vec<Secret>) -> Option<Redactor> {
        self.get_or_build(values, Pieces::Searched).await
    }

    /// Returns a redactor for values that the tool may not know: only whole values are found.
    pub(crate) async fn of_whole(&self, values: Vec<Secret>) -> Option<Redactor> {
        self.get_or_build(values, Pieces::Ignored).await
    }

    async fn get_or_build(&self, mut values: Vec<Secret>, pieces: Pieces) -> Option<Redactor> {
        sort(&mut values);
        let name = name(&values, pieces);
        if let Some(found) = self.cached(name) {
            return Some(found);
        }
        let made =
            tokio::task::spawn_blocking(move || Redactor::build(values, pieces)).await.ok()??;
        let mut kept = self.cached.lock();
        kept.push_front((name, made.clone()));
        let size = |(_, redactor): &(_, Redactor)| redactor.size();
        while kept.len() > 1 && kept.iter().map(size).sum::<usize>() > self.room {
            kept.pop_back();
        }
        Some(made)
    }

    fn cached(&self, name: blake3::Hash) -> Option<Redactor> {
        let mut kept = self.cached.lock();
        let at = kept.iter().position(|(other, _)| *other == name)?;
        // The first entry is the one that was used last.
        kept.make_contiguous()[..=at].rotate_right(1);
        kept.front().map(|(_, redactor)| redactor.clone())
    }
}

/// Returns a hash that identifies a set of values without revealing them.
fn name(values: &[Secret], pieces: Pieces) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(pieces == Pieces::Searched)]);
    for value in values {
        hasher.update(&(value.expose().len() as u64).to_le_bytes());
        hasher.update(value.expose().as_bytes());
    }
    hasher.finalize()
}

impl Default for Redactors {
    fn default() -> Self {
        Self::with_room(ROOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn redactor_cache_evicts_least_recently_used() {
        let secrets = |number: usize| vec![Secret::new(format!("secret-{number:04}")).unwrap()];
        let size = Redactor::new(secrets(0)).unwrap().size();
        let redactors = Redactors::with_room(4 * size + size / 2);
        let is_same = |one: &Redactor, other: &Redactor| std::sync::Arc::ptr_eq(&one.0, &other.0);
        let first = redactors.of(secrets(0)).await.unwrap();
        for number in 1..8 {
            redactors.of(secrets(number)).await.unwrap();
            let again = redactors.of(secrets(0)).await.unwrap();
            assert!(is_same(&first, &again), "it was asked for a moment ago");
        }
        assert_eq!(redactors.cached.lock().len(), 4);
        for number in 8..16 {
            redactors.of(secrets(number)).await.unwrap();
        }
        assert!(!is_same(&first, &redactors.of(secrets(0)).await.unwrap()));
    }
}
