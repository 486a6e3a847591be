//! Servers on loopback: one that must see nobody, and one that answers and remembers.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request that are kept.
const MOST: usize = 1 << 20;

/// Listens on every address of this machine, at one port, and counts.
pub(crate) struct Forbidden {
    pub(crate) port: u16,
    seen: Arc<AtomicU64>,
}

impl Forbidden {
    pub(crate) fn start() -> Self {
        let seen = Arc::new(AtomicU64::new(0));
        let first = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        let port = first.local_addr().expect("its address").port();
        // Where there is no IPv6 nothing can arrive by it.
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

    /// Whether somebody came since this was last asked. Who comes between two attempts is not overlooked.
    pub(crate) fn is_new(&self) -> bool {
        self.seen.swap(0, Ordering::Relaxed) > 0
    }
}

/// What a server answers to a request: all of the response.
pub(crate) type Answer = Arc<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

/// Answers and remembers.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<u8>>>,
}

impl Server {
    pub(crate) fn start(at: Ipv4Addr, answer: Answer) -> Self {
        let listener = TcpListener::bind((at, 0)).expect("a port");
        let address = listener.local_addr().expect("its address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let request = read(&stream);
                let _ = (&stream).write_all(&answer(&String::from_utf8_lossy(&request)));
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend(request);
            }
        });
        Self { address, requests }
    }

    /// What has arrived since the last time, as it came.
    pub(crate) fn taken(&self) -> String {
        let taken = std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&taken).into_owned()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A server that takes what comes, says nothing, and hangs up after its client did.
pub(crate) fn silent() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while stream.read(&mut piece).is_ok_and(|count| count > 0) {}
            });
        }
    });
    address
}

/// A response with this body.
pub(crate) fn response(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A whole request.
fn read(mut stream: &TcpStream) -> Vec<u8> {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    while request.len() < MOST && !is_whole(&request) {
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => request.extend_from_slice(&piece[..count]),
            _ => break,
        }
    }
    request
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse().ok()).unwrap_or(0) <= body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_to_the_forbidden_port_is_seen_once() {
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
