//! Servers on loopback: one that answers and records requests, and some that read and send fixed
//! bytes or nothing.
//!
//! Invariants: each listens on a port of its own until the process ends; [`Server`] reads a request
//! whole before it answers.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use toolcell::grants::HttpRule;

/// Time that a client has to send its request.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request that are read at most.
const MOST: usize = 1 << 20;

/// A server that answers every request and records it.
pub struct Server {
    /// The address that it listens on.
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server at this loopback address; `answer` makes the whole response from the whole
    /// request.
    ///
    /// # Panics
    /// If no port is free.
    #[must_use]
    pub fn start(at: Ipv4Addr, mut answer: impl FnMut(&str) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind((at, 0)).expect("a port of loopback");
        let address = listener.local_addr().expect("its address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let request = String::from_utf8_lossy(&read(&stream)).into_owned();
                let response = answer(&request);
                // Before the answer: a client that has the answer finds its request recorded.
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                let _ = (&stream).write_all(&response);
            }
        });
        Self { address, requests }
    }

    /// Starts a server that answers with the request.
    #[must_use]
    pub fn echo() -> Self {
        Self::start(Ipv4Addr::LOCALHOST, |request| response("200 OK", request))
    }

    /// Returns all recorded requests.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.kept().clone()
    }

    /// Removes and returns the recorded requests.
    #[must_use]
    pub fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.kept())
    }

    fn kept(&self) -> MutexGuard<'_, Vec<String>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the URL of a path on this server.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the rule that grants requests with these methods to URLs below this path.
    ///
    /// # Panics
    /// If these make no valid rule.
    #[must_use]
    pub fn rule(&self, methods: &str, path: &str) -> HttpRule {
        let rule: HttpRule = format!("{methods} {}", self.url(path)).parse().expect("a rule");
        rule.with_private(["127.0.0.0/8".parse().expect("a network")])
    }
}

/// Starts a server that reads and never answers. It closes a connection after its client did.
///
/// # Panics
/// If no port is free.
#[must_use]
pub fn silent() -> SocketAddr {
    answering(b"")
}

/// Starts a server that answers each piece that it reads with these bytes, and keeps a connection
/// until its client closes it.
///
/// # Panics
/// If no port is free.
#[must_use]
pub fn answering(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while stream.read(&mut piece).is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(bytes);
                }
            });
        }
    });
    address
}

/// Returns a response with this status line, further headers (if `head` has them) and body.
#[must_use]
pub fn response(head: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {head}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads a whole request, as far as the client sends it in time.
fn read(mut stream: &TcpStream) -> Vec<u8> {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let (mut request, mut piece) = (Vec::new(), [0; 16 << 10]);
    while request.len() < MOST && !is_whole(&request) {
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => request.extend_from_slice(&piece[..count]),
            _ => break,
        }
    }
    request
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse().ok()).unwrap_or(0) <= body.len()
}
