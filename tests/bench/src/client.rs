//! An HTTP client that sends prepared bytes, so that it costs little beside the measured server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Returns a POST request with a JSON body; `headers` are whole lines.
#[must_use]
pub fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

/// A connection that stays open.
pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Fails if the connection cannot be made.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(8 << 10) })
    }

    /// Sends a request and reads its response to the end.
    ///
    /// # Errors
    /// Fails if the connection ends before that, or the head has no status.
    pub async fn send(&mut self, request: &[u8]) -> Result<Response<'_>> {
        self.stream.write_all(request).await?;
        self.read.clear();
        let head = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let text = std::str::from_utf8(&self.read[..head])?.to_ascii_lowercase();
        let status = text.split(' ').nth(1).context("no status")?.parse()?;
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
        let is_whole = |read: &[u8]| match length {
            Some(length) => read.len() >= head + length,
            None => read.ends_with(b"0\r\n\r\n"),
        };
        while !is_whole(&self.read) {
            self.more().await?;
        }
        Ok(Response { status, body: &self.read[head..] })
    }

    /// Sends a request and reads the beginning of its response.
    ///
    /// # Errors
    /// Fails if the connection ends before that.
    pub async fn begin(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.more().await
    }

    async fn more(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => bail!("the connection was closed"),
            _ => Ok(()),
        }
    }
}

/// A response.
pub struct Response<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The body; of a chunked response with the lines of chunk sizes.
    pub body: &'a [u8],
}

/// Sends a request `each` times on every one of `connections`, and returns the time of each from
/// sending to the end of the response. With `every`, a connection begins a request at this
/// interval; otherwise as soon as the previous one is answered.
///
/// # Errors
/// Fails if a connection ends, or a status is not 200.
pub async fn load(
    address: SocketAddr,
    request: &[u8],
    connections: usize,
    each: usize,
    every: Option<Duration>,
) -> Result<Vec<Duration>> {
    let request: std::sync::Arc<[u8]> = request.into();
    let tasks: Vec<_> = (0..connections)
        .map(|index| {
            let request = std::sync::Arc::clone(&request);
            tokio::spawn(async move {
                let mut connection = Connection::open(address).await?;
                let offset = every.map(|every| every.mul_f64(index as f64 / connections as f64));
                tokio::time::sleep(offset.unwrap_or_default()).await;
                let mut pace = every.map(tokio::time::interval);
                let mut times = Vec::with_capacity(each);
                for _ in 0..each {
                    if let Some(pace) = &mut pace {
                        pace.tick().await;
                    }
                    let began = Instant::now();
                    let status = connection.send(&request).await?.status;
                    anyhow::ensure!(status == 200, "status {status}");
                    times.push(began.elapsed());
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    let mut times = Vec::with_capacity(connections * each);
    for task in tasks {
        times.extend(task.await??);
    }
    Ok(times)
}
