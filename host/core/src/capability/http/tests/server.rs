//! Test servers on the loopback interface, and resolvers that answer from a list or by a function.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::super::{ResolveFuture, Resolver};

/// A server that treats every connection in the same way.
pub(super) struct Server {
    pub(super) port: u16,
    connections: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

impl Server {
    pub(super) async fn start<F>(answer: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            let mut answers = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                seen.fetch_add(1, Ordering::SeqCst);
                answers.spawn(answer(stream));
            }
        });
        Self { port, connections, _task: AbortOnDropHandle::new(task) }
    }

    /// Reads a head, writes these bytes, and waits until the client closes the connection.
    pub(super) async fn responding(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        Self::start(move |mut stream| {
            let bytes = Arc::clone(&bytes);
            async move {
                head(&mut stream).await;
                let _ = stream.write_all(&bytes).await;
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        })
        .await
    }

    /// Writes the answer to a head, and closes the connection.
    pub(super) async fn answering(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::start(move |mut stream| {
            let answer = Arc::clone(&answer);
            async move {
                let answer = answer(&head(&mut stream).await);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        })
        .await
    }

    /// Returns the request as the body.
    pub(super) async fn echoing() -> Self {
        Self::answering(super::ok).await
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// Reads to the end of a request's head, with as much of its body as arrives with it.
pub(super) async fn head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            break;
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// Answers each name with an address, or never if there is none.
pub(super) struct Lookup(pub(super) fn(&str) -> Option<&'static str>);

impl Resolver for Lookup {
    fn resolve(&self, host: &str, _port: u16) -> ResolveFuture {
        let Some(address) = (self.0)(host) else { return Box::pin(std::future::pending()) };
        let address: IpAddr = address.parse().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    }
}

/// Answers from a list, which it repeats.
#[derive(Clone)]
pub(super) struct Scripted(Arc<Mutex<VecDeque<Vec<IpAddr>>>>, Arc<AtomicUsize>);

impl Scripted {
    pub(super) fn new<const N: usize>(
        answers: impl IntoIterator<Item = [&'static str; N]>,
    ) -> Self {
        let parsed = |answer: [&str; N]| answer.iter().map(|text| text.parse().unwrap()).collect();
        Self::of(answers.into_iter().map(parsed))
    }

    pub(super) fn of(answers: impl IntoIterator<Item = Vec<IpAddr>>) -> Self {
        Self(Arc::new(Mutex::new(answers.into_iter().collect())), Arc::default())
    }

    pub(super) fn lookups(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }
}

impl Resolver for Scripted {
    fn resolve(&self, _host: &str, _port: u16) -> ResolveFuture {
        self.1.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.0.lock();
        let answer = answers.pop_front();
        answers.extend(answer.clone());
        Box::pin(async move { answer.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}
