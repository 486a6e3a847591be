//! Lets one thread at a time work on a name, so that the next one finds its result.
//!
//! Two loads of one component in one process would compile it twice. A load that uses the cache
//! calls [`SingleFlight::alone`] with the key of its entry as the name. It blocks while another
//! thread works on that name, and returns a guard that frees the name on drop. The waiting load
//! then finds the entry in the cache. The optimiser takes the guard while it replaces quick code by
//! optimised code, so that no load loses the quick code between finding and using it.
//! Not here: other processes, for which `entry_lock` does this.

use std::collections::HashSet;

use parking_lot::{Condvar, Mutex};

/// The names that a thread works on.
#[derive(Default)]
pub(in crate::engine) struct SingleFlight {
    names: Mutex<HashSet<String>>,
    finished: Condvar,
}

/// The exclusive right to work on a name, until dropped.
pub(in crate::engine::compile) struct Flight<'a> {
    single_flight: &'a SingleFlight,
    name: String,
}

impl SingleFlight {
    /// Blocks until no other thread works on the name.
    pub(in crate::engine::compile) fn alone(&self, name: &str) -> Flight<'_> {
        let is_taken = |names: &mut HashSet<String>| !names.insert(name.to_owned());
        self.finished.wait_while(&mut self.names.lock(), is_taken);
        Flight { single_flight: self, name: name.to_owned() }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.single_flight.names.lock().remove(&self.name);
        self.single_flight.finished.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn one_holder_at_a_time_for_each_key() {
        let (flights, inside) = (SingleFlight::default(), AtomicUsize::new(0));
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
