//! Computes the coverage of a component's test cases: the endings, parameters and values that no
//! case has.
//!
//! It is part of the report if the option `coverage` is set. [`coverage`] takes a tool of the
//! component and the reports of the cases that ran, each with its arguments. It counts the cases of
//! the tool by ending (`ok`, `error` and so on, zero included). It lists the top-level parameters
//! of the tool's schema that no case passes, and the values of an `enum` that no case passes. It
//! looks at no deeper level of the schema, and measures no coverage of source lines.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use toolcell::Definition;

use super::CaseReport;
use super::file::Expect;

/// The possible endings of a call.
const ENDINGS: [&str; 6] = ["ok", "error", "ask_user", "halt", "tool_error", "refusal"];

/// The coverage of one tool's cases.
///
/// # Shape
/// As JSON: `{"tool", "outcomes", "uncovered_parameters", "uncovered_values"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Coverage {
    /// The tool's name.
    pub tool: String,
    /// The number of cases for each ending, 0 included.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Top-level parameters of the schema that no case passes.
    pub uncovered_parameters: Vec<String>,
    /// `enum` values that no case passes, as `parameter=value`.
    pub uncovered_values: Vec<String>,
}

/// Returns the coverage of a tool by the cases with these reports and arguments.
pub(super) fn coverage(
    tool: &Definition,
    reports: &[CaseReport],
    arguments: &[Option<Value>],
) -> Coverage {
    let mut endings: BTreeMap<_, _> = ENDINGS.into_iter().map(|ending| (ending, 0)).collect();
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let ran = reports.iter().zip(arguments).filter(|(report, _)| report.tool == tool.name);
    for (report, arguments) in ran {
        *endings.entry(ending(&report.outcome)).or_default() += 1;
        for (name, value) in arguments.iter().filter_map(Value::as_object).flatten() {
            seen.entry(name).or_default().insert(value.to_string());
        }
    }
    let (mut uncovered_parameters, mut uncovered_values) = (Vec::new(), Vec::new());
    let properties =
        tool.parameters.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    for (name, schema) in properties.into_iter().flatten() {
        let Some(values) = seen.get(name.as_str()) else {
            uncovered_parameters.push(name.clone());
            continue;
        };
        let wanted = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        let unseen = wanted.map(Value::to_string).filter(|value| !values.contains(value));
        uncovered_values.extend(unseen.map(|value| format!("{name}={value}")));
    }
    Coverage { tool: tool.name.clone(), outcomes: endings, uncovered_parameters, uncovered_values }
}

fn ending(seen: &Expect) -> &'static str {
    let Expect { ok, error, ask_user, halt, tool_error, .. } = seen;
    let had =
        [ok.is_some(), error.is_some(), ask_user.is_some(), halt.is_some(), tool_error.is_some()];
    let found = ENDINGS.into_iter().zip(had).find(|(_, had)| *had);
    found.map_or("refusal", |(ending, _)| ending)
}
