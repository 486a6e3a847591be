//! Reads the list of calls of a batch.
//!
//! `toolcell batch` calls [`read`] with a file, or `-` for standard input, and returns a [`List`]:
//! the calls in order, and the calls of a provider that cannot be read. Two kinds of text are
//! accepted: toolcell's own form, which is a JSON array or one object per line; or documents of a
//! model provider, one for the whole text or one per line. Without `--calls-format` the form is
//! detected. All calls are read or none; an error names its line. Arguments are passed on unchanged
//! and are checked with their call, which then fails alone. At most a million calls are read.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use anyhow::anyhow;
use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use toolcell::message::Message;
use toolcell::provider::UnreadableCall;
use toolcell::run::RunHalt;
use toolcell::{Provider, ToolCall};

use super::forms;
use crate::os::files;
use crate::print::{Failure, Format, Result};

/// The name of our own form.
const OWN: &str = "calls";
/// The most calls of one batch. All messages are in memory until the last call ends.
const MAX_CALLS: usize = 1_000_000;
/// Characters of the parser's message, which repeats parts of the input.
const MAX_PROBLEM: usize = 200;

/// The hint for calls that cannot be read.
const HINT: &str = r#"write a JSON array of calls, or one call a line: {"id": "c1", "name": "greet", "arguments": {}}; `toolcell batch --help` lists the other forms, and `--calls-format FORM` selects one"#;

/// The calls of a batch.
#[derive(Debug, Default, PartialEq)]
pub(super) struct List {
    pub(super) calls: Vec<ToolCall>,
    /// A provider's calls that cannot be read, with their index among all calls.
    pub(super) unreadable: Vec<UnreadableCall>,
}

impl List {
    fn len(&self) -> usize {
        self.calls.len() + self.unreadable.len()
    }

    /// Returns the id of a call that cannot be read, if another call has it too: one of the two
    /// messages would be lost. The run compares the ids of the calls that can be read.
    fn repeated_id(&self) -> Option<&str> {
        if self.unreadable.is_empty() {
            return None;
        }
        let mut ids: HashSet<_> = self.calls.iter().map(|call| call.id.as_str()).collect();
        self.unreadable.iter().filter_map(|call| call.id.as_deref()).find(|id| !ids.insert(id))
    }

    /// Returns the messages of the calls that cannot be read, if a message can be sent.
    pub(super) fn unreadable_messages(&self) -> impl Iterator<Item = Message> {
        self.unreadable.iter().filter_map(UnreadableCall::message)
    }

    /// Returns the halt by the first call that cannot be read, for a run that halts at failures, and
    /// the ids of the calls before it.
    pub(super) fn halt(&self) -> Option<(RunHalt, HashSet<String>)> {
        let first = self.unreadable.first()?;
        let tool_call_id = first.id.clone().unwrap_or_default();
        let before = self.calls.iter().take(first.index).map(|call| call.id.clone()).collect();
        Some((RunHalt::ToolError { tool_call_id, exception: None }, before))
    }

    /// Returns the ids of all calls in order, including those that cannot be read.
    pub(super) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<_> = self.calls.iter().map(|call| call.id.clone()).collect();
        for unreadable in &self.unreadable {
            ids.insert(unreadable.index.min(ids.len()), unreadable.id.clone().unwrap_or_default());
        }
        ids
    }

    fn extend(&mut self, read: toolcell::provider::Calls) {
        let before = self.len();
        self.calls.extend(read.calls);
        self.unreadable.extend(read.unreadable.into_iter().map(|mut call| {
            call.index += before;
            call
        }));
    }
}

/// Reads the calls from a file, or from standard input for `-`.
pub(super) fn read(path: &Path, form: Option<Format>) -> Result<List> {
    let (text, source) = files::calls(path)?;
    let list = match form {
        None => parse(&text),
        Some(Format::Own) => parse_own(&text),
        Some(Format::Of(provider)) => {
            let list = sent(&text, Some(provider));
            // The `params` of an MCP request alone look like a call in our own form.
            let is_unclear = list.as_ref().map_or(0, List::len) == 0 || provider == Provider::Mcp;
            let other = is_unclear.then(|| other_form(&text)).flatten();
            if let Some(other) = other.filter(|other| *other != provider.name()) {
                let message =
                    anyhow!("{source}: the calls have the form `{other}`, not `{provider}`");
                let members = forms::members(provider);
                let hint = format!(
                    "write `--calls-format {other}`, or leave it out: the form is then found; `{provider}` is {members}"
                );
                return Err(Failure::file(message, hint));
            }
            list
        }
    };
    let list = list.map_err(|problem| Failure::file(anyhow!("{source}: {problem}"), HINT))?;
    match list.repeated_id() {
        Some(id) => Err(toolcell::Error::duplicate_call(id).into()),
        None => Ok(list),
    }
}

/// Parses the calls of a text; the error has the place. Our own form is tried first, because it is
/// read call by call, without a tree.
fn parse(text: &str) -> Result<List, String> {
    parse_own(text).or_else(|problem| match sent(text, None) {
        Ok(list) => Ok(list),
        // One JSON document that is not a list in our form: the error lists the forms.
        Err(unreadable) if is_a_document(text) || forms::is_known(text) => Err(unreadable),
        Err(_) => Err(problem),
    })
}

/// Returns the name of the form of a text that has calls.
fn other_form(text: &str) -> Option<&'static str> {
    if parse_own(text).is_ok_and(|list| list.len() > 0) {
        Some(OWN)
    } else {
        forms::provider_name(text)
    }
}

/// Returns true if the text is one JSON value without a call in our own form.
fn is_a_document(text: &str) -> bool {
    let is_ours = |item: &Value| item.get("name").is_some() || item.get("function").is_some();
    match Provider::document(text) {
        Ok(Value::Array(items)) => !items.iter().any(is_ours),
        Ok(Value::Object(members)) => !members.is_empty() && !is_ours(&Value::Object(members)),
        Ok(_) | Err(_) => false,
    }
}

/// Parses a provider's calls: one document, or one document a line among calls in our own form.
fn sent(text: &str, form: Option<Provider>) -> Result<List, String> {
    let mut list = List::default();
    if let Ok(document) = Provider::document(text) {
        list.extend(forms::read(&document, form)?);
        return Ok(list);
    }
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = format!("line {}", index + 1);
        // A call of OpenAI also has our own form: it is read in the named form alone.
        let is_read = form.is_none()
            && serde_json::from_str(line).and_then(|written| push(&mut list, written)).is_ok();
        if !is_read {
            let document = Provider::document(line).or_else(|_| serde_json::from_str(line));
            let document = document.map_err(|error| parse_error(&place, &error))?;
            let read =
                forms::read(&document, form).map_err(|problem| format!("{place}: {problem}"))?;
            list.extend(read);
        }
        if list.len() > MAX_CALLS {
            return Err(format!("{place}: more than {MAX_CALLS} calls: make several batches"));
        }
    }
    Ok(list)
}

/// Parses a list in our own form.
fn parse_own(text: &str) -> Result<List, String> {
    let mut list = List::default();
    if text.trim_start().starts_with('[') {
        let mut parser = serde_json::Deserializer::from_str(text);
        let read = parser.deserialize_seq(Array(&mut list));
        // The parser stopped after the last call that it could read, or after all of them.
        read.map_err(|error| (format!("call {}, line {}", list.len() + 1, error.line()), error))
            .and_then(|()| {
                parser
                    .end()
                    .map_err(|error| (format!("after the calls, line {}", error.line()), error))
            })
            .map_err(|(place, error)| parse_error(&place, &error))?;
    } else {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let read = serde_json::from_str(line).and_then(|written| push(&mut list, written));
            read.map_err(|error| parse_error(&format!("line {}", index + 1), &error))?;
        }
    }
    Ok(list)
}

/// Reads an array call by call.
struct Array<'a>(&'a mut List);

impl<'de> Visitor<'de> for Array<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of calls")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(written) = items.next_element()? {
            push(self.0, written)?;
        }
        Ok(())
    }
}

/// A call in our own form or in OpenAI's. Unknown members are errors: a mistyped `arguments` would
/// otherwise count as absent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a call")]
struct InputCall<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "type")]
    kind: Option<Kind>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Function,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a function's name and arguments")]
struct Function<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Adds one call. A call without an id is named after its position, counted from 1.
fn push<E: serde::de::Error>(list: &mut List, written: InputCall<'_>) -> Result<(), E> {
    if list.len() == MAX_CALLS {
        return Err(E::custom(format_args!("more than {MAX_CALLS} calls: make several batches")));
    }
    let (name, arguments) = match written {
        InputCall { name: Some(name), arguments, kind: None, function: None, .. } => {
            (name, arguments)
        }
        InputCall { name: None, arguments: None, function: Some(function), .. } => {
            (function.name, function.arguments)
        }
        InputCall { name: None, function: None, .. } => return Err(E::missing_field("name")),
        InputCall { .. } => {
            return Err(E::custom(
                "a call has either `name` and `arguments`, or `type` and `function`, not parts of both",
            ));
        }
    };
    let arguments = arguments.map(text).unwrap_or_default();
    // Several models write this for a tool without parameters.
    let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
    let id = written.id.unwrap_or_else(|| format!("call-{}", list.len() + 1));
    list.calls.push(ToolCall::new(id, name, arguments));
    Ok(())
}

/// Returns the arguments as JSON text: the value itself, or the content of a string. A string with
/// a broken escape stays unchanged, and only its own call is refused.
fn text(arguments: &RawValue) -> String {
    let written = arguments.get();
    let inner = if written.starts_with('"') { serde_json::from_str(written).ok() } else { None };
    inner.unwrap_or_else(|| written.to_owned())
}

/// Returns the parser's message with our place before it. The parser's own place counts within the
/// line.
fn parse_error(place: &str, error: &serde_json::Error) -> String {
    let said = error.to_string();
    let own = format!(" at line {} column {}", error.line(), error.column());
    let problem = said.strip_suffix(&own).unwrap_or(&said);
    let mut shown: String = problem.chars().take(MAX_PROBLEM).collect();
    if shown.len() < problem.len() {
        shown.push('…');
    }
    match error.column() {
        0 => format!("{place}: {shown}"),
        column => format!("{place} column {column}: {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall::new(id, name, arguments)
    }

    #[test]
    fn calls_parse_from_array_or_lines() {
        for (text, expected) in rows::<(&str, Vec<(&str, &str, &str)>)>(
            "batch_calls",
            "calls_parse_from_array_or_lines",
        ) {
            let expected: Vec<_> =
                expected.iter().map(|(id, name, text)| call(id, name, text)).collect();
            assert_eq!(parse(text).map(|list| list.calls), Ok(expected), "{text}");
        }
    }

    #[test]
    fn parse_error_names_location() {
        let good = r#"{"name": "y"}"#;
        let deep = format!("{good}\n{}", "[".repeat(100_000));
        for (text, expected) in rows::<(&str, &str)>("batch_calls", "parse_error_names_location")
            .into_iter()
            .chain([(&*deep, "line 2 ")])
        {
            let problem = parse(text).expect_err(text);
            assert!(problem.starts_with(expected), "{text}: {problem}");
        }
        let long = format!("{{\"{}\": 1}}", "é".repeat(100_000));
        assert!(parse(&long).unwrap_err().chars().count() < MAX_PROBLEM + 40);
    }

    #[test]
    fn provider_calls_parse_unchanged() {
        let function = r#"{"id": "a", "type": "function", "function": {"name": "x", "arguments": "{\"n\": 1}"}}"#;
        let request = r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x", "arguments": {"n":1}}}"#;
        let (text, compact) = (r#"{"n": 1}"#, r#"{"n":1}"#);
        for (document, id, arguments) in
            rows::<(&str, &str, &str)>("batch_calls", "provider_calls_parse_unchanged")
        {
            let expected = vec![call(id, "x", arguments)];
            assert_eq!(parse(document).map(|list| list.calls), Ok(expected), "{document}");
        }
        let large = format!(
            "[{}]",
            r#"{"type": "tool_use", "id": "a", "name": "x", "input": {"n": 123456789012345678901}}"#
        );
        let expected = vec![call("a", "x", r#"{"n":"123456789012345678901"}"#)];
        assert_eq!(parse(&large).map(|list| list.calls), Ok(expected), "no other digits");
        let lines = format!(
            "{request}\n{{\"name\": \"y\"}}\n{{\"role\": \"assistant\", \"toolCalls\": [{function}]}}\n"
        );
        let expected =
            vec![call("7", "x", compact), call("call-2", "y", "{}"), call("a", "x", text)];
        assert_eq!(parse(&lines).map(|list| list.calls), Ok(expected));
    }

    #[test]
    fn lines_in_a_named_form_are_read_once() {
        let function = |id: &str| {
            format!(
                r#"{{"id": "{id}", "type": "function", "function": {{"name": "x", "arguments": "{{}}"}}}}"#
            )
        };
        let lines = format!("{}\n{}\n", function("a"), function("b"));
        let expected = vec![call("a", "x", "{}"), call("b", "x", "{}")];
        for form in [None, Some(Provider::OpenAi)] {
            let read = sent(&lines, form).map(|list| list.calls);
            assert_eq!(read.as_ref(), Ok(&expected), "{form:?}");
        }
    }

    #[test]
    fn unreadable_call_keeps_its_position() {
        let list = r#"[{"type": "tool_use", "id": "a"}, {"type": "tool_use", "id": "b", "name": "x", "input": {}}]"#;
        let read = parse(list).unwrap();
        assert_eq!(
            (read.calls.as_slice(), read.ids()),
            (&[call("b", "x", "{}")][..], vec!["a".to_owned(), "b".to_owned()])
        );
        let told: Vec<_> = read
            .unreadable_messages()
            .map(|message| (message.tool_call_id, message.is_error))
            .collect();
        assert_eq!(told, [("a".to_owned(), true)]);
        assert_eq!(read.repeated_id(), None);
        for same in [
            list.replace(r#""b""#, r#""a""#),
            list.replace(r#""id": "b", "name": "x""#, r#""id": "a""#),
        ] {
            assert_eq!(parse(&same).unwrap().repeated_id(), Some("a"), "{same}");
        }
    }

    #[test]
    fn call_count_is_limited() {
        let most = "{\"name\":\"\"}\n".repeat(MAX_CALLS + 1);
        let problem = parse(&most).unwrap_err();
        assert_eq!(problem, "line 1000001: more than 1000000 calls: make several batches");
    }
}
