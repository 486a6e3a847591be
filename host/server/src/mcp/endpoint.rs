//! The endpoint of MCP over HTTP.
//!
//! In: requests that have passed the checks of [`router`](crate::router): Host, Origin, credentials. Out: the SDK's responses.
//! A request passes, in this order: the limits of its body, the strict decoding, its session, then the SDK, which compares the
//! headers with the body.
//! Invariants: a session of another principal is answered as one that does not exist.
//! Source: docs/mcp.md, "Bad input"; docs/threat-model.md, rows 72 to 77.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Json, Router};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use rmcp::model::{ErrorData, InitializeRequestParams, JsonRpcError, ProtocolVersion, RequestId as RpcId};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use toolcell::defence::{Defence, stands};

use super::McpOptions;
use super::direct::Direct;
use super::handler::{Handler, VERSIONS};
use super::methods::known_method;
use super::places::{Place, Places};
use super::sessions::{CALLER, Caller, Sessions};
use super::wire::{self, Bad, Kind, Message};
use super::{resources, result};
use crate::http::held::hold;
use crate::http::{Shared, body};
use crate::principal::Principal;
use crate::service::Service;
use crate::trace::{RequestSpan, TraceContext};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSIONS: (&str, &str) = ("too_many_sessions", "sessions");
const BUSY: &str = "busy";
const STREAMS: (&str, &str) = ("too_many_streams", "streams");
/// Tells proxies to pass events on as they come.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The endpoint.
struct Endpoint {
    options: Arc<McpOptions>,
    sdk: StreamableHttpService<Handler, Sessions>,
    sessions: Arc<Sessions>,
    service: Service,
    streams: Places,
    /// Whether the sessions are being compared with the keys.
    is_watched: AtomicBool,
}

/// The route `/mcp`, to be given to [`router`](crate::router) or [`ListenOptions::with_protected`](crate::ListenOptions::with_protected), which check
/// Host, Origin and credentials of its requests.
pub fn routes(service: Service, options: McpOptions) -> Router {
    let sessions = Arc::new(Sessions::new(options.sessions, options.session_idle, service.metrics().clone()));
    let streams = Places::new(if stands(Defence::StreamCount) { options.streams } else { usize::MAX });
    let options = Arc::new(options);
    let (made_options, calling) = (Arc::clone(&options), service.clone());
    let made = move || {
        let caller = CALLER.try_with(|caller| (caller.principal.clone(), caller.end.clone()));
        let (principal, end) = caller.map_err(std::io::Error::other)?;
        Ok(Handler::new(calling.clone(), principal, Arc::clone(&made_options), end))
    };
    // Host and Origin were compared with the lists of the HTTP options, and the body has been read.
    // A stateless request whose call tells nothing before its result is answered by JSON: it costs less than a stream.
    let config = StreamableHttpServerConfig::default().disable_allowed_hosts().with_max_request_body_bytes(usize::MAX);
    let config = config.with_json_response(true);
    let sdk = StreamableHttpService::new(made, Arc::clone(&sessions), config);
    let endpoint = Arc::new(Endpoint { options, sdk, sessions, service, streams, is_watched: AtomicBool::new(false) });
    Router::new().route("/mcp", any(handle)).with_state(endpoint)
}

async fn handle(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(principal): Extension<Principal>,
    Extension(shared): Extension<Shared>,
    request: Request,
) -> Response {
    endpoint.watch(&shared);
    if request.method() != Method::POST {
        return endpoint.stream_or_end(principal, request).await;
    }
    let (mut parts, received) = request.into_parts();
    let read = match body::read_parts(&shared, &parts, received).await {
        Ok(read) => read,
        Err(problem) => return problem.into_response(),
    };
    let mut message = match wire::decode(&read.bytes) {
        Ok(message) => message,
        Err(bad) => return refused(StatusCode::BAD_REQUEST, &bad),
    };
    if let Some(RequestSpan(span)) = parts.extensions.get() {
        if let Some(trace) = TraceContext::of_meta(&message.value["params"]["_meta"]) {
            trace.record(span);
        }
        if let Kind::Request { method, .. } | Kind::Notification { method } = &message.kind {
            span.record("mcp", known_method(method));
        }
    }
    // The era without sessions has no such method: a request that names its revision is answered so by the SDK.
    let opens = is_method(&message, "initialize") && message.version.is_none();
    let (mut pending, mut room, mut stream) = (None, None, None);
    match endpoint.session(&parts.headers, &principal, &message) {
        Ok(Some(_)) if opens => {
            let bad = Bad::request(
                message.id(),
                "the session is open: send `initialize` without `Mcp-Session-Id` for another",
            );
            return refused(StatusCode::BAD_REQUEST, &bad);
        }
        Ok(Some(session)) => {
            if let Kind::Request { id, .. } = &message.kind {
                pending = endpoint.sessions.enter(session, id);
                if pending.is_none() {
                    let bad = Bad::request(None, "a request with this id is running");
                    return refused(StatusCode::BAD_REQUEST, &bad);
                }
            }
        }
        Ok(None) if opens => {
            room = endpoint.sessions.reserve(&principal);
            if room.is_none() {
                return endpoint.too_many(&principal, SESSIONS, message.id());
            }
        }
        Ok(None) => {}
        Err(response) => return response,
    }
    if opens && let Err(error) = serde_json::from_value::<InitializeRequestParams>(message.value["params"].clone()) {
        let error = ErrorData::invalid_params(format!("the params do not fit `initialize`: {error}"), None);
        return refused(StatusCode::BAD_REQUEST, &Bad { id: message.id(), error });
    }
    if is_method(&message, "subscriptions/listen") {
        stream = endpoint.streams.enter(&principal);
        if stream.is_none() {
            return endpoint.too_many(&principal, STREAMS, message.id());
        }
    }
    // Before the tool is looked up, so that a refusal says nothing of the tools.
    if is_method(&message, "tools/call")
        && let Err(busy) = endpoint.service.check(&principal)
    {
        let status =
            if busy.retry_after().is_some() { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE };
        let mut response = refused(status, &Bad { id: message.id(), error: result::error_of(&busy) });
        if let Some(after) = busy.retry_after() {
            let seconds = after.as_millis().div_ceil(1000).max(1);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX)));
        }
        return response;
    }
    if let Some(direct) = endpoint.direct(&principal, &parts.headers, &mut message) {
        return direct.answer().await;
    }
    let mut answer = shared.bodies.share(&principal);
    if is_method(&message, "resources/read") {
        let uri = message.value["params"]["uri"].as_str().unwrap_or_default();
        let room = match endpoint.service.artifacts() {
            Some(artifacts) => resources::room(artifacts, &principal, uri).await.unwrap_or_default(),
            None => 0,
        };
        if !answer.grow_to(room, shared.service.is_shared()) {
            return endpoint.busy(&principal, message.id());
        }
    }
    // However it was written: the SDK compares it with these letters.
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let request = Request::from_parts(parts, Body::from(read.bytes.clone()));
    let response = endpoint.pass_on(principal, room, request).await;
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        // It is JSON and a message, and yet the SDK cannot read it.
        let bad = Bad::request(message.id(), "the message does not fit the protocol");
        return refused(StatusCode::BAD_REQUEST, &bad);
    }
    // The request is pending until its answer has been sent, or the client has gone.
    hold(response, (pending, stream, answer))
}

impl Endpoint {
    /// The call, if it needs nothing of the SDK.
    fn direct(&self, principal: &Principal, headers: &HeaderMap, message: &mut Message) -> Option<Direct> {
        let handler = || {
            Handler::new(self.service.clone(), principal.clone(), Arc::clone(&self.options), CancellationToken::new())
        };
        Direct::of(handler, headers, message)
    }

    /// `GET` opens the stream of a session, `DELETE` ends the session.
    async fn stream_or_end(&self, principal: Principal, request: Request) -> Response {
        if request.headers().contains_key(SESSION) {
            match one(request.headers(), &SESSION) {
                Some(session) if self.sessions.is_open(session, &principal) => {}
                Some(_) => return no_session(None),
                None => {
                    let text = "the header `Mcp-Session-Id` is repeated or is not text";
                    return refused(StatusCode::BAD_REQUEST, &Bad::request(None, text));
                }
            }
        }
        let mut stream = None;
        if request.method() == Method::GET {
            stream = self.streams.enter(&principal);
            if stream.is_none() {
                return self.too_many(&principal, STREAMS, None);
            }
        }
        hold(self.pass_on(principal, None, request).await, stream)
    }

    /// The answer has no room beside what the server holds.
    fn busy(&self, principal: &Principal, id: Option<RpcId>) -> Response {
        self.service.refused(principal, BUSY);
        let data = json!({ "code": BUSY, "retry_after_ms": 1_000 });
        let text = "the server holds as many bytes of requests and answers as it may; try again later";
        let error = ErrorData::internal_error(text, Some(data));
        let mut response = refused(StatusCode::SERVICE_UNAVAILABLE, &Bad { id, error });
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }

    /// The tenant has as many of these as it may have. `what` has the code, and the words for them.
    fn too_many(&self, principal: &Principal, what: (&'static str, &str), id: Option<RpcId>) -> Response {
        let (code, words) = what;
        self.service.refused(principal, code);
        let data = json!({ "code": code, "retry_after_ms": 60_000 });
        let error = ErrorData::internal_error(format!("the tenant has reached its limit of open {words}"), Some(data));
        let mut response = refused(StatusCode::TOO_MANY_REQUESTS, &Bad { id, error });
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
        response
    }

    /// Closes sessions whose key was revoked, or whose tenant is not served any more, from the first request on.
    fn watch(&self, shared: &Shared) {
        if self.is_watched.swap(true, Ordering::AcqRel) || !stands(Defence::RevokedStreams) {
            return;
        }
        let (sessions, shared) = (Arc::downgrade(&self.sessions), shared.clone());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(shared.options.recheck).await;
                let Some(sessions) = sessions.upgrade() else { return };
                sessions.close_others(|principal| shared.knows(principal)).await;
            }
        });
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
                let text = "the header `MCP-Protocol-Version` is repeated or is not text";
                refused(StatusCode::BAD_REQUEST, &Bad::request(message.id(), text))
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

    async fn pass_on(&self, principal: Principal, room: Option<Place>, request: Request) -> Response {
        let caller = Caller { principal, room: Mutex::new(room), end: CancellationToken::new() };
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
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
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
