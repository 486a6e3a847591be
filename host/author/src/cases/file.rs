//! The file format of test cases, in YAML or JSON, with the functions that find and read the files.
//!
//! [`Suite`] and the types below it mirror the file: each [`Case`] has a name, arguments, recorded
//! answers to HTTP requests and to calls of other tools, secrets, key-value data, a clock, and an
//! [`Expect`] with the expected ending. [`find`] returns the case files of a project folder.
//! [`read`] parses one: JSON if its name ends in `.json`, otherwise YAML. It refuses files over 16
//! MiB, unknown members, two cases with one name, and answers that contradict themselves; the error
//! names the file. An [`Expect`] is also written; its unset members are left out.
//!
//! Not here: the execution of cases, in `run.rs`, and the rewriting of a file, in `rewrite.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounds::{self, MAX_FILE};
use super::pattern::Pattern;
use crate::{Error, ErrorKind, Result};

/// Names of the files of cases in a project's folder.
const NAMES: [&str; 3] = ["cases.yaml", "cases.yml", "cases.json"];

/// The cases of one file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The cases.
    pub cases: Vec<Case>,
}

/// One call and its expected ending.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name, which says what the case shows. Unique in its file.
    pub name: String,
    /// The tool's name. `None` for a component with one tool.
    pub tool: Option<String>,
    /// The arguments of the call. `None` means `{}`.
    pub arguments: Option<Value>,
    /// The context of the call.
    pub context: Option<Context>,
    /// Answers to requests. Each can be used more than once.
    #[serde(default)]
    pub http: Vec<Exchange>,
    /// Values of secrets by name.
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// Keys that exist before the call. A string is stored as it is, every other value as JSON.
    #[serde(default)]
    pub kv: BTreeMap<String, Value>,
    /// Other tools that the tool can call, and the endings of these calls. Each can be used more
    /// than once.
    #[serde(default)]
    pub tools: Vec<OtherTool>,
    /// The time at the start of the call, in RFC 3339.
    pub now: Option<String>,
    /// The seed of random numbers.
    pub seed: Option<u64>,
    /// The expected ending. A case with `None` fails unless `--update` writes it.
    pub expect: Option<Expect>,
    /// Upper bounds on the resources of the call.
    pub budget: Option<Budget>,
}

/// The context of a call, with the members of `toolcell run --context`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// The caller's session.
    pub session_id: Option<String>,
    /// The id of the provider's request.
    pub request_id: Option<String>,
    /// The conversation.
    pub thread_id: Option<String>,
    /// The id of the run.
    pub run_id: Option<String>,
    /// The tenant on whose behalf the call is made.
    pub tenant: Option<String>,
    /// Free JSON.
    pub metadata: Option<Value>,
    /// The number of the attempt, from 1.
    pub attempt: Option<u32>,
    /// The user's answer to the question of an earlier call.
    pub answer: Option<Value>,
    /// The state that the earlier call left.
    pub state: Option<Value>,
}

/// An expected request and its answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The method.
    #[serde(default = "get")]
    pub method: String,
    /// The whole URL, with its query.
    pub url: String,
    /// The status of the answer.
    #[serde(default = "fine")]
    pub status: u16,
    /// Headers of the answer.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body of the answer as text.
    pub body: Option<String>,
    /// The body of the answer as JSON. Its content type is `application/json` unless `headers` has
    /// another.
    pub json: Option<Value>,
}

/// An expected call of another tool and its ending: `ok`, `error`, `ask_user` or `halt`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherTool {
    /// The tool's name.
    pub name: String,
    /// The arguments that a call must have. `None` matches every call that no earlier answer
    /// matches.
    pub arguments: Option<Value>,
    /// `ok` with this value.
    #[serde(default, deserialize_with = "present")]
    pub ok: Option<Value>,
    /// `error` with this message.
    pub error: Option<String>,
    /// `ask_user` with this question.
    pub ask_user: Option<String>,
    /// `halt` for this reason.
    pub halt: Option<String>,
}

impl OtherTool {
    /// The number of endings that are given; 1 in a valid file.
    fn endings(&self) -> usize {
        let texts = [&self.error, &self.ask_user, &self.halt];
        usize::from(self.ok.is_some()) + texts.iter().filter(|text| text.is_some()).count()
    }
}

fn get() -> String {
    "GET".to_owned()
}

const fn fine() -> u16 {
    200
}

/// The expected ending of a call. All members that are present must match.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// `ok` with this value.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub ok: Option<Value>,
    /// `ok` with a value that this JSON Schema accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok_schema: Option<Value>,
    /// `ok` with a value whose text or JSON contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok_contains: Option<String>,
    /// The text or JSON of an `ok` value matches this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok_matches: Option<Pattern>,
    /// `error` with this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `error` with a message that contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_contains: Option<String>,
    /// The message of an `error` matches this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_matches: Option<Pattern>,
    /// `ask_user` with this question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_user: Option<String>,
    /// `halt` for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halt: Option<String>,
    /// A tool error with this reason, for example `handler_raised`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_error: Option<String>,
    /// A refusal of this kind, for example `invalid_arguments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The message of a tool error or a refusal contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_contains: Option<String>,
    /// The message of a tool error or a refusal, including the source lines of a trap, matches this
    /// pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_matches: Option<Pattern>,
}

impl Expect {
    /// Adds the further conditions of another expectation (schema, contains, matches) that hold.
    /// `holds` checks one condition at a time.
    pub(super) fn add_conditions(
        &mut self,
        of: Self,
        holds: impl Fn(&Self) -> Result<bool>,
    ) -> Result<()> {
        macro_rules! add {
            ($($condition:ident)*) => {$(
                let one = Self { $condition: of.$condition, ..Self::default() };
                if holds(&one)? {
                    self.$condition = one.$condition;
                }
            )*};
        }
        add! { ok_schema ok_contains ok_matches error_contains error_matches }
        add! { message_contains message_matches }
        Ok(())
    }
}

/// Reads `null` as a value, so that it can be expected.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Upper bounds on the resources of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Fuel, in instruction units.
    pub fuel: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Milliseconds from the start of the call to its end. The duration depends on the machine, so
    /// leave a margin.
    pub time_ms: Option<u64>,
}

/// Returns the files of cases of a project: `cases.yaml`, `cases.yml`, `cases.json`, and all files
/// with these extensions in `cases/`.
///
/// # Errors
/// [`ErrorKind::Cases`] if there is none.
pub fn find(project: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found: Vec<_> =
        NAMES.iter().map(|name| project.join(name)).filter(|path| path.is_file()).collect();
    let more = fs::read_dir(project.join("cases"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut more: Vec<_> = more
        .filter(|path| path.is_file() && has_extension(path, &["json", "yaml", "yml"]))
        .collect();
    more.sort();
    found.extend(more);
    if !project.is_dir() {
        let message = format!("`{}` is not a folder", project.display());
        return Err(Error::new(
            ErrorKind::File,
            message,
            "name the folder of a project; `toolcell new` makes one",
        ));
    }
    if found.is_empty() {
        let message = format!("there are no cases in `{}`", project.display());
        let hint = "write `cases.yaml`; `toolcell new` makes one to start with";
        return Err(Error::cases(message, hint));
    }
    Ok(found)
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| known.contains(&extension))
}

/// Reads a file of cases: JSON if its name ends in `.json`, otherwise YAML.
///
/// # Errors
/// [`ErrorKind::File`] if it cannot be read, [`ErrorKind::Cases`] if it is invalid; the message
/// names the place.
pub fn read(path: &Path) -> Result<Suite, Error> {
    let size = fs::metadata(path).map_err(Error::file("read", path))?.len();
    let fault =
        |problem: String, hint: &str| Error::cases(format!("{}: {problem}", path.display()), hint);
    if size > MAX_FILE {
        return Err(fault(
            format!("it has {size} bytes, and at most {MAX_FILE} are read"),
            "split it: put files into `cases/`",
        ));
    }
    let text = fs::read_to_string(path).map_err(Error::file("read", path))?;
    let read = parse(path, &text);
    let hint = "`cases.schema.json`, which `toolcell new` writes, describes this format";
    let suite = read.map_err(|problem| fault(problem, hint))?;
    let mut names = BTreeSet::new();
    for case in &suite.cases {
        if !names.insert(&case.name) {
            return Err(fault(
                format!("two cases are called `{}`", case.name),
                "give each case a name of its own",
            ));
        }
        if let Some(both) =
            case.http.iter().find(|exchange| exchange.body.is_some() && exchange.json.is_some())
        {
            let problem =
                format!("the case `{}` has both `body` and `json` for {}", case.name, both.url);
            return Err(fault(problem, "keep one of them"));
        }
        if let Some(other) = case.tools.iter().find(|other| other.endings() != 1) {
            let problem = format!(
                "the case `{}` must have exactly one ending for the tool `{}`",
                case.name, other.name
            );
            return Err(fault(problem, "give one of `ok`, `error`, `ask_user` and `halt`"));
        }
    }
    Ok(suite)
}

/// Parses the text of a file of cases.
pub(super) fn parse(path: &Path, text: &str) -> Result<Suite, String> {
    if has_extension(path, &["json"]) {
        // The parser would take a list for the members in their order.
        if text.trim_start().starts_with('[') {
            return Err("it is a list, expected {\"cases\": […]}".to_owned());
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        bounds::check(text)?;
        serde_norway::from_str(text).map_err(|error| error.to_string())
    }
}
