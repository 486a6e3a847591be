//! Serves the tools of [`toolcell`] to many tenants: requests become calls, and completions become
//! answers.
//!
//! ```text
//! HTTP ─► HttpServer ─► Authenticator ─► Principal ─┐
//!                                                   ├─► Service ─► toolcell
//! MCP ──► mcp::routes, mcp::serve_stdio ────────────┘   (tools of ServedTools)
//! ```
//!
//! ```no_run
//! # async fn example(registry: toolcell::Registry) -> Result<(), Box<dyn std::error::Error>> {
//! use toolcell_server::{Authenticator, HttpServer, ListenOptions, ServedTools, Service};
//!
//! let service = Service::builder(ServedTools::new(&registry)).build()?;
//! let server = HttpServer::bind(service, Authenticator::open(), ListenOptions::default()).await?;
//! server.serve(std::future::pending()).await;
//! # Ok(()) }
//! ```
//!
//! - [`Service`] is the core, independent of protocols: a [`Principal`] lists tools, makes calls,
//!   runs and steps, and cancels them. HTTP and MCP both use it.
//! - [`ServedTools`] is one version of the served tools. [`Service::replace`] changes it while
//!   calls run.
//! - [`Authenticator`] determines from a request's headers which principal (the authenticated
//!   sender: a key or user of a tenant) sent it.
//! - [`HttpServer`] is the HTTP API under `/v1`, described by `GET /openapi.json`.
//! - `ConfigServer`, with the feature `config`, serves a `toolcell.toml` and follows its changes,
//!   as the command does.
//! - [`mcp`] offers the same over the Model Context Protocol, at `/mcp` or on standard input and
//!   output.
//! - [`artifacts`] keep content that is too long for a model; [`tenants`] have quotas.
//!
//! The crate has no policy of its own: limits, grants, schemas, sealed questions (encrypted for the
//! client) and the formats of results are those of [`toolcell`].

pub mod artifacts;
pub mod auth;
#[cfg(feature = "config")]
pub mod configured;
pub mod http;
pub mod listener;
pub mod mcp;
mod observe;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod service;
pub mod tenants;

#[doc(inline)]
pub use auth::Authenticator;
#[cfg(feature = "config")]
#[doc(inline)]
pub use configured::{ConfigServer, Notice};
#[doc(inline)]
pub use http::HttpOptions;
#[doc(inline)]
pub use listener::{HttpServer, ListenOptions};
#[doc(inline)]
pub use service::calls::CallRequest;
#[doc(inline)]
pub use service::served::ServedTools;
#[doc(inline)]
pub use service::{Service, ServiceBuilder, ServiceLimits};
#[doc(inline)]
pub use tenants::principal::Principal;
#[doc(inline)]
pub use tenants::refused::RequestError;
