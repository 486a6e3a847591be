//! The error type of the set-up: building an engine, loading a component, defining a tool, starting
//! a run.
//!
//! Functions that prepare something return [`Error`]. It is opaque, so that new kinds do not break
//! callers: they ask predicates such as [`Error::is_not_granted`], read one stable word
//! ([`Error::reason`]), and show a hint that says how to correct the problem. The source of the
//! error is kept.
//!
//! A call that fails is never an `Error`: its failure is part of the call's completion.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::names::did_you_mean;

/// Names of tools that a hint lists.
const LISTED: usize = 20;

/// Characters of a name or an id that the error's text repeats.
const MAX_NAME_CHARS: usize = 80;

/// An error of the set-up: an engine that was not built, a component that was not loaded, a run
/// that did not start.
///
/// A failed call is not an `Error`, but part of its [`Completion`](crate::call::Completion).
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: Kind,
    message: String,
    hint: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Private, so that new kinds are not a breaking change.
#[derive(Debug)]
enum Kind {
    Definition,
    Component,
    NotGranted,
    /// Holds the requested name, complete.
    UnknownTool(String),
    DuplicateTool,
    DuplicateCall,
    Options,
    Directory,
    /// Holds the time after which to try again.
    Quota(Duration),
    /// Holds the time after which to try again.
    NoCell(Duration),
    Worker,
    Environment,
}

/// Returns the start of a name that a caller sent.
fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME_CHARS).collect()
}

#[doc(hidden)]
impl Error {
    fn of(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), source: None }
    }

    pub(crate) fn bad_name(name: &str) -> Self {
        let message = format!("`{}` is not a tool name", shortened(name).escape_debug());
        Self::of(Kind::Definition, message, "write 1 to 64 of the characters A-Z a-z 0-9 _ -")
    }

    pub fn definition(tool: &str, problem: impl fmt::Display) -> Self {
        let message = format!("the definition of the tool `{tool}` is not valid: {problem}");
        let hint = "correct the definition of the tool and build it again";
        Self::of(Kind::Definition, message, hint)
    }

    pub fn not_a_component(found: impl fmt::Display, hint: &'static str) -> Self {
        Self::of(Kind::Component, format!("not a WebAssembly component: {found}"), hint)
    }

    pub fn malformed(problem: impl fmt::Display) -> Self {
        let hint = "build the component again, or download it again";
        Self::of(Kind::Component, format!("the component is malformed: {problem}"), hint)
    }

    /// Takes the names of proposals that are off.
    pub fn proposals(names: impl Into<String>) -> Self {
        let names: String = names.into();
        let hint = if names.contains("async") || names.contains("WASI 0.3") {
            "build the component for WASI 0.2, without async functions: toolchains have an option for it"
        } else {
            "build the component without these WebAssembly features"
        };
        let message =
            format!("the component uses WebAssembly proposals that this host disables: {names}");
        Self::of(Kind::Component, message, hint)
    }

    pub fn too_large(what: &'static str, got: u64, limit: u64) -> Self {
        let hint = "build it in release mode, strip the debug information, or split the component";
        Self::of(Kind::Component, format!("{what}: {got} is over the limit of {limit}"), hint)
    }

    pub fn too_costly(limit: Duration) -> Self {
        let message = format!(
            "the component cannot be compiled within the limits of CPU time ({limit:?}) and memory"
        );
        let hint = "if you trust the component, allow more time to compile it";
        Self::of(Kind::Component, message, hint)
    }

    /// The hint says which action allows the import, and who can take it.
    pub fn not_granted(imports: Vec<String>, hint: String) -> Self {
        let imports = imports.join(", ");
        let message = format!("the component imports interfaces that are not granted: {imports}");
        Self::of(Kind::NotGranted, message, hint)
    }

    /// `instead` is the kind of component that would work.
    pub fn no_tools(problem: impl fmt::Display, instead: Option<&'static str>) -> Self {
        let hint = match instead {
            Some("tools") => {
                "leave `--as` out, and `as` in its section of `toolcell.toml`: the component describes its tools itself"
                    .to_owned()
            }
            Some(kind) => format!(
                "use it as it is: `toolcell run --as {kind}`, or `as = \"{kind}\"` in its section of `toolcell.toml`"
            ),
            None => {
                "offer tools through `toolcell:tool/tool@0.1.0`, in Rust with `toolcell_guest::tools![my_tool];`"
                    .to_owned()
            }
        };
        Self::of(Kind::Component, format!("the component offers no tools: {problem}"), hint)
    }

    pub fn no_such_tool(asked: &str, known: Vec<String>) -> Self {
        let listed = || match known.len().saturating_sub(LISTED) {
            _ if known.is_empty() => "there are no tools".to_owned(),
            0 => format!("there are: {}", known.join(", ")),
            more => {
                let first = known.get(..LISTED).unwrap_or_default().join(", ");
                format!("there are: {first} and {more} more")
            }
        };
        let hint = did_you_mean(asked, known.iter().map(String::as_str), listed);
        let message = format!("there is no tool `{}`", shortened(asked).escape_debug());
        Self::of(Kind::UnknownTool(asked.to_owned()), message, hint)
    }

    pub fn duplicate_tool(name: &str) -> Self {
        let hint = "unregister the other tool first, or rename this one";
        Self::of(Kind::DuplicateTool, format!("a tool `{name}` exists already"), hint)
    }

    pub fn duplicate_call(id: &str) -> Self {
        let message = format!("two calls have the id `{}`", shortened(id).escape_debug());
        Self::of(Kind::DuplicateCall, message, "give each call of a run its own id")
    }

    pub fn options(option: &'static str, problem: impl fmt::Display) -> Self {
        let hint = format!("correct `{option}`; no call was made");
        Self::of(Kind::Options, format!("`{option}` {problem}"), hint)
    }

    pub fn directory(
        name: &str,
        path: &Path,
        problem: impl fmt::Display,
        hint: &'static str,
    ) -> Self {
        let message = format!("the directory `{name}` ({}): {problem}", path.display());
        Self::of(Kind::Directory, message, hint)
    }

    pub fn describe(failure: impl std::error::Error + Send + Sync + 'static) -> Self {
        let message = format!("the component could not describe its tools: {failure}");
        let hint = "correct `describe`: it must return quickly, and cannot use any grant";
        Self::of(Kind::Component, message, hint).with_source(failure)
    }

    pub fn quota(problem: &'static str, after: Duration) -> Self {
        let seconds = after.as_millis().div_ceil(1000);
        let hint = format!(
            "try again in {seconds} s; components that were compiled before can still be loaded"
        );
        Self::of(Kind::Quota(after), problem, hint)
    }

    pub fn engine(problem: impl fmt::Display) -> Self {
        let hint = "see the cause, if any; if address space is missing, allow more of it";
        Self::of(Kind::Environment, format!("the engine failed: {problem}"), hint)
    }

    pub fn no_cell(after: Duration) -> Self {
        let message = "all cells are busy, so the component could not describe its tools";
        let hint = "load the component again later, or give the engine more cells";
        Self::of(Kind::NoCell(after), message, hint)
    }

    pub fn worker() -> Self {
        let message = "the worker process could not load the tools";
        Self::of(Kind::Worker, message, "see the cause")
    }

    pub fn cache(problem: impl fmt::Display) -> Self {
        let message = format!("the artifact cache cannot be used: {problem}");
        Self::of(Kind::Environment, message, "remove the cache directory or choose another one")
    }

    pub fn seal_key(problem: impl fmt::Display, hint: &'static str) -> Self {
        let message = format!("the key that seals questions cannot be used: {problem}");
        Self::of(Kind::Environment, message, hint)
    }

    pub fn store(problem: impl fmt::Display, hint: &'static str) -> Self {
        Self::of(Kind::Environment, format!("the store cannot be opened: {problem}"), hint)
    }

    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl Error {
    /// Returns true if the tool's definition is not usable.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        matches!(self.kind, Kind::Definition)
    }

    /// Returns true if the bytes are not a usable component: another format, malformed, too large.
    #[must_use]
    pub fn is_component(&self) -> bool {
        matches!(self.kind, Kind::Component)
    }

    /// Returns true if the component imports something that was not granted.
    #[must_use]
    pub fn is_not_granted(&self) -> bool {
        matches!(self.kind, Kind::NotGranted)
    }

    /// Returns true if no tool has the requested name.
    #[must_use]
    pub fn is_unknown_tool(&self) -> bool {
        matches!(self.kind, Kind::UnknownTool(_))
    }

    /// Returns the requested name that no tool has, complete; `None` for every other error.
    #[must_use]
    pub fn unknown_tool(&self) -> Option<&str> {
        if let Kind::UnknownTool(asked) = &self.kind { Some(asked) } else { None }
    }

    /// Returns true if a tool with that name exists already, or if two calls of a run have the same
    /// id.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self.kind, Kind::DuplicateTool | Kind::DuplicateCall)
    }

    /// Returns true if an option of a run is out of its range.
    #[must_use]
    pub fn is_options(&self) -> bool {
        matches!(self.kind, Kind::Options)
    }

    /// Returns true if a granted directory cannot be opened, or must not be granted.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory)
    }

    /// Returns true if the tenant has used up its quota for now: see
    /// [`retry_after`](Self::retry_after).
    #[must_use]
    pub fn is_quota(&self) -> bool {
        matches!(self.kind, Kind::Quota(_))
    }

    /// Returns the time after which to try again, if waiting can help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Kind::Quota(after) | Kind::NoCell(after) = self.kind { Some(after) } else { None }
    }

    /// Returns true if a `WorkerProcess` started but could not load the tools: see the error's
    /// source.
    #[must_use]
    pub fn is_worker(&self) -> bool {
        matches!(self.kind, Kind::Worker)
    }

    /// Returns the kind of the error as one word, the same in JSON and in logs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self.kind {
            Kind::Definition => "invalid_definition",
            Kind::Component => "invalid_component",
            Kind::NotGranted => "not_granted",
            Kind::UnknownTool(_) => "unknown_tool",
            Kind::DuplicateTool => "duplicate_tool",
            Kind::DuplicateCall => "duplicate_call_id",
            Kind::Options => "invalid_option",
            Kind::Directory => "invalid_directory",
            Kind::Quota(_) => "quota_exceeded",
            Kind::Worker => "worker",
            Kind::NoCell(_) | Kind::Environment => "environment",
        }
    }

    /// Returns true if something of this machine cannot be used: the engine cannot be set up, all
    /// cells are busy, or the cache, the sealing key or a store cannot be used.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        matches!(self.kind, Kind::NoCell(_) | Kind::Environment)
    }

    /// Returns advice on how to correct the error: one line without a period.
    #[must_use]
    pub fn hint(&self) -> String {
        self.hint.clone()
    }
}
