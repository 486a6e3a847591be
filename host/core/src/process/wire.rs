//! The messages between the host and a worker process, and their framing on a pipe.
//!
//! A frame is a length of four bytes and that many bytes of JSON. The supervisor and the worker
//! call [`read`] and [`frame`] for it. A [`HostMessage`] asks for a call, a visibility check or a
//! validation, or ends one early; a [`WorkerMessage`] offers tools, reports progress, or answers. A
//! request carries the limits that are left at that moment. A frame over 64 MiB is refused before
//! it is read, and memory grows only with the bytes that have arrived, whatever length was
//! announced.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolcell_contract::call::forms::{CallForm, ContextForm, LimitsForm, Narrowing};
use toolcell_contract::call::usage::Usage;
use toolcell_contract::call::{CallContext, CallResult, ToolCall};
use toolcell_contract::controls::bound;
use toolcell_contract::definition::Definition;
use toolcell_contract::event::{LogLevel, LogSource};
use toolcell_contract::grants::Overlay;
use toolcell_contract::grants::rights::Denial;
use toolcell_contract::json::{Json, check};
use toolcell_contract::limits::Limits;
use toolcell_contract::outcome::refusal::Fault;
use toolcell_contract::outcome::tool_error::ToolError;

use crate::tool::handler::Invocation;

/// Bytes. The longest frame: sixty-four results of the default size.
pub(super) const MAX_FRAME: usize = 64 << 20;

/// A message to the worker, with the request in a form `A`.
#[derive(Serialize, Deserialize)]
pub(super) enum HostMessage<A = Box<RequestMessage>> {
    /// Answer this request.
    Ask(A),
    /// The caller wants this request to end early.
    Abort(u64),
    /// The caller no longer waits for this request.
    Cancel(u64),
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RequestKind {
    Call,
    Visible,
    Validate,
}

/// One request.
#[derive(Serialize, Deserialize)]
pub(super) struct RequestMessage {
    pub(super) number: u64,
    pub(super) what: RequestKind,
    #[serde(with = "CallForm")]
    pub(super) call: ToolCall,
    #[serde(with = "ContextForm")]
    context: CallContext,
    /// The limits that are left for the call.
    #[serde(with = "LimitsForm")]
    pub(super) limits: Limits,
    /// True if the call was already aborted.
    pub(super) is_aborted: bool,
    tenant: Option<Narrowing>,
    own: Option<Narrowing>,
    /// True if the executor in the parent defines other tenants.
    pub(super) is_shared: bool,
    /// The directory of the call's files.
    pub(super) files: Option<PathBuf>,
}

impl RequestMessage {
    /// Creates a request with the limits that are left now: time has passed since the call arrived,
    /// and an earlier attempt may have used some of its budget.
    pub(super) fn of(number: u64, what: RequestKind, invocation: &Invocation) -> Self {
        let narrowing = |overlay: &Option<Arc<Overlay>>| overlay.as_deref().map(Narrowing::from);
        let spent = invocation.meter.read(Duration::ZERO, 0);
        let mut limits = invocation.limits;
        // A limit that a call uses up needs a line: without one, a retry gets all of it again.
        limits.timeout = invocation.remaining();
        limits.fuel = limits.fuel.saturating_sub(spent.fuel.unwrap_or_default());
        limits.host_calls = limits.host_calls.saturating_sub(spent.host_calls);
        limits.log = limits.log.saturating_sub(spent.log_bytes);
        Self {
            number,
            what,
            call: invocation.call.clone(),
            context: CallContext::clone(&invocation.context),
            limits,
            is_aborted: invocation.abort.is_raised(),
            tenant: narrowing(&invocation.overlays.tenant),
            own: narrowing(&invocation.overlays.call),
            is_shared: invocation.is_shared,
            files: invocation.files.as_ref().map(|files| files.path().to_owned()),
        }
    }

    /// Returns the call's context, and the overlays of its tenant and its caller. An overlay that
    /// cannot be parsed leaves no rights.
    pub(super) fn call_context(&mut self) -> (CallContext, Option<Overlay>, Option<Overlay>) {
        let context = std::mem::take(&mut self.context);
        let overlay = |narrowing: Option<Narrowing>| {
            Some(Overlay::try_from(narrowing?).unwrap_or_else(|_| Overlay::deny_all()))
        };
        (context, overlay(self.tenant.take()), overlay(self.own.take()))
    }
}

/// A message from the worker.
#[derive(Serialize, Deserialize)]
pub(super) enum WorkerMessage {
    /// The first message: these tools can be called.
    Ready(Vec<OfferedTool>),
    /// Sent instead of `Ready`: no tool can be called, with a reason for the parent.
    Refused(String),
    /// A call has begun.
    Started(u64),
    /// A running tool reports something.
    Said(u64, Notification),
    /// The answer to a request.
    Done(u64, Answer),
    /// The request will not be answered.
    Gone(u64),
}

/// A tool that the worker offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OfferedTool {
    pub(super) definition: Definition,
    /// Identifies the version of the tool's code.
    pub(super) code: Option<String>,
    /// The tool's own limits.
    #[serde(with = "LimitsForm")]
    pub(super) limits: Limits,
    /// True if it is offered in every context, so that listing tools needs no request.
    pub(super) always_visible: bool,
}

/// A notification or progress report of a running tool.
#[derive(Serialize, Deserialize)]
pub(super) enum Notification {
    Progress { done: u64, total: Option<u64>, message: Option<String> },
    Log { source: LogSource, level: LogLevel, message: String },
    Denied(Denial),
}

/// The answer to one request.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    Called { result: CallResult, usage: Usage },
    Visible(bool),
    Validated(Result<Vec<Fault>, ToolError>),
}

/// Returns the parts of a call's context that the worker could not parse. An embedder may create
/// them from unchecked trees.
pub(super) fn unreadable(context: &CallContext) -> Vec<Fault> {
    let CallContext { metadata, resume, extensions, .. } = context;
    let metadata = metadata.iter().map(|json| ("metadata", json));
    let answer = resume.iter().map(|resume| ("resume.answer", &resume.answer));
    let state = resume.iter().filter_map(|resume| Some(("resume.state", resume.state.as_ref()?)));
    let extensions = extensions.iter().map(|(name, json)| (name.as_str(), json));
    let fault = |(name, json): (&str, &Json)| {
        let fault = check(json.as_str()).err()?.to_string();
        Some(Fault::new("", format!("a context whose `{name}` can be read")).with_actual(fault))
    };
    metadata.chain(answer).chain(state).chain(extensions).filter_map(fault).collect()
}

/// The reason why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadFrame {
    #[error("a message has {0} bytes, and the limit is {MAX_FRAME}")]
    TooLong(usize),
    #[error("a message cannot be parsed: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads the next frame. Returns `None` at the end of the input.
pub(super) fn read<T: DeserializeOwned>(input: &mut impl Read) -> Result<Option<T>, BadFrame> {
    let mut length = Vec::new();
    input.by_ref().take(size_of::<u32>() as u64).read_to_end(&mut length)?;
    let length = match <[u8; 4]>::try_from(length.as_slice()) {
        Ok(length) => u32::from_le_bytes(length) as usize,
        Err(_) if length.is_empty() => return Ok(None),
        Err(_) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    };
    if length > bound!(WorkerFrames, MAX_FRAME) {
        return Err(BadFrame::TooLong(length));
    }
    // Allocates as much memory as has arrived, whatever length was announced.
    let mut frame = Vec::new();
    input.by_ref().take(length as u64).read_to_end(&mut frame)?;
    if frame.len() < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(Some(serde_json::from_slice(&frame)?))
}

/// Serialises a value as a frame.
///
/// # Errors
/// The frame's length, if it exceeds the limit.
pub(super) fn frame(value: &impl Serialize) -> Result<Vec<u8>, BadFrame> {
    let mut frame = vec![0; size_of::<u32>()];
    serde_json::to_writer(&mut frame, value)?;
    let length = frame.len() - size_of::<u32>();
    match u32::try_from(length) {
        Ok(announced) if length <= MAX_FRAME => {
            frame[..size_of::<u32>()].copy_from_slice(&announced.to_le_bytes());
            Ok(frame)
        }
        Ok(_) | Err(_) => Err(BadFrame::TooLong(length)),
    }
}

/// Writes a frame.
pub(super) fn write(output: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    output.write_all(frame)?;
    output.flush()
}
