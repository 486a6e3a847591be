//! Decodes one JSON-RPC message strictly.
//!
//! Both transports call [`decode`] with the bytes of a body or of a line. It returns a [`Message`]
//! (a request, a notification, or the client's response to a question, with its params and
//! metadata), or a [`BadMessage`] with the error to send. Only an unambiguous object is accepted:
//! no batch, no duplicate member, an id that is a string or an integer, params that are an object.
//! A refused message keeps its id for the error if the id could be read.
//!
//! A message is never parsed into a tree; its parts are text.
//!
//! Source: JSON-RPC 2.0; MCP, "Base Protocol"; docs/threat-model.md, row 73.

use bytes::Bytes;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};
use serde_json::json;
use toolcell::Json;
use toolcell::controls::enforced;

use super::meta::Meta;
use super::raw::{Raw, read_id};
use crate::artifacts::members::{is_object, members};
use crate::tenants::refused::shown;

/// A decoded message.
#[derive(Debug)]
pub(in crate::mcp) struct Message {
    pub(in crate::mcp) kind: Kind,
    /// The params: an object.
    pub(in crate::mcp) params: Raw,
    pub(in crate::mcp) meta: Meta,
}

impl Message {
    /// Returns the id of a request.
    pub(in crate::mcp) fn id(&self) -> Option<RequestId> {
        if let Kind::Request { id, .. } = &self.kind { Some(id.clone()) } else { None }
    }

    /// Returns true if it is a request of this method.
    pub(in crate::mcp) fn is_request(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Request { method, .. } if method == name)
    }

    /// Returns true if it opens a session. The era without sessions has no such method.
    pub(in crate::mcp) fn opens(&self) -> bool {
        self.is_request("initialize") && self.meta.version.is_none()
    }
}

#[derive(Debug)]
pub(in crate::mcp) enum Kind {
    Request {
        id: RequestId,
        method: String,
    },
    Notification {
        method: String,
    },
    /// The client's answer to a request of the server: a result or an error. An error may have no
    /// id.
    Response {
        id: Option<RequestId>,
        answer: Result<Raw, Raw>,
    },
}

/// A message that is refused.
#[derive(Debug)]
pub(in crate::mcp) struct BadMessage {
    /// The id of the request, if it could be read.
    pub(in crate::mcp) id: Option<RequestId>,
    pub(in crate::mcp) error: ErrorData,
}

impl BadMessage {
    fn parse(id: Option<RequestId>, text: impl Into<String>) -> Self {
        Self { id, error: ErrorData::new(ErrorCode::PARSE_ERROR, text.into(), None) }
    }

    pub(in crate::mcp) fn request(id: Option<RequestId>, text: impl Into<String>) -> Self {
        Self { id, error: ErrorData::new(ErrorCode::INVALID_REQUEST, text.into(), None) }
    }

    /// Adds a hint.
    pub(in crate::mcp) fn with_hint(mut self, hint: &str) -> Self {
        self.error.data = Some(json!({ "hint": hint }));
        self
    }

    /// Serializes the error as a message: one line without its line end.
    pub(in crate::mcp) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&JsonRpcError::new(self.id.clone(), self.error.clone()))
            .unwrap_or_default()
    }
}

/// Returns the error of a method that the server does not have, or not for this request.
pub(in crate::mcp) fn unknown_method(method: &str) -> ErrorData {
    let text = format!("this server does not have the method `{}`", shown(method));
    let hint = "`capabilities` of the server, in the answer to `initialize` or `server/discover`, say what it has";
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, Some(json!({ "hint": hint })))
}

/// Decodes one message.
pub(in crate::mcp) fn decode(bytes: &Bytes) -> Result<Message, BadMessage> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| BadMessage::parse(None, "the message is not UTF-8"))?;
    if let Err(fault) = Json::check(text)
        && enforced!(OneMeaning)
    {
        // The fault can be in the params, and the id still readable.
        let id = members(text, ["id"]).and_then(|[id]| read_id(id?));
        return Err(BadMessage::parse(id, format!("the message is {fault}")));
    }
    let names = ["jsonrpc", "id", "method", "params", "result", "error"];
    let Some([version, id, method, params, result, error]) = members(text, names) else {
        let text = match text.trim_ascii_start().starts_with('[') {
            true => "batches are not supported: send one message at a time",
            false => "the message is not an object",
        };
        return Err(BadMessage::request(None, text));
    };
    let bad = |id, text: &str| Err(BadMessage::request(id, text));
    let has_id = id.is_some();
    let id = id.and_then(read_id);
    if has_id && id.is_none() {
        return bad(None, "the id is not a whole number of 64 bits or a text of at most 256 bytes");
    }
    let read = |text: &str| serde_json::from_str::<String>(text).ok();
    if version.and_then(read).as_deref() != Some("2.0") {
        return bad(id, "`jsonrpc` is not \"2.0\"");
    }
    if let Some(params) = params
        && method.is_some()
        && !is_object(params)
    {
        let error = ErrorData::invalid_params("`params` is not an object", None);
        return Err(BadMessage { id, error });
    }
    let part = |text: &str| Raw::part(bytes, text);
    let params = params.map_or_else(Raw::empty, part);
    let meta = params.member("_meta");
    if meta.as_ref().is_some_and(|meta| !meta.is_object()) {
        return bad(id, "the message does not fit the protocol: `_meta` is not an object");
    }
    let kind = match (method.map(read), id, result, error) {
        (Some(Some(method)), id, None, None) => call(method, id)?,
        (Some(_), id, _, _) => {
            return bad(id, "`method` is not a text, or the message is also a response");
        }
        (None, Some(id), Some(result), None) => {
            Kind::Response { id: Some(id), answer: Ok(part(result)) }
        }
        (None, id, None, Some(error)) => Kind::Response { id, answer: Err(part(error)) },
        (None, id, _, _) => {
            return bad(id, "the message is not a request, a notification or a response");
        }
    };
    Ok(Message { kind, params, meta: meta.map_or_else(Meta::default, Meta::of) })
}

fn call(method: String, id: Option<RequestId>) -> Result<Kind, BadMessage> {
    match (id, method.starts_with("notifications/")) {
        (Some(id), false) => Ok(Kind::Request { id, method }),
        (None, true) => Ok(Kind::Notification { method }),
        (Some(id), true) => {
            Err(BadMessage::request(Some(id), "a notification must not have an id"))
        }
        (None, false) => Err(BadMessage::request(None, "the request has no id")),
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn invalid_or_ambiguous_message_has_error_code() {
        for text in rows::<&str>("mcp/message/wire", "good_messages") {
            assert!(decode(&Bytes::from_static(text.as_bytes())).is_ok(), "{text}");
        }
        let bad = rows::<(&str, i32)>("mcp/message/wire", "bad_messages").into_iter();
        let bad = bad.map(|(text, code)| (text.as_bytes(), code));
        for (text, code) in bad.chain([(&b"\xff\xfe{\0}\0"[..], -32700)]) {
            let code_of = decode(&Bytes::from_static(text)).map_err(|bad| bad.error.code.0);
            assert_eq!(code_of.err(), Some(code), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn refused_message_keeps_its_id_if_readable() {
        for text in rows::<&str>("mcp/message/wire", "refused_message_keeps_its_id_if_readable") {
            let bad = decode(&Bytes::from_static(text.as_bytes())).expect_err(text);
            assert_eq!(bad.id, Some(RequestId::Number(7)), "{text}");
        }
    }
}
