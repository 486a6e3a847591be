//! Reports the parts of a configuration that are not served, or served only in part, to the
//! operator.
//!
//! `serve` calls [`print_problems`] after the first load and after each reload, with the loaded
//! state. It prints an error or a warning with a hint for each component, tool or tenant that has a
//! problem, for example a component that is not approved; `--check --json` prints them as one
//! object. It returns their number, which decides the exit status of `--check`. [`summary`] returns
//! the changes of a reload in one line.

use std::collections::BTreeSet;

use serde_json::json;
use toolcell_config::{ComponentProblem, LoadedTools, Reason, ReloadChanges, Serving};

use crate::args::ServeArgs;
use crate::print::{Printer, Result, counted};

/// Returns the changes of a reload in one line, with the components that wait for approval.
pub(super) fn summary(reloaded: &ReloadChanges, loaded: &LoadedTools) -> String {
    let waits = |problem: &&ComponentProblem| {
        matches!(problem.reason, Reason::NotApproved | Reason::Changed)
    };
    let waiting =
        loaded.problems().iter().filter(waits).map(|problem| problem.component.clone()).collect();
    let listed = |(what, names): (&str, &BTreeSet<String>)| {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
    };
    let changes = [
        ("added", &reloaded.added),
        ("changed", &reloaded.replaced),
        ("removed", &reloaded.removed),
    ];
    let mut lines: Vec<_> = changes.into_iter().filter_map(listed).collect();
    if lines.is_empty() {
        lines.push("the same components as before".to_owned());
    }
    lines.extend(listed(("not approved yet:", &waiting)));
    lines.join("; ")
}

/// Prints the problems of components that are not served, or served only in part. Returns the
/// number of problems.
pub(super) fn print_problems(
    printer: &Printer,
    args: &ServeArgs,
    loaded: &LoadedTools,
) -> Result<usize> {
    let problems = loaded.problems();
    for problem in problems.iter().filter(|_| !(args.json && args.check)) {
        let label = if problem.serving == Serving::Nothing { "error" } else { "warning" };
        // A problem of the configuration's text names its place itself.
        let place = if problem.error.problems().is_empty() {
            format!("{}:{}: ", problem.file, problem.line)
        } else {
            String::new()
        };
        printer.labelled(label, format!("{place}{problem}"));
        printer.hint(problem.hint());
    }
    for (name, why) in loaded.development_components() {
        printer.warning(format!("development mode: `{name}` is served without approval, {why}"));
    }
    if args.check {
        let tools = loaded.registry().toolbox().tools().count();
        if args.json {
            let form = |problem: &ComponentProblem| {
                json!({
                    "component": problem.component, "tool": problem.tool, "tenant": problem.tenant,
                    "reason": problem.reason.code(), "file": problem.file, "line": problem.line,
                    "message": problem.error.to_string(), "hint": problem.hint(),
                })
            };
            let developed = loaded.development_components().map(|(name, _)| name);
            printer.json(&json!({
                "tools": tools, "tenants": loaded.tenants().keys().collect::<Vec<_>>(),
                "problems": problems.iter().map(form).collect::<Vec<_>>(),
                "development_components": developed.collect::<Vec<_>>(),
            }))?;
        } else {
            let counts =
                [(tools, "tool"), (loaded.tenants().len(), "tenant"), (problems.len(), "problem")];
            printer.text(&counts.map(|(count, of)| counted(count, of)).join(", "))?;
        }
    }
    Ok(problems.len())
}
