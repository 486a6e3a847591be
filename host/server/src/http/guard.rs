//! The outermost layers: checks of every request before its route, and headers of every answer.
//!
//! The router installs two functions around its routes. [`finish`] handles every request: it reads
//! or generates the request id, opens the tracing span, refuses a Host or Origin that is not
//! listed, and writes errors and headers of the answer. A panic in a route becomes an answer with
//! status 500 and affects no other request. [`authenticate`] handles routes that need credentials:
//! it finds the principal (the tenant, and its key or user), takes one of the limited slots for
//! open requests, and ends a stream of events when its key is revoked.
//!
//! A request with a wrong Host or Origin reaches no route and no check of credentials.
//!
//! Source: docs/threat-model.md, row 76.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use toolcell::controls::enforced;
use toolcell::tenant::Reservation;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::guarded_body::{end_with, with_guard};
use super::problem::Problem;
use super::{Shared, cors};
use crate::auth::same_url::normal_origin;
use crate::auth::single_header;
use crate::observe::trace::{RequestSpan, TraceContext};
use crate::service::request_id::RequestId;
use crate::tenants::refused::RequestError;
use crate::tenants::share::request_rule;

/// The header of a request's id.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The time after which a tenant at its limit of open requests is told to retry.
const RETRY: Duration = Duration::from_secs(1);
/// Names of this machine in `Host`.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The slot of an open request, freed when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Place(#[expect(dead_code, reason = "held, not read")] Arc<Reservation>);

/// Gives the request an id, checks its Host and Origin, writes problems, and sets the id and the
/// CORS headers on every answer. The outermost layer.
pub(super) async fn finish(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = single_header(request.headers(), REQUEST_ID)
        .and_then(|id| id.map(str::parse::<RequestId>).transpose().map_err(drop));
    let (id, checked) = match given {
        Ok(id) => (id.unwrap_or_else(RequestId::generate), Ok(())),
        Err(()) => {
            let detail = "the header `x-request-id` is repeated, or is not 1 to 128 of the characters A-Z a-z 0-9 . _ : -";
            let problem = Problem::bad_request("invalid_request_id", detail)
                .with_hint("leave the header out, or correct it");
            (RequestId::generate(), Err(problem))
        }
    };
    let origin = cors::listed(&shared.options, request.headers());
    request.extensions_mut().insert(id.clone());
    let span = span(&id, &request);
    request.extensions_mut().insert(RequestSpan(span.clone()));
    let answer = async {
        let checked = checked
            .and_then(|()| check_coding(&request))
            .and_then(|()| check_origin(&shared, &request, origin.is_some()));
        match checked {
            Ok(()) if origin.is_some() && cors::is_preflight(&request) => {
                cors::preflight(request.headers())
            }
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        }
    };
    let answer = AssertUnwindSafe(answer).catch_unwind().instrument(span.clone()).await;
    let mut response = answer.unwrap_or_else(|_| {
        tracing::error!(%id, "a route panicked");
        Problem::internal().into_response()
    });
    span.record("status", response.status().as_u16());
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        problem.write(&id, &mut response);
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id.as_str()) {
        headers.insert(REQUEST_ID, id);
    }
    cors::mark(&shared.options, origin, headers);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Creates the span of a request. `trace_id` and the fields after it are the caller's trace; `mcp`
/// and `tool` are for a request of MCP.
fn span(id: &RequestId, request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let span = tracing::info_span!(
        "request",
        %id,
        method = %request.method(),
        path = request.uri().path(),
        route,
        status = Empty,
        mcp = Empty,
        tool = Empty,
        trace_id = Empty,
        parent_id = Empty,
        trace_flags = Empty,
        trace_state = Empty,
    );
    if let Some(trace) = TraceContext::of_headers(request.headers()) {
        trace.record(&span);
    }
    span
}

/// Refuses a body with several transfer codings, because a proxy may find another end of it. A
/// single coding other than `chunked` does not reach this code.
fn check_coding(request: &Request) -> Result<(), Problem> {
    let is_plain = single_header(request.headers(), TRANSFER_ENCODING).is_ok_and(|coding| {
        coding.is_none_or(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
    });
    if is_plain {
        return Ok(());
    }
    let detail = "the body has several transfer codings";
    Err(Problem::bad_request("invalid_transfer_encoding", detail).with_hint(
        "send the body with `Content-Length`, or with `Transfer-Encoding: chunked` alone",
    ))
}

/// Refuses requests that are meant for another host, and those of pages of other origins.
fn check_origin(shared: &Shared, request: &Request, is_listed: bool) -> Result<(), Problem> {
    let headers = request.headers();
    let Ok(Some(host)) = single_header(headers, HOST) else {
        let detail = "the request must have exactly one header `Host`";
        return Err(Problem::bad_request("invalid_host", detail));
    };
    let uri_host = request.uri().authority().map(http::uri::Authority::as_str);
    for host in [Some(host), uri_host].into_iter().flatten() {
        let name = without_port(host);
        let mut listed = shared.options.hosts.iter().map(String::as_str).chain(LOOPBACK);
        let is_served = listed.any(|listed| listed.eq_ignore_ascii_case(name));
        if !is_served && enforced!(HostList) {
            let detail = "this server does not serve this host";
            return Err(Problem::new(StatusCode::FORBIDDEN, "host_not_allowed", detail)
                .with_hint("use a host name that the operator has listed"));
        }
    }
    let is_own = match single_header(headers, ORIGIN) {
        Ok(Some(origin)) => normal_origin(origin).is_some_and(|origin| {
            let own = origin
                .split_once("://")
                .and_then(|(scheme, _)| normal_origin(&format!("{scheme}://{host}")));
            own == Some(origin)
        }),
        Ok(None) => true,
        Err(()) => false,
    };
    if !is_listed && !is_own && enforced!(OriginList) {
        let detail = "pages of this origin cannot use this server";
        return Err(Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", detail)
            .with_hint("ask the operator to list the origin"));
    }
    Ok(())
}

/// Returns true if a `Host` names this machine.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    LOOPBACK.iter().any(|listed| listed.eq_ignore_ascii_case(without_port(host)))
}

/// Returns the name in an authority: `localhost` of `localhost:8080`, `[::1]` of `[::1]:8080`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() =>
        {
            name
        }
        Some(_) | None => host,
    }
}

/// Determines the principal of the request, for its route. Refuses principals that are not served,
/// and tenants with too many open requests. A stream ends when the key of its request is revoked.
pub(super) async fn authenticate(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let principal = shared.auth.authenticate(request.headers());
    let principal = principal.map_err(|error| Problem::no_principal(&shared.auth, error))?;
    if !shared.service.serves(&principal) && enforced!(ServedTenants) {
        return Err(RequestError::NoAccess.into());
    }
    let mut open = shared.requests.hold(principal.state());
    // A `DELETE` is short and frees resources.
    let rule = request_rule(shared.service.is_shared());
    if request.method() != Method::DELETE && open.grow_to(1, rule).is_err() {
        let refused = RequestError::Overloaded { retry_after: RETRY };
        shared.service.refused(&principal, refused.code());
        return Err(refused.into());
    }
    request.extensions_mut().insert(principal.clone());
    // For routes of other protocols, which read their bodies under the same limits.
    request.extensions_mut().insert(shared.clone());
    // For work that outlives its connection: the slot is freed when both have ended.
    let open = Place(Arc::new(open));
    request.extensions_mut().insert(open.clone());
    let mut response = next.run(request).await;
    if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
        response = end_with(response, shared.revoked(principal));
    }
    Ok(with_guard(response, open))
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::without_port;

    #[test]
    fn host_is_compared_without_port() {
        for (host, name) in rows::<(&str, &str)>("http/guard", "host_is_compared_without_port") {
            assert_eq!(without_port(host), name, "{host}");
        }
    }
}
