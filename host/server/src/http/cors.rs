//! Lets browser pages of listed origins use the API (CORS).
//!
//! A browser lets a page read an answer of another origin only if the answer's headers allow it.
//! For some requests it first sends a preflight, an `OPTIONS` request that asks for permission. The
//! outermost layer of the HTTP API calls [`listed`] with the headers of each request, answers a
//! preflight of a listed origin with [`preflight`], and calls [`mark`] to set the headers of every
//! answer.
//!
//! Only a listed origin is named, never `*`, and browsers are not allowed to add credentials of
//! their own. A preflight reaches no route and needs no key, because browsers send none with it.
//! Not here: the refusal of other origins, in `http/guard.rs`.
//!
//! Source: docs/http.md, "Browser pages".

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::HttpOptions;
use crate::auth::same_url::normal_origin;
use crate::auth::single_header;

/// The methods of all routes.
const METHODS: &str = "GET, HEAD, POST, DELETE";
/// The headers that the routes read.
const SENT: &str = "accept, authorization, baggage, content-type, idempotency-key, if-none-match, if-range, last-event-id, \
                    mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, range, traceparent, tracestate, x-request-id";
/// The prefix of the MCP headers that repeat an argument. Tools choose the rest of the name.
const PARAMETER: &str = "mcp-param-";
/// The headers of answers that a page can read, besides those that are always readable.
const READ: &str = "accept-ranges, allow, content-disposition, content-range, etag, idempotency-replayed, mcp-session-id, retry-after, \
                    www-authenticate, x-request-id";
/// Seconds for which a browser can cache the answer to a preflight. No browser caches it for
/// longer.
const MAX_AGE: &str = "7200";

/// Returns the origin of the request, if it is listed.
pub(super) fn listed(options: &HttpOptions, headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = normal_origin(single_header(headers, ORIGIN).ok()??)?;
    let is_listed =
        options.origins.iter().any(|listed| normal_origin(listed).as_ref() == Some(&asked));
    headers.get(ORIGIN).filter(|_| is_listed).cloned()
}

/// Returns true if the request is a preflight.
pub(super) fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the answer to a preflight of a listed origin.
pub(super) fn preflight(headers: &HeaderMap) -> Response {
    let asked = headers
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .and_then(|asked| asked.to_str().ok())
        .unwrap_or_default();
    let asked = asked.split(',').map(|name| name.trim().to_ascii_lowercase());
    let parameters = asked.filter(|name| name.starts_with(PARAMETER));
    let sent = parameters.fold(SENT.to_owned(), |sent, name| format!("{sent}, {name}"));
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_ALLOW_HEADERS, &*sent),
        (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Sets the headers that let a page of this listed origin read the answer.
pub(super) fn mark(options: &HttpOptions, origin: Option<HeaderValue>, answer: &mut HeaderMap) {
    if !options.origins.is_empty() {
        answer.append(VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = origin {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
    }
}
