//! Why a command could not do what it was asked: for a person with causes and a hint, for a program
//! as JSON.
//!
//! Not here: how a *call* failed; that is part of its completion.

use anyhow::anyhow;
use serde::Deserialize;
use serde_json::json;
use toolcell_config::Error;

use crate::config::Problem;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::units::counted;

/// Kinds of failures that a child may have.
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
/// And how the command ends for them.
const STATUSES: [ExitStatus; 3] = [ExitStatus::Failed, ExitStatus::BadUsage, ExitStatus::Refusal];

/// A failure on its way from a child.
#[derive(Deserialize)]
struct Words {
    kind: String,
    status: u8,
    message: String,
    causes: Vec<String>,
    hint: String,
    #[serde(default)]
    problems: Vec<Problem>,
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: &'static str,
    status: ExitStatus,
    error: anyhow::Error,
    hint: String,
    /// What is wrong with a configuration, where it is that.
    problems: Vec<Problem>,
}

impl Failure {
    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            kind: "usage",
            status: ExitStatus::BadUsage,
            error: anyhow!(message.into()),
            hint: hint.into(),
            problems: Vec::new(),
        }
    }

    /// A file cannot be used.
    pub(crate) fn file(error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self {
            kind: "file",
            status: ExitStatus::Failed,
            error: error.into(),
            hint: hint.into(),
            problems: Vec::new(),
        }
    }

    /// No tool has this name.
    pub(crate) fn unknown_tool(name: &str, hint: impl Into<String>) -> Self {
        let message = format!("there is no tool `{}`", name.escape_debug());
        Self { kind: "unknown_tool", status: ExitStatus::Failed, ..Self::usage(message, hint) }
    }

    /// The user has not approved it.
    pub(crate) fn not_approved(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind: "not_approved", status: ExitStatus::Refusal, ..Self::usage(message, hint) }
    }

    /// A component imports what it was not granted.
    pub(crate) fn not_granted(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind: "not_granted", status: ExitStatus::Failed, ..Self::usage(message, hint) }
    }

    /// The machine lacks what the command needs.
    pub(crate) fn environment(error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self {
            kind: "environment",
            status: ExitStatus::Failed,
            error: error.into(),
            hint: hint.into(),
            problems: Vec::new(),
        }
    }

    /// A configuration cannot be used: all that is wrong with it.
    pub(crate) fn config(file: &str, problems: Vec<Problem>) -> Self {
        let error = match problems.as_slice() {
            [only] => anyhow!(only.to_string()),
            several => anyhow!("`{file}` cannot be used: {}", counted(several.len(), "problem")),
        };
        let hint = problems.first().map_or_else(String::new, |problem| problem.hint.clone());
        Self { kind: "config", status: ExitStatus::Failed, error, hint, problems }
    }

    /// With another word on what to do.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// What kind of failure it is.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// What went wrong, in one sentence.
    pub(crate) fn message(&self) -> String {
        self.error.to_string()
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }

    /// Whether a tool was named that there is not.
    pub(crate) fn is_unknown_tool(&self) -> bool {
        self.kind == "unknown_tool"
    }

    /// Whether a component lacks a grant.
    pub(crate) fn is_not_granted(&self) -> bool {
        self.kind == "not_granted"
    }

    /// How the command ends for it.
    pub(crate) fn status(&self) -> ExitStatus {
        self.status
    }

    /// What the failure is about, put in front.
    pub(crate) fn about(self, what: impl std::fmt::Display) -> Self {
        let message = format!("{what}: {}", self.error);
        Self { error: self.error.context(message), ..self }
    }

    /// Tells it: a person on standard error, a program on standard output.
    pub(crate) fn show(&self, printer: &Printer, json: bool) -> ExitStatus {
        if !json || printer.json(&json!({ "error": self.to_json() })).is_err() {
            self.tell(printer);
        }
        self.status
    }

    /// Tells a person.
    pub(crate) fn tell(&self, printer: &Printer) {
        for problem in &self.problems {
            printer.note("error", &problem.to_string());
            printer.note("hint", &problem.hint);
        }
        if !self.problems.is_empty() {
            return;
        }
        printer.note("error", &self.error.to_string());
        for cause in self.causes() {
            printer.note("  caused by", &cause);
        }
        printer.note("hint", &self.hint);
    }

    /// The failure as JSON: `{"kind", "message", "causes", "hint", "problems"?}`.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let message = self.error.to_string();
        let mut json = json!({ "kind": self.kind, "message": message, "causes": self.causes(), "hint": self.hint });
        if !self.problems.is_empty() {
            json["problems"] = json!(self.problems);
        }
        json
    }

    /// The same for this command's own child, with how the command ends for it.
    pub(crate) fn to_words(&self) -> String {
        let mut words = self.to_json();
        words["status"] = json!(self.status as u8);
        words.to_string()
    }

    /// What a child's words say.
    pub(crate) fn of_words(words: &str) -> Self {
        let Ok(Words { kind, status, message, causes, hint, problems }) =
            serde_json::from_str(words)
        else {
            return Self::environment(
                anyhow!("{words}"),
                "see what the worker process printed before",
            );
        };
        let kind = KINDS.into_iter().find(|known| *known == kind).unwrap_or("environment");
        let status =
            STATUSES.into_iter().find(|known| *known as u8 == status).unwrap_or(ExitStatus::Failed);
        let said = causes.into_iter().rev().fold(None, |error: Option<anyhow::Error>, cause| {
            Some(error.map_or_else(|| anyhow!(cause.clone()), |error| error.context(cause.clone())))
        });
        let error =
            said.map_or_else(|| anyhow!(message.clone()), |error| error.context(message.clone()));
        Self { kind, status, error, hint, problems }
    }

    /// What it comes from, as far as that says anything new.
    fn causes(&self) -> Vec<String> {
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
        Self { kind, status: ExitStatus::Failed, error: error.into(), hint, problems: Vec::new() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let of = |kind, status, error: Error| {
            let hint = error.hint();
            Self { kind, status, error: error.into(), hint, problems: Vec::new() }
        };
        match error {
            Error::Invalid { file, problems } => Self::config(&file, problems),
            Error::Unsigned(problem) | Error::OtherDigest(problem) => {
                let file = problem.file.clone();
                Self::config(&file, vec![*problem])
            }
            Error::Toolcell(error) => error.into(),
            error @ Error::NotApproved { .. } => of("not_approved", ExitStatus::Refusal, error),
            error @ Error::Usage { .. } => of("usage", ExitStatus::BadUsage, error),
            error @ (Error::File { .. } | Error::SameName { .. } | _) => {
                of("file", ExitStatus::Failed, error)
            }
        }
    }
}

impl From<toolcell_build::Error> for Failure {
    fn from(error: toolcell_build::Error) -> Self {
        use toolcell_build::ErrorKind;
        let (kind, status) = match error.kind() {
            ErrorKind::Usage => ("usage", ExitStatus::BadUsage),
            ErrorKind::Source => ("source", ExitStatus::Failed),
            ErrorKind::Toolchain => ("toolchain", ExitStatus::Failed),
            ErrorKind::Cases => ("cases", ExitStatus::Failed),
            ErrorKind::Internal => ("internal", ExitStatus::Failed),
            ErrorKind::File | _ => ("file", ExitStatus::Failed),
        };
        let hint = error.hint();
        Self { kind, status, error: error.into(), hint, problems: Vec::new() }
    }
}

impl From<toolcell::ProviderError> for Failure {
    fn from(error: toolcell::ProviderError) -> Self {
        let hint = error.hint();
        Self {
            kind: "provider",
            status: ExitStatus::Failed,
            error: error.into(),
            hint,
            problems: Vec::new(),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::environment(error, "the machine may be out of memory or of file descriptors")
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        let hint = "this is a bug in toolcell: please report it".to_owned();
        Self {
            kind: "internal",
            status: ExitStatus::Failed,
            error: error.into(),
            hint,
            problems: Vec::new(),
        }
    }
}
