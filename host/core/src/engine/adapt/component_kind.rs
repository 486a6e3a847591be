//! Settings that say how the exports of a component become tools.
//!
//! An embedder (the program that uses this library) or a configuration chooses a [`ComponentKind`]
//! for the bytes of a component: tools that it describes itself (the default), one tool for each
//! exported function, or one command. [`ComponentBytes`] is the pair of bytes and kind that a load
//! takes.
//! A [`Command`] is the mapping between a call and a program: arguments become words of the command
//! line and standard input, standard output becomes the result. `words` fills the call's arguments
//! into a template of the command line; no shell is involved. `definition` returns the
//! [`Definition`] of its tool, with the parameters that the template names.
//! Not here: finding the exports (`engine/cell/exports`) and calling them (`functions`, `command`).

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcell_contract::{controls::bound, definition::Definition, error::Error};

/// Tools of one component.
const MAX_TOOLS: usize = 256;
/// Bytes of a description, which goes to the model with every request. Four times the bound of the
/// threat model (row 65), since descriptions of tools in use take more than a KiB. The person who
/// approves a tool is shown all of it.
pub(in crate::engine) const MAX_DESCRIPTION: usize = 4 << 10;
/// The parameter for the arguments of a command without a template.
pub(crate) const ARGS: &str = "args";
/// The parameter for the text of standard input.
pub(crate) const STDIN: &str = "stdin";

/// The way in which the exports of a component become tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ComponentKind {
    /// It exports `toolcell:tool/tool`, and describes its tools itself.
    #[default]
    Tools,
    /// Each exported function is a tool. Its WIT types give the JSON Schema of its arguments and of
    /// its result. Exports of `wasi:` packages are left out.
    Functions,
    /// It is a program that exports `wasi:cli/run`, or a WASI preview 1 module with `_start`. It is
    /// one tool.
    Command(Command),
}

/// The mapping between a call and a program: the call's arguments become words of the command line
/// and standard input, and standard output becomes the result.
///
/// # Shape
/// As JSON: its fields by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Command {
    /// The name of the tool, and the first word of the command line.
    pub name: String,
    /// The description of the tool, for a model. If absent, a generated text says how the command
    /// is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The words of the command line after the command's name. `{NAME}` in a word is replaced by
    /// the argument `NAME` of the call, a string. No shell is involved: a word stays one word. If
    /// absent, the call has an argument `args`: a list of words. With [`CommandInput::Json`] there
    /// are no words then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The input that the command gets on standard input.
    #[serde(default)]
    pub stdin: CommandInput,
    /// The format of the command's standard output.
    #[serde(default)]
    pub output: CommandOutput,
    /// The media type of an output that is [`CommandOutput::Bytes`], `image/png` for instance. If
    /// absent, `application/octet-stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// The input that a command gets on standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandInput {
    /// The argument `stdin` of the call, a string; nothing if it is absent.
    #[default]
    Text,
    /// All arguments of the call, as the text of one JSON object. Then any object is accepted.
    Json,
    /// Nothing.
    Empty,
}

/// The format of the standard output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandOutput {
    /// Text, without a newline at its end.
    #[default]
    Text,
    /// JSON. Output that is not valid JSON becomes text.
    Json,
    /// Bytes: the result is a part with the command's media type.
    Bytes,
}

impl Command {
    /// Creates a command with this name and the defaults: arguments `args` and `stdin`, and a
    /// result that is text.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            argv: None,
            stdin: CommandInput::Text,
            output: CommandOutput::Text,
            media_type: None,
        }
    }

    /// Returns the words of the command line for a call with these arguments, the command's name
    /// first.
    pub(crate) fn words(&self, arguments: &Value) -> Vec<String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let words: Vec<_> = match &self.argv {
            Some(template) => template.iter().map(|word| filled(word, text)).collect(),
            // All members are the data of standard input, also one that is named `args`.
            None if self.stdin == CommandInput::Json => Vec::new(),
            None => {
                let words = arguments.get(ARGS).and_then(Value::as_array).into_iter().flatten();
                words.filter_map(Value::as_str).map(str::to_owned).collect()
            }
        };
        std::iter::once(self.name.clone()).chain(words).collect()
    }

    /// Returns the names in the template, each once.
    fn parameters(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        for word in self.argv.iter().flatten() {
            filled(word, |name| {
                names.insert(name);
                ""
            });
        }
        names
    }

    /// Returns the definition of the command's tool.
    ///
    /// # Errors
    /// [`Error::is_definition`] if the name is not a tool name, or if the template has a parameter
    /// `stdin` although that is the argument for standard input.
    pub fn definition(&self) -> Result<Definition, Error> {
        let mut properties = Map::new();
        let mut add = |name: &str, schema: Value| properties.insert(name.to_owned(), schema);
        if self.argv.is_none() && self.stdin != CommandInput::Json {
            let described = "The words of the command line, without the program's name.";
            add(
                ARGS,
                json!({ "type": "array", "items": { "type": "string" }, "description": described }),
            );
        }
        let required = self.parameters();
        for name in &required {
            add(name, json!({ "type": "string" }));
        }
        if self.stdin == CommandInput::Text
            && add(STDIN, json!({ "type": "string", "description": "The text of standard input." }))
                .is_some()
        {
            return Err(Error::definition(
                &self.name,
                "`stdin` is already the argument for standard input: rename `{stdin}` in `argv`",
            ));
        }
        let is_open = self.stdin == CommandInput::Json;
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": is_open,
        });
        Ok(Definition::new(&*self.name, self.description.clone().unwrap_or_else(|| self.usage()))?
            .with_parameters(schema))
    }

    fn usage(&self) -> String {
        let words: String = match &self.argv {
            Some(words) => words.iter().flat_map(|word| [" ", word.as_str()]).collect(),
            None if self.stdin == CommandInput::Json => String::new(),
            None => " ARGS".to_owned(),
        };
        let stdin = match self.stdin {
            CommandInput::Text => ", with the text `stdin` as standard input",
            CommandInput::Json => ", with the arguments as JSON on standard input",
            CommandInput::Empty => "",
        };
        format!("Runs the command `{}{words}`{stdin}, and returns its standard output.", self.name)
    }
}

impl ComponentKind {
    /// Returns the kind in one word: `tools`, `functions` or `command`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Functions => "functions",
            Self::Command(_) => "command",
        }
    }
}

/// Writes the word, and for a command also its settings as JSON. Equal kinds have equal texts.
impl fmt::Display for ComponentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::Tools | Self::Functions => Ok(()),
            // Cannot fail: a command contains only strings and lists of strings.
            Self::Command(command) => {
                write!(f, " {}", serde_json::to_value(command).unwrap_or_default())
            }
        }
    }
}

/// The bytes of a component, and its kind. Bytes without a kind are of the kind
/// [`ComponentKind::Tools`].
#[derive(Debug, Clone)]
pub struct ComponentBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: ComponentKind,
}

impl ComponentBytes {
    /// Creates a component of this kind from these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>, kind: ComponentKind) -> Self {
        Self { bytes: bytes.into(), kind }
    }
}

impl<T: Into<Vec<u8>>> From<T> for ComponentBytes {
    fn from(bytes: T) -> Self {
        Self::new(bytes, ComponentKind::Tools)
    }
}

/// Refuses more than [`MAX_TOOLS`] tools.
pub(in crate::engine) fn check_tools(count: usize) -> Result<(), Error> {
    if count > bound!(Tools, MAX_TOOLS) {
        return Err(Error::too_large("tools of the component", count as u64, MAX_TOOLS as u64));
    }
    Ok(())
}

/// Replaces each `{NAME}` in a word of a template. Braces around anything but a name are text.
fn filled<'a, 'b>(word: &'a str, mut value: impl FnMut(&'a str) -> &'b str) -> String {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    let (mut filled, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        if let Some((name, behind)) = after.split_once('}').filter(|(name, _)| is_name(name)) {
            filled.push_str(value(name));
            rest = behind;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    type Argv = Option<Vec<String>>;

    fn command(argv: Argv, stdin: CommandInput) -> Command {
        Command { argv, stdin, ..Command::new("jaq") }
    }

    #[test]
    fn argv_is_built_from_template_and_arguments() {
        let arguments = json!({ "filter": ".a | {b}", "n": "2", "args": ["-c", "two words"] });
        let rows = rows::<(Argv, _, Vec<&str>)>("engine/adapt/component_kind", "argv");
        for (argv, stdin, expected) in rows {
            let command = command(argv, stdin);
            assert_eq!(command.words(&arguments), expected, "{:?}", command.argv);
        }
    }

    #[test]
    fn command_schema_follows_its_template() {
        let schemas =
            rows::<(Argv, _, Vec<String>, Value, bool)>("engine/adapt/component_kind", "schemas");
        for (argv, stdin, names, required, is_open) in schemas {
            let command = command(argv, stdin);
            let schema = command.definition().unwrap().parameters.unwrap();
            let found: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(found, names, "{:?}", command.argv);
            assert_eq!(schema["required"], required, "{:?}", command.argv);
            assert_eq!(schema["additionalProperties"], is_open, "{:?}", command.argv);
        }
        let argv = |word: &str| Some(vec![word.to_owned()]);
        let twice = command(argv("{stdin}"), CommandInput::Text).definition().unwrap_err();
        let text = twice.to_string();
        assert!(twice.is_definition() && text.contains("rename `{stdin}` in `argv`"), "{text}");
        assert!(Command::new("not a name").definition().unwrap_err().is_definition());
    }

    #[test]
    fn component_kind_has_a_canonical_text() {
        let text = r#"command {"argv":["{a}"],"name":"jaq","output":"text","stdin":"json"}"#;
        let command = command(Some(vec!["{a}".to_owned()]), CommandInput::Json);
        assert_eq!(ComponentKind::Command(command).to_string(), text);
        assert_eq!(ComponentKind::Functions.to_string(), "functions");
    }
}
