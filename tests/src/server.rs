//! Servers on loopback: one that answers and remembers, and one that says nothing.
//!
//! Invariants: they listen at a port of their own until the process ends; a request is read whole
//! before it is answered.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use toolcell::HttpRule;

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request that are kept.
const MOST: usize = 1 << 20;

/// Answers every request, and remembers it.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// One at this address of loopback, which makes the whole response from the whole request.
    ///
    /// # Panics
    /// When no port is free.
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
                // Before the answer: who has that finds the request here.
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                let _ = (&stream).write_all(&response);
            }
        });
        Self { address, requests }
    }

    /// One that answers with the request.
    #[must_use]
    pub fn echo() -> Self {
        Self::start(Ipv4Addr::LOCALHOST, |request| response("200 OK", request))
    }

    /// What has arrived, request by request.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.kept().clone()
    }

    /// What has arrived since this was last asked.
    #[must_use]
    pub fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.kept())
    }

    fn kept(&self) -> MutexGuard<'_, Vec<String>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page of it.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The rule that lets a tool at its pages below this path, with these methods.
    ///
    /// # Panics
    /// When that is no rule.
    #[must_use]
    pub fn rule(&self, methods: &str, path: &str) -> HttpRule {
        let rule: HttpRule = format!("{methods} {}", self.url(path)).parse().expect("a rule");
        rule.with_private(["127.0.0.0/8".parse().expect("a network")])
    }
}

/// A server that reads what comes and never answers. It closes a connection after its client did.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn silent() -> SocketAddr {
    answering(b"")
}

/// A server that answers whatever it reads with these bytes and keeps the connection until its
/// client closes it.
///
/// # Panics
/// When no port is free.
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

/// A response with this body.
#[must_use]
pub fn response(head: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {head}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A whole request.
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
