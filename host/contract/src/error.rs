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
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names of tools that a hint lists.
const LISTED: usize = 20;

/// Characters of a name or an id that the error's text repeats.
const MAX_NAME_CHARS: usize = 80;

/// An error of the set-up: an engine that was not built, a component that was not loaded, a run
/// that did not start.
///
/// A failed call is not an `Error`, but part of its [`Completion`](crate::call::Completion).
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct Error {
    kind: Kind,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Private, so that new kinds are not a breaking change.
#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("`{}` is not a tool name", .0.escape_debug())]
    InvalidName(String),
    #[error("the definition of the tool `{tool}` is not valid: {problem}")]
    Definition { tool: String, problem: String },
    #[error("not a WebAssembly component: {found}")]
    NotAComponent { found: String, hint: &'static str },
    #[error("the component is malformed: {0}")]
    Malformed(String),
    /// Names of proposals that are off.
    #[error("the component uses WebAssembly proposals that this host disables: {0}")]
    Proposals(String),
    #[error("{what}: {got} is over the limit of {limit}")]
    TooLarge { what: &'static str, got: u64, limit: u64 },
    #[error("the component cannot be compiled within the limits of CPU time ({0:?}) and memory")]
    TooCostly(Duration),
    /// The hint says which action allows the import, and who can take it.
    #[error("the component imports interfaces that are not granted: {}", .imports.join(", "))]
    NotGranted { imports: Vec<String>, hint: String },
    /// The reason, and the kind of component that would work instead.
    #[error("the component offers no tools: {0}")]
    NoTools(String, Option<&'static str>),
    #[error("there is no tool `{}`", shortened(.asked).escape_debug())]
    UnknownTool { asked: String, known: Vec<String> },
    #[error("a tool `{0}` exists already")]
    DuplicateTool(String),
    #[error("two calls have the id `{}`", .0.escape_debug())]
    DuplicateCall(String),
    #[error("`{option}` {problem}")]
    Options { option: &'static str, problem: String },
    #[error("the directory `{name}` ({}): {problem}", .path.display())]
    Directory { name: String, path: PathBuf, problem: String, hint: &'static str },
    #[error("the component could not describe its tools: {0}")]
    Describe(String),
    #[error("{problem}")]
    Quota { problem: &'static str, after: Duration },
    #[error("the engine failed: {0}")]
    Engine(String),
    #[error("all cells are busy, so the component could not describe its tools")]
    NoCell(Duration),
    #[error("the worker process could not load the tools")]
    Worker,
    #[error("the artifact cache cannot be used: {0}")]
    Cache(String),
    #[error("the key that seals questions cannot be used: {problem}")]
    SealKey { problem: String, hint: &'static str },
    #[error("the store cannot be opened: {problem}")]
    Store { problem: String, hint: &'static str },
}

/// Returns the start of a name that a caller sent.
fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME_CHARS).collect()
}

#[doc(hidden)]
impl Error {
    pub(crate) fn bad_name(name: &str) -> Self {
        Self::from(Kind::InvalidName(shortened(name)))
    }

    pub fn definition(tool: &str, problem: impl fmt::Display) -> Self {
        Self::from(Kind::Definition { tool: tool.to_owned(), problem: problem.to_string() })
    }

    pub fn not_a_component(found: impl Into<String>, hint: &'static str) -> Self {
        Self::from(Kind::NotAComponent { found: found.into(), hint })
    }

    pub fn malformed(problem: impl Into<String>) -> Self {
        Self::from(Kind::Malformed(problem.into()))
    }

    pub fn proposals(names: impl Into<String>) -> Self {
        Self::from(Kind::Proposals(names.into()))
    }

    pub fn too_large(what: &'static str, got: u64, limit: u64) -> Self {
        Self::from(Kind::TooLarge { what, got, limit })
    }

    pub fn too_costly(limit: Duration) -> Self {
        Self::from(Kind::TooCostly(limit))
    }

    pub fn not_granted(imports: Vec<String>, hint: String) -> Self {
        Self::from(Kind::NotGranted { imports, hint })
    }

    pub fn no_tools(problem: impl Into<String>, instead: Option<&'static str>) -> Self {
        Self::from(Kind::NoTools(problem.into(), instead))
    }

    pub fn no_such_tool(asked: &str, known: Vec<String>) -> Self {
        Self::from(Kind::UnknownTool { asked: asked.to_owned(), known })
    }

    pub fn duplicate_tool(name: &str) -> Self {
        Self::from(Kind::DuplicateTool(name.to_owned()))
    }

    pub fn duplicate_call(id: &str) -> Self {
        Self::from(Kind::DuplicateCall(shortened(id)))
    }

    pub fn options(option: &'static str, problem: impl Into<String>) -> Self {
        Self::from(Kind::Options { option, problem: problem.into() })
    }

    pub fn directory(
        name: &str,
        path: &Path,
        problem: impl Into<String>,
        hint: &'static str,
    ) -> Self {
        Self::from(Kind::Directory {
            name: name.to_owned(),
            path: path.to_owned(),
            problem: problem.into(),
            hint,
        })
    }

    pub fn describe(failure: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::from(Kind::Describe(failure.to_string())).with_source(failure)
    }

    pub fn quota(problem: &'static str, after: Duration) -> Self {
        Self::from(Kind::Quota { problem, after })
    }

    pub fn engine(problem: impl Into<String>) -> Self {
        Self::from(Kind::Engine(problem.into()))
    }

    pub fn no_cell(after: Duration) -> Self {
        Self::from(Kind::NoCell(after))
    }

    pub fn worker() -> Self {
        Self::from(Kind::Worker)
    }

    pub fn cache(problem: impl Into<String>) -> Self {
        Self::from(Kind::Cache(problem.into()))
    }

    pub fn seal_key(problem: impl Into<String>, hint: &'static str) -> Self {
        Self::from(Kind::SealKey { problem: problem.into(), hint })
    }

    pub fn store(problem: impl Into<String>, hint: &'static str) -> Self {
        Self::from(Kind::Store { problem: problem.into(), hint })
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
        matches!(self.kind, Kind::InvalidName(_) | Kind::Definition { .. })
    }

    /// Returns true if the bytes are not a usable component: another format, malformed, too large.
    #[must_use]
    pub fn is_component(&self) -> bool {
        matches!(
            self.kind,
            Kind::NotAComponent { .. }
                | Kind::Malformed(_)
                | Kind::Proposals(_)
                | Kind::TooLarge { .. }
                | Kind::TooCostly(_)
                | Kind::NoTools(..)
                | Kind::Describe(_)
        )
    }

    /// Returns true if the component imports something that was not granted.
    #[must_use]
    pub fn is_not_granted(&self) -> bool {
        matches!(self.kind, Kind::NotGranted { .. })
    }

    /// Returns true if no tool has the requested name.
    #[must_use]
    pub fn is_unknown_tool(&self) -> bool {
        matches!(self.kind, Kind::UnknownTool { .. })
    }

    /// Returns the requested name that no tool has, complete; `None` for every other error.
    #[must_use]
    pub fn unknown_tool(&self) -> Option<&str> {
        if let Kind::UnknownTool { asked, .. } = &self.kind { Some(asked) } else { None }
    }

    /// Returns true if a tool with that name exists already, or if two calls of a run have the same
    /// id.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self.kind, Kind::DuplicateTool(_) | Kind::DuplicateCall(_))
    }

    /// Returns true if an option of a run is out of its range.
    #[must_use]
    pub fn is_options(&self) -> bool {
        matches!(self.kind, Kind::Options { .. })
    }

    /// Returns true if a granted directory cannot be opened, or must not be granted.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory { .. })
    }

    /// Returns true if the tenant has used up its quota for now: see
    /// [`retry_after`](Self::retry_after).
    #[must_use]
    pub fn is_quota(&self) -> bool {
        matches!(self.kind, Kind::Quota { .. })
    }

    /// Returns the time after which to try again, if waiting can help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Kind::Quota { after, .. } | Kind::NoCell(after) = self.kind {
            Some(after)
        } else {
            None
        }
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
        match &self.kind {
            Kind::InvalidName(_) | Kind::Definition { .. } => "invalid_definition",
            Kind::NotAComponent { .. }
            | Kind::Malformed(_)
            | Kind::Proposals(_)
            | Kind::TooLarge { .. }
            | Kind::TooCostly(_)
            | Kind::NoTools(..)
            | Kind::Describe(_) => "invalid_component",
            Kind::NotGranted { .. } => "not_granted",
            Kind::UnknownTool { .. } => "unknown_tool",
            Kind::DuplicateTool(_) => "duplicate_tool",
            Kind::DuplicateCall(_) => "duplicate_call_id",
            Kind::Options { .. } => "invalid_option",
            Kind::Directory { .. } => "invalid_directory",
            Kind::Quota { .. } => "quota_exceeded",
            Kind::Worker => "worker",
            Kind::Engine(_)
            | Kind::NoCell(_)
            | Kind::Cache(_)
            | Kind::SealKey { .. }
            | Kind::Store { .. } => "environment",
        }
    }

    /// Returns true if something of this machine cannot be used: the engine cannot be set up, all
    /// cells are busy, or the cache, the sealing key or a store cannot be used.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        matches!(
            self.kind,
            Kind::Engine(_)
                | Kind::NoCell(_)
                | Kind::Cache(_)
                | Kind::SealKey { .. }
                | Kind::Store { .. }
        )
    }

    /// Returns advice on how to correct the error: one line without a period.
    #[must_use]
    pub fn hint(&self) -> String {
        match &self.kind {
            Kind::InvalidName(_) => "write 1 to 64 of the characters A-Z a-z 0-9 _ -".into(),
            Kind::Definition { .. } => "correct the definition of the tool and build it again".into(),
            Kind::NotAComponent { hint, .. } => (*hint).into(),
            Kind::Malformed(_) => "build the component again, or download it again".into(),
            Kind::Proposals(names) if names.contains("async") || names.contains("WASI 0.3") => {
                "build the component for WASI 0.2, without async functions: toolchains have an option for it".into()
            }
            Kind::Proposals(_) => "build the component without these WebAssembly features".into(),
            Kind::TooLarge { .. } => {
                "build it in release mode, strip the debug information, or split the component".into()
            }
            Kind::TooCostly(_) => "if you trust the component, allow more time to compile it".into(),
            Kind::NotGranted { hint, .. } => hint.clone(),
            Kind::NoTools(_, Some("tools")) => {
                "leave `--as` out, and `as` in its section of `toolcell.toml`: the component describes its tools itself"
                    .into()
            }
            Kind::NoTools(_, Some(kind)) => format!(
                "use it as it is: `toolcell run --as {kind}`, or `as = \"{kind}\"` in its section of `toolcell.toml`"
            ),
            Kind::NoTools(_, None) => {
                "offer tools through `toolcell:tool/tool@0.1.0`, in Rust with `toolcell_guest::tools![my_tool];`".into()
            }
            Kind::UnknownTool { asked, known } => {
                let listed = || match known.len().saturating_sub(LISTED) {
                    _ if known.is_empty() => "there are no tools".to_owned(),
                    0 => format!("there are: {}", known.join(", ")),
                    more => {
                        let first = known.get(..LISTED).unwrap_or_default().join(", ");
                        format!("there are: {first} and {more} more")
                    }
                };
                super::names::did_you_mean(asked, known.iter().map(String::as_str), listed)
            }
            Kind::DuplicateTool(_) => "unregister the other tool first, or rename this one".into(),
            Kind::DuplicateCall(_) => "give each call of a run its own id".into(),
            Kind::Options { option, .. } => format!("correct `{option}`; no call was made"),
            Kind::Describe(_) => "correct `describe`: it must return quickly, and cannot use any grant".into(),
            Kind::Quota { after, .. } => {
                let seconds = after.as_millis().div_ceil(1000);
                format!("try again in {seconds} s; components that were compiled before can still be loaded")
            }
            Kind::Worker => "see the cause".into(),
            Kind::NoCell(_) => "load the component again later, or give the engine more cells".into(),
            Kind::Engine(_) => "see the cause, if any; if address space is missing, allow more of it".into(),
            Kind::Cache(_) => "remove the cache directory or choose another one".into(),
            Kind::SealKey { hint, .. } | Kind::Store { hint, .. } | Kind::Directory { hint, .. } => (*hint).into(),
        }
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self { kind, source: None }
    }
}
