//! The endpoint of MCP over HTTP.
//!
//! In: requests that have passed the checks of [`router`](crate::router): Host, Origin, credentials. Out: the SDK's responses.
//! A request passes, in this order: the limits of its body, the strict decoding, its session, then the SDK, which compares the
//! headers with the body.
//! Invariants: a session of another principal is answered as one that does not exist.
//! Source: docs/mcp.md, "Bad input"; docs/threat-model.md, rows 72 to 77.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Json, Router};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use rmcp::model::{ErrorData, JsonRpcError, ProtocolVersion, RequestId as RpcId};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::McpOptions;
use super::handler::{Handler, VERSIONS};
use super::sessions::{CALLER, Caller, Sessions};
use super::wire::{self, Bad, Kind, Message};
use crate::http::Shared;
use crate::http::body;
use crate::principal::Principal;
use crate::service::Service;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Tells proxies to pass events on as they come.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The endpoint.
struct Endpoint {
    sdk: StreamableHttpService<Handler, Sessions>,
    sessions: Arc<Sessions>,
}

/// The route `/mcp`, to be given to [`router`](crate::router) or [`ListenOptions::with_protected`](crate::ListenOptions::with_protected), which check
/// Host, Origin and credentials of its requests.
pub fn routes(service: Service, options: McpOptions) -> Router {
    let sessions = Arc::new(Sessions::new(options.sessions, options.session_idle));
    let options = Arc::new(options);
    let made = move || {
        let principal = CALLER.try_with(|caller| caller.principal.clone()).map_err(std::io::Error::other)?;
        Ok(Handler::new(service.clone(), principal, Arc::clone(&options)))
    };
    // Host and Origin were compared with the lists of the HTTP options, and the body has been read.
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts().with_max_request_body_bytes(usize::MAX);
    let sdk = StreamableHttpService::new(made, Arc::clone(&sessions), config);
    let endpoint = Arc::new(Endpoint { sdk, sessions });
    Router::new().route("/mcp", any(handle)).with_state(endpoint)
}

async fn handle(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(principal): Extension<Principal>,
    Extension(shared): Extension<Shared>,
    request: Request,
) -> Response {
    if request.method() != Method::POST {
        return endpoint.stream_or_end(principal, request).await;
    }
    let (parts, received) = request.into_parts();
    let read = match body::read(&shared, Request::from_parts(parts.clone(), received)).await {
        Ok(read) => read,
        Err(problem) => return problem.into_response(),
    };
    let message = match wire::decode(&read.bytes) {
        Ok(message) => message,
        Err(bad) => return refused(StatusCode::BAD_REQUEST, &bad),
    };
    let mut pending = None;
    let mut room = None;
    match endpoint.session(&parts.headers, &principal, &message) {
        Ok(Some(session)) => {
            if let Kind::Request { id, .. } = &message.kind {
                pending = endpoint.sessions.enter(session, id);
                if pending.is_none() {
                    let bad = Bad::request(None, "a request with this id is running");
                    return refused(StatusCode::BAD_REQUEST, &bad);
                }
            }
        }
        Ok(None) if is_method(&message, "initialize") => {
            room = endpoint.sessions.reserve(&principal);
            if room.is_none() {
                let id = message.id();
                let error = ErrorData::internal_error("the tenant has as many sessions as it may have", None);
                let mut response = refused(StatusCode::TOO_MANY_REQUESTS, &Bad { id, error });
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
                return response;
            }
        }
        Ok(None) => {}
        Err(response) => return response,
    }
    let request = Request::from_parts(parts, Body::from(read.bytes.clone()));
    let response = endpoint.pass_on(principal, room, request).await;
    // The request is pending until its answer has been sent, or the client has gone.
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &pending;
            frame
        }))
    })
}

impl Endpoint {
    /// `GET` opens the stream of a session, `DELETE` ends the session.
    async fn stream_or_end(&self, principal: Principal, request: Request) -> Response {
        if request.headers().contains_key(SESSION) {
            match one(request.headers(), &SESSION) {
                Some(session) if self.sessions.is_open(session, &principal) => {}
                Some(_) => return no_session(None),
                None => {
                    return refused(StatusCode::BAD_REQUEST, &Bad::request(None, "there is more than one session id"));
                }
            }
        }
        self.pass_on(principal, None, request).await
    }

    /// The session that the request belongs to.
    #[expect(clippy::result_large_err, reason = "it is returned once")]
    fn session<'a>(
        &self,
        headers: &'a HeaderMap,
        principal: &Principal,
        message: &Message,
    ) -> Result<Option<&'a str>, Response> {
        let known = |version: &str| VERSIONS.iter().any(|served| served.as_str() == version);
        let version = if headers.contains_key(VERSION) {
            let bad = || {
                refused(StatusCode::BAD_REQUEST, &Bad::request(message.id(), "the protocol version is not one text"))
            };
            Some(one(headers, &VERSION).ok_or_else(bad)?)
        } else {
            None
        };
        if let (Some(version), None) = (version, &message.version)
            && !known(version)
            && !is_method(message, "initialize")
        {
            let error = ErrorData::unsupported_protocol_version(unknown(version), &VERSIONS);
            return Err(refused(StatusCode::BAD_REQUEST, &Bad { id: message.id(), error }));
        }
        if !headers.contains_key(SESSION) {
            return Ok(None);
        }
        let session = one(headers, &SESSION);
        match session.filter(|session| self.sessions.is_open(session, principal)) {
            Some(session) => Ok(Some(session)),
            // Requests of the stateless era have no session, whatever they say.
            None if message.version.as_deref() >= Some(ProtocolVersion::V_2026_07_28.as_str()) => Ok(None),
            None => Err(no_session(message.id())),
        }
    }

    async fn pass_on(&self, principal: Principal, room: Option<super::sessions::Room>, request: Request) -> Response {
        let caller = Caller { principal, room: Mutex::new(room) };
        let response = CALLER.scope(caller, self.sdk.handle(request)).await;
        let mut response = response.map(Body::new);
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        if is_stream {
            response.headers_mut().insert(BUFFERING, HeaderValue::from_static("no"));
        }
        response
    }
}

/// The only value of a header, as text.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn is_method(message: &Message, name: &str) -> bool {
    matches!(&message.kind, Kind::Request { method, .. } if method == name)
}

/// A revision that is not served, as the SDK writes it.
fn unknown(version: &str) -> ProtocolVersion {
    let version: String = version.chars().take(40).collect();
    serde_json::from_value(version.into()).unwrap_or_default()
}

fn no_session(id: Option<RpcId>) -> Response {
    refused(StatusCode::NOT_FOUND, &Bad::request(id, "there is no such session: open one with `initialize`"))
}

fn refused(status: StatusCode, bad: &Bad) -> Response {
    (status, Json(JsonRpcError::new(bad.id.clone(), bad.error.clone()))).into_response()
}
