//! The endpoint of MCP over HTTP.
//!
//! [`routes`] creates the route `/mcp`. Its requests have passed the checks of
//! [`router`](crate::http::router): Host, Origin, credentials. `POST` brings one message, `GET`
//! opens a stream of events of a session, `DELETE` ends a session. A posted request passes, in this
//! order: the limits of its body, the strict decoding, its session or its metadata, the comparison
//! of its headers with its body, the limits of its tenant, then its method. The answer is JSON, or
//! a stream of server-sent events.
//!
//! A session of another principal (the authenticated sender: a key or user of a tenant) gets the
//! answer of an unknown one. A request of a session runs in a task of its own, which keeps the id,
//! the slot and the bytes of the request until it has ended, whatever happens to the connection. A
//! task ends sessions that are idle or whose key was revoked.
//!
//! Source: docs/mcp.md, "Bad input"; docs/threat-model.md, rows 72 to 77, 106 and 107.

use std::sync::{Arc, Once};

use axum::Router;
use axum::extract::{Extension, Request as HttpRequest, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{ErrorData, ProtocolVersion, RequestId as RpcId};
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolcell::controls::bound;
use tracing::{Instrument as _, Span};

use super::events::{self, DetachedRequest};
use super::headers::{self, Accepted, VERSION, header_text};
use super::methods::known_method;
use super::refusals::{
    Refusal, admit, check_modern, mismatch, needs_session, no_session, not_acceptable, not_allowed,
    refusal, refused_for, version,
};
use super::sessions::{Opened, Sessions};
use crate::auth::single_header;
use crate::http::{Shared, body, guarded_body::with_guard, run_routes::KEEP_ALIVE};
use crate::mcp::handler::{self, Handler};
use crate::mcp::message::raw::{Raw, read_id};
use crate::mcp::message::wire::{self, BadMessage, Kind, Message};
use crate::mcp::request::{self, Request};
use crate::mcp::session::{Requests, Session};
use crate::mcp::{McpOptions, session::client::Client, session::outbox::Outbox};
use crate::observe::trace::RequestSpan;
use crate::service::Service;
use crate::tenants::{principal::Principal, share::Places};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const IDEMPOTENCY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The hint for a client that does not accept both kinds of answers.
const ACCEPT: &str = "send `Accept: application/json, text/event-stream`";
const SESSIONS: (&str, &str) = ("too_many_sessions", "sessions");
const STREAMS: (&str, &str) = ("too_many_streams", "streams");

/// The endpoint.
struct Endpoint {
    options: Arc<McpOptions>,
    sessions: Arc<Sessions>,
    service: Service,
    streams: Places,
    questions: Arc<Places>,
    /// Starts the task that sweeps the sessions.
    watch: Once,
}

/// Creates the route `/mcp`, for [`router`](crate::http::router) or
/// [`ListenOptions::protected`](crate::ListenOptions::protected), which check Host,
/// Origin and credentials of its requests.
pub fn routes(service: Service, options: McpOptions) -> Router {
    let endpoint = Endpoint {
        sessions: Arc::new(Sessions::new(&options, service.metrics().clone())),
        service,
        streams: Places::new(bound!(StreamCount, options.streams)),
        questions: handler::question_places(&options),
        options: Arc::new(options),
        watch: Once::new(),
    };
    Router::new().route("/mcp", any(handle)).with_state(Arc::new(endpoint))
}

async fn handle(
    State(endpoint): State<Arc<Endpoint>>,
    Extension(principal): Extension<Principal>,
    Extension(shared): Extension<Shared>,
    request: HttpRequest,
) -> Response {
    endpoint.watch(&shared);
    let answered = match *request.method() {
        Method::POST => endpoint.post(&principal, &shared, request).await,
        Method::GET => endpoint.get(&principal, request.headers()),
        Method::DELETE => endpoint.delete(&principal, request.headers()),
        _ => Err(not_allowed("GET, POST, DELETE")),
    };
    answered.unwrap_or_else(|refusal| *refusal)
}

impl Endpoint {
    async fn post(
        &self,
        principal: &Principal,
        shared: &Shared,
        request: HttpRequest,
    ) -> Result<Response, Refusal> {
        let (parts, received) = request.into_parts();
        let read = body::read_parts(shared, &parts, received).await;
        let read = read.map_err(|problem| problem.into_response())?;
        let message = wire::decode(&read.bytes)?;
        let accepted = Accepted::of(&parts.headers);
        if !accepted.json {
            return Err(not_acceptable(message.id(), ACCEPT));
        }
        if parts.headers.contains_key(IDEMPOTENCY) {
            let text = "MCP keeps no answers: this route honours no `Idempotency-Key`";
            let bad = BadMessage::request(message.id(), text);
            let hint = "leave the header out, or make the call with `POST /v1/calls`";
            return Err(bad.with_hint(hint).into());
        }
        let current = Span::current();
        let span = parts.extensions.get().map_or(&current, |RequestSpan(span)| span);
        if let Some(trace) = message.meta.trace() {
            trace.record(span);
        }
        if let Kind::Request { method, .. } | Kind::Notification { method } = &message.kind {
            span.record("mcp", known_method(method));
        }
        let version = version(&parts.headers, &message)?;
        let session = self.session(&parts.headers, principal, &message)?;
        let is_modern = message.meta.is_modern()
            || session.is_none() && message.meta.version.is_some()
            || version >= Some(ProtocolVersion::V_2026_07_28.as_str()) && !message.opens();
        let (handler, held) = (self.handler(principal), Arc::new(read.resources));
        match (message.kind, session) {
            (Kind::Request { id, method }, session) if method == "initialize" && !is_modern => {
                if session.is_some() {
                    let text = "the session is open: send `initialize` without `Mcp-Session-Id` \
                                for another";
                    return Err(BadMessage::request(Some(id), text).into());
                }
                self.open(&handler, version, &parts.headers, accepted, id, &message.params)
            }
            (Kind::Request { id, method }, _) if is_modern => {
                let outbox = accepted.events.then(|| Arc::new(Outbox::default()));
                let request = Request {
                    id,
                    method,
                    client: Client::alone(message.meta.capabilities.clone(), outbox.clone()),
                    params: message.params,
                    meta: message.meta,
                    cancelled: CancellationToken::new(),
                    resources: Some(held),
                };
                check_modern(&handler, &parts.headers, version, &request)?;
                self.answer(handler, request, outbox).await
            }
            (Kind::Request { id, method }, Some(opened)) => {
                let Some(running) = opened.session.requests.enter(&id, &opened.session.end) else {
                    let text = "a request with this id is running";
                    return Err(BadMessage::request(None, text).into());
                };
                let stream = accepted.events.then(|| opened.stream());
                let outbox = stream.as_ref().map(|stream| Arc::clone(&stream.outbox));
                let request = Request {
                    id,
                    method,
                    client: Client::of_session(&opened.session, outbox),
                    params: message.params,
                    meta: message.meta,
                    cancelled: running.cancelled.clone(),
                    resources: body::kept_by_work(Arc::clone(&held)),
                };
                admit(&self.service, &request, principal).await?;
                let (sender, answer) = oneshot::channel();
                let streamed = stream.as_ref().map(|stream| {
                    events::of_session(Some(stream.number), 0, stream.outbox.read(0))
                });
                let running = async move {
                    let answer = handler.answer(&request).await;
                    opened.session.mark_used();
                    // Dropped before the answer is sent: a client that has the answer can reuse the
                    // id.
                    drop((running, opened));
                    // A cancelled request has no answer.
                    if !request.cancelled.is_cancelled() {
                        let message = request::message(request.id.clone(), answer);
                        match &stream {
                            Some(stream) => _ = stream.outbox.send(message),
                            None => _ = sender.send(message),
                        }
                    }
                    drop(request);
                    // The stream ends when it is dropped.
                    drop(stream);
                };
                tokio::spawn(running.instrument(span.clone()));
                let response = match streamed {
                    Some(response) => response,
                    None => match answer.await {
                        Ok(message) => events::json(StatusCode::OK, message),
                        Err(_) => return Ok(StatusCode::ACCEPTED.into_response()),
                    },
                };
                Ok(with_guard(response, held))
            }
            (Kind::Notification { .. }, _) if is_modern => Ok(StatusCode::ACCEPTED.into_response()),
            (Kind::Notification { method }, Some(opened)) => {
                let Opened { session, .. } = &opened;
                notified(&handler, Some(session), &session.requests, &method, &message.params);
                Ok(StatusCode::ACCEPTED.into_response())
            }
            (Kind::Response { id, answer }, Some(opened)) => {
                if let (Some(id), Some(held)) = (id, Arc::into_inner(held)) {
                    opened.session.answered(&id, answer, Some(held));
                }
                Ok(StatusCode::ACCEPTED.into_response())
            }
            (Kind::Request { id, .. }, None) => Err(needs_session(Some(id))),
            (Kind::Notification { .. } | Kind::Response { .. }, None) => Err(needs_session(None)),
        }
    }

    /// Opens a session.
    fn open(
        &self,
        handler: &Handler,
        version: Option<&str>,
        headers: &HeaderMap,
        accepted: Accepted,
        id: RpcId,
        params: &Raw,
    ) -> Result<Response, Refusal> {
        let asked = params.member("protocolVersion").and_then(|version| version.text());
        if version.is_some() && version != asked.as_deref() {
            let text = "the header `MCP-Protocol-Version` is not `protocolVersion` of the params";
            return Err(BadMessage::request(Some(id), text).into());
        }
        headers::check_method(headers, "initialize").map_err(|text| mismatch(&id, text))?;
        let opening = handler.initialize(params);
        let (answer, capabilities) =
            opening.map_err(|error| BadMessage { id: Some(id.clone()), error })?;
        let principal = &handler.principal;
        let room = self.sessions.enter(principal);
        let room = room.ok_or_else(|| self.too_many(principal, SESSIONS, Some(id.clone())))?;
        let Some(name) = self.sessions.open(principal, room, capabilities) else {
            let error = ErrorData::internal_error("the system has no randomness", None);
            let bad = BadMessage { id: Some(id), error };
            return Err(refusal(StatusCode::INTERNAL_SERVER_ERROR, bad));
        };
        let message = request::message(id, Ok(answer));
        let mut response = match accepted.events {
            true => events::single_message(&message),
            false => events::json(StatusCode::OK, message),
        };
        if let Ok(name) = HeaderValue::from_str(&name) {
            response.headers_mut().insert(SESSION, name);
        }
        Ok(response)
    }

    /// Answers a request without a session: with JSON, or with a stream if a message precedes the
    /// answer or it takes long.
    async fn answer(
        &self,
        handler: Handler,
        request: Request,
        outbox: Option<Arc<Outbox>>,
    ) -> Result<Response, Refusal> {
        admit(&self.service, &request, &handler.principal).await?;
        let mut place = None;
        if request.method == "subscriptions/listen" {
            if outbox.is_none() {
                return Err(not_acceptable(Some(request.id), ACCEPT));
            }
            let entered = self.streams.enter(&handler.principal);
            let refusal = || self.too_many(&handler.principal, STREAMS, Some(request.id.clone()));
            place = Some(entered.ok_or_else(refusal)?);
        }
        let (id, cancelled) = (request.id.clone(), request.cancelled.clone());
        let held = request.resources.clone();
        let running = async move {
            let answer = handler.answer(&request).await;
            drop((place, request));
            answer
        };
        let mut lasting = DetachedRequest::new(running.in_current_span(), cancelled);
        let Some(outbox) = outbox else {
            let answer = (&mut lasting.running).await;
            return Ok(with_guard(events::json_response(id, answer), held));
        };
        let now = tokio::select! {
            biased;
            answer = &mut lasting.running => Some(answer),
            () = outbox.begun() => None,
            () = tokio::time::sleep(KEEP_ALIVE) => None,
        };
        if let Some(answer) = now {
            if outbox.is_empty() {
                return Ok(with_guard(events::json_response(id, answer), held));
            }
            outbox.send(request::message(id.clone(), answer));
            outbox.end();
        }
        Ok(with_guard(events::of_request(id, lasting, outbox), held))
    }

    /// Opens a stream of a session.
    fn get(&self, principal: &Principal, headers: &HeaderMap) -> Result<Response, Refusal> {
        if !Accepted::of(headers).events {
            return Err(not_acceptable(None, "send `Accept: text/event-stream`"));
        }
        let (_, opened) = self.named_session(principal, headers)?;
        let place = self.streams.enter(principal);
        let place = place.ok_or_else(|| self.too_many(principal, STREAMS, None))?;
        let response = match headers.get(&LAST_EVENT).map(HeaderValue::to_str) {
            None => events::of_session(None, 0, opened.session.common.read(0)),
            Some(last) => match last.ok().and_then(|last| opened.resume(last)) {
                Some((stream, next, reader)) => events::of_session(stream, next, reader),
                // As the standard of server-sent events says. After an empty stream, clients
                // connect again for ever, or take up the common stream once more.
                None => return Ok(StatusCode::NO_CONTENT.into_response()),
            },
        };
        Ok(with_guard(response, (place, opened.session.listen())))
    }

    /// Ends a session.
    fn delete(&self, principal: &Principal, headers: &HeaderMap) -> Result<Response, Refusal> {
        let (id, _) = self.named_session(principal, headers)?;
        self.sessions.close(id);
        Ok(StatusCode::NO_CONTENT.into_response())
    }

    /// Returns the session that the headers name.
    fn named_session<'a>(
        &self,
        principal: &Principal,
        headers: &'a HeaderMap,
    ) -> Result<(&'a str, Opened), Refusal> {
        if header_text(headers, &VERSION) >= Some(ProtocolVersion::V_2026_07_28.as_str()) {
            return Err(not_allowed("POST"));
        }
        let id = single_header(headers, SESSION).map_err(|()| {
            let text = "the header `Mcp-Session-Id` is repeated or is not text";
            BadMessage::request(None, text)
        })?;
        let id = id.ok_or_else(|| needs_session(None))?;
        let opened = self.sessions.find(id, principal).ok_or_else(|| no_session(None))?;
        Ok((id, opened))
    }

    /// Returns the session of a message, if it has one.
    fn session(
        &self,
        headers: &HeaderMap,
        principal: &Principal,
        message: &Message,
    ) -> Result<Option<Opened>, Refusal> {
        // Requests of the era without sessions have none, whatever their headers contain.
        if !headers.contains_key(SESSION) || message.meta.is_modern() {
            return Ok(None);
        }
        let opened =
            header_text(headers, &SESSION).and_then(|id| self.sessions.find(id, principal));
        opened.map(Some).ok_or_else(|| no_session(message.id()))
    }

    fn handler(&self, principal: &Principal) -> Handler {
        Handler {
            service: self.service.clone(),
            principal: principal.clone(),
            options: Arc::clone(&self.options),
            questions: Arc::clone(&self.questions),
        }
    }

    /// Returns the refusal of a tenant at its limit. `what` has the code, and the words for the
    /// limited items.
    fn too_many(
        &self,
        principal: &Principal,
        what: (&'static str, &str),
        id: Option<RpcId>,
    ) -> Refusal {
        let (code, words) = what;
        self.service.refused(principal, code);
        let data = json!({ "code": code, "retry_after_ms": 60_000 });
        let text = format!("the tenant has reached its limit of open {words}");
        let error = ErrorData::internal_error(text, Some(data));
        refused_for(StatusCode::TOO_MANY_REQUESTS, BadMessage { id, error }, 60)
    }

    /// Starts, at the first request, a task that ends sessions that are idle, whose key was
    /// revoked, or whose tenant is no longer served.
    fn watch(&self, shared: &Shared) {
        self.watch.call_once(|| {
            let (sessions, shared) = (Arc::downgrade(&self.sessions), shared.clone());
            let pause = self.sessions.sweep_after(shared.options.recheck);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(pause).await;
                    let Some(sessions) = sessions.upgrade() else { return };
                    sessions.sweep(|principal| shared.knows(principal));
                }
            });
        });
    }
}

/// Handles a notification of a client that sent these requests.
pub(in crate::mcp) fn notified(
    handler: &Handler,
    session: Option<&Session>,
    requests: &Requests,
    method: &str,
    params: &Raw,
) {
    if method == "notifications/cancelled"
        && let Some(id) = params.member("requestId").and_then(|id| read_id(id.as_str()))
    {
        requests.cancel(&id);
    }
    if let Some(session) = session.filter(|_| method == "notifications/initialized")
        && session.start_notifications()
    {
        handler.tell_changes(session);
    }
}
