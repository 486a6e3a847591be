//! Calls of the stateless era that need nothing of the SDK, which takes longer for a request than the call itself.
//!
//! In: a decoded message and the headers of its request. Out: the response.
//! Invariants: a request that the SDK would refuse, or whose client hears something before the result, is left to the SDK; the
//! response has the status, the type and the members of the one that the SDK would send.
//! Source: docs/mcp.md.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, JsonRpcError, JsonRpcResponse, JsonRpcVersion2_0,
    ProtocolVersion, RequestMetaObject, ServerResult,
};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::call::{self, Way};
use super::endpoint::{VERSION, one};
use super::handler::Handler;
use super::wire::{Kind, Message};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const CALL: &str = "tools/call";

/// A call that is answered here.
pub(super) struct Direct {
    handler: Handler,
    request: call::Request,
}

impl Direct {
    /// The call, with the params of the message. None, and the message as it was, where the SDK is needed.
    pub(super) fn of(handler: impl FnOnce() -> Handler, headers: &HeaderMap, message: &mut Message) -> Option<Self> {
        let revision = ProtocolVersion::V_2026_07_28;
        let Kind::Request { id, method } = &message.kind else { return None };
        let has = |name: &HeaderName, value: &str| one(headers, name) == Some(value);
        let is_of_era = message.version.as_deref() == Some(revision.as_str()) && has(&VERSION, revision.as_str());
        if method != CALL || !is_of_era || !has(&METHOD, CALL) || !takes_both(headers) {
            return None;
        }
        let params = message.value.get_mut("params")?.as_object_mut()?;
        let name = params.get("name")?.as_str()?;
        // A name that is written in another way has a prefix.
        if !has(&NAME, name) || name.starts_with('=') || !are_plain(params) {
            return None;
        }
        let handler = handler();
        if !handler.is_plain(name) {
            return None;
        }
        let name = name.to_owned();
        let meta = RequestMetaObject::from(object(params, "_meta"));
        let capabilities = meta.client_capabilities();
        if capabilities.is_none() {
            params.insert("_meta".to_owned(), meta.0.0.into());
            return None;
        }
        let mut read = CallToolRequestParams::new(name);
        read.arguments = Some(object(params, "arguments"));
        let cancelled = CancellationToken::new();
        let (id, level) = (id.clone(), None);
        let request = call::Request { id, params: read, meta, capabilities, cancelled, level, way: Way::Silent };
        Some(Self { handler, request })
    }

    /// Makes the call. When dropped, the tool has its time to end by itself.
    pub(super) async fn answer(self) -> Response {
        let Self { handler, request } = self;
        let (id, cancelled) = (request.id.clone(), request.cancelled.clone());
        let call = async move { call::call(&handler, request).await };
        let call: Call = Box::pin(call.in_current_span());
        match (Lasting { call: Some(call), cancelled }).await {
            Ok(result) => {
                let result = ServerResult::from(result);
                Json(JsonRpcResponse { jsonrpc: JsonRpcVersion2_0, id, result }).into_response()
            }
            Err(error) => Json(JsonRpcError::new(Some(id), error)).into_response(),
        }
    }
}

type Call = Pin<Box<dyn Future<Output = Result<CallToolResponse, ErrorData>> + Send>>;

/// A call that is cancelled when it is dropped, and goes on to its end.
struct Lasting {
    call: Option<Call>,
    cancelled: CancellationToken,
}

impl Future for Lasting {
    type Output = Result<CallToolResponse, ErrorData>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.call else { return Poll::Pending };
        let answer = ready!(call.as_mut().poll(context));
        self.call = None;
        Poll::Ready(answer)
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        if let (Some(call), Ok(runtime)) = (self.call.take(), Handle::try_current()) {
            self.cancelled.cancel();
            drop(runtime.spawn(call));
        }
    }
}

/// Whether the client reads JSON and events, and says so in the usual way.
fn takes_both(headers: &HeaderMap) -> bool {
    let accepted = one(headers, &ACCEPT).unwrap_or_default();
    let takes = |kind: &str| accepted.split(',').any(|accepted| accepted.trim() == kind);
    takes("application/json") && takes("text/event-stream")
}

/// Whether the params have what a call needs and nothing else, and ask for nothing before the result.
fn are_plain(params: &Map<String, Value>) -> bool {
    let is_object = |name: &str| params.get(name).is_none_or(Value::is_object);
    let is_silent = |meta: &Value| {
        ["progressToken", "io.modelcontextprotocol/logLevel"].iter().all(|asks| meta.get(asks).is_none())
    };
    params.keys().all(|name| ["name", "arguments", "_meta"].contains(&name.as_str()))
        && is_object("arguments")
        && is_object("_meta")
        && params.get("_meta").is_some_and(is_silent)
}

/// Takes a member that is an object.
fn object(params: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match params.get_mut(name).map(Value::take) {
        Some(Value::Object(members)) => members,
        Some(_) | None => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderValue;
    use serde_json::json;
    use toolcell::{Definition, Registry, Tool};

    use super::*;
    use crate::mcp::{McpOptions, wire};
    use crate::principal::Principal;
    use crate::served::Served;
    use crate::service::Service;

    /// What is changed in a request that is answered here: a header, or a member of its params at a pointer. Null removes it.
    #[test]
    fn only_a_call_that_needs_nothing_of_the_sdk_is_answered_here() {
        let registry = Registry::new();
        let header = json!({"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}});
        for (name, parameters) in [("echo", json!({"type": "object"})), ("weather", header)] {
            let definition = Definition::new(name, "Echoes.").unwrap().with_parameters(parameters);
            registry.register(Tool::native(definition, async |given: Value| given).unwrap()).unwrap();
        }
        let service = Service::builder(Served::new(&registry)).build().unwrap();
        let handler = || {
            Handler::new(service.clone(), Principal::local(), Arc::new(McpOptions::default()), CancellationToken::new())
        };
        let revision = "io.modelcontextprotocol~1protocolVersion";
        let level = "io.modelcontextprotocol~1logLevel";
        let capabilities = "io.modelcontextprotocol~1clientCapabilities";
        let both = "text/event-stream, application/json";
        for (headers, members, is_direct) in [
            (vec![], vec![], true),
            (vec![("accept", both)], vec![], true),
            (vec![], vec![("/params/arguments", Value::Null)], true),
            (vec![], vec![("/params/_meta/x", json!(1))], true),
            (vec![("accept", "application/json")], vec![], false),
            (vec![("accept", "application/json;q=1, text/event-stream")], vec![], false),
            (vec![("accept", "")], vec![], false),
            (vec![("mcp-method", "tools/list")], vec![], false),
            (vec![("mcp-method", "")], vec![], false),
            (vec![("mcp-name", "ech")], vec![], false),
            (vec![("mcp-name", "")], vec![], false),
            (vec![("mcp-name", "weather")], vec![("/params/name", json!("weather"))], false),
            (vec![("mcp-name", "none")], vec![("/params/name", json!("none"))], false),
            (vec![("mcp-protocol-version", "2025-11-25")], vec![], false),
            (vec![], vec![(&*format!("/params/_meta/{revision}"), json!("2025-11-25"))], false),
            (vec![], vec![(&format!("/params/_meta/{capabilities}"), Value::Null)], false),
            (vec![], vec![(&format!("/params/_meta/{capabilities}"), json!(1))], false),
            (vec![], vec![(&format!("/params/_meta/{level}"), json!("info"))], false),
            (vec![], vec![("/params/_meta/progressToken", json!(1))], false),
            (vec![], vec![("/params/requestState", json!("x"))], false),
            (vec![], vec![("/params/arguments", json!([]))], false),
            (vec![], vec![("/method", json!("tools/list"))], false),
        ] {
            let mut value = json!({"jsonrpc": "2.0", "id": 1, "method": CALL, "params": {
                "name": "echo", "arguments": {"a": 1}, "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            }});
            for (pointer, member) in &members {
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                let parent = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
                let name = name.replace("~1", "/");
                if member.is_null() {
                    parent.remove(&name);
                } else {
                    parent.insert(name, member.clone());
                }
            }
            let mut all = HeaderMap::new();
            for (name, text) in [
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", CALL),
                ("mcp-name", "echo"),
            ] {
                all.insert(name, HeaderValue::from_static(text));
            }
            for (name, text) in &headers {
                all.insert(*name, HeaderValue::from_static(text));
            }
            let mut message = wire::decode(value.to_string().as_bytes()).unwrap();
            let direct = Direct::of(handler, &all, &mut message);
            assert_eq!(direct.is_some(), is_direct, "{headers:?} {members:?}");
            if direct.is_none() {
                assert_eq!(message.value, value, "{headers:?} {members:?}");
            }
            let twice = all.clone();
            for (name, text) in &twice {
                let mut all = twice.clone();
                all.append(name, text.clone());
                let mut message = wire::decode(value.to_string().as_bytes()).unwrap();
                assert!(Direct::of(handler, &all, &mut message).is_none(), "{name} twice");
            }
        }
    }
}
