//! The error that ends a call at a limit.

use crate::contract::outcome::tool_error::LimitHit;

/// The error by which a host function ends the call with this limit.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a limit of the cell")]
pub(crate) struct LimitReached(pub(crate) LimitHit);
