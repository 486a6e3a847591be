//! The JSON text of a part of a message, shared without a copy; and the parser of ids.
//!
//! A [`Raw`] points into the bytes of the received message. The MCP code gets members of it by name
//! as further `Raw`s, and reads strings, numbers and small types from it, so that no tree of a
//! client's message is built. A member that is `null` counts as absent. [`read_id`] reads an id of
//! JSON-RPC: an integer, or a string of at most 256 bytes.

use bytes::Bytes;
use rmcp::model::RequestId;
use serde::de::DeserializeOwned;

use crate::artifacts::members::{is_object, members};

/// The most bytes of an id that is a string.
const MAX_ID: usize = 256;

/// The text of one JSON value.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Raw(Bytes);

impl Raw {
    /// Returns the value at `part`, which is a part of the text in `whole`.
    pub(in crate::mcp) fn part(whole: &Bytes, part: &str) -> Self {
        Self(whole.slice_ref(part.as_bytes()))
    }

    /// Copies the text into bytes of its own.
    pub(in crate::mcp) fn copied(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// `{}`.
    pub(in crate::mcp) fn empty() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    pub(in crate::mcp) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(in crate::mcp) fn is_object(&self) -> bool {
        is_object(self.as_str())
    }

    /// Returns the members of these names that are present and not null. Text that is not an object
    /// has none.
    pub(in crate::mcp) fn members<const N: usize>(&self, names: [&str; N]) -> [Option<Self>; N] {
        let found = members(self.as_str(), names).unwrap_or([None; N]);
        found.map(|member| {
            member.filter(|text| *text != "null").map(|text| Self::part(&self.0, text))
        })
    }

    /// Returns the member of this name if it is present and not null.
    pub(in crate::mcp) fn member(&self, name: &str) -> Option<Self> {
        let [member] = self.members([name]);
        member
    }

    /// Reads the value as a type without a tree of its own, such as a string or a number.
    pub(in crate::mcp) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.as_str()).ok()
    }

    /// Returns the value, if it is a string.
    pub(in crate::mcp) fn text(&self) -> Option<String> {
        self.read()
    }
}

/// Reads an id, or another name that is a number or a string.
pub(in crate::mcp) fn read_id(id: &str) -> Option<RequestId> {
    if id.starts_with('"') {
        let text = serde_json::from_str::<String>(id).ok()?;
        return (text.len() <= MAX_ID).then(|| RequestId::String(text.into()));
    }
    serde_json::from_str::<i64>(id).ok().map(RequestId::Number)
}
