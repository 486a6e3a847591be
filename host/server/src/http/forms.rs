//! The JSON bodies of requests that make calls, and their conversion to requests of the service.
//!
//! `POST /v1/calls`, `/v1/batch`, `/v1/runs` and `/v1/steps` parse their bodies to [`CallBody`],
//! [`RunBody`] and [`StepBody`]. The method `request` of each returns a [`CallRequest`], a
//! [`RunRequest`] or a [`StepRequest`], or a [`Problem`] for a value that is out of range. Unknown
//! members are refused, except in the single calls of a step, which keeps them as a model wrote
//! them. An array in place of an object is refused. The schemas in `/openapi.json` are derived from
//! these types, and accept exactly what is read here, as far as a schema can express it.
//!
//! A call has the format of docs/json.md.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Number, Value};
use toolcell::call::Resume;
use toolcell::run::UnknownTools;
use toolcell::step::{Deliberate, RawCall, TurnMemory};
use toolcell::{CallContext, CallOptions, Error, Json, Limits, OnToolError, ToolCall, Turn};
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{AdditionalProperties, Array, Object, OneOf, SchemaType, Type};

use super::problem::Problem;
use crate::artifacts::members::members as members_of;
use crate::service::calls::CallRequest;
use crate::service::request_id::RequestId;
use crate::service::runs::{RunRequest, StepRequest};
use crate::tenants::refused::RequestError;

/// The most characters of a call's id. Each event of the call repeats it, also those that wait to
/// be read.
const MAX_CALL_ID: usize = 256;

/// One call.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallBody {
    /// The id of the call, which the completion repeats. Absent: the id of the request.
    #[schema(max_length = 256)]
    id: Option<String>,
    /// The tool's name.
    name: String,
    /// The arguments: an object, or a string with the JSON text of one. Absent: an empty object.
    #[schema(schema_with = arguments, required = false)]
    arguments: Option<Json>,
    /// The answer to the question of an earlier call, which this call repeats.
    #[serde(default, deserialize_with = "optional_members")]
    resume: Option<Answered>,
    /// Where the call comes from.
    #[serde(default, deserialize_with = "members")]
    context: Origin,
    /// Tightens the call's limits.
    #[serde(default, deserialize_with = "members")]
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
    #[schema(value_type = Option<Value>)]
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
    /// Any JSON.
    #[schema(value_type = Option<Value>)]
    metadata: Option<Json>,
}

/// Limits that are tighter than the tenant's.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tightened {
    /// Wall time of each call, in milliseconds.
    #[schema(value_type = Option<u64>, minimum = 1)]
    timeout_ms: Option<WholeNumber>,
    /// Instructions of each call.
    #[schema(value_type = Option<u64>, minimum = 1)]
    fuel: Option<WholeNumber>,
}

/// An integer, also written as `2.0`, as a schema's `integer` allows.
#[derive(Debug, Clone, Copy, Default)]
struct WholeNumber(u64);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(deserializer)?;
        let written =
            number.as_f64().filter(|value| (0.0..=9e18).contains(value) && value.fract() == 0.0);
        let whole = number
            .as_u64()
            .or(written.map(|value| value as u64))
            .filter(|whole| *whole <= i64::MAX as u64);
        whole
            .map(Self)
            .ok_or_else(|| de::Error::custom("a whole number from 0 to 2^63 - 1 is expected"))
    }
}

impl WholeNumber {
    fn narrow(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

/// An object, read by the names of its members. Derived code would also accept an array, by the
/// order of the members.
#[derive(Debug)]
struct StrictObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StrictObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = StrictObject<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<StrictObject<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(StrictObject)
            }
        }

        deserializer.deserialize_any(Members(PhantomData))
    }
}

fn members<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    StrictObject::deserialize(deserializer).map(|StrictObject(named)| named)
}

/// Reads an object or null like [`StrictObject`].
fn optional_members<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|StrictObject(named)| named))
}

/// Reads an array of objects like [`StrictObject`].
fn all_members<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Vec::deserialize(deserializer)?.into_iter().map(|StrictObject(named)| named).collect())
}

/// One call of several.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct RunCall {
    /// The id of the call, which its message repeats. Absent: `call-1` for the first call, and so
    /// on.
    #[schema(max_length = 256)]
    id: Option<String>,
    /// The tool's name.
    name: String,
    /// The arguments: an object, or a string with the JSON text of one.
    #[schema(schema_with = arguments)]
    arguments: Json,
}

/// Returns the schema of calls as the model wrote them: with a name, optionally an id, and `args`
/// or `arguments`.
fn step_calls() -> Array {
    let resume = OneOf::builder()
        .item(Ref::from_schema_name("Answered"))
        .item(Object::with_type(Type::Null));
    // Any value: one that is not a call is answered with a failed step.
    let call = Object::builder().schema_type(SchemaType::AnyValue).property("resume", resume);
    Array::new(call)
}

fn arguments() -> Object {
    let types = SchemaType::Array(vec![Type::Object, Type::String, Type::Null]);
    let object = Object::builder()
        .schema_type(types)
        .additional_properties(Some(AdditionalProperties::FreeForm(true)));
    object.description(Some("An object, or a string with the JSON text of one.")).build()
}

/// Several calls of one model answer.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunBody {
    /// The calls: `{"id"?, "name", "arguments"}`.
    #[serde(deserialize_with = "all_members")]
    calls: Vec<RunCall>,
    /// The answer to the question of an earlier call. Goes with one call.
    #[serde(default, deserialize_with = "optional_members")]
    resume: Option<Answered>,
    /// Where the calls come from.
    #[serde(default, deserialize_with = "members")]
    context: Origin,
    /// Tightens the limits of each call.
    #[serde(default, deserialize_with = "members")]
    limits: Tightened,
    /// The most calls at once.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_concurrency: Option<WholeNumber>,
    /// `continue` (the default): failures are messages for the model. `halt`: a failure halts the
    /// run.
    on_tool_error: Option<OnError>,
    /// `refuse` (the default): a call of a tool that does not exist refuses the run. `answer`: it
    /// is a failed call.
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
    #[schema(schema_with = step_calls)]
    calls: Vec<Json>,
    /// Where the calls come from.
    #[serde(default, deserialize_with = "members")]
    context: Origin,
    /// Tightens the limits of each call.
    #[serde(default, deserialize_with = "members")]
    limits: Tightened,
    /// Rounds that the loop has made in this turn.
    #[serde(default)]
    #[schema(value_type = u64)]
    iteration: WholeNumber,
    /// The person's language.
    locale: Option<String>,
    /// Deliberate mode: only these tools, and those that stay open, can be called.
    #[serde(default, deserialize_with = "optional_members")]
    deliberate: Option<Allowed>,
    /// `memory` of the answer before, in the same turn.
    #[serde(default, deserialize_with = "optional_members")]
    memory: Option<Memory>,
}

/// The state that one step leaves for the next of its turn.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Memory {
    /// Errors since the last success or restart.
    #[serde(default)]
    #[schema(value_type = u64)]
    errors: WholeNumber,
    /// Tools that stay open, and for how many turns after this one.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, u64>)]
    windows: BTreeMap<String, WholeNumber>,
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
    #[schema(value_type = Option<u64>)]
    context_turns: Option<WholeNumber>,
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
    /// # Errors
    /// A limit of 0, with which no call could be made.
    fn limits(&self) -> Result<Limits, Problem> {
        let positive = |member, value: Option<WholeNumber>| match value {
            Some(WholeNumber(0)) => Err(invalid_option(member, "must be greater than zero")),
            Some(WholeNumber(value)) => Ok(Some(value)),
            None => Ok(None),
        };
        let mut limits = Limits::unlimited();
        if let Some(millis) = positive("limits.timeout_ms", self.timeout_ms)? {
            limits.timeout = Duration::from_millis(millis);
        }
        if let Some(fuel) = positive("limits.fuel", self.fuel)? {
            limits.fuel = fuel;
        }
        Ok(limits)
    }
}

fn invalid_option(member: &'static str, problem: impl fmt::Display) -> Problem {
    RequestError::Run(Error::options(member, problem)).into()
}

fn options(
    context: Origin,
    resume: Option<Answered>,
    limits: &Tightened,
) -> Result<CallOptions, Problem> {
    let (context, limits) = (context.context(resume).into(), limits.limits()?);
    Ok(CallOptions { context, limits, ..CallOptions::default() })
}

impl CallBody {
    pub(super) fn request(self, id: &RequestId) -> Result<CallRequest, Problem> {
        let arguments = self.arguments.map_or_else(String::new, text);
        let own = checked_id(self.id, || "id".to_owned())?;
        let call = ToolCall::new(own.unwrap_or_else(|| id.to_string()), self.name, arguments);
        let options = options(self.context, self.resume, &self.limits)?;
        Ok(CallRequest { request_id: Some(id.clone()), options, ..CallRequest::new(call) })
    }
}

impl RunBody {
    pub(super) fn request(self, id: &RequestId) -> Result<RunRequest, Problem> {
        let calls = self.calls.len();
        // The run checks this too, but its error names an option of the library.
        if self.resume.is_some() && calls > 1 {
            let problem = format!("is for a run of one call, and this run has {calls}");
            return Err(invalid_option("resume", problem));
        }
        let call = |(at, call): (usize, RunCall)| {
            let id = checked_id(call.id, || format!("calls[{at}].id"))?;
            let id = id.unwrap_or_else(|| format!("call-{}", at + 1));
            Ok(ToolCall::new(id, call.name, text(call.arguments)))
        };
        let calls: Result<Vec<ToolCall>, Problem> =
            self.calls.into_iter().enumerate().map(call).collect();
        let mut request = RunRequest::new(calls?);
        request.request_id = Some(id.clone());
        request.options.call = options(self.context, self.resume, &self.limits)?;
        request.options.max_concurrency = self
            .max_concurrency
            .map(|WholeNumber(most)| usize::try_from(most).unwrap_or(usize::MAX));
        if let Some(OnError::Halt) = self.on_tool_error {
            request.options.on_tool_error = OnToolError::Halt;
        }
        if let Some(OnUnknown::Answer) = self.unknown_tools {
            request.options.unknown_tools = UnknownTools::Answer;
        }
        Ok(request)
    }
}

impl StepBody {
    /// Returns the bytes that the calls of this body, which has `body` bytes, copy: each call has
    /// its own context, and a blocked one is answered with the names of the allowed tools.
    pub(super) fn copied_bytes(&self, body: usize) -> usize {
        let calls: usize = self.calls.iter().map(|call| call.as_str().len()).sum();
        body.saturating_sub(calls).saturating_mul(self.calls.len())
    }

    pub(super) fn request(self, id: &RequestId) -> Result<StepRequest, Problem> {
        let calls = self.calls.iter().enumerate().map(|(at, call)| raw_call(at, call));
        let calls: Result<Vec<RawCall>, Problem> = calls.collect();
        let known = self.memory.unwrap_or_default();
        let mut memory = TurnMemory::default();
        memory.errors = known.errors.narrow();
        memory.windows =
            known.windows.into_iter().map(|(tool, turns)| (tool, turns.narrow())).collect();
        let mut turn = Turn::new(self.context.context(None)).with_memory(memory);
        turn.call.limits = self.limits.limits()?;
        (turn.iteration, turn.locale) = (self.iteration.narrow(), self.locale);
        turn.deliberate = self.deliberate.map(|Allowed { allowed, triggers, context_turns }| {
            let mut deliberate = allowed.map_or_else(Deliberate::unrestricted, Deliberate::new);
            for (tool, trigger) in triggers {
                deliberate = deliberate.with_trigger(tool, trigger);
            }
            match context_turns {
                Some(turns) => deliberate.with_context_turns(turns.narrow()),
                None => deliberate,
            }
        });
        let mut request = StepRequest::new(calls?, turn);
        request.request_id = Some(id.clone());
        Ok(request)
    }
}

/// Converts the call at this index, as a model wrote it, with the answer to a question. Its
/// arguments stay text: a tree would round long numbers.
fn raw_call(at: usize, call: &Json) -> Result<RawCall, Problem> {
    let mut raw = RawCall::default();
    let names = ["id", "name", "args", "arguments", "resume"];
    let Some([id, name, args, arguments, resume]) = members_of(call.as_str(), names) else {
        return Ok(raw);
    };
    let string = |text: &str| serde_json::from_str::<String>(text).ok();
    (raw.id, raw.name) = (id.and_then(string), name.and_then(string));
    raw.arguments = args.or(arguments).map(|text| match text {
        "null" => Value::Null,
        text => Value::String(string(text).unwrap_or_else(|| text.to_owned())),
    });
    let Some(resume) = resume.filter(|resume| *resume != "null") else { return Ok(raw) };
    let answered =
        serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(resume));
    let StrictObject(Answered { answer, state }) = answered.map_err(|error| {
        let inner = error.path().to_string();
        let member = if inner == "." { String::new() } else { format!(".{inner}") };
        super::body::invalid_member(&format!("calls[{at}].resume{member}"), error.inner())
    })?;
    Ok(raw.with_resume(Resume { answer, state }))
}

/// Refuses an id that is too long.
fn checked_id(
    id: Option<String>,
    path: impl FnOnce() -> String,
) -> Result<Option<String>, Problem> {
    if id.as_ref().is_some_and(|id| id.chars().count() > MAX_CALL_ID) {
        let error = de::Error::custom(format!("expected at most {MAX_CALL_ID} characters"));
        return Err(super::body::invalid_member(&path(), &error));
    }
    Ok(id)
}

/// Returns arguments as text: the content of a string, or the JSON text of another value.
fn text(json: Json) -> String {
    let written = serde_json::from_str::<String>(json.as_str());
    written.unwrap_or_else(|_| json.into_string())
}
