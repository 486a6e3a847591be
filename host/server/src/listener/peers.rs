//! Counts and limits the open connections of each remote address.
//!
//! The listener calls [`Peers::enter`] for each accepted connection. It returns a [`Place`], which
//! counts the connection until it is dropped, or `None` if the address has as many as it may; the
//! listener then closes the connection. Loopback has no limit. Behind a proxy, where all
//! connections come from one address, the listener sets no limit.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The number of connections by address.
#[derive(Debug, Clone)]
pub(super) struct Peers {
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
    most: usize,
}

/// A counted connection. Uncounted on drop.
#[derive(Debug)]
pub(super) struct Place {
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address: IpAddr,
}

impl Peers {
    /// Allows at most this many connections of each address.
    pub(super) fn new(most: usize) -> Self {
        Self { counts: Arc::default(), most }
    }

    /// Counts one more connection. `None`: the address is at its limit. Loopback has no limit.
    pub(super) fn enter(&self, address: IpAddr) -> Option<Place> {
        let mut counts = self.counts.lock();
        let count = counts.entry(address).or_default();
        if *count >= self.most && !address.is_loopback() {
            return None;
        }
        *count += 1;
        Some(Place { counts: Arc::clone(&self.counts), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_connections_are_capped_except_loopback() {
        let peers = Peers::new(2);
        let [one, other, own] =
            ["192.0.2.1", "192.0.2.2", "127.0.0.1"].map(|address| address.parse().unwrap());
        let held: Vec<_> =
            [one, one, other, own, own, own].map(|address| peers.enter(address).unwrap()).into();
        assert!(peers.enter(one).is_none());
        assert!(peers.enter(other).is_some() && peers.enter(own).is_some());
        drop(held);
        assert!(peers.enter(one).is_some());
        assert!(peers.counts.lock().is_empty(), "what is over is not kept");
    }
}
