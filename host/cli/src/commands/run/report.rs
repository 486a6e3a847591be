//! Prints the end of a call for a person: the tool's text on standard output, the host's on
//! standard error.
//!
//! `run` calls [`show`] with the result of a call. A string is printed as text, any other value as
//! JSON. For a tool error (a trap, a timeout, an unusable answer) and for a refusal it prints the
//! reason in the words of the contract, the source lines or the functions on the stack, and a hint:
//! the limit to raise, with its present value, or that the tool has a bug. [`question`] prints a
//! tool's question with its options and the schema of the answer.
//!
//! Not here: the form for programs, which is the JSON of the completion (result and usage).

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;
use toolcell::outcome::{
    Crash, CrashKind, Exit, Halt, HandlerError, LimitHit, LimitKind, Media, Output, Part, Resource,
    ReturnRule, Timeout,
};
use toolcell::{CallResult, Json, Limits, Outcome, Question, Refusal, ToolError};
use toolcell_author::{SourceLine, shown_lines};

use super::live::has_panic;
use super::ungranted::not_granted;
use super::{TypedCall, argument_faults, resume};
use crate::built;
use crate::grants::advice::RequestOrigin;
use crate::grants::gaps::Gap;
use crate::grants::secrets;
use crate::print::{Count, Printer, Result, Size, Time, clean, schema, table};

const MIB: u64 = 1 << 20;
/// The most functions of a guest's backtrace that are shown.
const FRAMES: usize = 5;
/// The prefix of a function without a name in a backtrace.
const NAMELESS: &str = "func[";

/// Prints the result. A trap is printed with these source lines.
pub(super) fn show(
    printer: &Printer,
    typed: &TypedCall<'_>,
    result: &CallResult,
    lines: &[SourceLine],
) -> Result<()> {
    match result {
        CallResult::Outcome(Outcome::Ok(output)) => ok(printer, output),
        CallResult::Outcome(Outcome::Error(error)) => {
            handler_error(printer, error).map(|()| not_granted(printer, typed, &error.message))
        }
        CallResult::Outcome(Outcome::AskUser(question)) => self::question(printer, question),
        CallResult::Outcome(Outcome::Halt(Halt { reason, result, .. })) => {
            value(printer, result)?;
            printer.labelled("halt", clean::note(reason));
            Ok(())
        }
        CallResult::ToolError(error) => {
            tool_error(printer, typed, error, lines);
            if let ToolError::HandlerRaised(_) | ToolError::HandlerExit(_) = error {
                not_granted(printer, typed, "");
            }
            Ok(())
        }
        CallResult::Refusal(refusal) => {
            print_refusal(printer, typed, refusal);
            Ok(())
        }
    }
}

/// Prints a string as text, any other value as JSON.
fn value(printer: &Printer, json: &Json) -> Result<()> {
    match serde_json::from_str::<String>(json.as_str()) {
        Ok(text) => printer.result(&text),
        Err(_) => printer.result(&clean::json(json.as_str())),
    }
}

fn ok(printer: &Printer, output: &Output) -> Result<()> {
    value(printer, &output.value)?;
    if let Some(message) = &output.message {
        printer.labelled("message", clean::note(message));
    }
    for part in &output.parts {
        let media = |Media { mime_type, data }: &Media| {
            format!("{mime_type}, {}", Size(data.len() as u64).rounded())
        };
        match part {
            Part::Text { text } => printer.labelled("text", clean::note(text)),
            Part::Image(image) => printer.labelled("image", media(image)),
            Part::Audio(audio) => printer.labelled("audio", media(audio)),
            Part::Resource(Resource { uri, content, .. }) => {
                let size = Size(content.as_bytes().len() as u64).rounded();
                printer.labelled("resource", clean::note(&format!("{uri}, {size}")));
            }
            Part::ResourceLink { uri, name, .. } => {
                let link =
                    name.as_ref().map_or_else(|| uri.clone(), |name| format!("{name} {uri}"));
                printer.labelled("link", clean::note(&link));
            }
        }
    }
    Ok(())
}

/// An error as a model reads it, with the tool's statements about a retry.
#[derive(Serialize)]
struct ErrorView<'a> {
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

fn handler_error(printer: &Printer, error: &HandlerError) -> Result<()> {
    let HandlerError { message, data, retryable, retry_after_ms, .. } = error;
    printer.json(&ErrorView {
        error: message,
        data: data.as_ref(),
        retryable: *retryable,
        retry_after_ms: *retry_after_ms,
    })
}

/// Prints a tool's question, its options, and the schema of the answer.
pub(super) fn question(printer: &Printer, question: &Question) -> Result<()> {
    let mut text = vec![question.question.clone()];
    match question.options.as_ref().map(Json::to_value) {
        Some(Value::Array(options)) => {
            text.extend(options.iter().map(|option| format!("  - {}", plain(option))))
        }
        Some(options) => text.push(format!("  {}", plain(&options))),
        None => {}
    }
    if let Some(answer) = question.answer_schema.as_ref().map(Json::to_value) {
        let members = schema::parameters(&answer);
        text.push(format!("answer: {}", schema::kind(&answer)));
        let rows: Vec<_> = members
            .into_iter()
            .map(|member| vec![member.name, member.kind, member.description])
            .collect();
        if !rows.is_empty() {
            text.push(table::columns(2, usize::MAX, &rows));
        }
    }
    printer.text(&text.join("\n"))
}

/// Returns JSON as text with little punctuation, enough for two levels.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shallow).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let words = if value.is_array() { plain(value) } else { shallow(value) };
                format!("{name}: {words}")
            };
            members.iter().map(member).collect::<Vec<_>>().join("; ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn shallow(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns true if the message of the language runtime explains the error, and the stack has no
/// functions of the author.
fn has_own_message(error: &ToolError) -> bool {
    let ToolError::HandlerRaised(raised) = error else { return false };
    raised.kind == CrashKind::Unreachable
        && raised.panic_message.is_some()
        && raised.backtrace.is_empty()
}

fn tool_error(printer: &Printer, typed: &TypedCall<'_>, error: &ToolError, lines: &[SourceLine]) {
    let mut json = serde_json::to_value(error).unwrap_or_default();
    let mut shown = error.clone();
    if let ToolError::HandlerRaised(raised) = &mut shown
        && !has_panic(raised)
        && !printer.is_quiet()
    {
        // The message of another runtime was printed above, unchanged. With `--quiet` it was not.
        raised.panic_message = None;
    }
    printer.error(&shown);
    // A runtime that ends a tool with its own message does so by a trap, whose cause adds no
    // information.
    if let Some(members) = json.as_object_mut().filter(|_| has_own_message(error)) {
        members.remove("cause");
    }
    printer.labelled("  reason", reason(&json));
    for line in shown_lines(lines).iter().take(FRAMES) {
        printer.labelled("  at", clean::note(line));
    }
    if let (ToolError::HandlerRaised(Crash { backtrace, .. }), []) = (error, lines) {
        functions(printer, backtrace);
    }
    printer.hint(hint(typed, error));
}

/// Prints the functions on the stack, innermost first.
fn functions(printer: &Printer, backtrace: &[String]) {
    let named = backtrace.iter().filter(|frame| !frame.starts_with(NAMELESS)).take(FRAMES);
    let shown = named.map(|frame| printer.labelled("  in", frame)).count();
    if backtrace.len() > shown {
        let more = if shown > 0 { "more functions" } else { "functions without names" };
        printer.labelled("  in", format!("{} {more}, see `--json`", backtrace.len() - shown));
    }
}

/// Returns the reason and its cause, in the words of the contract: `timeout: fuel, budget 1000,
/// used 1000`.
fn reason(json: &Value) -> String {
    let mut words = json.get("reason").map(shallow).unwrap_or_default();
    let Some(cause) = json.get("cause").and_then(Value::as_object) else {
        return words;
    };
    if let Some(name) = ["kind", "status", "rule"].iter().find_map(|name| cause.get(*name)) {
        words += &format!(": {}", shallow(name));
    }
    // Texts and lists are in the message or below.
    for (name, value) in cause.iter().filter(|(_, value)| value.is_number()) {
        words += &format!(", {name} {value}");
    }
    words
}

/// Returns true if there are functions, and none of them has a name.
fn is_nameless(backtrace: &[String]) -> bool {
    !backtrace.is_empty() && backtrace.iter().all(|frame| frame.starts_with(NAMELESS))
}

/// Returns the advice for a tool error.
fn hint(typed: &TypedCall<'_>, error: &ToolError) -> String {
    let RequestOrigin { config, chosen, definition, .. } = typed.origin;
    let tell = if built::is_of_project(&chosen.path, &config.hint) {
        "correct it"
    } else {
        "tell its author"
    };
    // A need of which no part is granted.
    let lacks_grants = || typed.origin.missing_needs().iter().any(Gap::is_whole);
    let bug = if typed.is_denied || lacks_grants() {
        format!("what is not granted may be the cause; otherwise it is a bug in the tool: {tell}")
    } else {
        format!("a bug in the tool: {tell}")
    };
    let memory = |limits: &Limits| Size(limits.memory);
    match error {
        ToolError::HandlerRaised(Crash { kind: CrashKind::LimitAtStart, limit, .. })
            if limit.is_none_or(|limit| limit.kind == LimitKind::Memory) =>
        {
            let asked = limit.map_or(0, |limit| limit.requested.div_ceil(MIB).saturating_mul(MIB));
            let enough = Size(asked.max(Limits::DEFAULT_MEMORY));
            let place = limit_place(typed, ("memory", "memory"), memory);
            format!("{place}, for example to {enough}")
        }
        ToolError::HandlerRaised(Crash {
            limit: Some(LimitHit { kind: LimitKind::Memory, .. }),
            ..
        }) => raise(typed, "memory", memory),
        ToolError::HandlerRaised(Crash { limit: Some(LimitHit { kind, .. }), .. }) => {
            fixed(*kind, tell)
        }
        ToolError::HandlerRaised(Crash { kind: CrashKind::StackOverflow, .. }) => {
            format!(
                "the arguments may be nested too deep for the tool; otherwise it is a bug in the tool: {tell}"
            )
        }
        ToolError::HandlerRaised(Crash { kind: CrashKind::BrokenAbi, backtrace, .. })
            if backtrace.iter().any(|frame| frame == "args_sizes_get") =>
        {
            "a word of a program for WASI preview 1 has at most 58000 bytes, less 8 for each word: pass a longer text as \
             `stdin` or in a file"
                .to_owned()
        }
        ToolError::HandlerRaised(Crash { kind: CrashKind::HostPanic, .. }) => {
            "this is a bug in toolcell, not in the tool: the message above says where".to_owned()
        }
        ToolError::HandlerRaised(Crash { backtrace, .. }) if is_nameless(backtrace) => {
            format!(
                "{bug}; to see the names of functions here, build the tool with \
                 `strip = \"debuginfo\"` in `[profile.release]`"
            )
        }
        ToolError::HandlerRaised(_) if has_own_message(error) => bug,
        ToolError::HandlerRaised(_) => format!("{bug}; `--json` has all functions on the stack"),
        ToolError::HandlerExit(Exit::Exited { .. }) => {
            format!(
                "a tool has to return an answer: {tell}; WASI tells the host only whether the exit was a success, not its code"
            )
        }
        ToolError::HandlerExit(_) => "try again".to_owned(),
        ToolError::Timeout(Timeout::Fuel { .. }) => {
            raise(typed, "fuel", |limits| Count(limits.fuel))
        }
        ToolError::Timeout(Timeout::Deadline { .. } | Timeout::Blocked { .. }) => {
            match definition.max_execution.filter(|bound| *bound <= typed.limits.timeout) {
                Some(bound) => format!(
                    "the tool itself allows no more than {}: give the tool less to do",
                    Time(bound)
                ),
                None => raise(typed, "timeout", |limits| Time(limits.timeout)),
            }
        }
        ToolError::InvalidReturn(ReturnRule::TooLarge { .. }) => {
            let place = limit_place(typed, ("result", "max-result"), |limits| Size(limits.result));
            format!("{place}, or ask the tool for less")
        }
        ToolError::InvalidReturn(ReturnRule::TooManyParts { .. }) => {
            "ask the tool for less".to_owned()
        }
        ToolError::InvalidReturn(_) => format!("a bug in the tool: {tell}"),
        ToolError::NotFound => {
            "this tool has no handler here: the program that offers it answers its calls".to_owned()
        }
        ToolError::EncodingFailed(_) => "look at the result with `--json`".to_owned(),
    }
}

/// Returns the advice for a limit that no option raises.
fn fixed(kind: LimitKind, tell: &str) -> String {
    match kind {
        LimitKind::HostCalls => format!("the tool calls the host again and again: {tell}"),
        LimitKind::HostBytes => {
            format!(
                "the host keeps too much data for the tool at once: give the tool less to do; if it has a bug, {tell}"
            )
        }
        LimitKind::OpenFiles => {
            "too many files are open in this call and the calls that run beside it: run fewer calls at once; if this \
             call ran alone, the tool has a bug"
                .to_owned()
        }
        LimitKind::TableElements => {
            format!("the tool asked for a very large WebAssembly table, which is probably a bug: {tell}")
        }
        LimitKind::Memory | _ => "give the tool less to do".to_owned(),
    }
}

/// Returns the advice for a limit that has one name in the file and among the options.
fn raise<T: PartialOrd + Display>(
    typed: &TypedCall<'_>,
    limit: &str,
    of: impl Fn(&Limits) -> T,
) -> String {
    format!("{}, or give the tool less to do", limit_place(typed, (limit, limit), of))
}

/// Returns the place to raise the limit that `of` selects, with its present value: the option, or
/// the tool's own section if that limit is tighter. The names are those in the file and among the
/// options.
fn limit_place<T: PartialOrd + Display>(
    typed: &TypedCall<'_>,
    (limit, option): (&str, &str),
    of: impl Fn(&Limits) -> T,
) -> String {
    let (by_all, own) = (of(&typed.limits), of(&typed.tool.limits()));
    match typed.origin.chosen.section_of(&typed.origin.definition.name) {
        Some(section) if own < by_all => {
            format!("raise `{limit}` in [{section}.limits] (now {own})")
        }
        Some(_) | None => format!("raise `--{option}` (now {by_all})"),
    }
}

fn print_refusal(printer: &Printer, typed: &TypedCall<'_>, refusal: &Refusal) {
    let RequestOrigin { config, definition, tenant, .. } = typed.origin;
    if let Refusal::UnsetSecret(names) = refusal {
        let unset: BTreeMap<_, _> = config.unset_for(tenant).collect();
        let problems: Vec<_> = names.iter().filter_map(|name| unset.get(name).copied()).collect();
        for problem in &problems {
            printer.error(secrets::problem_text(problem, &[&definition.name]));
        }
        if problems.is_empty() {
            printer.error(refusal);
        }
        printer.labelled("  reason", refusal.kind());
        problems.iter().for_each(|problem| printer.hint(&problem.hint));
        return;
    }
    let Refusal::InvalidArguments(faults) = refusal else {
        // The hints about answers name this command's options.
        let (error, hint) = if let Refusal::Resume(fault) = refusal {
            (fault.to_string(), resume::remedy(*fault))
        } else if let Refusal::InvalidAnswer(_) = refusal {
            (refusal.to_string(), "correct `--answer`, and repeat the same `--state`")
        } else {
            (refusal.to_string(), refusal.hint())
        };
        printer.error(&error);
        printer.labelled("  reason", refusal.kind());
        printer.hint(hint);
        return;
    };
    argument_faults::print_faults(printer, &typed.args.call, &config.hint, typed.arguments, faults);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_limit_has_its_own_hint() {
        for (kind, needle) in [
            (LimitKind::HostCalls, "again and again"),
            (LimitKind::HostBytes, "the host keeps too much"),
            (LimitKind::OpenFiles, "run fewer calls at once"),
            (LimitKind::TableElements, "a very large WebAssembly table"),
        ] {
            assert!(fixed(kind, "").contains(needle), "{kind:?}");
        }
    }

    #[test]
    fn options_are_formatted_as_plain_text() {
        for (value, expected) in [
            (json!("a"), "a"),
            (json!(["a", 1, {"b": 2}]), "a, 1, {\"b\":2}"),
            (
                json!({"choices": ["17:00", "18:00"], "field": "time", "z": {"deep": []}}),
                "choices: 17:00, 18:00; field: time; z: {\"deep\":[]}",
            ),
            (json!(null), "null"),
        ] {
            assert_eq!(plain(&value), expected);
        }
    }
}
