//! The spans of calls into the host: what an operator's traces show below a tool's call.
//!
//! Invariants: a span names the import and its function; of a request also the method, and the host
//! once the request is granted. Nothing else that a guest said is in it: no path, key, name, header
//! or body.

use tracing::Span;
use tracing::field::Empty;

use crate::egress::SendError;
use crate::grants::{Method, Target};
use crate::handler::Invocation;

/// Begins the span of one call into the host.
pub(super) fn host_span(
    invocation: &Invocation,
    module: &'static str,
    function: &'static str,
) -> Span {
    tracing::debug_span!(
        parent: &invocation.span,
        "host_call",
        module,
        function,
        method = Empty,
        host = Empty,
        port = Empty,
        status = Empty,
        error = Empty,
    )
}

/// Notes where a request goes. It was granted: what a tool makes up is not told.
pub(super) fn note_request(span: &Span, method: Method, target: &Target) {
    if !span.is_disabled() {
        span.record("method", method.as_str());
        span.record("host", tracing::field::display(target.host()));
        span.record("port", target.port());
    }
}

/// Notes how a request ended: the status of its response, or why there is none.
pub(super) fn note_end(span: &Span, ended: Result<u16, &SendError>) {
    match ended {
        Ok(status) => span.record("status", status),
        Err(error) => span.record("error", kind(error)),
    };
}

/// The kind of an error, without its text.
fn kind(error: &SendError) -> &'static str {
    match error {
        SendError::Denied(_) => "denied",
        SendError::Private(_) => "private",
        SendError::Invalid(_) => "invalid",
        SendError::Unreachable(_) => "unreachable",
        SendError::Timeout(_) => "timeout",
        SendError::OverBudget(..) => "over_budget",
        SendError::Broken(_) => "broken",
    }
}
