//! The bodies of requests.
//!
//! Invariants: unknown members are refused; a call has the form of docs/json.md.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use toolcell::{
    CallContext, Deliberate, Json, Limits, OnToolError, RawCall, Resume, ToolCall, Turn, TurnMemory, UnknownTools,
};

use super::problem::Problem;
use crate::calls::CallRequest;
use crate::request_id::RequestId;
use crate::runs::{RunRequest, StepRequest};

/// One call.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallBody {
    /// The id of the call, which the completion repeats. Absent: the id of the request.
    id: Option<String>,
    /// The tool's name.
    name: String,
    /// The arguments: an object, or a string with the JSON text of one. Absent: an empty object.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Json>,
    /// The answer to the question of an earlier call, which this call repeats.
    resume: Option<Answered>,
    /// Where the call comes from.
    #[serde(default)]
    context: Origin,
    /// Tightens the call's limits.
    #[serde(default)]
    limits: Tightened,
}

/// The answer to a question.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Answered {
    /// The answer.
    #[schema(value_type = Value)]
    answer: Json,
    /// The `state` that came with the question, unchanged.
    #[schema(value_type = Option<String>)]
    state: Option<Json>,
}

/// Where calls come from. The tool sees it.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    /// The caller's session.
    session_id: Option<String>,
    /// The conversation.
    thread_id: Option<String>,
    /// The run of calls.
    run_id: Option<String>,
    /// Free JSON.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json>,
}

/// Limits that are tighter than the tenant's.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tightened {
    /// Wall time of each call, in milliseconds.
    timeout_ms: Option<u64>,
    /// Instructions of each call.
    fuel: Option<u64>,
}

/// Several calls of one model answer.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunBody {
    /// The calls: `{"id", "name", "arguments"}`.
    #[schema(value_type = Vec<Object>)]
    calls: Vec<ToolCall>,
    /// The answer to the question of an earlier call. Goes with one call.
    resume: Option<Answered>,
    /// Where the calls come from.
    #[serde(default)]
    context: Origin,
    /// Tightens the limits of each call.
    #[serde(default)]
    limits: Tightened,
    /// The most calls at once.
    max_concurrency: Option<usize>,
    /// `continue` (the default): failures are messages for the model. `halt`: a failure halts the run.
    on_tool_error: Option<OnError>,
    /// `refuse` (the default): a call of a tool that does not exist refuses the run. `answer`: it is a failed call.
    unknown_tools: Option<OnUnknown>,
}

#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnError {
    Continue,
    Halt,
}

#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnUnknown {
    Refuse,
    Answer,
}

/// Calls of one model answer, as steps of an agent loop.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StepBody {
    /// The calls as the model wrote them: `{"id"?, "name", "args" | "arguments", "resume"?}`.
    #[schema(value_type = Vec<Object>)]
    calls: Vec<Value>,
    /// Where the calls come from.
    #[serde(default)]
    context: Origin,
    /// Tightens the limits of each call.
    #[serde(default)]
    limits: Tightened,
    /// Rounds that the loop has made in this turn.
    #[serde(default)]
    iteration: u32,
    /// The person's language.
    locale: Option<String>,
    /// Deliberate mode: only these tools, and those that stay open, can be called.
    deliberate: Option<Allowed>,
    /// `memory` of the answer before, in the same turn.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    memory: TurnMemory,
}

/// Deliberate mode.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Allowed {
    /// The tools that can be called. Absent: all.
    allowed: Option<Vec<String>>,
    /// By tool, what in the person's words brought it up.
    #[serde(default)]
    triggers: BTreeMap<String, String>,
    /// Further turns that a tool stays open after a success.
    context_turns: Option<u32>,
}

impl Origin {
    fn context(self, resume: Option<Answered>) -> CallContext {
        let mut context = CallContext::default();
        context.session_id = self.session_id;
        context.thread_id = self.thread_id;
        context.run_id = self.run_id;
        context.metadata = self.metadata;
        context.resume = resume.map(|Answered { answer, state }| Resume { answer, state });
        context
    }
}

impl Tightened {
    fn limits(&self) -> Limits {
        let mut limits = Limits::unlimited();
        if let Some(millis) = self.timeout_ms {
            limits = limits.with_timeout(Duration::from_millis(millis));
        }
        if let Some(fuel) = self.fuel {
            limits = limits.with_fuel(fuel);
        }
        limits
    }
}

impl CallBody {
    pub(super) fn request(self, id: &RequestId) -> CallRequest {
        let arguments = self.arguments.map_or_else(String::new, text);
        let call = ToolCall::new(self.id.unwrap_or_else(|| id.to_string()), self.name, arguments);
        CallRequest::new(call)
            .with_request_id(id.clone())
            .with_context(self.context.context(self.resume))
            .with_limits(self.limits.limits())
    }
}

impl RunBody {
    pub(super) fn request(self, id: &RequestId) -> RunRequest {
        let mut request = RunRequest::new(self.calls);
        request.request_id = Some(id.clone());
        request.context = self.context.context(self.resume);
        request.limits = self.limits.limits();
        request.max_concurrency = self.max_concurrency;
        if let Some(OnError::Halt) = self.on_tool_error {
            request.on_tool_error = OnToolError::Halt;
        }
        if let Some(OnUnknown::Answer) = self.unknown_tools {
            request.unknown_tools = UnknownTools::Answer;
        }
        request
    }
}

impl StepBody {
    pub(super) fn request(self, id: &RequestId) -> Result<StepRequest, Problem> {
        let calls: Result<Vec<RawCall>, Problem> = self.calls.into_iter().map(raw_call).collect();
        let mut turn = Turn::new(self.context.context(None)).with_memory(self.memory);
        turn.limits = self.limits.limits();
        (turn.iteration, turn.locale) = (self.iteration, self.locale);
        turn.deliberate = self.deliberate.map(|Allowed { allowed, triggers, context_turns }| {
            let mut deliberate = allowed.map_or_else(Deliberate::unrestricted, Deliberate::new);
            for (tool, trigger) in triggers {
                deliberate = deliberate.with_trigger(tool, trigger);
            }
            context_turns.map_or(deliberate.clone(), |turns| deliberate.with_context_turns(turns))
        });
        let mut request = StepRequest::new(calls?, turn);
        request.request_id = Some(id.clone());
        Ok(request)
    }
}

/// A call as a model wrote it, with the answer to a question.
fn raw_call(mut call: Value) -> Result<RawCall, Problem> {
    let resume = call.get_mut("resume").map(Value::take).filter(|resume| !resume.is_null());
    let call = RawCall::from(call);
    let Some(resume) = resume else { return Ok(call) };
    let Answered { answer, state } = serde_json::from_str(&resume.to_string()).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, "bad_body", format!("`resume` of a call does not fit: {error}"))
    })?;
    Ok(call.with_resume(Resume { answer, state }))
}

/// Arguments as text: a string is the text, anything else its own text.
fn text(json: Json) -> String {
    let written = serde_json::from_str::<String>(json.as_str());
    written.unwrap_or_else(|_| json.into_string())
}
