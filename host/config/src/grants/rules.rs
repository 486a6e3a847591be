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
use toolcell::grants::{Access, PathRule};

use crate::problem::{Problem, Problems};
use crate::schema::{self, At, Either};

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
    /// The key of its list in the configuration.
    pub kind: &'static str,
    /// An overlay that leaves only this rule of its kind.
    pub only: Overlay,
    /// The place, with the rule as the message.
    pub place: Problem,
}

/// Returns all rules that can be parsed. Others are reported elsewhere.
pub(crate) fn parse_all(problems: &Problems<'_>, file: &schema::File) -> Vec<ConfiguredRule> {
    let mut rules = Rules { problems, found: Vec::new() };
    for (name, component) in &file.components {
        let of = RuleSection::Component(name.clone());
        if let Some(grants) = &component.value.grants {
            rules.of_grants(&of, &grants.value);
        }
        for (tool, narrowing) in &component.value.tools {
            rules.of_narrowing(&RuleSection::Tool(name.clone(), tool.clone()), &narrowing.value);
        }
    }
    for (name, narrowing) in &file.tenants {
        rules.of_narrowing(&RuleSection::Tenant(name.clone()), &narrowing.value);
    }
    rules.found
}

struct Rules<'a, 'b> {
    problems: &'a Problems<'b>,
    found: Vec<ConfiguredRule>,
}

impl Rules<'_, '_> {
    fn add(
        &mut self,
        of: &RuleSection,
        kind: &'static str,
        text: &str,
        span: &Range<usize>,
        only: Overlay,
    ) {
        let place = self.problems.at(span, text, "");
        self.found.push(ConfiguredRule { of: of.clone(), kind, only, place });
    }

    fn of_grants(&mut self, of: &RuleSection, said: &schema::Grants) {
        for line in &said.http {
            match &line.value {
                Either::Short(rule) => self.http(of, rule, &line.span),
                Either::Table(table) => self.http(of, &table.rule.value, &table.rule.span),
            }
        }
        for directory in &said.directories {
            let access = match directory.value.access {
                schema::Access::Read => Access::Read,
                schema::Access::Write => Access::Write,
            };
            if let Ok(rule) = PathRule::new(access, &directory.value.name.value) {
                let (text, span) = (rule.to_string(), directory.value.name.span.clone());
                let mut only = Overlay::default();
                only.paths = Some(vec![rule]);
                self.add(of, "directories", &text, &span, only);
            }
        }
        for (name, value) in &said.environment {
            self.name(of, "environment", name, &value.span);
        }
        // A secret without `destination` can only be revealed.
        for (name, said) in said.secrets.iter().filter(|(_, said)| said.value.destination.is_some())
        {
            self.name(of, "secrets", name, &said.span);
        }
        for name in &said.reveal {
            self.name(of, "reveal", &name.value, &name.span);
        }
        for rule in &said.kv {
            self.key(of, rule);
        }
        for rule in &said.invoke {
            self.invoke(of, rule);
        }
    }

    fn of_narrowing(&mut self, of: &RuleSection, said: &schema::Narrowing) {
        for rule in said.http.iter().flatten() {
            self.http(of, &rule.value, &rule.span);
        }
        for rule in said.paths.iter().flatten() {
            if let Ok(path) = rule.value.parse() {
                let mut only = Overlay::default();
                only.paths = Some(vec![path]);
                self.add(of, "directories", &rule.value, &rule.span, only);
            }
        }
        let names = [
            ("environment", &said.environment),
            ("secrets", &said.secrets),
            ("reveal", &said.reveal),
        ];
        for (kind, names) in names {
            for name in names.iter().flatten() {
                self.name(of, kind, &name.value, &name.span);
            }
        }
        for rule in said.kv.iter().flatten() {
            self.key(of, rule);
        }
        for rule in said.invoke.iter().flatten() {
            self.invoke(of, rule);
        }
    }

    fn http(&mut self, of: &RuleSection, text: &str, span: &Range<usize>) {
        if let Ok(rule) = text.parse() {
            let mut only = Overlay::default();
            only.http = Some(vec![rule]);
            self.add(of, "http", text, span, only);
        }
    }

    fn key(&mut self, of: &RuleSection, text: &At<String>) {
        if let Ok(rule) = text.value.parse() {
            let mut only = Overlay::default();
            only.kv = Some(vec![rule]);
            self.add(of, "kv", &text.value, &text.span, only);
        }
    }

    fn invoke(&mut self, of: &RuleSection, text: &At<String>) {
        if let Ok(rule) = text.value.parse() {
            let mut only = Overlay::default();
            only.invoke = Some(vec![rule]);
            self.add(of, "invoke", &text.value, &text.span, only);
        }
    }

    fn name(&mut self, of: &RuleSection, kind: &'static str, name: &str, span: &Range<usize>) {
        let mut only = Overlay::default();
        let names = match kind {
            "environment" => &mut only.environment,
            "secrets" => &mut only.secrets,
            _ => &mut only.reveal,
        };
        *names = Some([name.to_owned()].into());
        self.add(of, kind, name, span, only);
    }
}
