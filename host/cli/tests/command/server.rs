//! A local server that records the requests that it receives.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;

/// A server that answers every request with one text.
pub(crate) struct Server {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server with status 200. Its port has five digits.
    pub(crate) fn answering(body: &'static str) -> Self {
        Self::answering_with("200 OK", body)
    }

    /// Starts a server whose answers have this status.
    pub(crate) fn answering_with(status: &'static str, body: &'static str) -> Self {
        let bound = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let listener = std::iter::repeat_with(bound)
            .find(|listener| listener.local_addr().expect("bound").port() > 9999);
        let listener = listener.expect("a port");
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let server =
            Self { address: listener.local_addr().expect("bound"), heads: Arc::clone(&heads) };
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let head = read_head(&mut stream);
                // Before the answer, so that the client's next step finds it.
                heads.lock().push(head);
                answer(&mut stream, status, body);
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the heads of the requests, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

fn read_head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let told = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // The client may have disconnected.
    let _ = write!(stream, "{told}{body}");
}
