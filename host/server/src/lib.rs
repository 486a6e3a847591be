//! Serves the tools of [`toolcell`] to many tenants: requests become calls, and completions become
//! answers.
//!
//! ```no_run
//! # async fn example(registry: toolcell::Registry) -> Result<(), Box<dyn std::error::Error>> {
//! use toolcell_server::{Authenticator, HttpServer, ListenOptions, Served, Service};
//!
//! let service = Service::builder(Served::new(&registry)).build()?;
//! let server = HttpServer::bind(service, Authenticator::open(), ListenOptions::default()).await?;
//! server.serve(std::future::pending()).await;
//! # Ok(()) }
//! ```
//!
//! - [`Service`] is the core, independent of protocols: a [`Principal`] lists tools, makes calls,
//!   runs and steps, and cancels them. HTTP and MCP both use it.
//! - [`Served`] is one version of the served tools. [`Service::replace`] changes it while calls
//!   run.
//! - [`Authenticator`] determines from a request's headers which principal sent it.
//! - [`HttpServer`] is the HTTP API under `/v1`, described by `GET /openapi.json`.
//! - `ConfigServer`, with the feature `config`, serves a `toolcell.toml` and follows its changes,
//!   as the command does.
//! - [`mcp`] offers the same over the Model Context Protocol, at `/mcp` or on standard input and
//!   output.
//!
//! The crate has no policy of its own: limits, grants, schemas, sealed questions and the formats of
//! results are those of [`toolcell`].

mod artifacts;
mod auth;
#[cfg(feature = "config")]
mod configured;
mod http;
mod listener;
pub mod mcp;
mod observe;
#[cfg(feature = "otlp")]
pub mod otlp;
mod service;
mod tenants;

pub use artifacts::{ArtifactError, ArtifactInfo, ArtifactOptions, Artifacts};
pub use auth::outbound::UrlError;
pub use auth::{
    ApiKeyStore, AuthError, Authenticator, JwtError, JwtIssuer, KeyInfo, KeyStoreError, NewKey,
    PublishedKeys, PublishedKeysError,
};
#[cfg(feature = "config")]
pub use configured::{ConfigServer, IssuerError, Notice};
pub use http::{HttpOptions, Problem, api_document, router};
pub use listener::metrics::{MetricsError, MetricsServer};
pub use listener::{BindError, HttpServer, ListenOptions, Tls, TlsError};
pub use service::calls::{Answer, CallRequest};
pub use service::catalogue::Page;
pub use service::facade::ManyTools;
pub use service::health::{Health, Readiness};
pub use service::request_id::{BadRequestId, RequestId};
pub use service::runs::{RunEvents, RunRequest, StepRequest};
pub use service::served::{Served, ServedTenant};
pub use service::{Service, ServiceBuilder, ServiceLimits};
pub use tenants::account::TenantUsage;
pub use tenants::principal::Principal;
pub use tenants::quota::{Quota, QuotaKind};
pub use tenants::refused::Refused;
