//! Compares the result of a test case's call with the expected ending and the budget.
//!
//! The runner of test cases calls [`failures`] with the completion of the call (its result and its
//! resource usage) and the expectation from the file. It returns a sentence for each deviation; an
//! empty list means that the case passed. An ending is one of `ok`, `error`, `ask_user`, `halt`,
//! `tool_error` and `refusal`. All members of the expectation must match, and an empty expectation
//! always fails. The budget bounds fuel (instruction units of the engine), memory and time.
//!
//! [`actual`] does the reverse: it writes a result as an expectation that it meets, which
//! `--update` stores in the file.

use std::time::Duration;

use serde_json::Value;
use toolcell::{CallResult, Completion, Outcome};

use super::file::{Budget, Expect};
use crate::lines::format_lines;
use crate::{Error, Result, SourceLine};

/// Characters of a result that are shown.
const MAX_SHOWN: usize = 2000;

/// Returns the result as the expectation that it meets exactly.
pub(super) fn actual(result: &CallResult) -> Expect {
    let mut seen = Expect::default();
    match result {
        CallResult::Outcome(Outcome::Ok(output)) => seen.ok = Some(output.value.to_value()),
        CallResult::Outcome(Outcome::Error(error)) => seen.error = Some(error.message.clone()),
        CallResult::Outcome(Outcome::AskUser(question)) => {
            seen.ask_user = Some(question.question.clone())
        }
        CallResult::Outcome(Outcome::Halt(halt)) => seen.halt = Some(halt.reason.clone()),
        CallResult::ToolError(error) => seen.tool_error = Some(error.reason().name().to_owned()),
        CallResult::Refusal(refusal) => seen.refusal = Some(refusal.kind().to_owned()),
    }
    seen
}

/// Returns all deviations from the expectation. A trap is shown with the source lines `lines`.
pub(super) fn failures(
    completion: &Completion,
    lines: &[SourceLine],
    expect: &Expect,
    budget: Option<Budget>,
) -> Result<Vec<String>> {
    let seen = actual(&completion.result);
    let places = format_lines(lines);
    let ending = result_line(&completion.result) + &places;
    let mut failures = Vec::new();
    let mut check = |holds: bool, wanted: String| {
        if !holds {
            failures.push(format!("expected {wanted}, but it ended with {ending}"));
        }
    };
    if let Some(value) = &expect.ok {
        check(seen.ok.as_ref() == Some(value), format!("ok: {value}"));
    }
    if let Some(schema) = &expect.ok_schema {
        let validator = jsonschema::draft202012::new(schema).map_err(|error| {
            Error::cases(format!("`ok_schema` is not a JSON Schema: {error}"), "correct the schema")
        })?;
        let fits = seen.ok.as_ref().is_some_and(|value| validator.is_valid(value));
        check(fits, format!("ok, with a value that fits the schema {schema}"));
    }
    if let Some(part) = &expect.ok_contains {
        let holds = seen.ok.as_ref().is_some_and(|value| text(value).contains(part));
        check(holds, format!("ok, with {part:?} in it"));
    }
    let texts = [
        ("error", &expect.error, &seen.error),
        ("ask_user", &expect.ask_user, &seen.ask_user),
        ("halt", &expect.halt, &seen.halt),
        ("tool_error", &expect.tool_error, &seen.tool_error),
        ("refusal", &expect.refusal, &seen.refusal),
    ];
    for (name, wanted, seen) in texts {
        if let Some(wanted) = wanted {
            check(seen.as_ref() == Some(wanted), format!("{name}: {wanted:?}"));
        }
    }
    if let Some(part) = &expect.error_contains {
        let holds = seen.error.as_ref().is_some_and(|error| error.contains(part));
        check(holds, format!("error, with {part:?} in it"));
    }
    let message = match &completion.result {
        CallResult::ToolError(error) => Some(error.to_string() + &places),
        CallResult::Refusal(refusal) => Some(refusal.to_string()),
        CallResult::Outcome(_) => None,
    };
    if let Some(part) = &expect.message_contains {
        let holds = message.as_ref().is_some_and(|message| message.contains(part));
        check(holds, format!("a message with {part:?} in it"));
    }
    for (pattern, text, of) in [
        (&expect.ok_matches, seen.ok.as_ref().map(text), "ok, with a value"),
        (&expect.error_matches, seen.error.clone(), "error, with a message"),
        (&expect.message_matches, message, "a message"),
    ] {
        if let Some(pattern) = pattern {
            let holds = text.is_some_and(|text| pattern.matches(&text));
            check(holds, format!("{of} that /{pattern}/ matches"));
        }
    }
    if *expect == Expect::default() {
        failures
            .push(format!("the case has no expected ending yet (`--update` writes it); the call ended with {ending}"));
    }
    let (usage, budget) = (&completion.usage, budget.unwrap_or_default());
    if let Some(most) = budget.fuel
        && let used = usage.fuel.unwrap_or_default()
        && used > most
    {
        failures.push(format!("it used {used} fuel; its budget is {most}"));
    }
    if let Some(most) = budget.memory
        && usage.peak_memory > most
    {
        failures.push(format!(
            "it used {} bytes of memory; its budget is {most} bytes",
            usage.peak_memory
        ));
    }
    if let Some(most) = budget.time_ms
        && usage.wall > Duration::from_millis(most)
    {
        failures.push(format!(
            "it took {:.1} ms; its budget is {most} ms",
            usage.wall.as_secs_f64() * 1e3
        ));
    }
    Ok(failures)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats the result with its message on one line.
fn result_line(result: &CallResult) -> String {
    let text = match result {
        CallResult::Outcome(Outcome::Ok(output)) => format!("ok: {}", output.value.as_str()),
        CallResult::Outcome(Outcome::Error(error)) => format!("error: {:?}", error.message),
        CallResult::Outcome(Outcome::AskUser(question)) => {
            format!("ask_user: {:?}", question.question)
        }
        CallResult::Outcome(Outcome::Halt(halt)) => format!("halt: {:?}", halt.reason),
        CallResult::ToolError(error) => format!("tool_error: {}: {error}", error.reason().name()),
        CallResult::Refusal(refusal) => format!("refusal: {}: {refusal}", refusal.kind()),
    };
    text.chars().take(MAX_SHOWN).collect()
}
