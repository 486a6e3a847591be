//! A client that sends exactly the bytes that a test writes.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const JSON: &str = "Content-Type: application/json\r\n";

/// A response, possibly incomplete.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    /// Parses the text of a response. `None`: the connection was closed without one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        Some(Self { status, headers, body })
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem; empty for a response without one.
    pub(crate) fn code(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Compares the status, and the code of the problem.
    #[track_caller]
    pub(crate) fn is_refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{self:?}");
    }

    /// Returns the last message of MCP in the body: an event, or the whole body.
    pub(crate) fn message(&self) -> Value {
        let mut lines = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let last = lines.rfind(|line| line.starts_with('{'));
        serde_json::from_str(last.unwrap_or_default()).unwrap_or_default()
    }

    /// The data of server-sent events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// Returns the data of a chunked body.
fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(chunk) = after.get(..size).filter(|_| size > 0) else { break };
        body.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    body
}

/// Returns a request with this line, these headers beside `Host` and `Connection`, and this body.
pub(crate) fn request(line: &str, headers: &str, body: &str) -> String {
    let length =
        if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}{headers}\r\n{body}"
    )
}

pub(crate) fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

/// Sends a request, and reads its answer.
pub(crate) async fn ask(address: SocketAddr, line: &str, headers: &str, body: &str) -> Reply {
    send(address, request(line, headers, body).as_bytes()).await.expect("a response")
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Reply {
    ask(address, &format!("GET {path}"), "", "").await
}

/// Sends bytes, and reads nothing.
pub(crate) async fn connect(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(bytes).await.expect("it is sent");
    stream
}

/// Sends bytes, and reads until the server closes the connection.
pub(crate) async fn send(address: SocketAddr, bytes: &[u8]) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(bytes).await;
    answer(stream).await
}

/// Like [`send`], and closes its side of the connection after the bytes.
pub(crate) async fn send_last(address: SocketAddr, bytes: &[u8]) -> Option<Reply> {
    let mut stream = connect(address, bytes).await;
    stream.shutdown().await.expect("it is closed");
    answer(stream).await
}

async fn answer(mut stream: TcpStream) -> Option<Reply> {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text).await;
    Reply::read(&String::from_utf8_lossy(&text))
}
