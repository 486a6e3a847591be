//! The tools that a tenant is offered: the list `tools` of its section.
//!
//! Reading a configuration makes an [`OfferedTools`] from the list, which has names and prefixes
//! such as `notes_*`. `has` decides by a tool's name; without a list every tool is offered. The
//! list only restricts. Its patterns apply to tools that a reload adds. Names match as in a grant
//! of `invoke`. `unknown` reports names that no tool has, with the nearest one.

use toolcell::grants::InvokeRule;
use toolcell::names;

use crate::problem::{Problem, Problems};
use crate::schema::At;

/// The tools that a tenant sees and may call.
///
/// # Defaults
/// All.
#[derive(Debug, Clone, Default)]
pub struct OfferedTools(Option<Vec<Pattern>>);

/// A name, or a prefix of names.
#[derive(Debug, Clone)]
struct Pattern {
    rule: InvokeRule,
    /// The problem to report if no tool has this name.
    unknown: Problem,
}

impl OfferedTools {
    /// Returns the tools that a tenant's section offers.
    pub(crate) fn of(problems: &mut Problems<'_>, said: Option<&At<Vec<At<String>>>>) -> Self {
        Self(
            said.map(|said| {
                said.value.iter().filter_map(|text| Pattern::of(problems, text)).collect()
            }),
        )
    }

    /// Returns true if every tool is offered.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true if the tool of this name is offered.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        self.0
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|pattern| pattern.rule.covers(tool, false)))
    }

    /// Returns the names and patterns as they are written. `None`: every tool is offered.
    #[must_use]
    pub fn patterns(&self) -> Option<Vec<String>> {
        Some(self.0.as_ref()?.iter().map(|pattern| pattern.rule.to_string()).collect())
    }

    /// Returns a problem for each name that is not among the known tools. A pattern may be for
    /// future tools.
    pub fn unknown<'a>(&self, known: impl Iterator<Item = &'a str> + Clone) -> Vec<Problem> {
        let patterns =
            self.0.iter().flatten().map(|pattern| (pattern.rule.to_string(), &pattern.unknown));
        let unknown = patterns
            .filter(|(name, _)| !name.ends_with('*') && !known.clone().any(|known| known == name));
        let described = unknown.map(|(name, problem)| {
            let hint = names::did_you_mean(&name, known.clone(), || problem.hint.clone());
            Problem { hint, ..problem.clone() }
        });
        described.collect()
    }
}

impl Pattern {
    fn of(problems: &mut Problems<'_>, text: &At<String>) -> Option<Self> {
        let hint = "write `lookup`, or `notes_*` for every tool whose name begins with `notes_`; without `tools` the tenant is \
                    offered every tool";
        match text.value.parse::<InvokeRule>() {
            Ok(rule) if rule.to_string().starts_with("own ") => {
                let message = format!("`{rule}`: `own` is only for grants of `invoke`");
                problems.error(&text.span, message, hint);
                None
            }
            Ok(rule) => {
                let message =
                    format!("`tools` has the name `{rule}`, and no component has such a tool");
                let unknown = problems.at(&text.span, message, "correct the name, or remove it");
                Some(Self { rule, unknown })
            }
            Err(bad) => {
                problems.error(&text.span, bad.to_string(), hint);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
