//! Serves the metrics and the health details at a loopback address of their own.
//!
//! A [`MetricsServer`] takes a [`Service`] and a loopback address, and answers `GET /metrics` in
//! the OpenMetrics text format, which Prometheus reads, and `GET /health` with details for the
//! operator. The answers name tenants, tools and components, so an address that other machines can
//! reach is refused. The header `Host` must name this machine, so that a browser page whose host
//! name was made to resolve here cannot read the answers. Keys of tenants have no effect here. At
//! most 8 connections are open at once, each for at most 10 seconds.
//!
//! Not here: the metrics themselves, in `observe/metrics.rs`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolcell::controls::enforced;

use super::ACCEPT_PAUSE;
use crate::http::is_loopback_host;
use crate::service::Service;

/// The media type of the metrics.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The most connections at once. A scrape uses one.
const MAX_CONNECTIONS: usize = 8;
/// The time limit of one scrape.
const CONNECTION_TIME: Duration = Duration::from_secs(10);

/// The reason why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// Other machines could connect and read data about tenants.
    #[error("metrics name tenants and tools, and {0} is not a loopback address")]
    Public(SocketAddr),
    /// The address cannot be used.
    #[error("cannot listen at {address} for metrics: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
}

impl MetricsError {
    /// Returns advice for the user: one line without a period.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Public(_) => {
                "listen at 127.0.0.1, and let a proxy or an agent on this machine pass the metrics on"
            }
            Self::Bind { .. } => {
                "choose another address or port, or end the program that uses this one"
            }
        }
    }
}

/// Answers `GET /metrics`, and `GET /health` with details, at a loopback address.
#[derive(Debug)]
pub struct MetricsServer {
    listener: TcpListener,
    address: SocketAddr,
    service: Service,
}

impl MetricsServer {
    /// Checks if metrics can be served at this address.
    ///
    /// # Errors
    /// [`MetricsError::Public`] for an address that is not loopback.
    pub fn check(address: SocketAddr) -> Result<(), MetricsError> {
        let is_own = address.ip().is_loopback() || !enforced!(MetricsAddress);
        if is_own { Ok(()) } else { Err(MetricsError::Public(address)) }
    }

    /// Binds this address.
    ///
    /// # Errors
    /// [`MetricsError`].
    pub async fn bind(service: Service, address: SocketAddr) -> Result<Self, MetricsError> {
        Self::check(address)?;
        let failed = |source| MetricsError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, service })
    }

    /// Returns the address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped.
    ///
    /// # Cancel safety
    /// When dropped, the address is closed.
    pub async fn serve(self) {
        let Self { listener, service, .. } = self;
        let routes = Router::new().route("/metrics", get(metrics)).route("/health", get(health));
        let routes: Router = routes.layer(from_fn(own_host)).with_state(service);
        let mut open = JoinSet::new();
        loop {
            if open.len() >= MAX_CONNECTIONS {
                open.join_next().await;
            }
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let answers = TowerToHyperService::new(routes.clone());
            let connection = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answers);
            // The errors of a client that breaks off or is too slow are ignored.
            open.spawn(tokio::time::timeout(CONNECTION_TIME, connection));
            while open.try_join_next().is_some() {}
        }
    }
}

async fn metrics(State(service): State<Service>) -> Response {
    ([(CONTENT_TYPE, FORMAT)], service.metrics_text()).into_response()
}

async fn health(State(service): State<Service>) -> Response {
    let health = service.health();
    let status =
        if health.readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

/// Refuses browser pages whose host name was made to resolve to this machine (DNS rebinding).
async fn own_host(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_loopback_host(host) {
        return StatusCode::FORBIDDEN.into_response();
    }
    next.run(request).await
}
