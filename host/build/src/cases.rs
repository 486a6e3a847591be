//! The cases of a tool: calls, what answers their requests and their calls, and how they are
//! expected to end.
//!
//! A case runs in a cell as every call does: with the same checks, limits and redaction, and with
//! the grants that its tool declares as needs. Requests and calls of other tools are answered from
//! the case; nothing leaves the machine.

mod bounds;
mod coverage;
mod file;
mod fuzz;
mod generate;
mod judge;
mod junit;
mod others;
mod pattern;
mod rewrite;
mod run;
mod shrink;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

pub use coverage::Coverage;
pub use file::{Budget, Case, Context, Exchange, Expect, OtherTool, Suite, find, read};
pub use fuzz::{FuzzFailure, FuzzOptions, FuzzReport};
pub use junit::junit;
pub use pattern::Pattern;
pub(crate) use run::grants;
pub use run::{Cases, Options};

/// How the cases of a component ended.
///
/// # Shape
/// As JSON: `{"passed", "failed", "blessed", "cases", "coverage"?}`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Cases that ended as expected.
    pub passed: usize,
    /// Cases that did not.
    pub failed: usize,
    /// Cases whose expectation was written anew.
    pub blessed: usize,
    /// Each of them, in the order of the files.
    pub cases: Vec<CaseReport>,
    /// What the cases cover, for each tool, where [`Options::coverage`] asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Vec<Coverage>>,
}

/// How one case ended.
///
/// # Shape
/// As JSON: `{"file", "name", "tool", "passed", "failures", "blessed", "seen", "fuel", "memory",
/// "seconds"}`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CaseReport {
    /// The file.
    pub file: PathBuf,
    /// The case's name.
    pub name: String,
    /// The tool that was called.
    pub tool: String,
    /// Whether it ended as expected, within its budget.
    pub passed: bool,
    /// What was not as expected, each in one sentence.
    pub failures: Vec<String>,
    /// Whether the expectation was written anew.
    pub blessed: bool,
    /// The ending, in the form that an expectation has.
    pub seen: Expect,
    /// Instructions that the call used.
    pub fuel: Option<u64>,
    /// The most memory that it had, in bytes.
    pub memory: u64,
    /// How long it took.
    #[serde(serialize_with = "seconds", rename = "seconds")]
    pub time: Duration,
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
