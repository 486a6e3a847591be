//! The listener: accepts connections under limits, and closes them in order at shutdown.
//!
//! [`HttpServer::bind`] takes a [`Service`], an [`Authenticator`] and [`ListenOptions`], builds the
//! router of the HTTP API, and binds the address. [`HttpServer::serve`] then accepts connections
//! until a future completes. At shutdown it accepts no more, waits for running requests, cancels
//! those that take too long, and returns when every connection is closed.
//!
//! Without credentials the server listens on loopback only. On other addresses a client's key is
//! sent over TLS, or to a proxy that the operator has declared. Connections are limited in total
//! and for each address. An idle connection has a time limit, and is closed if a new one needs its
//! slot.
//!
//! Source: docs/threat-model.md, rows 76, 78 and 81.

mod bind_error;
mod idle;
pub(crate) mod metrics;
mod stalled;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use toolcell::controls::{bound, enforced};
use tower::ServiceExt as _;

use crate::artifacts::sweep_periodically;
use crate::auth::Authenticator;
use crate::auth::same_url::normal_origin;
use crate::http::guarded_body::with_guard;
use crate::http::{HttpOptions, router};
use crate::service::Service;
pub use bind_error::BindError;
use idle::{Connections, OpenConnection};
pub use metrics::{MetricsError, MetricsServer};
use stalled::Stalling;
pub use tls::{Tls, TlsError};

/// Time that requests have to end after they were cancelled.
const STOPPING: Duration = Duration::from_secs(5);
/// Time that connections then have to close.
const CLOSING: Duration = Duration::from_secs(2);
/// The pause after a failed accept, for example because there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The most connections at once from one address; further ones are closed. Does not apply to
/// loopback and behind a proxy.
const CONNECTIONS_PER_ADDRESS: usize = 256;
/// The most bytes of a request's head.
const MAX_HEAD: usize = 32 << 10;

/// The address and the limits of a server.
///
/// # Defaults
/// A free port of 127.0.0.1, no TLS, no proxy, [`HttpOptions::default`], 4,096 connections, 10 s
/// for a request's head, 30 s for an answer that is not read, no delay at shutdown and 30 s for
/// running requests.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// The address.
    pub address: SocketAddr,
    /// The server's certificate and key.
    pub tls: Option<Tls>,
    /// True if a proxy in front terminates TLS. Its `Host` must be listed in the HTTP options.
    pub behind_proxy: bool,
    /// The options of the HTTP API.
    pub http: HttpOptions,
    /// The most connections at once. For a further one, the connection that has been idle for
    /// longest is closed. If a request runs on each, the further one waits to be accepted.
    pub connections: usize,
    /// Time for the head of a request. A connection that is idle for as long is closed.
    pub head_time: Duration,
    /// Time for which a client can leave an answer unread. After it the connection is closed and
    /// its request cancelled.
    pub write_time: Duration,
    /// Time that running requests have to end at shutdown, before they are cancelled.
    pub drain_timeout: Duration,
    /// Time after the begin of a shutdown in which requests are still accepted, while the server's
    /// readiness is 503. A load balancer that checks the readiness redirects requests before any is
    /// refused. `drain_timeout` begins after it.
    pub shutdown_delay: Duration,
    /// Further routes that need credentials: see [`router`].
    pub protected: Router,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            behind_proxy: false,
            http: HttpOptions::default(),
            connections: 4096,
            head_time: Duration::from_secs(10),
            write_time: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
            shutdown_delay: Duration::ZERO,
            protected: Router::new(),
        }
    }
}

impl ListenOptions {
    /// Checks if a server can use these options, without listening.
    ///
    /// # Errors
    /// [`BindError`], except for [`BindError::Address`].
    pub fn check(&self, auth: &Authenticator) -> Result<(), BindError> {
        if let Some(host) = self.http.hosts.iter().find(|host| !is_host(host)) {
            return Err(BindError::Host(host.clone()));
        }
        if let Some(origin) = self.http.origins.iter().find(|origin| !is_origin(origin)) {
            return Err(BindError::Origin(origin.clone()));
        }
        if !self.address.ip().is_loopback() && enforced!(PublicAddress) {
            if auth.is_open() {
                return Err(BindError::Open(self.address));
            }
            if self.tls.is_none() && !self.behind_proxy {
                return Err(BindError::Plain(self.address));
            }
        }
        Ok(())
    }
}

/// Returns true if a request can have this name in `Host`, before a port.
fn is_host(name: &str) -> bool {
    let authority = name.parse::<http::uri::Authority>();
    authority
        .is_ok_and(|authority| authority.host() == name && !name.is_empty() && !name.contains('*'))
}

/// Returns true if this is an origin that a browser page can have.
fn is_origin(origin: &str) -> bool {
    normal_origin(origin).is_some_and(|origin| !origin.contains('*'))
}

/// A server that listens. It answers once [`serve`](Self::serve) is called.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    service: Service,
    router: Router,
    options: ListenOptions,
}

impl HttpServer {
    /// Binds the address.
    ///
    /// # Errors
    /// [`BindError`]: also for an address other than loopback without API keys, or without TLS or a
    /// proxy.
    pub async fn bind(
        service: Service,
        auth: Authenticator,
        mut options: ListenOptions,
    ) -> Result<Self, BindError> {
        options.check(&auth)?;
        let address = options.address;
        let failed = |source| BindError::Address { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if !address.ip().is_unspecified() {
            let host = match address {
                SocketAddr::V4(address) => address.ip().to_string(),
                SocketAddr::V6(address) => format!("[{}]", address.ip()),
            };
            options.http.hosts.push(host);
        }
        options.http.requests = options.http.requests.min(options.connections);
        let protected = std::mem::take(&mut options.protected);
        let router = router(service.clone(), auth, options.http.clone(), protected);
        Ok(Self { listener, address, service, router, options })
    }

    /// Returns the address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown` completes and [`ListenOptions::shutdown_delay`] has passed. Then it
    /// accepts no connection, waits for the running requests ([`ListenOptions::drain_timeout`]),
    /// cancels the remaining ones, and returns when every connection is closed. Some seconds later
    /// it closes the connections whose clients have not read their answers. While it listens, it
    /// removes expired [artifacts](crate::artifacts::Artifacts::sweep_periodically).
    ///
    /// # Cancel safety
    /// When dropped, every connection is closed and every running call is stopped.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, service, router, options, .. } = self;
        let options = Arc::new(options);
        let of_address = if options.behind_proxy { usize::MAX } else { CONNECTIONS_PER_ADDRESS };
        let open = Connections::new(options.connections, of_address);
        let (closing, _) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(async {
            shutdown.await;
            if !options.shutdown_delay.is_zero() {
                service.requests().announce_end();
                tokio::time::sleep(options.shutdown_delay).await;
            }
        });
        let mut sweeping = pin!(sweep_periodically(service.artifacts()));
        loop {
            let accepted = async {
                open.room().await;
                listener.accept().await
            };
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                () = &mut sweeping => {}
                accepted = accepted => match accepted {
                    Ok((stream, peer)) => {
                        let Some(open) = open.enter(peer.ip()) else { continue };
                        let (router, options) = (router.clone(), Arc::clone(&options));
                        let closing = closing.subscribe();
                        let connection = Connection { router, options, closing, open };
                        connections.spawn(connection.accept(stream));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        let _ = closing.send(true);
        // A run whose client does not read its events never ends, also if its calls are cancelled.
        let most = options.drain_timeout.saturating_add(STOPPING);
        let _ = tokio::time::timeout(most, service.drain(options.drain_timeout)).await;
        let closed = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSING, closed).await.is_err() {
            connections.shutdown().await;
        }
    }
}

/// One accepted connection.
struct Connection {
    router: Router,
    options: Arc<ListenOptions>,
    closing: watch::Receiver<bool>,
    open: OpenConnection,
}

impl Connection {
    async fn accept(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.options.tls else { return self.serve(stream).await };
        let shaken = tokio::select! {
            // The handshake has the time limit of a request's head.
            shaken = tokio::time::timeout(self.options.head_time, tls.accept(stream)) => shaken,
            () = self.open.closing() => return,
        };
        if let Ok(Ok(stream)) = shaken {
            self.serve(stream).await;
        }
    }

    async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let (router, busy) = (self.router, self.open.busy());
        let router = tower::service_fn(move |request: Request<Incoming>| {
            let (busy, router) = (busy(), router.clone());
            async move {
                let response: Response = router.oneshot(request.map(Body::new)).await?;
                // The request runs until its answer has been sent.
                Ok::<_, Infallible>(with_guard(response, busy))
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).max_buf_size(MAX_HEAD);
        http.header_read_timeout(bound!(HeadTime, Some(self.options.head_time)));
        let stream = Stalling::new(stream, self.options.write_time);
        let mut connection =
            pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
        tokio::select! {
            result = &mut connection => return log_result(result),
            () = self.open.closing() => return,
            // Also when the server was dropped.
            _ = self.closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            result = connection => log_result(result),
            () = self.open.closing() => {}
        }
    }
}

/// Logs a connection that a client broke off, at the level `debug`.
fn log_result(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
