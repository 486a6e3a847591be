//! The response of a server.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;
use crate::json::Json;

/// The response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The value of the first header with this name, ignoring case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// All headers in the server's order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The body as received, not decompressed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text. Bytes that are not UTF-8 become `U+FFFD`.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Deserializes the body from JSON.
    ///
    /// # Errors
    /// [`Error::Unexpected`] if the body is not JSON of this shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Unexpected(error.to_string()))
    }

    /// Returns the response if its status is a success: 200 to 299.
    ///
    /// # Errors
    /// [`Error::Status`] for any other status.
    pub fn success(self) -> Result<Self, Error> {
        if (200..300).contains(&self.status) { Ok(self) } else { Err(Error::Status(self.status)) }
    }
}

/// Constructor and builder methods for native tests.
impl Response {
    /// An empty response with this status.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the body to this value as JSON, and the header `content-type`. A value that cannot be
    /// written as JSON leaves the body empty.
    #[must_use]
    pub fn with_json(self, value: impl Serialize) -> Self {
        self.with_header("content-type", "application/json")
            .with_body(Json::of(&value).text().unwrap_or_default())
    }
}

/// Returns the value of the first header with this name, ignoring case.
pub(super) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}
