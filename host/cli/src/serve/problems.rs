//! What of a configuration is not served, or not as it should be: told to the operator, and reported by `/ready`.

use serde_json::json;
use toolcell_config::{Loaded, Serving};
use toolcell_server::Service;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::units::counted;

/// Reports components that are not served, or not wholly. Only the operator sees which.
pub(super) fn report_problems(service: &Service, loaded: &Loaded) {
    let details: Vec<_> = loaded.problems().iter().map(ToString::to_string).collect();
    let have = if details.len() == 1 { "has" } else { "have" };
    let summary =
        format!("{} {have} a problem: the operator's log says which", counted(details.len(), "component or tenant"));
    service.report_degraded("components", summary, details);
}

/// Tells what is not served, or not wholly. Returns of how many problems.
pub(super) fn told(printer: &Printer, args: &ServeArgs, loaded: &Loaded) -> Result<usize, Failure> {
    let problems = loaded.problems();
    for problem in problems {
        if args.json && args.check {
            continue;
        }
        let label = if problem.serving == Serving::Nothing { "error" } else { "warning" };
        // A problem of the configuration's text names its place itself.
        let place = if problem.error.problems().is_empty() {
            format!("{}:{}: ", problem.file, problem.line)
        } else {
            String::new()
        };
        printer.note(label, &format!("{place}{problem}"));
        printer.note("hint", &problem.hint());
    }
    for (name, why) in loaded.in_development() {
        printer.note("warning", &format!("development mode: `{name}` is served without approval, {why}"));
    }
    if args.check {
        let tools = loaded.registry().toolbox().tools().count();
        if args.json {
            let problems: Vec<_> = problems
                .iter()
                .map(|problem| {
                    json!({
                        "component": problem.component, "tool": problem.tool, "tenant": problem.tenant,
                        "reason": problem.reason.code(), "file": problem.file, "line": problem.line,
                        "message": problem.error.to_string(), "hint": problem.hint(),
                    })
                })
                .collect();
            let in_development: Vec<_> = loaded.in_development().map(|(name, _)| name).collect();
            printer.json(&json!({
                "tools": tools, "tenants": loaded.tenants().keys().collect::<Vec<_>>(), "problems": problems,
                "in_development": in_development,
            }))?;
        } else {
            let counts = [(tools, "tool"), (loaded.tenants().len(), "tenant"), (problems.len(), "problem")];
            printer.text(&counts.map(|(count, of)| counted(count, of)).join(", "))?;
        }
    }
    Ok(problems.len())
}
