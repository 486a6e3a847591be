//! Errors of the HTTP API, as RFC 9457 problems: JSON with a status, a stable code and a hint.
//!
//! Routes and layers return a [`Problem`]. They create it from a [`RequestError`] of the service,
//! from an error of the authentication, or from a fault of the request. As a response it has no
//! body at first; `guard::finish`, which knows the request's id, writes the body and the headers
//! `Retry-After` and `WWW-Authenticate`. The module also has the answers for an unknown path and
//! for a method that a path does not have. Programs depend on `code`, so it is stable; the other
//! texts are for people.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::auth::{AuthError, Authenticator};
use crate::service::request_id::RequestId;
use crate::tenants::refused::RequestError;

/// An error of the HTTP API.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Problem {
    /// The status of the response.
    pub status: StatusCode,
    /// A stable code for programs.
    pub code: &'static str,
    /// A description of the error, for people.
    pub detail: String,
    /// Advice for the user.
    pub hint: Option<String>,
    /// The time after which the same request can succeed.
    pub retry_after: Option<Duration>,
    challenge: Option<String>,
}

/// A problem as it is written. `Content-Type` is `application/problem+json`.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody {
    /// Always `about:blank`: `code` tells the problem.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: String,
    /// The status.
    status: u16,
    /// A stable word for programs.
    code: String,
    /// A description of the problem, for people.
    detail: String,
    /// Advice on how to solve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Milliseconds after which the same request can succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// The id of the request, as in `x-request-id`.
    request_id: String,
}

/// The answer to a refused request, in the API's document.
#[derive(utoipa::IntoResponses)]
#[response(
    status = "4XX",
    content_type = "application/problem+json",
    description = "The request is refused: a problem says why"
)]
#[expect(dead_code, reason = "only its description is used")]
pub(super) struct Refused(ProblemBody);

/// The answer to a request that the server cannot serve now, in the API's document.
#[derive(utoipa::IntoResponses)]
#[response(
    status = "5XX",
    content_type = "application/problem+json",
    description = "The server cannot do it now: a problem says why"
)]
#[expect(dead_code, reason = "only its description is used")]
pub(super) struct Failed(ProblemBody);

impl Problem {
    /// Creates a problem with this status, code and text.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), hint: None, retry_after: None, challenge: None }
    }

    /// Creates the problem of a request that is not valid.
    pub(super) fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Creates the problem of a failure inside of the server.
    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed")
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the time after which the same request can succeed.
    #[must_use]
    pub fn with_retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }

    /// Writes the body and the headers of a response to the request with this id.
    pub(super) fn write(self, id: &RequestId, response: &mut Response) {
        let retry_after_ms =
            self.retry_after.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let written = ProblemBody {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            detail: self.detail,
            hint: self.hint,
            retry_after_ms,
            request_id: id.to_string(),
        };
        *response.body_mut() = serde_json::to_vec(&written).unwrap_or_default().into();
        // Headers of the router, such as `Allow`, stay.
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(millis) = retry_after_ms {
            headers.insert(RETRY_AFTER, HeaderValue::from(millis.div_ceil(1000).max(1)));
        }
        if let Some(Ok(challenge)) = self.challenge.map(HeaderValue::try_from) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
    }
}

impl IntoResponse for Problem {
    /// A response without a body: `guard::finish` writes it.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl Problem {
    /// Creates the problem of a request without a principal.
    pub(super) fn no_principal(auth: &Authenticator, error: AuthError) -> Self {
        let (status, code, hint) = match error {
            AuthError::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                "unauthenticated",
                "send `Authorization: Bearer KEY` with a valid API key or access token",
            ),
            AuthError::InsufficientScope => (
                StatusCode::FORBIDDEN,
                "insufficient_scope",
                "ask the issuer for a token with the scope that the header `WWW-Authenticate` names",
            ),
        };
        let mut problem = Self::new(status, code, error.to_string()).with_hint(hint);
        problem.challenge = Some(auth.challenge(error));
        problem
    }
}

impl From<RequestError> for Problem {
    fn from(refused: RequestError) -> Self {
        let status = match &refused {
            RequestError::NoAccess => StatusCode::FORBIDDEN,
            RequestError::UnknownTool { .. } | RequestError::NotRunning => StatusCode::NOT_FOUND,
            RequestError::InvalidCursor => StatusCode::BAD_REQUEST,
            RequestError::Quota { .. } | RequestError::Overloaded { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            RequestError::TooManyCalls { .. }
            | RequestError::InvalidAnswer(_)
            | RequestError::Run(_) => StatusCode::UNPROCESSABLE_ENTITY,
            RequestError::Draining => StatusCode::SERVICE_UNAVAILABLE,
            RequestError::DuplicateRequest => StatusCode::CONFLICT,
        };
        let mut problem =
            Self::new(status, refused.code(), refused.to_string()).with_hint(refused.hint());
        problem.retry_after = refused.retry_after();
        problem
    }
}

/// The answer to a path that no route has.
pub(super) async fn no_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_path", "this server has no such path")
        .with_hint("GET /openapi.json lists the paths")
}

/// The answer to a method that the path does not have.
pub(super) async fn no_method() -> Problem {
    let detail = "this path does not have this method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        .with_hint("the header `Allow` lists the methods")
}
