//! Observation for the operator: metrics, the trace of a request, the log of calls.
//!
//! The service passes the events of calls to `metrics` and `call_log`. The HTTP layer and MCP use
//! `trace` to join the caller's distributed trace. Not here: the export of spans to a collector, in
//! `otlp/`.

pub(crate) mod call_log;
pub(crate) mod metrics;
pub(crate) mod trace;
