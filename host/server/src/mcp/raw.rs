//! JSON text of a message, shared and not copied.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::members::{is_object, members};

/// The text of one JSON value.
#[derive(Debug, Clone)]
pub(super) struct Raw(Bytes);

impl Raw {
    /// The value at this place of a message. `part` is a part of the text in `whole`.
    pub(super) fn part(whole: &Bytes, part: &str) -> Self {
        Self(whole.slice_ref(part.as_bytes()))
    }

    /// `{}`.
    pub(super) fn empty() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_object(&self) -> bool {
        is_object(self.as_str())
    }

    /// The members of these names that are there and not null. Nothing is found in what is no
    /// object.
    pub(super) fn members<const N: usize>(&self, names: [&str; N]) -> [Option<Self>; N] {
        let found = members(self.as_str(), names).unwrap_or([None; N]);
        found.map(|member| {
            member.filter(|text| *text != "null").map(|text| Self::part(&self.0, text))
        })
    }

    /// The member of this name that is there and not null.
    pub(super) fn member(&self, name: &str) -> Option<Self> {
        let [member] = self.members([name]);
        member
    }

    /// The value as a type without a tree of its own, such as a text or a number.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.as_str()).ok()
    }

    /// The value, if it is a text.
    pub(super) fn text(&self) -> Option<String> {
        self.read()
    }
}
