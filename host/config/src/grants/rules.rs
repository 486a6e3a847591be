//! Lists all rules of a configuration with file, line and column, so that a message can point at a
//! rule without effect.
//!
//! Reading a configuration calls [`parse_all`], which returns a [`ConfiguredRule`] for each rule
//! that can be parsed: its section, its kind, its line, and an overlay (rules that can only narrow
//! a grant) that leaves only this rule. With that overlay the command computes if any tool can use
//! the rule.
//!
//! Not here: finding rules without effect, which `toolcell check` does; the meaning of rules as
//! grants or restrictions, in `grants`.

use std::ops::Range;

use toolcell::Overlay;
use toolcell::grants::GrantKind;

use crate::problem::{Problem, Problems};
use crate::schema;

/// The section that a rule is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSection {
    /// `[components.NAME.grants]`
    Component(String),
    /// `[components.NAME.tools.TOOL]`
    Tool(String, String),
    /// `[tenants.NAME]`
    Tenant(String),
}

/// One rule.
#[derive(Debug, Clone)]
pub struct ConfiguredRule {
    /// The section that it is in.
    pub of: RuleSection,
    /// Its kind.
    pub kind: GrantKind,
    /// An overlay that leaves only this rule of its kind.
    pub only: Overlay,
    /// The place, with the rule as the message.
    pub place: Problem,
}

/// Returns all rules that can be parsed. Others are reported elsewhere.
pub(crate) fn parse_all(problems: &Problems<'_>, file: &schema::File) -> Vec<ConfiguredRule> {
    let mut found = Vec::new();
    let mut add = |of: &RuleSection, kind: GrantKind, text: &str, span: &Range<usize>| {
        if let Ok(only) = Overlay::only(kind, text) {
            let place = problems.at(span, text, "");
            found.push(ConfiguredRule { of: of.clone(), kind, only, place });
        }
    };
    let mut narrowings = Vec::new();
    for (name, component) in &file.components {
        let of = RuleSection::Component(name.clone());
        for (kind, text, span) in component.value.grants.iter().flat_map(|at| at.value.rules()) {
            add(&of, kind, &text, span);
        }
        let tools = component.value.tools.iter();
        narrowings.extend(
            tools.map(|(tool, at)| (RuleSection::Tool(name.clone(), tool.clone()), &at.value)),
        );
    }
    let tenants = file.tenants.iter();
    narrowings.extend(tenants.map(|(name, at)| (RuleSection::Tenant(name.clone()), &at.value)));
    for (of, narrowing) in narrowings {
        for (kind, lines) in narrowing.rules() {
            lines.iter().for_each(|line| add(&of, kind, &line.value, &line.span));
        }
    }
    found
}
