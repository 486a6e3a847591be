//! JSON schemas of runs, their events, and steps, for `/openapi.json`.
//!
//! A run is several calls under one policy, and a step tells an agent loop what to do after a call.
//! `/v1/batch`, `/v1/runs` and `/v1/steps` answer with these formats. As in the parent module, the
//! types are only schemas of JSON that the library writes; no value of them is created.
#![expect(dead_code, reason = "only their schemas are used")]

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{Outcome, Part, Usage};

/// The outcome of a run.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct RunOutcome {
    /// One message for each call, in the order of the calls.
    messages: Vec<Message>,
    /// The usage of each call, in the order of the calls.
    usage: Vec<Usage>,
    /// The reason why the agent loop must not continue. Absent if it can.
    halt: Option<RunHalt>,
}

/// The result of a call, for a model.
#[derive(Serialize, ToSchema)]
struct Message {
    /// Always `tool`.
    role: String,
    /// The call that it answers.
    tool_call_id: String,
    /// The tool.
    name: String,
    /// The encoded result.
    content: String,
    /// A line for a person.
    message: Option<String>,
    /// Content beside it.
    parts: Option<Vec<Part>>,
    /// True if the call failed.
    is_error: Option<bool>,
    /// True if the model's turn can end after this.
    end_turn: Option<bool>,
    /// Free metadata of the tool's definition.
    attributes: Option<BTreeMap<String, Value>>,
}

/// The reason why the agent loop must not continue.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct RunHalt {
    /// `ask_user`, `tool_error`, or the reason of the tool that halted.
    halted_reason: String,
    /// `ask_user`: the question.
    pending_question: Option<String>,
    /// `ask_user`: the call that waits.
    pending_tool_call_id: Option<String>,
    /// `ask_user`: the choices to offer.
    ask_user_opts: Option<Value>,
    /// `ask_user`: JSON Schema of the answer.
    answer_schema: Option<Value>,
    /// `ask_user`: to be brought back with the answer, unchanged.
    state: Option<Value>,
    /// The call that halted the run, otherwise.
    halt_tool_call_id: Option<String>,
    /// The result of a tool that halted.
    halt_result: Option<Value>,
    /// `tool_error`: the failure of the policy function, if it failed.
    on_tool_error_exception: Option<String>,
}

/// One event of a run. `type` tells which.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::http) enum Event {
    /// The call gets a cell and starts, or its native handler starts. If the call is refused or
    /// gets no cell, this event comes at its end.
    #[schema(title = "ToolExecutionStarted")]
    ToolExecutionStarted { id: String, name: String, arguments: String },
    /// The tool reports its progress.
    #[schema(title = "ToolProgress")]
    ToolProgress { id: String, done: u64, total: Option<u64>, message: Option<String> },
    /// A line of the tool's log.
    #[schema(title = "ToolLog")]
    ToolLog { id: String, source: String, level: String, message: String },
    /// The tool requested something that it may not use. The request failed, and the call
    /// continues.
    #[schema(title = "ToolDenied")]
    ToolDenied { id: String, denial: Denial },
    /// The call has ended.
    #[schema(title = "ToolExecutionCompleted")]
    ToolExecutionCompleted {
        id: String,
        name: String,
        result: Outcome,
        usage: Usage,
        parent: Option<String>,
    },
    /// The result as text for the model.
    #[schema(title = "ToolResultEncoded")]
    ToolResultEncoded { id: String, content: String },
    /// The tool asks a person.
    #[schema(title = "AskUserRequested")]
    AskUserRequested {
        tool_call_id: String,
        tool_name: String,
        question: String,
        options: Option<Value>,
        answer_schema: Option<Value>,
        state: Option<Value>,
    },
    /// The tool halts the agent loop with this result.
    #[schema(title = "ToolHalt")]
    ToolHalt { tool_call_id: String, reason: String, result: Value, content: String },
    /// The agent loop must not continue. The last event of a run that halts.
    #[schema(title = "RunHalted")]
    RunHalted { halt: RunHalt },
    /// The run has ended, and was not halted.
    #[schema(title = "RunFinished")]
    RunFinished { calls: u64, failed: u64 },
    /// The run could not start. The only event of such a run.
    #[schema(title = "RunError")]
    Error { reason: String, message: String, hint: String },
}

/// A request that is not within a tool's rights.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Denial {
    /// The first layer that denies it.
    layer: String,
    /// The request.
    request: String,
    /// The smallest grant that would allow it. `null` if no grant can.
    grant: Option<String>,
}

/// The steps of an agent loop, and what the next request of the same turn sends.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Steps {
    /// One step for each call, in the order of the calls.
    steps: Vec<Step>,
    /// To be sent with the next request of the same turn.
    memory: TurnMemory,
}

/// The next action of an agent loop. `kind` tells which.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "its schema is used, and no value")]
pub(in crate::http) enum Step {
    /// Ask the model again.
    #[schema(title = "RestartStep")]
    Restart,
    /// End the turn: `status` is `error` or `stopped_by_user`.
    #[schema(title = "AbortStep")]
    Abort { status: String },
    /// Put the entry into the history and continue.
    #[schema(title = "HistoryStep")]
    History { name: String, success: bool, end_turn: bool, entry: HistoryEntry },
}

/// A call and its response.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct HistoryEntry {
    #[serde(rename = "functionCall")]
    call: FunctionCall,
    #[serde(rename = "functionResponse")]
    response: FunctionResponse,
    /// True if the call failed.
    is_error: Option<bool>,
    /// A line for a person.
    message: Option<String>,
    /// The images and sounds, without their bytes.
    media: Option<Vec<MediaNote>>,
    /// Content beside the result.
    parts: Option<Vec<Part>>,
    /// The reason why the loop must not continue. Absent if it can.
    halted: Option<RunHalt>,
    /// Free metadata of the tool's definition.
    attributes: Option<BTreeMap<String, Value>>,
    /// Members of later versions.
    extensions: Option<BTreeMap<String, Value>>,
}

#[derive(Serialize, ToSchema)]
struct FunctionCall {
    id: Option<String>,
    name: String,
    args: Value,
}

#[derive(Serialize, ToSchema)]
struct FunctionResponse {
    id: Option<String>,
    name: String,
    response: FunctionResult,
}

#[derive(Serialize, ToSchema)]
struct FunctionResult {
    /// The value; of a failure `{"error", "data"?}`; of a tool that is closed in this turn
    /// `{"status", "functionName", "allowedToolNames"}`.
    result: Value,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MediaNote {
    r#type: String,
    mime_type: String,
    bytes: u64,
}

/// The state that one step leaves for the next of its turn.
#[derive(Serialize, ToSchema)]
struct TurnMemory {
    /// Errors since the last success or restart.
    errors: u64,
    /// Tools that stay open, and for how many turns after this one.
    windows: BTreeMap<String, u64>,
}
