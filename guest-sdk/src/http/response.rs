//! What a server answered.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;
use crate::json::Json;

/// What a server answered.
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

    /// The value of the first header of this name, in whatever case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// All headers in the server's order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The body as it came, not decompressed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text. What is not UTF-8 in it becomes `U+FFFD`.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body as a type.
    ///
    /// # Errors
    /// [`Error::Unexpected`] for one that is not JSON of this shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Unexpected(error.to_string()))
    }

    /// The same, if its status says success: 200 to 299.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub fn success(self) -> Result<Self, Error> {
        if (200..300).contains(&self.status) { Ok(self) } else { Err(Error::Status(self.status)) }
    }
}

/// For native tests: build the response.
impl Response {
    /// An empty response of this status.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// With this header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With this body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// With this value as its body. One that cannot be written as JSON leaves it empty.
    #[must_use]
    pub fn with_json(self, value: impl Serialize) -> Self {
        self.with_header("content-type", "application/json")
            .with_body(Json::of(&value).text().unwrap_or_default())
    }
}

/// The value of the first header of this name.
pub(super) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}
