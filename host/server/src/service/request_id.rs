//! The id of a request: given by the client, or generated.
//!
//! The HTTP layer parses the header `x-request-id` to a [`RequestId`], or generates one; MCP
//! generates one for each call. The id appears in answers and logs, and cancels the request while
//! it runs. A client's id has 1 to 128 letters, digits and `. _ : -`. A generated one has 128
//! random bits.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The most bytes of a client's id.
const MAX_BYTES: usize = 128;

/// The id of a request, for logs and for cancellation. Cheap to clone.
///
/// # Shape
/// 1 to 128 of the characters `A-Z a-z 0-9 . _ : -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Generates an id: `req_` and 128 random bits in hexadecimal.
    #[must_use]
    pub fn generate() -> Self {
        let mut bytes = [0; 16];
        // Without randomness all requests have the same id. A second concurrent one is then refused
        // as a duplicate.
        let _ = getrandom::fill(&mut bytes);
        Self(format!("req_{:032x}", u128::from_be_bytes(bytes)).into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error of a text that is not a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a request id must be 1 to 128 of the characters A-Z a-z 0-9 . _ : -")]
pub struct InvalidRequestId;

impl FromStr for RequestId {
    type Err = InvalidRequestId;

    fn from_str(text: &str) -> Result<Self, InvalidRequestId> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        let is_id = (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(is_allowed);
        if is_id { Ok(Self(text.into())) } else { Err(InvalidRequestId) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_id_is_short_without_special_characters() {
        let made = RequestId::generate();
        assert_eq!(made.as_str().parse(), Ok(made.clone()));
        assert_ne!(made, RequestId::generate());
        for good in ["a", "req_1", "A-b.c:d", &"x".repeat(128)] {
            assert_eq!(good.parse::<RequestId>().map(|id| id.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", " ", "a b", "a\n", "ü", "a/b", &"x".repeat(129)] {
            assert_eq!(bad.parse::<RequestId>(), Err(InvalidRequestId), "{bad}");
        }
    }
}
