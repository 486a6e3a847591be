//! The tools that a tenant is offered: the list `tools` of its section.
//!
//! Reading a configuration calls [`offered`] with the list, which has names and prefixes such as
//! `notes_*`. It returns the rules of the tenant's calls; without a list every tool is offered. Its
//! patterns apply to tools that a reload adds. It also returns the names in the list, each with the
//! problem to report if no tool has it; a prefix may be for future tools.

use toolcell::grants::InvokeRule;

use crate::problem::{Problem, Problems};
use crate::schema::At;

/// Returns the tools that a tenant's section offers, and the names among them.
pub(crate) fn offered(
    problems: &mut Problems<'_>,
    said: Option<&At<Vec<At<String>>>>,
) -> (Option<Vec<InvokeRule>>, Vec<(String, Problem)>) {
    let Some(said) = said else { return (None, Vec::new()) };
    let hint = "write `lookup`, or `notes_*` for every tool whose name begins with `notes_`; without `tools` the tenant is \
                offered every tool";
    let (mut rules, mut named) = (Vec::new(), Vec::new());
    for text in &said.value {
        let rule = match text.value.parse::<InvokeRule>().map_err(|bad| bad.to_string()) {
            Ok(rule) if rule.to_string().starts_with("own ") => {
                Err(format!("`{rule}`: `own` is only for grants of `invoke`"))
            }
            other => other,
        };
        match rule {
            Ok(rule) => {
                let name = rule.to_string();
                if !name.ends_with('*') {
                    let message =
                        format!("`tools` has the name `{name}`, and no component has such a tool");
                    let problem =
                        problems.at(&text.span, message, "correct the name, or remove it");
                    named.push((name, problem));
                }
                rules.push(rule);
            }
            Err(message) => problems.error(&text.span, message, hint),
        }
    }
    (Some(rules), named)
}

#[cfg(test)]
mod tests;
