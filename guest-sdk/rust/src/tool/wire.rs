//! Converts between the author's types and the generated ones.
//!
//! Invariants: conversion decides nothing, with one exception: a value that cannot be written as
//! JSON turns its outcome into an error that says so.

use std::time::Duration;

use serde_json::{Value, json};

use crate::bindings::exports::toolcell::tool::tool as abi;
use crate::context::{Context, Resume};
use crate::json::Json;
use crate::outcome::{Content, Failure, Halt, Link, Outcome, Output, Part, Question};
use crate::tool::definition::{Definition, Hints};
use crate::tool::{self, Entry};

/// Implements `describe`.
pub fn describe(entries: &[Entry]) -> Vec<abi::Definition> {
    tool::describe(entries).into_iter().map(definition).collect()
}

/// Implements `validate`.
pub fn validate(entries: &[Entry], call: &abi::ToolCall) -> Vec<String> {
    tool::validate(entries, &call.name, &call.arguments)
}

/// Implements `visible`.
pub fn visible(entries: &[Entry], name: &str, from: abi::Context) -> bool {
    tool::visible(entries, name, &context(String::new(), from))
}

/// Implements `execute`.
pub fn execute(entries: &[Entry], call: abi::ToolCall, from: abi::Context) -> abi::Outcome {
    outcome(tool::execute(entries, &call.name, &call.arguments, context(call.id, from)))
}

fn definition(from: Definition) -> abi::Definition {
    let mut checks = abi::Checks::empty();
    checks.set(abi::Checks::VALIDATE, from.validates);
    checks.set(abi::Checks::VISIBLE, from.hides);
    abi::Definition {
        name: from.name.to_owned(),
        description: from.description.to_owned(),
        parameters: from.parameters.map(|schema| schema.to_string()),
        output: from.output.map(|schema| schema.to_string()),
        attributes: from
            .attributes
            .into_iter()
            .map(|(name, value)| (name, value.to_string()))
            .collect(),
        hints: hints(from.hints),
        checks,
        max_execution_ms: from.max_execution_ms,
        needs: from
            .needs
            .into_iter()
            .map(|need| abi::Need {
                kind: need.kind.to_owned(),
                pattern: need.pattern.to_owned(),
                reason: need.reason.to_owned(),
            })
            .collect(),
        extensions: from
            .extensions
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .collect(),
    }
}

fn hints(from: Hints) -> abi::Hints {
    let mut hints = abi::Hints::empty();
    hints.set(abi::Hints::READ_ONLY, from.read_only);
    hints.set(abi::Hints::IDEMPOTENT, from.idempotent);
    hints.set(abi::Hints::DESTRUCTIVE, from.destructive);
    hints.set(abi::Hints::OPEN_WORLD, from.open_world);
    hints
}

fn context(call_id: String, from: abi::Context) -> Context {
    Context {
        call_id,
        session_id: from.session_id,
        request_id: from.request_id,
        thread_id: from.thread_id,
        run_id: from.run_id,
        tenant: from.tenant,
        metadata: from.metadata,
        remaining: Duration::from_millis(from.remaining_ms),
        attempt: from.attempt,
        resume: from.resume.map(|resume| Resume { answer: resume.answer, state: resume.state }),
        extensions: from.extensions,
    }
}

fn outcome(from: Outcome) -> abi::Outcome {
    let written = match from {
        Outcome::Ok(output) => ok(output).map(abi::Outcome::Ok),
        Outcome::Error(failure) => return abi::Outcome::Error(error(failure)),
        Outcome::AskUser(question) => ask_user(question).map(abi::Outcome::AskUser),
        Outcome::Halt(end) => halt(end).map(abi::Outcome::Halt),
    };
    written.unwrap_or_else(|failure| abi::Outcome::Error(error(failure)))
}

fn ok(from: Output) -> Result<abi::Output, Failure> {
    let named = resources(&from.parts);
    Ok(abi::Output {
        value: text("result", from.value)?,
        message: from.message,
        parts: from.parts.into_iter().map(part).collect(),
        end_turn: from.end_turn,
        extensions: if named.is_empty() {
            Vec::new()
        } else {
            vec![("resources".into(), Value::from(named).to_string())]
        },
    })
}

/// Returns the extension `resources` of an output, which lists the parts that are embedded
/// resources.
fn resources(parts: &[Part]) -> Vec<Value> {
    let named = parts.iter().enumerate().filter_map(|(index, part)| match part {
        Part::Resource { uri, mime_type, .. } => {
            Some(json!({"part": index, "uri": uri, "mime_type": mime_type}))
        }
        Part::Text(_) | Part::Image { .. } | Part::Audio { .. } | Part::ResourceLink(_) => None,
    });
    named.collect()
}

fn part(from: Part) -> abi::Part {
    match from {
        Part::Text(text) => abi::Part::Text(text),
        Part::Image { mime_type, data } => abi::Part::Image(abi::Media { mime_type, data }),
        Part::Audio { mime_type, data } => abi::Part::Audio(abi::Media { mime_type, data }),
        Part::Resource { content: Content::Text(text), .. } => abi::Part::Text(text),
        Part::Resource { mime_type, content: Content::Bytes(data), .. } => {
            abi::Part::Image(abi::Media { mime_type, data })
        }
        Part::ResourceLink(Link { uri, name, description, mime_type }) => {
            abi::Part::ResourceLink(abi::Link { uri, name, description, mime_type })
        }
    }
}

/// Converts a failure, which always succeeds: details that cannot be written as JSON become a
/// remark in its message.
fn error(from: Failure) -> abi::Failure {
    let mut message = from.message;
    let data = from.data.and_then(|data| match data.text() {
        Ok(text) => Some(text),
        Err(problem) => {
            message.push_str(&format!(" (its details cannot be written as JSON: {problem})"));
            None
        }
    });
    abi::Failure {
        message,
        data,
        retryable: from.retryable,
        retry_after_ms: from.retry_after.map(milliseconds),
    }
}

/// Whole milliseconds, rounded up, so that the time is never shorter than given.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn ask_user(from: Question) -> Result<abi::Question, Failure> {
    let optional = |what, json: Option<Json>| json.map(|json| text(what, json)).transpose();
    Ok(abi::Question {
        question: from.question,
        options: optional("options", from.options)?,
        answer_schema: optional("answer schema", from.answer_schema)?,
        state: optional("state", from.state)?,
    })
}

fn halt(from: Halt) -> Result<abi::Halt, Failure> {
    Ok(abi::Halt { reason: from.reason, result: text("result", from.result)? })
}

fn text(what: &str, json: Json) -> Result<String, Failure> {
    json.text().map_err(|problem| Failure::unwritable(what, &problem))
}
