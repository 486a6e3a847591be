//! The metadata of a request, as far as the server uses them.
//!
//! In: the text of `_meta`. Out: its members by name.
//! Invariants: unknown members are skipped, and take no memory.
#![expect(deprecated, reason = "clients name the level of the log of the protocol")]

use rmcp::model::{LoggingLevel, ProgressToken, ProtocolVersion};

use super::raw::Raw;
use super::wire::read_id;
use crate::trace::TraceContext;

/// The member with the revision, in the stateless era.
pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The member with an answer from a client to which no question can be sent: `{"answer", "state"}`.
pub(super) const RESUME: &str = "toolcell/resume";
/// The members that carry a trace context.
const TRACE: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// The metadata of one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Meta {
    /// The revision that the request names.
    pub(super) version: Option<String>,
    pub(super) capabilities: Option<Raw>,
    pub(super) progress: Option<ProgressToken>,
    /// The least severe log level that the client asks for.
    pub(super) level: Option<LoggingLevel>,
    pub(super) resume: Option<Raw>,
    trace: [Option<String>; 3],
}

impl Meta {
    pub(super) fn of(meta: Raw) -> Self {
        let [parent, state, baggage] = TRACE;
        let names = [VERSION, CAPABILITIES, "progressToken", LEVEL, RESUME, parent, state, baggage];
        let [version, capabilities, progress, level, resume, trace @ ..] = meta.members(names);
        Self {
            version: version.and_then(|version| version.text()),
            capabilities: capabilities.filter(Raw::is_object),
            progress: progress.and_then(|token| read_id(token.as_str())).map(ProgressToken),
            level: level.and_then(|level| level.read()),
            resume,
            trace: trace.map(|value| value.and_then(|value| value.text())),
        }
    }

    /// Returns true if the request is of the era without sessions, and self-contained.
    pub(super) fn is_modern(&self) -> bool {
        self.version.as_deref() >= Some(ProtocolVersion::V_2026_07_28.as_str())
    }

    /// Returns the required members of the era without sessions that are missing.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let needed =
            [(VERSION, self.version.is_some()), (CAPABILITIES, self.capabilities.is_some())];
        needed.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name).collect()
    }

    /// Returns the trace that the request continues.
    pub(super) fn trace(&self) -> Option<TraceContext<'_>> {
        let [parent, state, _] = &self.trace;
        TraceContext::parse(parent.as_deref()?, state.as_deref())
    }

    /// Returns the trace members that the tool can see.
    pub(super) fn trace_members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        TRACE
            .into_iter()
            .zip(&self.trace)
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}
