//! Problems that prevent a component from being served in whole or in part.
//!
//! Loading a configuration makes a [`ComponentProblem`] from each error, and a server reports them
//! to its operator. It has the names of the component, tool or tenant, a [`Reason`] with a stable
//! code for programs, the file and line, the error with a hint, and what is still served: nothing,
//! the approved version, or the current file.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Unapproved};
use crate::file::resolved::ComponentConfig;
use crate::problem::Problem;

/// A problem that prevents a component, one of its tools, or a tenant from being served in whole or
/// in part.
#[derive(Debug)]
#[non_exhaustive]
pub struct ComponentProblem {
    /// The component's name in the configuration. Empty if the problem concerns a tenant or the
    /// whole file.
    pub component: String,
    /// The tool whose calls are refused, because a secret that it may use has no value.
    pub tool: Option<String>,
    /// The tenant that it concerns, if not all.
    pub tenant: Option<String>,
    /// The reason, for programs.
    pub reason: Reason,
    /// The version that is still served.
    pub serving: Serving,
    /// The configuration, as the user named it.
    pub file: String,
    /// The line of the configuration, from 1.
    pub line: usize,
    /// The error, with a hint.
    pub error: Error,
}

/// The reason of a [`ComponentProblem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The configuration was found, not named, and its user has not approved it in its present
    /// form.
    ConfigurationNotApproved,
    /// The component was never approved.
    NotApproved,
    /// The component changed since it was approved.
    Changed,
    /// Its code differs from what was approved, with the same tools and imports. It has no grants,
    /// and is served.
    Rebuilt,
    /// A secret that a tool may use has no value. Calls of the tool are refused.
    UnsetSecret,
    /// The component's file does not exist.
    MissingFile,
    /// A file cannot be read.
    UnreadableFile,
    /// The configuration demands a signature that the component does not have.
    Unsigned,
    /// The configuration demands another digest.
    DigestMismatch,
    /// It imports an interface that it is not granted.
    NotGranted,
    /// It offers a tool with the same name as another component's, or with a name that looks alike.
    DuplicateTool,
    /// The configuration demands a process of its own for the component's or a tenant's calls. This
    /// crate does not start one.
    NeedsProcess,
    /// The configuration has a section for a tool that the component does not have, or offers a
    /// tenant a tool that no component has.
    UnknownTool,
    /// The bytes are not a component that can be loaded.
    NotLoadable,
    /// The host could not load it at this time, because of its directories, its memory or its
    /// cache.
    Host,
}

/// The version that is served of a component with a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Serving {
    /// Nothing.
    Nothing,
    /// The approved version, instead of the file.
    Approved,
    /// The current file.
    Current,
}

impl Reason {
    /// Returns the reason as an identifier for programs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::ConfigurationNotApproved => "configuration_not_approved",
            Self::NotApproved => "not_approved",
            Self::Changed => "changed",
            Self::Rebuilt => "rebuilt",
            Self::UnsetSecret => "unset_secret",
            Self::MissingFile => "missing_file",
            Self::UnreadableFile => "unreadable_file",
            Self::Unsigned => "unsigned",
            Self::DigestMismatch => "digest_mismatch",
            Self::NotGranted => "not_granted",
            Self::DuplicateTool => "duplicate_tool",
            Self::NeedsProcess => "needs_process",
            Self::UnknownTool => "unknown_tool",
            Self::NotLoadable => "not_loadable",
            Self::Host => "host",
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::NotApproved { what: Unapproved::Configuration, .. } => {
                Self::ConfigurationNotApproved
            }
            Error::NotApproved { what: Unapproved::New, .. } => Self::NotApproved,
            Error::NotApproved { what: Unapproved::Changed, .. } => Self::Changed,
            Error::File { .. } if error.is_missing_file() => Self::MissingFile,
            Error::File { .. } => Self::UnreadableFile,
            Error::Unsigned(_) => Self::Unsigned,
            Error::DigestMismatch(_) => Self::DigestMismatch,
            Error::DuplicateTool { .. } => Self::DuplicateTool,
            Error::Invalid { .. } | Error::Usage { .. } => Self::UnknownTool,
            Error::Toolcell(error) if error.is_not_granted() => Self::NotGranted,
            Error::Toolcell(error) if error.is_component() || error.is_definition() => {
                Self::NotLoadable
            }
            Error::Toolcell(_) => Self::Host,
        }
    }
}

impl fmt::Display for ComponentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.tenant, &self.tool) {
            (None, Some(tool)) => {
                write!(f, "{}; calls of the tool `{tool}` are refused", self.error)
            }
            (Some(tenant), Some(tool)) => {
                write!(
                    f,
                    "{}; calls of the tool `{tool}` for the tenant `{tenant}` are refused",
                    self.error
                )
            }
            (Some(tenant), None) => write!(f, "[tenants.{tenant}]: {}", self.error),
            (None, None) if self.component.is_empty() => write!(f, "{}", self.error),
            (None, None) => write!(f, "[components.{}]: {}", self.component, self.error),
        }
    }
}

impl ComponentProblem {
    /// Returns a suggestion on how to resolve it.
    #[must_use]
    pub fn hint(&self) -> String {
        let hint = self.error.hint();
        if self.reason != Reason::NotGranted {
            return hint;
        }
        format!("{hint}; grants go into [components.{}.grants] of `{}`", self.component, self.file)
    }

    pub(crate) fn new(component: &str, reason: Reason, serving: Serving, error: Error) -> Self {
        let (component, file) = (component.to_owned(), String::new());
        Self { component, tool: None, tenant: None, reason, serving, file, line: 1, error }
    }

    /// Sets the place in a configuration, if the error has none: that of the component's grants, or
    /// of the component.
    pub(crate) fn with_place(
        self,
        configuration: Option<&str>,
        components: &BTreeMap<String, ComponentConfig>,
    ) -> Self {
        let (file, line) = match self.error.problems().first() {
            Some(Problem { file, line, .. }) => (file.clone(), *line),
            None => {
                let section =
                    components.get(&self.component).map(|configured| configured.section.line);
                (configuration.unwrap_or_default().to_owned(), section.unwrap_or(1))
            }
        };
        Self { file, line, ..self }
    }

    pub(crate) fn of(component: &str, serving: Serving, error: Error) -> Self {
        Self::new(component, Reason::of(&error), serving, error)
    }

    /// The problem for other code. `approve` is the command that approves it.
    pub(crate) fn rebuilt(component: &str, approve: &str) -> Self {
        let message = format!(
            "the code of the component `{component}` has changed since it was approved; its tools and imports are the same"
        );
        let hint = format!(
            "{approve} records the new code; \
             set `digest` in `[components.{component}]` to refuse any other code"
        );
        let error = Error::NotApproved { what: Unapproved::Changed, message, hint };
        Self::new(component, Reason::Rebuilt, Serving::Current, error)
    }

    pub(crate) fn needs_process(component: &str) -> Self {
        let message =
            "[host] has `isolation = \"process\"`, and this program starts no process for calls";
        let hint = "write `isolation = \"strict\"` in [host], which needs no process, or use `toolcell run`";
        let error = Error::usage(message, hint);
        Self::new(component, Reason::NeedsProcess, Serving::Nothing, error)
    }

    /// The problem for a name that a tenant is offered and that no tool has.
    pub(crate) fn no_such_tool(tenant: &str, problem: Problem) -> Self {
        let error = Error::invalid(&problem.file.clone(), vec![problem]);
        let tenant = Some(tenant.to_owned());
        Self { tenant, ..Self::new("", Reason::UnknownTool, Serving::Current, error) }
    }

    pub(crate) fn of_tenant(tenant: &str) -> Self {
        let message =
            "the tenant's isolation is `process`, and this program starts no process for calls";
        let hint = "write `isolation = \"strict\"` in place of `process`, in the section of the tenant or in [host]; \
                    or use `toolcell run --tenant`";
        let error = Error::usage(message, hint);
        let problem = Self::new("", Reason::NeedsProcess, Serving::Nothing, error);
        Self { tenant: Some(tenant.to_owned()), ..problem }
    }

    pub(crate) fn duplicate_tool(
        component: &str,
        (tool, one): (&str, &str),
        (other, two): (&str, &str),
    ) -> Self {
        let message = if tool == other {
            format!("`{one}` and `{two}` both offer a tool `{tool}`")
        } else {
            format!("`{tool}` of `{one}` looks like `{other}` of `{two}`")
        };
        let hint = "rename one of the tools, or leave out its component: a model may confuse the two tools";
        Self::of(
            component,
            Serving::Nothing,
            Error::DuplicateTool { message, hint: hint.to_owned() },
        )
    }
}
