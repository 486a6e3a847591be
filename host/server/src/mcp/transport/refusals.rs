//! Refuses requests over HTTP before their method is handled.
//!
//! The endpoint calls these checks with the headers and the decoded message; each returns nothing
//! or the response with the fault. [`version`] checks the header of the protocol's revision,
//! [`check_modern`] the metadata and headers of a request without a session. [`admit`] refuses a
//! call whose tenant has no quota or no free slot, before its tool is looked up, so that a refusal
//! reveals nothing of the tools; it also refuses to read a resource that does not fit in memory.
//! The other functions write fixed refusals, such as that of an unknown session.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::header::{ALLOW, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use rmcp::model::{ErrorData, JsonRpcError, RequestId as RpcId};

use super::headers::{self, VERSION};
use crate::auth::single_header;
use crate::mcp::handler::call::result;
use crate::mcp::handler::{Handler, VERSIONS, opening, resources};
use crate::mcp::message::wire::{BadMessage, Message};
use crate::mcp::request::{self, Request};
use crate::service::Service;
use crate::tenants::principal::Principal;

/// A refusal of a request, boxed.
pub(super) type Refusal = Box<Response>;

/// Returns a refusal as a message of the protocol.
pub(super) fn refusal(status: StatusCode, bad: BadMessage) -> Refusal {
    (status, Json(JsonRpcError::new(bad.id, bad.error))).into_response().into()
}

/// Returns a refusal with `Retry-After`.
pub(super) fn refused_for(status: StatusCode, bad: BadMessage, seconds: u64) -> Refusal {
    let mut refused = refusal(status, bad);
    refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    refused
}

/// Refuses a message with the status 400.
impl From<BadMessage> for Refusal {
    fn from(bad: BadMessage) -> Self {
        refusal(StatusCode::BAD_REQUEST, bad)
    }
}

/// Refuses a call whose tenant has no quota or no free slot, before its tool is looked up, so that
/// a refusal reveals nothing of the tools. Also refuses to read a resource for which there is no
/// room.
pub(super) async fn admit(
    service: &Service,
    request: &Request,
    principal: &Principal,
) -> Result<(), Refusal> {
    let bad = |error| BadMessage { id: Some(request.id.clone()), error };
    if request.method == "tools/call"
        && let Err(busy) = service.check(principal)
    {
        let bad = bad(result::error_of(&busy));
        return Err(match busy.retry_after() {
            Some(after) => {
                let seconds = after.as_millis().div_ceil(1000).max(1);
                let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
                refused_for(StatusCode::TOO_MANY_REQUESTS, bad, seconds)
            }
            None => refusal(StatusCode::SERVICE_UNAVAILABLE, bad),
        });
    }
    if request.method == "resources/read"
        && let Some(artifacts) = service.artifacts()
    {
        let uri = request.params.member("uri").and_then(|uri| uri.text()).unwrap_or_default();
        let room = resources::room(artifacts, principal, &uri).await.unwrap_or_default();
        if !request.take(room) {
            service.refused(principal, "busy");
            let bad = bad(request::busy_error());
            return Err(refused_for(StatusCode::SERVICE_UNAVAILABLE, bad, 1));
        }
    }
    Ok(())
}

/// Returns the header of the revision.
pub(super) fn version<'a>(
    headers: &'a HeaderMap,
    message: &Message,
) -> Result<Option<&'a str>, Refusal> {
    let version = single_header(headers, VERSION).map_err(|()| {
        let text = "the header `MCP-Protocol-Version` is repeated or is not text";
        BadMessage::request(message.id(), text)
    })?;
    let Some(version) = version else { return Ok(None) };
    let is_known = VERSIONS.iter().any(|served| served.as_str() == version);
    if !is_known && message.meta.version.is_none() && !message.is_request("initialize") {
        let error = ErrorData::unsupported_protocol_version(opening::unknown(version), &VERSIONS);
        return Err(BadMessage { id: message.id(), error }.into());
    }
    Ok(Some(version))
}

/// Checks that a request is self-contained, and that its headers match its body.
pub(super) fn check_modern(
    handler: &Handler,
    headers: &HeaderMap,
    version: Option<&str>,
    Request { id, method, params, meta, .. }: &Request,
) -> Result<(), Refusal> {
    if meta.version.is_some() && version != meta.version.as_deref() {
        let text = "the header `MCP-Protocol-Version` is not the revision that `_meta` of the request names";
        return Err(mismatch(id, text.to_owned()));
    }
    opening::check_metadata(meta).map_err(|error| BadMessage { id: Some(id.clone()), error })?;
    if !meta.is_modern() {
        return Ok(());
    }
    let name =
        params.member("name").filter(|_| method == "tools/call").and_then(|name| name.text());
    let schema = name.and_then(|name| handler.header_schema(&name));
    headers::check(headers, method, params, schema.as_ref()).map_err(|text| mismatch(id, text))
}

pub(super) fn mismatch(id: &RpcId, text: String) -> Refusal {
    let error = ErrorData::header_mismatch(text, None);
    BadMessage { id: Some(id.clone()), error }.into()
}

pub(super) fn not_acceptable(id: Option<RpcId>, hint: &str) -> Refusal {
    let bad = BadMessage::request(id, "the client accepts none of the types of the answer")
        .with_hint(hint);
    refusal(StatusCode::NOT_ACCEPTABLE, bad)
}

pub(super) fn not_allowed(allowed: &'static str) -> Refusal {
    let bad = BadMessage::request(None, format!("this method is not allowed here: {allowed}"));
    let mut refused = refusal(StatusCode::METHOD_NOT_ALLOWED, bad);
    refused.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    refused
}

pub(super) fn needs_session(id: Option<RpcId>) -> Refusal {
    let text = "the message needs a session: open one with `initialize`, and send `Mcp-Session-Id`";
    BadMessage::request(id, text).into()
}

pub(super) fn no_session(id: Option<RpcId>) -> Refusal {
    let text = "there is no such session: open one with `initialize`";
    refusal(StatusCode::NOT_FOUND, BadMessage::request(id, text))
}
