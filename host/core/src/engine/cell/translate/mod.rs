//! Converts between the crate's own types and the generated types of the WIT package.
//!
//! `invoke` uses [`call`] and [`context`] to pass a call to a guest (the WebAssembly code of a tool)
//! without copies, and [`outcome`] to read the guest's answer. The loader uses [`definition`] to
//! read what a component says of its tools in `describe`. Only the form is checked: texts that
//! should be JSON are JSON, of bounded depth. A fault of an answer names its field.
//! Not here: the rules that an answer or a definition must fulfil, which the executor and
//! `engine/compile/describe` check.

mod resources;

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use toolcell_contract::definition::{Definition, Need};
use toolcell_contract::json::{Json, parse_within};
use toolcell_contract::outcome::{Halt, HandlerError, Media, Outcome, Output, Part, Question};
use toolcell_contract::{error::Error, outcome::tool_error::ReturnRule};

use super::bindings::exports::toolcell::tool::tool as wire;
use crate::tool::handler::Invocation;

/// Levels of JSON in a definition. A definition is stored inside of other JSON, a few levels
/// deeper, and must be readable again.
const LEVELS: usize = Json::MAX_DEPTH - 8;

/// The extension of the context of `visible` that holds the call's arguments.
const ARGUMENTS: &str = "arguments";

/// Returns a call, borrowed for the boundary.
pub(super) fn call(invocation: &Invocation) -> wire::ToolCall<'_> {
    let call = &invocation.call;
    wire::ToolCall { id: &call.id, name: &call.name, arguments: &call.arguments }
}

/// Returns the extensions of a call's context.
pub(super) fn extensions(invocation: &Invocation) -> Vec<(&str, &str)> {
    let extensions = invocation.context.extensions.iter();
    extensions.map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Returns the extensions of the context for `visible`, which has the arguments if there are any: a
/// listing of tools calls it with `null`.
pub(super) fn with_arguments(invocation: &Invocation) -> Vec<(&str, &str)> {
    let mut extensions = extensions(invocation);
    extensions.retain(|(name, _)| *name != ARGUMENTS);
    if invocation.call.arguments != "null" {
        extensions.push((ARGUMENTS, &invocation.call.arguments));
    }
    extensions
}

/// Returns the context of a call with these extensions, borrowed for the boundary.
pub(super) fn context<'a>(
    invocation: &'a Invocation,
    extensions: &'a [(&'a str, &'a str)],
) -> wire::Context<'a> {
    let context = &invocation.context;
    wire::Context {
        session_id: context.session_id.as_deref(),
        request_id: context.request_id.as_deref(),
        thread_id: context.thread_id.as_deref(),
        run_id: context.run_id.as_deref(),
        tenant: context.tenant.as_deref(),
        metadata: context.metadata.as_ref().map(Json::as_str),
        remaining_ms: u64::try_from(invocation.remaining().as_millis()).unwrap_or(u64::MAX),
        attempt: context.attempt.unwrap_or(1),
        resume: context.resume.as_ref().map(|resume| wire::Resume {
            answer: resume.answer.as_str(),
            state: resume.state.as_ref().map(Json::as_str),
        }),
        extensions,
    }
}

/// Converts a guest's outcome.
pub(super) fn outcome(outcome: wire::Outcome) -> Result<Outcome, ReturnRule> {
    Ok(match outcome {
        wire::Outcome::Ok(output) => {
            let mut parts: Vec<_> = output.parts.into_iter().map(part).collect();
            let extensions = output.extensions.into_iter();
            let mut extensions = extensions
                .map(|(name, value)| Ok((name, json("extensions", value)?)))
                .collect::<Result<BTreeMap<_, _>, ReturnRule>>()?;
            if let Some(resources) = extensions.remove(resources::NAME) {
                resources::apply(&resources, &mut parts)?;
            }
            let mut ok = Output::new(json("value", output.value)?);
            (ok.message, ok.parts) = (output.message, parts);
            (ok.end_turn, ok.extensions) = (output.end_turn, extensions);
            Outcome::Ok(ok)
        }
        wire::Outcome::Error(failure) => {
            let mut error = HandlerError::new(failure.message);
            error.data = maybe_json("data", failure.data)?;
            error.retryable = failure.retryable;
            error.retry_after_ms = failure.retry_after_ms;
            Outcome::Error(error)
        }
        wire::Outcome::AskUser(ask) => {
            let mut question = Question::new(ask.question);
            question.options = maybe_json("options", ask.options)?;
            question.answer_schema = maybe_json("answer_schema", ask.answer_schema)?;
            question.state = maybe_json("state", ask.state)?;
            Outcome::AskUser(question)
        }
        wire::Outcome::Halt(halt) => {
            Outcome::Halt(Halt::new(halt.reason, json("result", halt.result)?))
        }
    })
}

fn json(field: &'static str, text: String) -> Result<Json, ReturnRule> {
    Json::parse(text)
        .map_err(|fault| ReturnRule::NotJson { field: field.to_owned(), detail: fault.to_string() })
}

fn maybe_json(field: &'static str, text: Option<String>) -> Result<Option<Json>, ReturnRule> {
    text.map(|text| json(field, text)).transpose()
}

fn part(part: wire::Part) -> Part {
    let media = |media: wire::Media| Media { mime_type: media.mime_type, data: media.data };
    match part {
        wire::Part::Text(text) => Part::Text { text },
        wire::Part::Image(image) => Part::Image(media(image)),
        wire::Part::Audio(audio) => Part::Audio(media(audio)),
        wire::Part::ResourceLink(link) => Part::ResourceLink {
            uri: link.uri,
            name: link.name,
            description: link.description,
            mime_type: link.mime_type,
            size: None,
        },
    }
}

/// Converts a guest's definition of a tool.
pub(crate) fn definition(given: wire::Definition) -> Result<Definition, Error> {
    let mut definition = Definition::new(given.name, given.description)?;
    let name = definition.name.clone();
    let value = |field: &str, text: String| -> Result<Value, Error> {
        parse_within(&text, LEVELS)
            .map_err(|fault| Error::definition(&name, format_args!("`{field}`: {fault}")))
    };
    let pairs =
        |field: &str, pairs: Vec<(String, String)>| -> Result<BTreeMap<String, Value>, Error> {
            pairs.into_iter().map(|(key, text)| Ok((key, value(field, text)?))).collect()
        };
    definition.parameters = given.parameters.map(|text| value("parameters", text)).transpose()?;
    definition.output = given.output.map(|text| value("output", text)).transpose()?;
    definition.attributes = pairs("attributes", given.attributes)?;
    definition.extensions = pairs("extensions", given.extensions)?;
    let hints = &mut definition.hints;
    hints.read_only = given.hints.contains(wire::Hints::READ_ONLY);
    hints.idempotent = given.hints.contains(wire::Hints::IDEMPOTENT);
    hints.destructive = given.hints.contains(wire::Hints::DESTRUCTIVE);
    hints.open_world = given.hints.contains(wire::Hints::OPEN_WORLD);
    definition.checks.validate = given.checks.contains(wire::Checks::VALIDATE);
    definition.checks.visible = given.checks.contains(wire::Checks::VISIBLE);
    definition.max_execution = given.max_execution_ms.map(Duration::from_millis);
    definition.needs = given
        .needs
        .into_iter()
        .map(|need| Need::new(need.kind, need.pattern, need.reason))
        .collect();
    Ok(definition)
}
