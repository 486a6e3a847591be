//! A listener that must see no connection.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Listens on one port of every address of this machine, and counts connections.
pub(crate) struct Forbidden {
    pub(crate) port: u16,
    seen: Arc<AtomicU64>,
}

impl Forbidden {
    pub(crate) fn start() -> Self {
        let seen = Arc::new(AtomicU64::new(0));
        let first = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        let port = first.local_addr().expect("its address").port();
        // Without IPv6 nothing can arrive by it.
        let second = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).ok();
        for listener in [Some(first), second].into_iter().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || {
                for _ in listener.incoming() {
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Self { port, seen }
    }

    /// Returns true if a connection came since the last call. A connection between two attempts
    /// counts.
    pub(crate) fn is_new(&self) -> bool {
        self.seen.swap(0, Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn connection_to_forbidden_port_is_reported_once() {
        let forbidden = Forbidden::start();
        assert!(!forbidden.is_new());
        for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 9, 9, 9)] {
            drop(TcpStream::connect((address, forbidden.port)).expect("it listens"));
            while !forbidden.is_new() {
                thread::yield_now();
            }
        }
        assert!(!forbidden.is_new());
    }
}
