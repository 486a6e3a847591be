//! Observation for the operator: metrics, the trace of a request, the log of calls.

pub(crate) mod call_log;
pub(crate) mod metrics;
pub(crate) mod trace;
