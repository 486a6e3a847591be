//! Cache of redactors, so that calls with equal secrets do not build the search again.
//!
//! A redactor is a search automaton of some megabytes for one set of values. Each engine has a
//! [`Redactors`]. The call redactor and the outbound scan ask `of` or `of_whole` with the values;
//! they get the cached redactor, or one that is built on a blocking thread, once for all calls that
//! ask for it meanwhile, or `None` if the values are too many. `of_whole` is for values that the
//! tool may not know: only whole values match, so that a tool cannot learn parts of them.
//! The total size is bounded, and the least recently used redactors are removed first. A set of
//! values is identified by a hash.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::SetOnce;

use super::forms::Pieces;
use super::{Redactor, sort};
use crate::secrets::secret::Secret;

/// Bytes of all cached redactors. A redactor for one value takes two million bytes, one for many
/// values some twenty million.
const ROOM: usize = 128 << 20;

/// The place of a redactor: empty while it is built, `None` if there is none.
type Place = Arc<SetOnce<Option<Redactor>>>;

/// Redactors by the values that they look for.
pub(crate) struct Redactors {
    room: usize,
    cached: Mutex<VecDeque<(blake3::Hash, Place)>>,
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
        let (place, is_new) = self.place(name(&values, pieces));
        if let Some(made) = place.get() {
            return made.clone();
        }
        if is_new {
            let unmade = |place: Place| drop(place.set(None));
            let place = scopeguard::guard(Arc::clone(&place), unmade);
            // It goes on if the call ends, so that later calls need not begin again.
            drop(tokio::task::spawn_blocking(move || {
                let _ = place.set(Redactor::build(values, pieces));
            }));
        }
        place.wait().await.clone()
    }

    /// Returns the place of the redactor of this name, and true if it is new: the caller has to
    /// build it. Removes the redactors for which there is no room.
    fn place(&self, name: blake3::Hash) -> (Place, bool) {
        let mut kept = self.cached.lock();
        kept.retain(|(_, place)| !matches!(place.get(), Some(None)));
        let found = kept.iter().position(|(other, _)| *other == name);
        match found {
            // The first entry is the one that was used last.
            Some(at) => kept.make_contiguous()[..=at].rotate_right(1),
            None => kept.push_front((name, Arc::new(SetOnce::new()))),
        }
        let size = |(_, place): &(_, Place)| {
            place.get().and_then(Option::as_ref).map_or(0, Redactor::size)
        };
        while kept.len() > 1 && kept.iter().map(size).sum::<usize>() > self.room {
            kept.pop_back();
        }
        (Arc::clone(&kept[0].1), found.is_none())
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
    use futures_util::{FutureExt as _, future::join};

    use super::*;

    #[tokio::test]
    async fn redactor_cache_evicts_least_recently_used() {
        let secrets = |number: usize| vec![Secret::new(format!("secret-{number:04}")).unwrap()];
        let size = Redactor::new(secrets(0)).unwrap().size();
        let redactors = Redactors::with_room(4 * size + size / 2);
        let is_same = |one: &Redactor, other: &Redactor| Arc::ptr_eq(&one.0, &other.0);
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

    /// Fails without: the place that calls share.
    #[tokio::test]
    async fn redactor_is_built_once_for_calls_at_one_time() {
        let values = || vec![Secret::new("secret-of-all-calls").unwrap()];
        let redactors = Redactors::default();
        // The work goes on though this call has left.
        drop(redactors.of(values()).now_or_never());
        let (one, other) = join(redactors.of(values()), redactors.of(values())).await;
        assert!(Arc::ptr_eq(&one.unwrap().0, &other.unwrap().0));
        assert_eq!(redactors.cached.lock().len(), 1);
        let whole = redactors.of_whole(values()).await.unwrap();
        assert!(!Arc::ptr_eq(&whole.0, &redactors.of(values()).await.unwrap().0));
    }
}
