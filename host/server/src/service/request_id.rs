//! The id of a request: given by the client, or generated.
//!
//! The HTTP layer parses the header `x-request-id` to a [`RequestId`], or generates one; MCP
//! generates one for each call. The id appears in answers and logs, and cancels the request while
//! it runs. A client's id has 1 to 128 letters, digits and `. _ : -`. A generated one has 128
//! random bits; a thread requests them from the system for 64 ids at once.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

/// The most bytes of a client's id.
const MAX_BYTES: usize = 128;
/// Random bytes in a generated id.
const RANDOM_BYTES: usize = 16;
/// Ids for which a thread requests random bytes at once, because each request is a system call.
const IDS_AT_ONCE: usize = 64;

thread_local! {
    /// Random bytes of ids that were not generated yet.
    static RANDOM: RefCell<Vec<[u8; RANDOM_BYTES]>> = const { RefCell::new(Vec::new()) };
}

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
        let mut id = String::with_capacity("req_".len() + 2 * RANDOM_BYTES);
        // Writing to a string does not fail.
        let _ = write!(id, "req_{:032x}", u128::from_be_bytes(random()));
        Self(id.into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns random bytes that were not returned before.
fn random() -> [u8; RANDOM_BYTES] {
    RANDOM.with_borrow_mut(|unused| {
        if unused.is_empty() {
            let mut bytes = [[0_u8; RANDOM_BYTES]; IDS_AT_ONCE];
            if getrandom::fill(bytes.as_flattened_mut()).is_ok() {
                unused.extend(bytes);
            }
        }
        // Without randomness all requests have the same id. A second concurrent one is then refused
        // as a duplicate.
        unused.pop().unwrap_or_default()
    })
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
