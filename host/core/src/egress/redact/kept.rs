//! Redactors that were made, for the next call with the same secrets.
//!
//! Invariants: all of them together have a bounded size, and those go first that were not asked for
//! longest; one is made where no other task waits for the thread.

use std::collections::VecDeque;
use std::fmt;

use parking_lot::Mutex;

use super::Redactor;
use super::forms::Pieces;
use crate::secret::Secret;

/// Bytes of all that are kept: one for a single value takes two million, one for many some twenty.
const ROOM: usize = 128 << 20;

/// Redactors by their values.
pub(crate) struct Redactors {
    room: usize,
    kept: Mutex<VecDeque<(blake3::Hash, Redactor)>>,
}

impl Redactors {
    fn with_room(room: usize) -> Self {
        Self { room, kept: Mutex::default() }
    }

    /// The one for these values, made if there is none; nothing where there are too many values.
    pub(crate) async fn of(&self, values: Vec<Secret>) -> Option<Redactor> {
        self.made(values, Pieces::Sought).await
    }

    /// The same for values that the tool may not know: they are found whole only.
    pub(crate) async fn of_whole(&self, values: Vec<Secret>) -> Option<Redactor> {
        self.made(values, Pieces::Left).await
    }

    async fn made(&self, mut values: Vec<Secret>, pieces: Pieces) -> Option<Redactor> {
        values.sort_by(|one, other| one.expose().cmp(other.expose()));
        values.dedup_by(|one, other| one.expose() == other.expose());
        let name = name(&values, pieces);
        if let Some(found) = self.kept(name) {
            return Some(found);
        }
        let made =
            tokio::task::spawn_blocking(move || Redactor::made(values, pieces)).await.ok()??;
        let mut kept = self.kept.lock();
        kept.push_front((name, made.clone()));
        while kept.len() > 1
            && kept.iter().map(|(_, redactor)| redactor.size()).sum::<usize>() > self.room
        {
            kept.pop_back();
        }
        Some(made)
    }

    fn kept(&self, name: blake3::Hash) -> Option<Redactor> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|(other, _)| *other == name)?;
        let found = kept.remove(at)?;
        let redactor = found.1.clone();
        kept.push_front(found);
        Some(redactor)
    }
}

/// What tells one set of values from another, without them.
fn name(values: &[Secret], pieces: Pieces) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(pieces == Pieces::Sought)]);
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

impl fmt::Debug for Redactors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactors({})", self.kept.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_is_made_once_and_the_oldest_goes() {
        let secrets = |number: usize| vec![Secret::new(format!("secret-{number:04}")).unwrap()];
        let size = Redactor::new(secrets(0)).unwrap().size();
        let redactors = Redactors::with_room(4 * size + size / 2);
        let is_same = |one: &Redactor, other: &Redactor| std::sync::Arc::ptr_eq(&one.0, &other.0);
        let first = redactors.of(secrets(0)).await.unwrap();
        for number in 1..8 {
            redactors.of(secrets(number)).await.unwrap();
            assert!(
                is_same(&first, &redactors.of(secrets(0)).await.unwrap()),
                "it was asked for a moment ago"
            );
        }
        assert_eq!(format!("{redactors:?}"), "Redactors(4)");
        for number in 8..16 {
            redactors.of(secrets(number)).await.unwrap();
        }
        assert!(!is_same(&first, &redactors.of(secrets(0)).await.unwrap()));
    }
}
