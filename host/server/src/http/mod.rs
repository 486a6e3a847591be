//! The HTTP API: its routes, and the checks before and after each route.
//!
//! [`router`] takes a [`Service`], an [`Authenticator`], [`HttpOptions`] and further routes, for
//! example those of MCP, and returns an axum router. `HttpServer` serves it; an embedder (the
//! program that uses this library) can put it into a server of its own. A request passes, in this
//! order: its id, the Host and Origin lists, the credentials, then its route, which reads the body.
//! `/health`, `/ready`, `/version`, `/openapi.json` and the metadata for OAuth clients need no
//! credentials.
//!
//! Every error is an RFC 9457 problem (a JSON object with a stable code), including those of the
//! router itself. Every answer has `x-request-id`.

mod artifacts;
pub(crate) mod body;
mod cors;
mod forms;
mod guard;
pub(crate) mod guarded_body;
mod idempotency;
mod problem;
pub(crate) mod run_routes;
mod schemas;
mod status;
mod tools;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};
use http::request::Parts;
use toolcell::controls::enforced;
use toolcell::tenant::Share;
use utoipa::OpenApi;

pub(crate) use guard::{Place, is_loopback_host};
pub use problem::Problem;

use crate::auth::{Authenticator, METADATA_PATH};
use crate::service::Service;
use crate::service::request_id::RequestId;
use crate::tenants::principal::Principal;
use idempotency::Idempotency;

/// Options and limits of the HTTP API.
///
/// # Defaults
/// Requests to `localhost`, `127.0.0.1` and `[::1]`; of browsers, only those of a page of the same
/// origin; 4 MiB for a body, 64 MiB for all bodies at once; 10 s without a byte of the body;
/// 4,096 requests at once; keys of open streams are checked every 2 s.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Further names that are accepted in `Host`, without a port.
    pub hosts: Vec<String>,
    /// Origins of browser pages that can send requests, for example `https://app.example.com`.
    pub origins: Vec<String>,
    /// The most bytes of one body.
    pub body: usize,
    /// The most bytes of all bodies that are in memory at once. A body counts until the work of its
    /// request has ended. If there are several tenants, one that already holds some must leave as
    /// many free as it then holds.
    pub bodies: usize,
    /// The most requests with credentials that are open at once: from the check of the credentials
    /// until the answer is sent. If there are several tenants, one that already holds some must
    /// leave as many free as it then holds. An [`HttpServer`](crate::HttpServer) takes no more than
    /// it accepts connections.
    pub requests: usize,
    /// The interval at which streams and sessions are checked against the keys. They end if their
    /// key was revoked.
    pub recheck: Duration,
    /// Time without a byte of a body after which the request is refused.
    pub body_idle: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            body: 4 << 20,
            bodies: 64 << 20,
            requests: 4096,
            recheck: Duration::from_secs(2),
            body_idle: Duration::from_secs(10),
        }
    }
}

/// State that the routes share. Cheap to clone.
pub(crate) type Shared = Arc<Inner>;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) service: Service,
    pub(crate) auth: Authenticator,
    pub(crate) options: HttpOptions,
    pub(crate) idempotency: Idempotency,
    /// The limit of bytes of bodies.
    pub(crate) bodies: Arc<Share>,
    /// The limit of open requests.
    pub(crate) requests: Arc<Share>,
    /// The limit of calls whose answer is not sent yet: twice that of running calls, because an
    /// answer counts for a moment after it was read.
    pub(crate) unsent: Arc<Share>,
}

impl Inner {
    /// Returns true if a principal that was accepted before would still be accepted.
    pub(crate) fn knows(&self, principal: &Principal) -> bool {
        let is_accepted = self.auth.knows(principal) && self.service.serves(principal);
        is_accepted || !enforced!(RevokedStreams)
    }

    /// Returns when the principal is no longer accepted.
    pub(crate) async fn revoked(self: Arc<Self>, principal: Principal) {
        while self.knows(&principal) {
            tokio::time::sleep(self.options.recheck).await;
        }
    }
}

/// The sender of a request that the guard has accepted, and the state of the routes.
pub(crate) struct Caller {
    shared: Shared,
    principal: Principal,
    id: RequestId,
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let (principal, id) = (parts.extensions.get(), parts.extensions.get());
        // Set by the guard.
        let (principal, id) = principal.cloned().zip(id.cloned()).ok_or_else(Problem::internal)?;
        Ok(Self { shared: shared.clone(), principal, id })
    }
}

/// Creates the routes of the API. `protected` are further routes, for example of another protocol:
/// their requests pass the same checks, and have the extensions [`Principal`] and [`RequestId`].
pub fn router(
    service: Service,
    auth: Authenticator,
    options: HttpOptions,
    protected: Router,
) -> Router {
    let bodies = Share::new(options.bodies as u64);
    let requests = Share::new(options.requests as u64);
    let unsent = Share::new(service.limits().in_flight.saturating_mul(2) as u64);
    let idempotency = Idempotency::new(service.clock());
    let shared = Arc::new(Inner { service, auth, options, idempotency, bodies, requests, unsent });
    let private = Router::new()
        .route("/v1/tools", get(tools::list))
        .route("/v1/tools/{name}", get(tools::one))
        .route("/v1/calls", post(run_routes::call))
        .route("/v1/calls/{id}", delete(run_routes::cancel))
        .route("/v1/batch", post(run_routes::batch))
        .route("/v1/runs", post(run_routes::run))
        .route("/v1/steps", post(run_routes::steps))
        .route("/v1/usage", get(status::usage))
        .route("/v1/artifacts", get(artifacts::list).post(artifacts::upload))
        .route("/v1/artifacts/{id}", get(artifacts::get).delete(artifacts::remove))
        .with_state(shared.clone())
        .merge(protected)
        .route_layer(from_fn_with_state(shared.clone(), guard::authenticate));
    let public = Router::new()
        .route("/health", get(status::health))
        .route("/ready", get(status::ready))
        .route("/version", get(status::version))
        .route("/openapi.json", get(status::openapi))
        .route(METADATA_PATH, get(status::oauth_metadata))
        .route(&format!("{METADATA_PATH}/{{*path}}"), get(status::oauth_metadata))
        .with_state(shared.clone());
    private
        .merge(public)
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(from_fn_with_state(shared, guard::finish))
}

/// Returns the API as an OpenAPI 3.1 document in JSON, the answer to `GET /openapi.json`.
#[must_use]
pub fn api_document() -> &'static str {
    // Created once: the path needs no key, and creating it costs far more than sending it.
    static DOCUMENT: LazyLock<String> =
        LazyLock::new(|| Document::openapi().to_json().unwrap_or_default());
    &DOCUMENT
}

/// The description of the API.
#[derive(OpenApi)]
#[openapi(
    info(title = "toolcell", description = "Calls sandboxed tools for AI agents."),
    paths(
        tools::list,
        tools::one,
        run_routes::call,
        run_routes::cancel,
        run_routes::batch,
        run_routes::run,
        run_routes::steps,
        status::usage,
        artifacts::upload,
        artifacts::list,
        artifacts::get,
        artifacts::remove,
        status::health,
        status::ready,
        status::version,
        status::openapi,
        status::oauth_metadata,
    ),
    components(schemas(problem::ProblemBody, schemas::Definition, schemas::Event)),
    modifiers(&Bearer)
)]
struct Document;

/// Adds the bearer scheme, the only way to authenticate.
struct Bearer;

impl utoipa::Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("bearer", scheme);
    }
}
