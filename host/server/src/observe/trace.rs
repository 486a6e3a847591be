//! Reads the trace that a request continues (W3C Trace Context), and records it in the request's
//! span.
//!
//! A caller that traces its own work names its trace in `traceparent` and `tracestate`. The HTTP
//! layer reads these from headers, and MCP from the metadata of a message. [`TraceContext::record`]
//! writes the ids of the caller's trace and span into fields of the `tracing` span of the request,
//! from which the exporter in `otlp/` takes them. An invalid `traceparent` is ignored, and so is a
//! `tracestate` that is over 512 bytes or has characters that cannot be printed.
//!
//! Source: W3C Trace Context, sections 3.2 and 3.3; MCP 2026-07-28, "Trace context".

use http::HeaderMap;
use tracing::Span;

use crate::auth::single_header;

/// The most bytes of a `tracestate`. A longer one is ignored.
const MAX_STATE: usize = 512;

/// The span of a request, for code that handles the request in another task.
#[derive(Debug, Clone)]
pub(crate) struct RequestSpan(pub(crate) Span);

/// The trace and span of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceContext<'a> {
    /// 32 hex digits.
    pub(crate) trace_id: &'a str,
    /// 16 hex digits: the caller's span.
    pub(crate) parent_id: &'a str,
    /// Two hex digits.
    pub(crate) flags: &'a str,
    pub(crate) state: Option<&'a str>,
}

impl<'a> TraceContext<'a> {
    /// Reads the headers. `None` without a header `traceparent`, with several, and for an invalid
    /// one.
    pub(crate) fn of_headers(headers: &'a HeaderMap) -> Option<Self> {
        let one = |name: &str| single_header(headers, name).ok()?;
        Self::parse(one("traceparent")?, one("tracestate"))
    }

    /// Parses the values of `traceparent` and `tracestate`.
    pub(crate) fn parse(parent: &'a str, state: Option<&'a str>) -> Option<Self> {
        let mut fields = parent.split('-');
        let [version, trace_id, parent_id, flags] =
            [(); 4].map(|()| fields.next().unwrap_or_default());
        let is_hex = |text: &str, digits: usize| {
            text.len() == digits
                && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_set = |text: &str| text.bytes().any(|byte| byte != b'0');
        // A later version can have further fields; version 00 has none.
        let is_version =
            is_hex(version, 2) && version != "ff" && (version != "00" || fields.next().is_none());
        let is_valid =
            is_version && is_hex(trace_id, 32) && is_set(trace_id) && is_hex(parent_id, 16);
        let is_valid = is_valid && is_set(parent_id) && is_hex(flags, 2);
        let is_state = |state: &&str| {
            state.len() <= MAX_STATE && state.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        is_valid.then(|| Self { trace_id, parent_id, flags, state: state.filter(is_state) })
    }

    /// Makes the span continue the caller's trace. The span has the fields `trace_id`, `parent_id`,
    /// `trace_flags` and `trace_state`.
    pub(crate) fn record(&self, span: &Span) {
        if let Some(state) = self.state {
            span.record("trace_state", state);
        }
        span.record("trace_flags", self.flags);
        span.record("trace_id", self.trace_id);
        // Last, because it completes the trace.
        span.record("parent_id", self.parent_id);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use toolcell_test_guests::rows;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn only_valid_traceparent_has_trace_id() {
        for (value, is_valid) in rows::<(&str, bool)>("observe/trace", "parents") {
            let id = |context: Option<TraceContext<'_>>| {
                context.map(|context| context.trace_id.to_owned())
            };
            let expected = is_valid.then(|| TRACE.to_owned());
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::from_str(value).unwrap());
            assert_eq!(id(TraceContext::of_headers(&headers)), expected, "{value}");
            assert_eq!(id(TraceContext::parse(value, None)), expected, "{value}");
            headers.append("traceparent", HeaderValue::from_static("00"));
            assert_eq!(TraceContext::of_headers(&headers), None, "two headers");
        }
    }

    #[test]
    fn long_or_unprintable_tracestate_is_dropped() {
        let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let of = |state: &str| {
            TraceContext::parse(&parent, Some(state)).unwrap().state.map(str::to_owned)
        };
        assert_eq!(of("a=1,b=2").as_deref(), Some("a=1,b=2"));
        for state in ["a".repeat(513), "a=1\n".to_owned()] {
            assert_eq!(of(&state), None);
        }
    }
}
