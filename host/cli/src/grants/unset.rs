//! Words the messages about secrets without a usable value, equally in every command.
//!
//! The host refuses calls of a tool that may use a secret whose value is not set. [`problem_text`]
//! takes the problem that the configuration found and the names of the tools, and returns one
//! sentence for `check`, `explain` and the loading of components. [`print_refused`] prints the
//! problems and hints of a call that was refused for this reason.

use toolcell::Refusal;

use crate::config::Problem;
use crate::print::Printer;

/// Returns a sentence with the problem, the place in the configuration, and the tools whose calls
/// are refused.
pub(crate) fn problem_text(problem: &Problem, tools: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = tools.iter().map(|tool| format!("`{}`", tool.as_ref())).collect();
    match names.as_slice() {
        [] => format!("{problem}; no tool may use it, so no call is refused"),
        [only] => format!("{problem}; calls of the tool {only} are refused"),
        several => format!("{problem}; calls of the tools {} are refused", several.join(", ")),
    }
}

/// Prints the problem of each value for a refused call.
pub(crate) fn print_refused<'a>(
    printer: &Printer,
    refusal: &Refusal,
    problems: impl Iterator<Item = &'a Problem>,
    tool: &str,
) {
    let problems: Vec<_> = problems.collect();
    problems.iter().for_each(|problem| printer.error(problem_text(problem, &[tool])));
    if problems.is_empty() {
        printer.error(refusal);
    }
    printer.labelled("  reason", refusal.kind());
    problems.iter().for_each(|problem| printer.hint(&problem.hint));
}
