//! JSON schemas of answers that the library writes itself, for `/openapi.json`.
//!
//! The types mirror the JSON of completions (results with usage), definitions and outcomes (answers
//! of tools), whose real types are in the library and know no OpenAPI. Only their derived schemas
//! are used; no value is created. The routes name them in their descriptions. The formats are
//! described, with examples, in docs/json.md and docs/events.md; a test checks each example against
//! its schema. Not here: request bodies, in `http/forms.rs`, whose types have schemas and values.
#![expect(dead_code, reason = "only their schemas are used")]

mod run;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, AnyOf, Object};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub(super) use run::{Event, RunOutcome, Steps};

/// The end of a call.
#[derive(Serialize, ToSchema)]
pub(super) struct Completion {
    /// The call's id.
    id: String,
    /// The tool's name.
    tool: String,
    /// The outcome.
    outcome: Outcome,
    /// The usage: the resources that the call took.
    usage: Usage,
    /// Free metadata of the tool's definition.
    attributes: Option<BTreeMap<String, Value>>,
}

/// The outcome of a call: an object with one member.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The tool's result.
    #[schema(title = "OutcomeOk")]
    Ok(Output),
    /// A failure that the tool reports.
    #[schema(title = "OutcomeError")]
    Error(HandlerError),
    /// A person is asked.
    #[schema(title = "OutcomeAskUser")]
    AskUser(Question),
    /// The agent loop ends with this result.
    #[schema(title = "OutcomeHalt")]
    Halt(Halt),
    /// The tool gave no valid answer.
    #[schema(title = "OutcomeToolError")]
    ToolError(ToolError),
    /// The host refused the call; the tool did not run.
    #[schema(title = "OutcomeRefusal")]
    Refusal(Refusal),
}

/// A tool's result.
#[derive(Serialize, ToSchema)]
pub(super) struct Output {
    /// The result. If it is `null`, the model gets the message instead.
    value: Value,
    /// A line for a person.
    message: Option<String>,
    /// Content beside the value.
    parts: Option<Vec<Part>>,
    /// True if the turn of the model can end after this.
    end_turn: Option<bool>,
    /// Members of later versions.
    extensions: Option<BTreeMap<String, Value>>,
}

/// Content beside a result. `data` is base64 with padding.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    #[schema(title = "TextPart")]
    Text { text: String },
    #[schema(title = "ImagePart")]
    Image { mime_type: String, data: String },
    #[schema(title = "AudioPart")]
    Audio { mime_type: String, data: String },
    #[schema(title = "ResourcePart")]
    Resource { uri: String, mime_type: Option<String>, text: Option<String>, data: Option<String> },
    #[schema(title = "ResourceLinkPart")]
    ResourceLink {
        uri: String,
        name: Option<String>,
        description: Option<String>,
        mime_type: Option<String>,
        size: Option<u64>,
    },
}

/// A failure that a tool reports.
#[derive(Serialize, ToSchema)]
pub(super) struct HandlerError {
    /// The failure, in words. The model reads it.
    message: String,
    /// Details, in a form that the tool chooses.
    data: Option<Value>,
    /// True if the same call may succeed later. Absent if that is unknown.
    retryable: Option<bool>,
    /// When to try again, in milliseconds from now.
    retry_after_ms: Option<u64>,
}

/// A question to a person.
#[derive(Serialize, ToSchema)]
pub(super) struct Question {
    /// The question.
    question: String,
    /// The choices to offer.
    options: Option<Value>,
    /// JSON Schema of the answer.
    answer_schema: Option<Value>,
    /// To be brought back with the answer, unchanged.
    state: Option<Value>,
}

/// The end of the agent loop.
#[derive(Serialize, ToSchema)]
pub(super) struct Halt {
    /// The reason, as the tool names it.
    reason: String,
    /// The result of the loop.
    result: Value,
}

/// The reason why there is no valid answer of the tool. `reason` and `cause` are in docs/json.md.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolError {
    /// `handler_raised`, `handler_exit`, `timeout`, `invalid_return`, `not_found` or
    /// `encoding_failed`.
    reason: String,
    /// Details, of another form for each reason.
    cause: Option<Value>,
    /// A sentence for people.
    message: String,
    /// The reserved word with which a tool halted.
    metadata: Option<BTreeMap<String, String>>,
}

/// The reason why the host refused a call. The kinds are in docs/json.md.
#[derive(Serialize, ToSchema)]
pub(super) struct Refusal {
    /// `invalid_arguments` for instance.
    kind: String,
    /// A sentence for people.
    message: String,
    /// The faults of the arguments or the answer.
    faults: Option<Vec<Fault>>,
    /// Secrets without a value.
    secrets: Option<Vec<String>>,
    /// When the same call may succeed, in milliseconds from now.
    retry_after_ms: Option<u64>,
}

/// A fault at one place. Each `code` has further members, which are in docs/json.md.
#[derive(Serialize, ToSchema)]
struct Fault {
    /// The place, as a JSON pointer.
    path: String,
    /// `required` for instance.
    code: String,
    /// A sentence for people and models.
    expected: String,
    /// The value that was there instead.
    actual: Option<String>,
    /// The allowed value or member that was probably meant.
    nearest: Option<String>,
    /// True if the value may have several forms. The fault is then by the one that fits best.
    in_alternative: Option<bool>,
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// The usage of a call. Sizes are in bytes.
#[derive(Serialize, ToSchema)]
pub(super) struct Usage {
    /// Instructions. `null` if none were counted.
    #[schema(required = true)]
    fuel: Option<u64>,
    /// Wall time in microseconds, waiting included.
    wall_us: u64,
    /// The most memory that the call held at once.
    peak_memory: u64,
    /// Size of the arguments.
    bytes_in: u64,
    /// Size of what the tool returned.
    bytes_out: u64,
    /// Calls of the tool into the host.
    host_calls: u64,
    /// Log that was kept.
    log_bytes: u64,
    /// Log over the limit, which was lost.
    log_bytes_dropped: u64,
}

/// The definition of a tool, for models and programs.
#[derive(Serialize, ToSchema)]
pub(super) struct Definition {
    /// The tool's name.
    name: String,
    /// The purpose of the tool, and when to use it.
    description: String,
    /// JSON Schema of the arguments. Absent: any object.
    parameters: Option<Value>,
    /// JSON Schema of the value of an `ok`.
    output: Option<Value>,
    /// Free metadata.
    attributes: Option<BTreeMap<String, Value>>,
    /// Claims of the author about its effects.
    hints: Option<Hints>,
    /// The optional checks that the tool has.
    checks: Option<Checks>,
    /// Upper bound of one execution, in milliseconds.
    max_execution_ms: Option<u64>,
    /// The resources that it needs in order to work.
    needs: Option<Vec<Need>>,
    /// Members of later versions.
    extensions: Option<BTreeMap<String, Value>>,
}

/// Claims of an author about a tool's effects.
#[derive(Serialize, ToSchema)]
struct Hints {
    /// It changes nothing outside of its cell.
    read_only: bool,
    /// A second call with the same arguments changes nothing further.
    idempotent: bool,
    /// It may destroy something for good.
    destructive: bool,
    /// It reaches an open set of others.
    open_world: bool,
}

/// The optional checks that a tool has.
#[derive(Serialize, ToSchema)]
struct Checks {
    /// It looks at arguments beyond their schema.
    validate: bool,
    /// It decides in each call if it is offered.
    visible: bool,
}

/// One thing that a tool needs.
#[derive(Serialize, ToSchema)]
struct Need {
    /// `http` for instance.
    kind: String,
    /// The resources of this kind, as a pattern.
    pattern: String,
    /// The reason, in one sentence.
    reason: String,
}

/// A part of a definition that a format of tools cannot express, and its change.
#[derive(Serialize, ToSchema)]
pub(super) struct Note {
    /// The tool's name.
    tool: String,
    /// The place in its definition, as a JSON pointer.
    pointer: String,
    /// The change.
    change: String,
    /// The reason for the change.
    reason: String,
}

/// One tool: its definition, or what the requested format makes of it.
pub(super) struct ListedTool;

impl PartialSchema for ListedTool {
    fn schema() -> RefOr<Schema> {
        let other = Object::builder()
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)));
        let other = other.description(Some("The tool in the requested format."));
        AnyOf::builder().item(Ref::from_schema_name("Definition")).item(other).into()
    }
}

impl ToSchema for ListedTool {}
