//! The checks of a call before its handler (the code of the tool) runs, and of the handler's answer
//! after it.
//!
//! `checking` runs them. Before the handler: the size and form of the arguments, then the rules of
//! the embedder (the program that uses this library) for the call, the tool's schema, and the
//! embedder's rules for arguments, in this order; the first that forbids the call ends it with a
//! [`Rejection`]. After the handler, [`check_outcome`] turns an answer that is too large, does not
//! fit the output schema or halts with a reserved reason into the tool error `invalid_return`. The
//! module also computes the fingerprint of the arguments, a hash by which a question is bound to
//! its call.
//!
//! The functions are pure, except for the embedder's own rules. The caller catches their panics.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use serde_json::Value;
use toolcell_contract::call::{CallContext, CallResult, ToolCall};
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::json::{self, Json, JsonFault, Size, exact, measure, parse_measured};
use toolcell_contract::limits::Limits;
use toolcell_contract::outcome::refusal::{Fault, FaultKind, LengthUnit, Refusal};
use toolcell_contract::outcome::tool_error::{Crash, ReturnRule, ToolError};
use toolcell_contract::outcome::{Halt, Outcome};
use toolcell_contract::panic_guard::{Panic, dispose};

use super::trees::is_large;
use crate::seal::fingerprint;
use crate::tool::{Tool, handler::Invocation};

/// The reason for which a call is not made.
pub(super) enum Rejection {
    Refused(Refusal),
    /// A check of the embedder panicked.
    Failed(ToolError),
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Rejection> for CallResult {
    fn from(not_made: Rejection) -> Self {
        match not_made {
            Rejection::Refused(refusal) => Self::Refusal(refusal),
            Rejection::Failed(error) => Self::ToolError(error),
        }
    }
}

/// Returns the failure of a call whose handler or check panicked.
pub(super) fn panicked(panic: Panic) -> ToolError {
    let raised = Crash::panicked(&*panic);
    dispose(panic);
    ToolError::HandlerRaised(raised)
}

/// Returns the size of a call's arguments, or a refusal if they are too large to be parsed.
pub(super) fn measured(call: &ToolCall, limits: &Limits) -> Result<Size, Refusal> {
    let bytes = call.arguments.len();
    if bytes as u64 > bound!(ArgumentBytes, limits.arguments) {
        let kind = FaultKind::at_most(limits.arguments, LengthUnit::Bytes);
        return Err(invalid(vec![Fault::of_kind("", kind).with_actual(format!("{bytes}"))]));
    }
    measure(&call.arguments, Json::MAX_DEPTH)
        .map_err(|fault| invalid(vec![Fault::of_kind("", fault.into())]))
}

/// A call's arguments as a tree, with results of checks that ran in advance.
pub(super) struct Parsed {
    pub(super) arguments: Value,
    /// The result of the schema check, if it ran in advance.
    fits: Option<Result<(), Refusal>>,
    /// The fingerprint of the arguments, if it is needed at once or would be expensive to compute
    /// later.
    pub(super) fingerprint: Option<[u8; 32]>,
}

/// Computes the fingerprint of a call's small arguments. Arguments that cannot be parsed have the
/// default fingerprint.
pub(super) fn fingerprint_of(call: &ToolCall) -> [u8; 32] {
    arguments(call).map(|arguments| exact_fingerprint(call, &arguments)).unwrap_or_default()
}

/// Computes a fingerprint that includes all digits of whole numbers, so that an answer for one
/// amount is not accepted for another.
fn exact_fingerprint(call: &ToolCall, arguments: &Value) -> [u8; 32] {
    match exact(&call.arguments, json::fits) {
        Cow::Borrowed(_) => fingerprint(arguments),
        Cow::Owned(text) => {
            parse_measured(&text).map(|arguments| fingerprint(&arguments)).unwrap_or_default()
        }
    }
}

impl Parsed {
    /// Parses a call's arguments, which must have been measured.
    pub(super) fn new(call: &ToolCall, has_fingerprint: bool) -> Result<Self, Refusal> {
        let arguments = arguments(call).map_err(invalid)?;
        let fingerprint = has_fingerprint.then(|| exact_fingerprint(call, &arguments));
        Ok(Self { arguments, fits: None, fingerprint })
    }

    /// Checks the arguments against the tool's schema in advance.
    pub(super) fn compared(mut self, tool: &Tool) -> Self {
        self.fits = Some(fits(tool, &self.arguments));
        self
    }

    /// Runs the checks in this order: the embedder's rules for the call, the schema, the embedder's
    /// rules for arguments. Fails at the first check that forbids the call.
    pub(super) fn check(
        &mut self,
        tool: &Tool,
        call: &ToolCall,
        context: &CallContext,
    ) -> Result<(), Rejection> {
        tool.rules().gate(call, &self.arguments, context)?;
        self.fits.take().unwrap_or_else(|| fits(tool, &self.arguments))?;
        let problems = tool
            .rules()
            .problems(&self.arguments)
            .map_err(|panic| Rejection::Failed(panicked(panic)))?;
        if problems.is_empty() { Ok(()) } else { Err(invalid(problems).into()) }
    }
}

fn fits(tool: &Tool, arguments: &Value) -> Result<(), Refusal> {
    let schema = bound!(ArgumentSchema, tool.parameters());
    schema.map_or(Ok(()), |schema| schema.check(arguments).map_err(invalid))
}

pub(super) fn invalid(faults: Vec<Fault>) -> Refusal {
    Refusal::InvalidArguments(faults)
}

/// Returns the arguments of a refused call: an object, or `null` if they cannot be parsed or are so
/// large that their tree would have to be counted.
pub(super) fn raw_arguments(invocation: &Invocation) -> Value {
    let is_small = |size: Size| !is_large(size);
    if measured(&invocation.call, &invocation.limits).is_ok_and(is_small) {
        arguments(&invocation.call).unwrap_or_default()
    } else {
        Value::Null
    }
}

/// Parses the arguments into a tree, which must be an object.
fn arguments(call: &ToolCall) -> Result<Value, Vec<Fault>> {
    let value =
        parse_measured(&call.arguments).map_err(|fault| vec![Fault::of_kind("", fault.into())])?;
    let got = match value {
        Value::Object(_) => return Ok(value),
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
    };
    let fault = Fault::of_kind("", FaultKind::of_type("object")).with_actual(got);
    Err(vec![if value.is_string() {
        fault.with_hint("send a JSON object, not text")
    } else {
        fault
    }])
}

/// Checks the rules that hold for the answers of every handler. An answer that breaks one becomes
/// `InvalidReturn`.
pub(super) fn check_outcome(
    tool: &Tool,
    result: CallResult,
    invocation: &Invocation,
) -> CallResult {
    let CallResult::Outcome(outcome) = &result else { return result };
    invocation.meter.bytes_out.store(outcome.size(), Ordering::Relaxed);
    match broken_rule(tool, outcome, invocation.limits.result) {
        Some(rule) => CallResult::ToolError(ToolError::InvalidReturn(rule)),
        None => result,
    }
}

fn broken_rule(tool: &Tool, outcome: &Outcome, limit: u64) -> Option<ReturnRule> {
    let got = outcome.size();
    if got > bound!(ResultBytes, limit) {
        return Some(ReturnRule::TooLarge { limit, actual: got });
    }
    if let Outcome::Ok(output) = outcome
        && output.parts.len() > bound!(ResultParts, Outcome::MAX_PARTS)
    {
        return Some(ReturnRule::TooManyParts {
            limit: Outcome::MAX_PARTS as u64,
            actual: output.parts.len() as u64,
        });
    }
    let not_json = |field: &str, fault: JsonFault| {
        let (field, detail) = (String::from(field), fault.to_string());
        ReturnRule::NotJson { field, detail }
    };
    let deep =
        outcome.each_json(|field, json| json.check_size().map_err(|fault| not_json(field, fault)));
    if let Err(rule) = deep {
        return Some(rule);
    }
    // A reason of the host's own, ignoring case and surrounding spaces.
    let is_reserved = |reason: &str| {
        Halt::RESERVED_REASONS.iter().any(|reserved| reason.trim().eq_ignore_ascii_case(reserved))
    };
    match outcome {
        Outcome::Halt(halt) if halt.reason.trim().is_empty() => Some(ReturnRule::EmptyHalt),
        Outcome::Halt(halt) if is_reserved(&halt.reason) && enforced!(HaltReasons) => {
            Some(ReturnRule::ReservedHalt { reason: halt.reason.clone() })
        }
        Outcome::Ok(output) => {
            let schema = bound!(ResultSchema, tool.output())?;
            let faults = schema.check(&output.value.to_value()).err()?;
            Some(ReturnRule::Schema { faults })
        }
        Outcome::Halt(_) | Outcome::Error(_) | Outcome::AskUser(_) => None,
    }
}
