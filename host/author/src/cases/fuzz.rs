//! Calls the tools of a component with arguments generated from their schemas, and reports the
//! smallest arguments at which a tool fails.
//!
//! `toolcell test --fuzz` uses it. [`Cases::fuzz`] makes the requested number of calls of each
//! tool, each in its own cell (a fresh WebAssembly instance for one call), and returns a
//! [`FuzzReport`] for each tool. A failure is an ending that the tool did not choose: a trap, a
//! panic, a timeout, or a value that violates its own schema. An error that the tool returns and a
//! refusal are not failures. Failures with the same reason and the same beginning of the message
//! count as one. For each, at most 300 further calls search simpler arguments that fail in the same
//! way; after five failures the tool is not called again. Equal seeds generate equal arguments.

use serde::Serialize;
use serde_json::{Value, json};
use toolcell::grants::GrantKind;
use toolcell::{CallResult, Definition};

use super::file::Case;
use super::generate::Generator;
use super::run::Cases;
use super::shrink::simplified;
use crate::lines::format_lines;
use crate::{Error, Result, SourceLine};

/// Calls that are spent on shrinking the arguments of one failure.
const SHRINKING: usize = 300;
/// Failures reported for a tool. After that many, the tool is not called again.
const MAX_FAILURES: usize = 5;
/// Attempts to generate a value for one call. Values that violate the schema are dropped.
const ATTEMPTS: usize = 20;
/// The value of each secret that a tool declares: long enough for a secret, and unlike ordinary
/// text.
const PLACEHOLDER: &str = "placeholder-of-a-secret-while-fuzzing";

/// Settings of fuzzing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FuzzOptions {
    /// Calls of each tool.
    pub calls: usize,
    /// The seed of the arguments. Equal seeds give equal arguments.
    pub seed: u64,
}

impl FuzzOptions {
    /// Makes this many calls of each tool, with seed 0.
    #[must_use]
    pub fn new(calls: usize) -> Self {
        Self { calls, seed: 0 }
    }
}

/// The result of fuzzing one tool.
///
/// # Shape
/// As JSON: `{"tool", "calls", "seed", "failures"}`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FuzzReport {
    /// The tool's name.
    pub tool: String,
    /// Calls with generated arguments. Fewer than requested after five different failures, or if no
    /// generated value fits the tool's schema.
    pub calls: usize,
    /// The seed of the arguments.
    pub seed: u64,
    /// Failures, one for each reason and message.
    pub failures: Vec<FuzzFailure>,
}

/// Arguments at which a tool failed.
///
/// # Shape
/// As JSON: `{"reason", "message", "lines"?, "arguments"}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FuzzFailure {
    /// The reason, for example `handler_raised`.
    pub reason: String,
    /// The host's message.
    pub message: String,
    /// The places in the author's files, innermost first, if the component has debug information.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SourceLine>,
    /// The smallest arguments that were found.
    pub arguments: Value,
}

impl Cases {
    /// Calls each tool with arguments generated from its schema. A tool is granted what it declares
    /// as needs, its secrets have a placeholder as their value, requests get no answer, and each
    /// call has its own key-value store. `called` is called after each call with generated
    /// arguments.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn fuzz(
        &self,
        options: &FuzzOptions,
        called: impl Fn() + Send + Sync,
    ) -> Result<Vec<FuzzReport>, Error> {
        let mut reports = Vec::new();
        for tool in self.offered_tools().await? {
            reports.push(self.fuzz_tool(&tool, options, &called).await?);
        }
        Ok(reports)
    }

    async fn fuzz_tool(
        &self,
        tool: &Definition,
        options: &FuzzOptions,
        called: &(impl Fn() + Send + Sync),
    ) -> Result<FuzzReport> {
        let schema = tool.parameters.clone().unwrap_or_else(|| json!({"type": "object"}));
        let validator = jsonschema::draft202012::new(&schema).map_err(|error| {
            let message =
                format!("the parameters of `{}` are not a JSON Schema: {error}", tool.name);
            Error::source(message, "correct the schema")
        })?;
        let mut generator = Generator::new(&schema, options.seed);
        let mut report = FuzzReport {
            tool: tool.name.clone(),
            calls: 0,
            seed: options.seed,
            failures: Vec::new(),
        };
        for _ in 0..options.calls {
            let made = (0..ATTEMPTS)
                .map(|_| generator.value())
                .find(|value| value.is_object() && validator.is_valid(value));
            let Some(arguments) = made else { break };
            report.calls += 1;
            let failure = self.failure(tool, &arguments).await?;
            called();
            let Some(failure) = failure else { continue };
            if report.failures.iter().any(|known| known.is_same_failure(&failure)) {
                continue;
            }
            let failure = self.smallest(tool, failure, |value| validator.is_valid(value)).await?;
            // The source lines are computed once, for the final arguments.
            let lines = self.lines(&self.call_result(tool, &failure.arguments).await?);
            report.failures.push(FuzzFailure { lines, ..failure });
            if report.failures.len() == MAX_FAILURES {
                break;
            }
        }
        Ok(report)
    }

    /// Shrinks the arguments to the smallest ones that are found to cause the same failure.
    async fn smallest(
        &self,
        tool: &Definition,
        mut failure: FuzzFailure,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<FuzzFailure> {
        let mut candidates = simplified(&failure.arguments).into_iter();
        for _ in 0..SHRINKING {
            let Some(arguments) = candidates.find(|value| fits(value)) else { break };
            let simpler = self.failure(tool, &arguments).await?;
            if let Some(simpler) = simpler.filter(|simpler| simpler.is_same_failure(&failure)) {
                candidates = simplified(&simpler.arguments).into_iter();
                failure = simpler;
            }
        }
        Ok(failure)
    }

    async fn failure(&self, tool: &Definition, arguments: &Value) -> Result<Option<FuzzFailure>> {
        Ok(match self.call_result(tool, arguments).await? {
            CallResult::ToolError(error) => Some(FuzzFailure {
                reason: error.reason().name().to_owned(),
                message: error.to_string(),
                lines: Vec::new(),
                arguments: arguments.clone(),
            }),
            CallResult::Outcome(_) | CallResult::Refusal(_) => None,
        })
    }

    /// Calls the tool with these arguments and returns the result.
    async fn call_result(&self, tool: &Definition, arguments: &Value) -> Result<CallResult> {
        let kinds = [GrantKind::Secrets, GrantKind::Reveal].map(|kind| kind.row().need);
        let secrets = tool.needs.iter().filter(|need| kinds.contains(&need.kind.as_str()));
        let secrets = secrets.map(|need| (need.pattern.clone(), PLACEHOLDER.to_owned())).collect();
        let case = Case { arguments: Some(arguments.clone()), secrets, ..Case::default() };
        let completion = self.complete(&case, tool).await.map_err(|error| {
            Error::cases(format!("`{}` cannot be called: {error}", tool.name), error.hint())
        })?;
        Ok(completion.result)
    }
}

impl FuzzFailure {
    /// The message, followed by a line for each place in the author's files.
    #[must_use]
    pub fn message_with_lines(&self) -> String {
        self.message.clone() + &format_lines(&self.lines)
    }

    /// Returns true if both failures have the same reason and, if the messages name a place, the
    /// same place.
    fn is_same_failure(&self, other: &Self) -> bool {
        self.reason == other.reason
            && message_prefix(&self.message) == message_prefix(&other.message)
    }
}

/// Returns the first 60 characters of a message's first line without digits, because digits and
/// quoted values differ between arguments.
fn message_prefix(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    // The line and column numbers of a panic's place are significant.
    if line.contains("panicked at") {
        return line.to_owned();
    }
    line.chars().filter(|char| !char.is_ascii_digit()).take(60).collect()
}
