//! Creates the tracing span of a guest's call into the host, below the span of the tool's call.
//!
//! A guest is the WebAssembly code of a tool. The host functions for HTTP, keys and files open a
//! span with [`host_span`] and add the target and the end of a request with [`note_request`] and
//! [`note_end`]. A subscriber of the embedder (the program that uses this library) can export them,
//! for instance to OpenTelemetry.
//! A span names the import and its function; for a request also the method, and the host and port
//! once the request is granted. It has nothing else from the guest: no path, key, name, header or
//! body. Errors are kinds, not texts.

use toolcell_contract::grants::{Method, Target};
use tracing::{Span, field::Empty};

use crate::capability::http::SendError;
use crate::tool::handler::Invocation;

/// Begins the span of one call into the host.
pub(crate) fn host_span(
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

/// Records the target of a request. Only for a granted request, so that a tool cannot put its own
/// text into a trace.
pub(crate) fn note_request(span: &Span, method: Method, target: &Target) {
    if !span.is_disabled() {
        span.record("method", method.as_str());
        span.record("host", tracing::field::display(target.host()));
        span.record("port", target.port());
    }
}

/// Records the end of a request: the status of its response, or the kind of its error.
pub(crate) fn note_end(span: &Span, ended: Result<u16, &SendError>) {
    match ended {
        Ok(status) => span.record("status", status),
        Err(error) => span.record("error", kind(error)),
    };
}

/// Returns the kind of an error, without its text.
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
