//! One at a time for each name: what two want at once is made by one of them, and found by the other.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Names that somebody is at work on.
#[derive(Debug, Default)]
pub(super) struct Flights {
    names: Mutex<HashSet<String>>,
    ended: Condvar,
}

/// Keeps others from the name.
#[derive(Debug)]
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    name: String,
}

impl Flights {
    /// Blocks until nobody else is at work on the name.
    pub(super) fn alone(&self, name: &str) -> Flight<'_> {
        let is_taken = |names: &mut HashSet<String>| !names.insert(name.to_owned());
        let _names = self.ended.wait_while(self.names(), is_taken).unwrap_or_else(PoisonError::into_inner);
        Flight { flights: self, name: name.to_owned() }
    }

    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        // Each change is whole: a panic while it was held leaves nothing half-done.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.flights.names().remove(&self.name);
        self.flights.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn one_at_a_time_for_each_name() {
        let (flights, inside) = (Flights::default(), AtomicUsize::new(0));
        let _other = flights.alone("another name");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _alone = flights.alone("name");
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
