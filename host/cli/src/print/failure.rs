//! The error of a command: its causes and a hint for a person, and its JSON for a program.
//!
//! A command that cannot do its work returns a [`Failure`]: a kind such as `usage` or
//! `not_granted`, the error with its causes, a hint, and the exit status. Errors of the libraries
//! convert into it. `main` passes it to the printer, which prints text or, with `--json`, an
//! object. A child process sends a failure to its parent as one line of JSON, which the parent
//! reads back with [`Failure::of_words`]; an unknown kind is not taken over.
//!
//! Not here: failures of a *call*, which are part of its completion (result and usage); the output
//! of the error, in `printer.rs`.

use anyhow::anyhow;
use serde::Deserialize;
use serde_json::json;
use toolcell_config::{Error, Problem};

use super::exit::ExitStatus;
use super::units::counted;

/// Kinds of failures that a child process may report.
const KINDS: [&str; 11] = [
    "component",
    "config",
    "definition",
    "duplicate",
    "environment",
    "file",
    "internal",
    "not_approved",
    "not_granted",
    "unknown_tool",
    "usage",
];

/// A failure as a child process sends it.
#[derive(Deserialize)]
struct FailureForm {
    kind: String,
    message: String,
    causes: Vec<String>,
    hint: String,
    #[serde(default)]
    problems: Vec<Problem>,
}

/// The result of a command's functions.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The kind of the failure.
    pub(crate) kind: &'static str,
    /// The exit status of the command.
    pub(crate) status: ExitStatus,
    error: anyhow::Error,
    /// The advice for the user.
    pub(crate) hint: String,
    /// The problems of a configuration, if that is the failure.
    pub(super) problems: Vec<Problem>,
}

impl Failure {
    fn new(kind: &'static str, error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        // A kind has the same exit status in every command.
        let status = match kind {
            "usage" => ExitStatus::BadUsage,
            "not_approved" => ExitStatus::Refusal,
            _ => ExitStatus::Failed,
        };
        Self { kind, status, error: error.into(), hint: hint.into(), problems: Vec::new() }
    }

    /// Returns the failure of an invalid command line.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("usage", anyhow!(message.into()), hint)
    }

    /// Returns the failure of a file that cannot be used.
    pub(crate) fn file(error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self::new("file", error, hint)
    }

    /// Returns the failure of a tool name that is unknown.
    pub(crate) fn unknown_tool(name: &str, hint: impl Into<String>) -> Self {
        Self::new("unknown_tool", anyhow!("there is no tool `{}`", name.escape_debug()), hint)
    }

    /// Returns the failure of a configuration or component that the user has not approved.
    pub(crate) fn not_approved(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("not_approved", anyhow!(message.into()), hint)
    }

    /// Returns the failure of a component that imports interfaces without a grant.
    pub(crate) fn not_granted(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("not_granted", anyhow!(message.into()), hint)
    }

    /// Returns the failure of a machine that lacks something the command needs.
    pub(crate) fn environment(error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self::new("environment", error, hint)
    }

    /// Returns the failure of a configuration, with all its problems.
    pub(crate) fn config(file: &str, problems: Vec<Problem>) -> Self {
        let error = match problems.as_slice() {
            [only] => anyhow!(only.to_string()),
            several => anyhow!("`{file}` cannot be used: {}", counted(several.len(), "problem")),
        };
        let hint = problems.first().map_or_else(String::new, |problem| problem.hint.clone());
        Self { problems, ..Self::new("config", error, hint) }
    }

    /// Replaces the hint.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// Returns the error in one sentence.
    pub(crate) fn message(&self) -> String {
        self.error.to_string()
    }

    /// Returns true if the named tool does not exist.
    pub(crate) fn is_unknown_tool(&self) -> bool {
        self.kind == "unknown_tool"
    }

    /// Returns true if a component lacks a grant.
    pub(crate) fn is_not_granted(&self) -> bool {
        self.kind == "not_granted"
    }

    /// Puts the subject of the failure before its message.
    pub(crate) fn about(self, what: impl std::fmt::Display) -> Self {
        let message = format!("{what}: {}", self.error);
        Self { error: self.error.context(message), ..self }
    }

    /// Returns the failure as JSON: `{"kind", "message", "causes", "hint", "problems"?}`.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let message = self.error.to_string();
        let mut json = json!({ "kind": self.kind, "message": message, "causes": self.causes(), "hint": self.hint });
        if !self.problems.is_empty() {
            json["problems"] = json!(self.problems);
        }
        json
    }

    /// Parses the failure that a child process sent.
    pub(crate) fn of_words(words: &str) -> Self {
        let Ok(FailureForm { kind, message, causes, hint, problems }) = serde_json::from_str(words)
        else {
            let hint = "see what the worker process printed before";
            return Self::environment(anyhow!("{words}"), hint);
        };
        let kind = KINDS.into_iter().find(|known| *known == kind).unwrap_or("environment");
        let mut said = causes.into_iter().rev().chain([message]);
        let innermost = anyhow!(said.next().unwrap_or_default());
        let error = said.fold(innermost, |error, cause| error.context(cause));
        Self { problems, ..Self::new(kind, error, hint) }
    }

    /// Returns the causes, without those that the error before them repeats.
    pub(super) fn causes(&self) -> Vec<String> {
        let mut said = self.error.to_string();
        let mut causes = Vec::new();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !said.contains(&cause) {
                said.clone_from(&cause);
                causes.push(cause);
            }
        }
        causes
    }
}

impl From<toolcell::Error> for Failure {
    fn from(error: toolcell::Error) -> Self {
        let kind = match &error {
            error if error.is_unknown_tool() => "unknown_tool",
            error if error.is_not_granted() => "not_granted",
            error if error.is_definition() => "definition",
            error if error.is_component() => "component",
            error if error.is_duplicate() => "duplicate",
            _ => "environment",
        };
        let hint = error.hint();
        Self::new(kind, error, hint)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Invalid { file, problems } => return Self::config(&file, problems),
            Error::Unsigned(problem) | Error::DigestMismatch(problem) => {
                let file = problem.file.clone();
                return Self::config(&file, vec![*problem]);
            }
            Error::Toolcell(error) => return error.into(),
            Error::NotApproved { .. } => "not_approved",
            Error::Usage { .. } => "usage",
            Error::File { .. } | Error::DuplicateTool { .. } | _ => "file",
        };
        let hint = error.hint();
        Self::new(kind, error, hint)
    }
}

impl From<toolcell_author::Error> for Failure {
    fn from(error: toolcell_author::Error) -> Self {
        use toolcell_author::ErrorKind;
        let kind = match error.kind() {
            ErrorKind::Usage => "usage",
            ErrorKind::Source => "source",
            ErrorKind::Toolchain => "toolchain",
            ErrorKind::Cases => "cases",
            ErrorKind::Internal => "internal",
            ErrorKind::File | _ => "file",
        };
        let hint = error.hint();
        Self::new(kind, error, hint)
    }
}

impl From<toolcell::provider::ProviderError> for Failure {
    fn from(error: toolcell::provider::ProviderError) -> Self {
        let hint = error.hint();
        Self::new("provider", error, hint)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::environment(error, "the machine may be out of memory or of file descriptors")
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new("internal", error, "this is a bug in toolcell: please report it")
    }
}
