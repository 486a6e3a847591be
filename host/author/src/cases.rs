//! Runs the cases of a tool: calls with recorded answers to their requests, and the expected
//! results.
//!
//! A case is a test case: an entry of a file such as `cases.yaml` that an author keeps beside a
//! tool; `toolcell test` and `toolcell dev` run them. [`find`] and [`read`] load the files,
//! [`Cases`] takes them with a compiled component (the WebAssembly file of one or more tools) and
//! returns a [`Report`] with a result for each case. With the option `update`, endings that differ
//! are written into the files as the new expectations.
//!
//! Each case runs in a cell (a fresh WebAssembly instance for one call) with the same checks,
//! limits and removal of secrets as any call. Its tool is granted the access that it declares as
//! needs. HTTP requests and calls of other tools are answered from the case; nothing is sent over
//! the network. Fuzzing calls the tools with generated arguments instead.

mod bounds;
mod compare;
mod coverage;
mod file;
mod fuzz;
mod generate;
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

/// The results of the cases of a component.
///
/// # Shape
/// As JSON: `{"passed", "failed", "updated", "cases", "coverage"?}`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Cases that ended as expected.
    pub passed: usize,
    /// Cases that ended otherwise.
    pub failed: usize,
    /// Cases whose expectation was rewritten.
    pub updated: usize,
    /// The report of each case, in the order of the files.
    pub cases: Vec<CaseReport>,
    /// The coverage of each tool, if [`Options::coverage`] is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Vec<Coverage>>,
}

/// The result of one case.
///
/// # Shape
/// As JSON: `{"file", "name", "tool", "passed", "failures", "updated", "outcome", "fuel", "memory",
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
    /// True if the case ended as expected, within its budget.
    pub passed: bool,
    /// Each deviation from the expectation, in one sentence.
    pub failures: Vec<String>,
    /// True if the expectation was rewritten.
    pub updated: bool,
    /// The actual ending, in the form of an expectation.
    pub outcome: Expect,
    /// Fuel that the call used.
    pub fuel: Option<u64>,
    /// Peak memory of the call, in bytes.
    pub memory: u64,
    /// Duration of the call.
    #[serde(serialize_with = "seconds", rename = "seconds")]
    pub time: Duration,
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}
