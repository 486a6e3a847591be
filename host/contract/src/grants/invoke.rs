//! Rules that allow a tool to call other tools, such as `lookup`, `notes_*`, `own fetch`.
//!
//! An [`InvokeRule`] is parsed from a grant, an overlay (rules that can only narrow a grant) or a
//! declared need. When a tool asks the host to call another tool, [`InvokeRule::covers`] takes the
//! name of that tool and decides. A called tool has at most the rights of the calling tool; with
//! `own`, it has its own rights instead, and the rule must say so. A `*` is allowed only at the
//! end, and a rule that matches every tool is refused.

use std::fmt;
use std::str::FromStr;

use super::InvalidRule;
use super::kind::{BlockedOn, Row, lists};
use super::rule::{Pattern, Rule, inner};

pub(super) static INVOKE: Row = Row {
    words: &["invoke", "call", "calls"],
    example: "invoke=lookup",
    requests: &["invoke TOOL"],
    imports: &["toolcell:tool/invoke@"],
    wait: Some(BlockedOn::Tool),
    rules: Some(lists!(invoke, |grants, _| grants.invoke.clone())),
    ..Row::list("invoke", |grants| !grants.invoke.is_empty())
};

/// A rule that allows calls of other tools. A called tool has at most the rights of the calling
/// tool. With `own` it has its own rights instead.
///
/// # Shape
/// As text: `NAME` or `own NAME`, and `PREFIX*` for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvokeRule {
    own: bool,
    tools: Pattern,
}

impl InvokeRule {
    /// Returns true if the rule allows a call of this tool. `own` asks for a call with the rights
    /// of the called tool.
    #[must_use]
    pub fn covers(&self, tool: &str, own: bool) -> bool {
        (self.own || !own) && self.tools.covers(tool)
    }

    /// Returns the same rule, with `own`: the called tools keep their own rights.
    #[must_use]
    pub(crate) fn with_own_rights(self) -> Self {
        Self { own: true, ..self }
    }
}

impl FromStr for InvokeRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let hint = "write `lookup`, `notes_*`, or `own fetch` to let `fetch` use its own rights";
        let text = text.trim_start_matches(' ');
        let (own, name) = text.strip_prefix("own ").map_or((false, text), |name| (true, name));
        let name = name.trim_matches(' ');
        let Some(tools) = Pattern::parse(name) else {
            return Err(InvalidRule::new(text, "`*` is allowed only at the end", hint));
        };
        if tools.text.is_empty() {
            let problem = if tools.is_prefix {
                "a rule must not match every tool"
            } else {
                "the tool's name is missing"
            };
            return Err(InvalidRule::new(text, problem, hint));
        }
        if name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(InvalidRule::new(
                text,
                "a tool's name must not have spaces or control characters",
                hint,
            ));
        }
        Ok(Self { own, tools })
    }
}

impl Rule for InvokeRule {
    fn place(&self) -> String {
        self.tools.to_string()
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        let tools = inner(&self.tools, &other.tools, Pattern::is_within)?.clone();
        Some(Self { own: self.own && other.own, tools })
    }
}

impl fmt::Display for InvokeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = if self.own { "own " } else { "" };
        write!(f, "{own}{}", self.tools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invoke_rule_covers_only_named_tools() {
        for (rule, tool, expected) in [
            ("lookup", "lookup", [true, false]),
            ("lookup", "lookup2", [false, false]),
            ("notes_*", "notes_add", [true, false]),
            ("own fetch", "fetch", [true, true]),
            ("own  fetch_*", "fetch_all", [true, true]),
            ("own", "own", [true, false]),
        ] {
            let parsed: InvokeRule = rule.parse().unwrap();
            assert_eq!([false, true].map(|own| parsed.covers(tool, own)), expected, "{rule}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed));
        }
        for bad in ["", "*", "own *", "own ", "a*b", "a b", "a\nb"] {
            assert!(bad.parse::<InvokeRule>().is_err(), "{bad:?}");
        }
    }
}
