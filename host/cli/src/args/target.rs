//! Parses the tool and its arguments after a component: `[TOOL] [ARGS]…`.
//!
//! `run` and `learn` call [`Target::of_call`] with the words that were entered on the command line.
//! It decides by the form of the first word alone if it is a tool's name or the first argument:
//! `{…}`, `[…]`, `"…"`, `@FILE`, `-` and `NAME=VALUE` are arguments. It reads a file or standard
//! input if one is named. [`TypedArguments::of`] makes JSON text once the tool is known: a
//! `NAME=VALUE` is text unless the tool's schema expects another type there, and `NAME:=JSON` is
//! always JSON. [`tool`] finds the tool in the component, with the nearest name as a hint.
//!
//! Not here: the check of the arguments against the schema, which the library does at the call.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolcell::component::ComponentKind;
use toolcell::{Definition, Limits, Tool, names};

use crate::args::CallArgs;
use crate::config::quoted;
use crate::os::files::{self, Arguments};
use crate::print::{Failure, Result, schema};

/// The words after a component, with the content of a file or of standard input.
pub(crate) struct Target<'a> {
    /// The tool's name. A component with one tool needs none.
    pub(crate) tool: Option<&'a str>,
    pub(crate) arguments: TypedArguments<'a>,
}

/// Arguments before the tool is known.
pub(crate) enum TypedArguments<'a> {
    /// One JSON object, `@FILE`, or `-`.
    Text(Arguments),
    /// `NAME=VALUE` and `NAME:=JSON`.
    Members(Vec<Member<'a>>),
}

/// `NAME=VALUE` or `NAME:=JSON`.
pub(crate) struct Member<'a> {
    name: &'a str,
    value: &'a str,
    is_json: bool,
}

impl<'a> Target<'a> {
    /// Separates the tool's name from the arguments, and reads the file or standard input that they
    /// refer to. For a program, the error explains how its words are typed.
    ///
    /// # Errors
    /// The words are neither one text nor members, a member is given twice or is not JSON, or the
    /// file cannot be read.
    pub(crate) fn of_call(call: &'a CallArgs, is_program: bool) -> Result<Self> {
        let (first, tool): (Option<&str>, _) = match call.tool.as_deref() {
            Some(word) if is_arguments(word) => (Some(word), None),
            tool => (None, tool),
        };
        let words: Vec<_> =
            first.into_iter().chain(call.arguments.iter().map(|word| &**word)).collect();
        let text = |text: &str| {
            files::arguments(text, Limits::DEFAULT_ARGUMENTS).map(TypedArguments::Text)
        };
        let arguments = match words.as_slice() {
            [] => text("{}"),
            [only] if member(only).is_none() => text(only),
            several => members(several)
                .map(TypedArguments::Members)
                .map_err(|failure| if is_program { of_program(failure, call) } else { failure }),
        };
        Ok(Self { tool, arguments: arguments? })
    }
}

impl TypedArguments<'_> {
    /// Returns the arguments for this tool.
    pub(crate) fn of(self, tool: &Definition) -> Arguments {
        match self {
            Self::Text(arguments) => arguments,
            Self::Members(members) => {
                let schema = tool.parameters.as_ref();
                let object: BTreeMap<_, _> =
                    members.iter().map(|member| (member.name, member.json(schema))).collect();
                let members = object.iter().map(|(name, json)| format!("{}:{json}", json!(name)));
                let members = members.collect::<Vec<_>>().join(",");
                Arguments { text: format!("{{{members}}}"), oversize: None }
            }
        }
    }
}

impl Member<'_> {
    /// Returns the value as JSON. JSON stays as it was typed: a number keeps its digits.
    fn json(&self, schema: Option<&Value>) -> String {
        let types = || schema.map(|schema| schema::types_of(schema, self.name)).unwrap_or_default();
        let is_json = || serde_json::from_str::<&RawValue>(self.value).is_ok();
        if self.is_json || !is_text(&types()) && is_json() {
            self.value.trim().to_owned()
        } else {
            json!(self.value).to_string()
        }
    }
}

/// Returns a typed text as a value of one of these JSON types: as text if that is one of them or
/// none is known, otherwise parsed as JSON.
pub(crate) fn value(typed: &str, types: &[&str]) -> Value {
    let text = || Value::from(typed);
    if is_text(types) { text() } else { serde_json::from_str(typed).unwrap_or_else(|_| text()) }
}

/// Returns true if what is typed for these types is a text.
fn is_text(types: &[&str]) -> bool {
    types.is_empty() || types.contains(&"string")
}

/// Returns the error of a call whose tool was not found. The first word after a program was meant
/// as a word for the program.
pub(crate) fn not_found(failure: Failure, call: &CallArgs, kind: &ComponentKind) -> Failure {
    let is_word = matches!(kind, ComponentKind::Command(_)) && failure.is_unknown_tool();
    if is_word { of_program(failure, call) } else { failure }
}

/// Adds a hint with the words for a program in their correct form: the member `args` of its
/// arguments.
fn of_program(failure: Failure, call: &CallArgs) -> Failure {
    let words: Vec<_> = call.tool.iter().chain(&call.arguments).collect();
    let args = quoted(&format!("args:={}", json!(words)));
    failure.with_hint(format!("what a program gets as its words is its argument `args`: {args}"))
}

/// The hint if there is no tool to name.
const NO_TOOLS: &str = "`toolcell check` shows which tools each tenant is offered";

/// Returns the component's tool of this name, or its only tool if no name was typed.
///
/// # Errors
/// No such tool, or no name although there are several tools.
pub(crate) fn tool<'a>(tools: &'a [Tool], name: Option<&str>, component: &str) -> Result<&'a Tool> {
    let known = || tools.iter().map(|tool| tool.definition().name.as_str());
    match (name, tools) {
        (None, [only]) => Ok(only),
        (None, []) => Err(Failure::usage(format!("`{component}` offers no tool"), NO_TOOLS)),
        (None, _) => {
            let known = known().collect::<Vec<_>>().join(", ");
            let message = format!("`{component}` offers several tools: say which");
            Err(Failure::usage(message, format!("there are: {known}")))
        }
        (Some(name), _) => tools
            .iter()
            .find(|tool| tool.definition().name == name)
            .ok_or_else(|| unknown(name, known())),
    }
}

/// Returns the error of a name that none of these tools has.
pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let known: Vec<_> = known.collect();
    let listed = || {
        if known.is_empty() {
            NO_TOOLS.to_owned()
        } else {
            format!("there are: {}", known.join(", "))
        }
    };
    Failure::unknown_tool(name, names::did_you_mean(name, known.iter().copied(), listed))
}

/// Returns true if a word has the form of arguments. No tool's name has that form, except `-`.
fn is_arguments(word: &str) -> bool {
    let word = word.trim_start();
    word.is_empty()
        || word == "-"
        || word.starts_with(['{', '[', '"', '@'])
        || member(word).is_some()
}

/// Returns true if a word is `{…}` or `NAME=VALUE`, which a component rarely is.
pub(crate) fn looks_like_arguments(word: &str) -> bool {
    word.starts_with('{') || member(word).is_some()
}

fn member(word: &str) -> Option<Member<'_>> {
    let (name, value) =
        word.split_once('=').filter(|_| !word.trim_start().starts_with(['{', '[', '"', '@']))?;
    let (name, is_json) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
    (!name.is_empty()).then_some(Member { name, value, is_json })
}

fn members<'a>(words: &[&'a str]) -> Result<Vec<Member<'a>>> {
    let mut found = BTreeSet::new();
    let mut members = Vec::new();
    for word in words {
        let shown = shorten(word);
        let Some(member) = member(word) else {
            let message = format!("`{shown}` is neither NAME=VALUE nor NAME:=JSON");
            let hint =
                "write NAME=VALUE and NAME:=JSON, or one JSON object in quotes for the shell";
            return Err(Failure::usage(message, hint));
        };
        if !found.insert(member.name) {
            let message = format!("the argument `{}` is given twice", shorten(member.name));
            let hint = "leave one of them out; for a list write NAME:='[…]'";
            return Err(Failure::usage(message, hint));
        }
        if member.is_json
            && let Err(error) = toolcell::Json::parse(member.value.to_owned())
        {
            let hint = "after `:=` write JSON, with quotes for the shell: NAME:='[\"a\"]'; text goes after `=`";
            return Err(Failure::usage(format!("`{shown}`: {error}"), hint));
        }
        members.push(member);
    }
    Ok(members)
}

pub(crate) fn shorten(word: &str) -> Cow<'_, str> {
    const MAX_CHARS: usize = 60;
    match word.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", word.get(..end).unwrap_or_default()).into(),
        None => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    fn target(words: &[&str]) -> Result<(Option<String>, String), String> {
        let mut words = words.iter().map(|word| (*word).to_owned());
        let call =
            CallArgs { component: ".".into(), tool: words.next(), arguments: words.collect() };
        let target = Target::of_call(&call, false).map_err(|failure| failure.message())?;
        let definition = Definition::new("t", "").unwrap().with_parameters(json!({
            "properties": {
                "n": {"type": "integer"}, "on": {"type": ["boolean", "null"]}, "either": {"type": ["string", "number"]},
                "list": {"$ref": "#/$defs/List"}, "size": {"enum": ["S", "L"]}, "level": {"enum": [1, 2]},
                "when": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "any": true,
                "real": {"anyOf": [{"type": "number"}, {"enum": ["NaN"]}]}, "digit": {"enum": ["1", "2"]}
            },
            "$defs": {"List": {"type": "array"}}
        }));
        Ok((target.tool.map(str::to_owned), target.arguments.of(&definition).text))
    }

    #[test]
    fn tool_name_is_split_from_arguments() {
        for (words, tool, arguments) in
            rows::<(Vec<&str>, Option<&str>, &str)>("target", "tool_name_is_split_from_arguments")
        {
            let expected = (tool.map(str::to_owned), arguments.to_owned());
            assert_eq!(target(&words), Ok(expected), "{words:?}");
        }
        for (words, problem) in rows::<(Vec<&str>, &str)>("target", "words_that_are_no_arguments") {
            let told = target(&words).unwrap_err();
            assert!(told.contains(problem), "{words:?}: {told}");
        }
    }

    #[test]
    fn argument_value_follows_schema_type() {
        for (word, expected) in rows::<(&str, &str)>("target", "argument_value_follows_schema_type")
        {
            let (name, _) = word.split_once(['=', ':']).unwrap();
            assert_eq!(target(&[word]), Ok((None, format!("{{\"{name}\":{expected}}}"))), "{word}");
        }
    }
}
