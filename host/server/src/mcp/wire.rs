//! One JSON-RPC message, decoded strictly.
//!
//! In: the bytes of a body or of a line. Out: [`Message`], or [`Bad`] with the code of the error.
//! Invariants: what is accepted is one object with one meaning: no batch, no duplicate member, an id that is a string or a whole
//! number, params that are an object.
//! Source: JSON-RPC 2.0; MCP, "Base Protocol"; docs/threat-model.md, row 73.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};
use serde_json::{Map, Value, json};
use toolcell::Json;
use toolcell::defence::{Defence, stands};

/// Bytes of an id that is a text.
const MAX_ID: usize = 256;
/// Characters of a method's name that an error shows.
const MAX_METHOD: usize = 80;
/// Where a request of the stateless era names its revision.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The members of a request's metadata that carry the context of a trace.
pub(super) const TRACE: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// A message that can be handed on.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    /// The revision that the message names in its metadata.
    pub(super) version: Option<String>,
    pub(super) value: Value,
}

impl Message {
    /// The id, if it is a request.
    pub(super) fn id(&self) -> Option<RequestId> {
        if let Kind::Request { id, .. } = &self.kind { Some(id.clone()) } else { None }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request { id: RequestId, method: String },
    Notification { method: String },
    Response,
}

/// A message that is refused.
#[derive(Debug)]
pub(super) struct Bad {
    /// The id of the request, if it could be read.
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

impl Bad {
    fn parse(text: impl Into<String>) -> Self {
        Self { id: None, error: ErrorData::new(ErrorCode::PARSE_ERROR, text.into(), None) }
    }

    pub(super) fn request(id: Option<RequestId>, text: impl Into<String>) -> Self {
        Self { id, error: ErrorData::new(ErrorCode::INVALID_REQUEST, text.into(), None) }
    }

    /// With this hint.
    pub(super) fn with_hint(mut self, hint: &str) -> Self {
        self.error.data = Some(json!({ "hint": hint }));
        self
    }

    /// The error as a message, in one line without its end.
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&JsonRpcError::new(self.id.clone(), self.error.clone())).unwrap_or_default()
    }
}

/// The error of a method that the server does not have, or not for this request.
pub(super) fn unknown_method(method: &str) -> ErrorData {
    let text = format!("this server does not have the method `{}`", shown(method));
    let hint = "`capabilities` of the server, in the answer to `initialize` or `server/discover`, say what it has";
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, Some(json!({ "hint": hint })))
}

/// A method's name from outside: cut, and without control characters.
pub(super) fn shown(method: &str) -> String {
    method.chars().take(MAX_METHOD).flat_map(char::escape_debug).collect()
}

/// Decodes one message.
pub(super) fn decode(bytes: &[u8]) -> Result<Message, Bad> {
    let text = std::str::from_utf8(bytes).map_err(|_| Bad::parse("the message is not UTF-8"))?;
    let value = match Json::parse_value(text) {
        Ok(value) => value,
        Err(fault) if stands(Defence::OneMeaning) => return Err(Bad::parse(format!("the message is {fault}"))),
        Err(_) => serde_json::from_str(text).map_err(|error| Bad::parse(error.to_string()))?,
    };
    let members = match &value {
        Value::Object(members) => members,
        Value::Array(_) => return Err(Bad::request(None, "batches are not supported: send one message at a time")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(Bad::request(None, "the message is not an object"));
        }
    };
    let id = match members.get("id") {
        None => None,
        Some(id) => Some(read_id(id).ok_or_else(|| {
            Bad::request(None, "the id is not a whole number of 64 bits or a text of at most 256 bytes")
        })?),
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Bad::request(id, "`jsonrpc` is not \"2.0\""));
    }
    let answers = members.contains_key("result") as u8 + members.contains_key("error") as u8;
    let kind = match (members.get("method"), id, answers) {
        (Some(Value::String(method)), id, 0) => call(method, id, members)?,
        (Some(_), id, _) => return Err(Bad::request(id, "`method` is not a text, or the message is also a response")),
        (None, Some(_), 1) => Kind::Response,
        // An error that answers no certain request.
        (None, None, 1) if members.contains_key("error") => Kind::Response,
        (None, id, _) => return Err(Bad::request(id, "the message is not a request, a notification or a response")),
    };
    let meta = members.get("params").and_then(|params| params.get("_meta"));
    let version = meta.and_then(|meta| meta.get(VERSION)).and_then(Value::as_str).map(str::to_owned);
    Ok(Message { kind, version, value })
}

fn call(method: &str, id: Option<RequestId>, members: &Map<String, Value>) -> Result<Kind, Bad> {
    if members.get("params").is_some_and(|params| !params.is_object()) {
        let error = ErrorData::invalid_params("`params` is not an object", None);
        return Err(Bad { id, error });
    }
    match (id, method.starts_with("notifications/")) {
        (Some(id), false) => Ok(Kind::Request { id, method: method.to_owned() }),
        (None, true) => Ok(Kind::Notification { method: method.to_owned() }),
        (Some(id), true) => Err(Bad::request(Some(id), "a notification must not have an id")),
        (None, false) => Err(Bad::request(None, "the request has no id")),
    }
}

fn read_id(id: &Value) -> Option<RequestId> {
    match id {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) if text.len() <= MAX_ID => Some(RequestId::String(text.as_str().into())),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_meaning_or_is_refused_with_a_code() {
        let ok = [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
        ];
        for text in ok {
            assert!(decode(text.as_bytes()).is_ok(), "{text}");
        }
        let bad: [(&[u8], i32); 22] = [
            (b"", -32700),
            (b"{", -32700),
            (b"{} {}", -32700),
            (b"\xef\xbb\xbf{}", -32700),
            (b"\xff\xfe{\0}\0", -32700),
            (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32700),
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}"#, -32700),
            (b"[]", -32600),
            (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            (b"1", -32600),
            (b"{}", -32600),
            (br#"{"id":1,"method":"ping"}"#, -32600),
            (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"method":1}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (br#"{"jsonrpc":"2.0","method":"tools/list"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32602),
        ];
        for (text, code) in bad {
            let code_of = decode(text).map_err(|bad| bad.error.code.0);
            assert_eq!(code_of.err(), Some(code), "{}", String::from_utf8_lossy(text));
        }
    }
}
