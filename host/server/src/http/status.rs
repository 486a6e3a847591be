//! Routes that describe the server: usage, health, readiness, version, and the API's description.
//!
//! `GET /health` says that the process answers. `GET /ready` says if the server takes calls, with
//! status 503 if not, and if requests need a key. `GET /version`, `GET /openapi.json` and the
//! metadata for OAuth clients describe the server. These need no credentials. `GET /v1/usage` needs
//! them: it returns the use of the tenant since the start, and the rest of its quota.
//!
//! Not here: the decision about readiness, in `service/health.rs`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{StatusCode, Uri};
use serde::Serialize;

use super::problem::{Problem, ProblemBody, Refused};
use super::{Caller, Shared};
use crate::auth::{METADATA_PATH, ResourceMetadata};
use crate::service::health::Readiness;
use crate::tenants::account::TenantUsage;

/// The process answers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// The version of the server.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Version {
    /// The name of the program.
    name: &'static str,
    /// Its version.
    version: &'static str,
}

/// Returns the usage of the principal's tenant since the server started, and the rest of its quota.
#[utoipa::path(get, path = "/v1/usage", operation_id = "usage", security(("bearer" = [])), responses(
    (status = 200, body = TenantUsage, description = "The answer"),
    Refused,
))]
pub(super) async fn usage(
    Caller { shared, principal, .. }: Caller,
) -> Result<Json<TenantUsage>, Problem> {
    Ok(Json(shared.service.usage(&principal)?))
}

/// Says that the process answers. Does not say if it takes calls: see `/ready`.
#[utoipa::path(get, path = "/health", operation_id = "health", responses((status = 200, body = Health, description = "The answer")))]
pub(super) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// The readiness of the server, and the authentication that it requires.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Ready {
    #[serde(flatten)]
    readiness: Readiness,
    /// `required`: requests need a key or a token. `none`: every request is accepted.
    authentication: &'static str,
}

/// Says if the server takes calls, the reasons if it does not, and if requests need a key.
#[utoipa::path(get, path = "/ready", operation_id = "ready", responses(
    (status = 200, body = Ready, description = "The answer"),
    (status = 503, body = Ready, description = "The server cannot do it now: a problem says why"),
))]
pub(super) async fn ready(State(shared): State<Shared>) -> Response {
    let mut readiness = shared.service.readiness();
    if shared.auth.has_unreadable_keys() {
        let text = "the API keys cannot be read again: the keys read before stay valid";
        readiness.degraded.insert("api_keys".into(), text.into());
    }
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let authentication = if shared.auth.is_open() { "none" } else { "required" };
    (status, Json(Ready { readiness, authentication })).into_response()
}

/// The version of the server.
#[utoipa::path(get, path = "/version", operation_id = "version", responses((status = 200, body = Version, description = "The answer")))]
pub(super) async fn version() -> Json<Version> {
    Json(Version { name: "toolcell", version: env!("CARGO_PKG_VERSION") })
}

/// Tells OAuth clients how to get a token for this server (RFC 9728). Not found without an issuer.
/// If the audience is a URL with a path, that path can follow this one.
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", operation_id = "oauth_metadata", responses(
    (status = 200, body = ResourceMetadata, description = "The answer"),
    (status = 404, body = ProblemBody, content_type = "application/problem+json", description = "The request is refused: a problem says why"),
))]
pub(super) async fn oauth_metadata(
    State(shared): State<Shared>,
    uri: Uri,
) -> Result<Json<ResourceMetadata>, Problem> {
    match shared.auth.metadata(uri.path().strip_prefix(METADATA_PATH).unwrap_or_default()) {
        Some(metadata) => Ok(Json(metadata)),
        None => Err(super::problem::no_route().await),
    }
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "openapi", responses(
    (status = 200, body = Object, content_type = "application/json", description = "The answer"),
))]
pub(super) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], super::api_document()).into_response()
}
