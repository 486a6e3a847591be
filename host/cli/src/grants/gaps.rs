//! Finds declared needs that are not granted, and rules of a configuration that have no effect.
//!
//! A tool declares needs, such as "GET https://api.example.com"; an operator grants rules.
//! [`missing_needs`] takes a tool's definition and rights and returns a [`Gap`] for each need that
//! is granted only in part or not at all, with the part that remains and the section that takes the
//! rest away. [`rules_without_effect`] takes all loaded components and returns the rules that allow
//! no request of any tool, each with file, line, column, the reason and a hint, and the names of
//! tools that no component has. `check`, `approve`, `run` and the loading of components use them.
//! The results come from the rights that decide in a call. A part that cannot be computed is not
//! reported.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use toolcell::component::Inspection;
use toolcell::grants::{GrantKind, Rights};
use toolcell::tool::Need;
use toolcell::{Definition, Overlay};

use super::rule_lines::RuleLines;
use super::uses;
use crate::config::effective::TOO_MANY;
use crate::config::{Config, ConfiguredRule, Problem, RuleSection};
use crate::print::clean;

/// A loaded component: its name in the configuration, and the rights of each of its tools.
pub(crate) struct Loaded<'a> {
    pub(crate) name: &'a str,
    pub(crate) inspection: &'a Inspection,
    pub(crate) tools: Vec<(&'a Definition, Rights)>,
}

/// A need that is not granted, or only in part.
///
/// # Shape
/// As JSON: `{"kind", "pattern", "reason", "granted"}`, and `"narrowed_by"` if the component is
/// granted more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Gap {
    #[serde(flatten)]
    pub(crate) need: Need,
    /// The rules that remain of the need.
    granted: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    narrowed_by: Option<Narrowing>,
}

/// The section of a tool that removes grants of its component.
///
/// # Shape
/// As JSON: its fields by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Narrowing {
    section: String,
    file: String,
    /// The line of the list in the section.
    line: usize,
}

impl fmt::Display for Narrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { section, file, line } = self;
        write!(f, "[{section}] (`{file}`, line {line})")
    }
}

impl Narrowing {
    /// Returns the section that narrows this kind of a tool's grants.
    fn of(config: &Config, component: &str, tool: &str, kind: GrantKind) -> Option<Self> {
        let place = ["components", component, "tools", tool, kind.row().section];
        let line = RuleLines::read(config)?.part(&place)?.line;
        Some(Self {
            section: format!("components.{component}.tools.{tool}"),
            file: config.file.clone()?,
            line,
        })
    }
}

impl Gap {
    /// Returns the need, its reason, and its granted part, in one line.
    pub(crate) fn text(&self) -> String {
        let Need { kind, pattern, reason, .. } = &self.need;
        let left = self.granted.join("; ");
        let granted = match (&self.narrowed_by, self.granted.is_empty()) {
            (None, true) => "not granted".to_owned(),
            (None, false) => format!("granted only {left}"),
            (Some(narrowing), true) => {
                format!("granted to the component, but {narrowing} takes it away")
            }
            (Some(narrowing), false) => {
                format!("granted to the component, but {narrowing} leaves only {left}")
            }
        };
        clean::line(&format!("declares {kind} {pattern} (reason: {reason}): {granted}"))
    }

    /// Returns true if no part of the need is granted.
    pub(crate) fn is_whole(&self) -> bool {
        self.granted.is_empty()
    }
}

/// Returns the needs that a tool of this component declares and is not granted.
pub(crate) fn missing_needs(
    config: &Config,
    component: &str,
    rights: &Rights,
    definition: &Definition,
) -> Vec<Gap> {
    let open = without_sections(rights);
    let gap = |need: &Need| {
        let (kind, rule, only) = layer(need)?;
        let granted = remaining_rules(rights, kind, &only);
        let is_whole = granted.iter().any(|left| {
            *left == rule || *left == TOO_MANY || left.starts_with(&format!("{rule} ("))
        });
        (!is_whole).then(|| {
            let is_narrowed = remaining_rules(&open, kind, &only) != granted;
            let narrowed_by = is_narrowed
                .then(|| Narrowing::of(config, component, &definition.name, kind))
                .flatten();
            Gap { need: need.clone(), granted, narrowed_by }
        })
    };
    definition.needs.iter().filter_map(gap).collect()
}

/// Returns the kind of a need, the rule in its printed form, and an overlay with this rule alone.
fn layer(need: &Need) -> Option<(GrantKind, String, Overlay)> {
    let kind = GrantKind::of_need(&need.kind)?;
    let only = Overlay::only(kind, &need.pattern).ok()?;
    let rule = only.rules(kind)?.pop()?;
    Some((kind, rule, only))
}

/// Returns the rules of a kind that remain under the rights and one more layer.
fn remaining_rules(rights: &Rights, kind: GrantKind, only: &Overlay) -> Vec<String> {
    rights.narrowed(Some(Arc::new(only.clone())), None).effective(kind)
}

/// Returns the rights of a tool without the restrictions of its own section.
fn without_sections(rights: &Rights) -> Rights {
    let mut granted = rights.granted().clone();
    granted.tools.clear();
    rights.with_granted(granted.into())
}

/// Returns the rules that allow no request of any tool, and the names of tools that no component
/// has. `components` are all of the configuration, or some of them. A tenant's rules are checked
/// only if all are given.
pub(crate) fn rules_without_effect(config: &Config, components: &[Loaded<'_>]) -> Vec<Problem> {
    let is_complete = components.len() == config.components.len();
    let is_idle = |rule: &&ConfiguredRule| match &rule.of {
        RuleSection::Component(name) => found(components, name).is_some_and(|found| {
            !uses::can_use(found.inspection, rule.kind) || !allows(rule, found, None)
        }),
        RuleSection::Tool(name, tool) => {
            found(components, name).is_some_and(|found| !allows(rule, found, Some(tool)))
        }
        RuleSection::Tenant(_) => {
            is_complete && !components.iter().any(|component| allows(rule, component, None))
        }
    };
    let rules = config.rules.iter().filter(is_idle);
    let mut idle: Vec<_> = rules.map(|rule| useless_rule(config, components, rule)).collect();
    if is_complete {
        let tools = components.iter().flat_map(|component| &component.tools);
        let known = tools.map(|(tool, _)| tool.name.as_str());
        let tenants = config.tenants.values();
        idle.extend(tenants.flat_map(|tenant| tenant.unknown_tools(known.clone())));
    }
    idle.sort_by_key(|problem| (problem.line, problem.column));
    idle
}

/// Returns the component of this name, if it is loaded.
fn found<'a>(components: &'a [Loaded<'a>], name: &str) -> Option<&'a Loaded<'a>> {
    components.iter().find(|component| component.name == name)
}

/// Returns true if a rule allows the tool anything. Without a tool: any tool of the component.
fn allows(
    ConfiguredRule { kind, only, .. }: &ConfiguredRule,
    component: &Loaded<'_>,
    tool: Option<&str>,
) -> bool {
    component.tools.iter().any(|(definition, rights)| {
        tool.is_none_or(|tool| definition.name == tool)
            && !remaining_rules(rights, *kind, only).is_empty()
    })
}

/// Returns the problem of a rule that has no effect, with the reason.
fn useless_rule(config: &Config, components: &[Loaded<'_>], rule: &ConfiguredRule) -> Problem {
    let ConfiguredRule { of, kind, only, place } = rule;
    let kind = *kind;
    let (about, name, scope) = match of {
        RuleSection::Component(name) | RuleSection::Tool(name, _) => {
            let about = found(components, name).map(std::slice::from_ref).unwrap_or_default();
            (about, name.as_str(), String::new())
        }
        RuleSection::Tenant(name) => (components, "COMPONENT", format!(" for the tenant `{name}`")),
    };
    let narrowing = about.iter().find_map(|component| narrowing(config, component, kind, only));
    let is_granted = about.iter().any(|component| is_granted(component, kind, only));
    let inspect = config.hint.command("inspect", &[], &[name]);
    let tools = || about.iter().flat_map(|component| &component.tools);
    let needs = tools().flat_map(|(tool, _)| &tool.needs).filter_map(layer);
    let declared = needs.filter(|(of, ..)| *of == kind).map(|(_, rule, _)| rule);
    let declared: BTreeSet<_> =
        declared.map(|rule| format!("`{}`", clean::escaped(&rule))).collect();
    // Without a grant of each kind that it imports, a component cannot be called.
    let is_removable = !matches!(of, RuleSection::Component(_))
        || declared.is_empty()
        || tools().any(|(_, rights)| !rights.effective(kind).is_empty());
    let undeclared = if is_removable {
        format!("remove the rule; {inspect} shows what the tools declare")
    } else {
        let declared = Vec::from_iter(declared).join(", ");
        format!(
            "in place of it, write what the tools declare: {declared}; {inspect} shows all of it"
        )
    };
    let ungranted = |whom: &str| {
        format!("remove the rule, or grant it to {whom} first: a section can only take away")
    };
    let (reason, hint) = match (of, narrowing) {
        (RuleSection::Component(_), _) if about.iter().any(|found| allows(rule, found, None)) => (
            uses::NO_IMPORT_TEXT.to_owned(),
            format!("remove the rule; {inspect} shows what the component imports"),
        ),
        (RuleSection::Component(_) | RuleSection::Tenant(_), Some(narrowing)) => {
            let section = &narrowing.section;
            // The list there narrows the calls of other tenants too.
            let other = match of {
                RuleSection::Tenant(_) => "it here",
                RuleSection::Component(_) | RuleSection::Tool(..) => "the list there",
            };
            let hint = format!(
                "write it in [{section}] too, or remove {other}: a section can only take away"
            );
            (format!("{narrowing} takes it away"), hint)
        }
        (RuleSection::Component(name), None) => {
            (format!("no tool of `{name}` declares it"), undeclared)
        }
        (RuleSection::Tool(_, tool), _) if is_granted => {
            (format!("the tool `{tool}` does not declare it"), undeclared)
        }
        (RuleSection::Tool(name, _), _) => {
            (format!("the component `{name}` is not granted it"), ungranted("the component"))
        }
        (RuleSection::Tenant(_), None) if is_granted => {
            ("no tool that is granted it declares it".to_owned(), undeclared)
        }
        (RuleSection::Tenant(_), None) => {
            ("no component is granted it".to_owned(), ungranted("a component"))
        }
    };
    let text = clean::escaped(&place.message);
    let message = format!("the rule `{text}` in {} has no effect{scope}: {reason}", kind.key());
    Problem { message, hint, ..place.clone() }
}

/// Returns the first section of a component's tools that keeps a rule from having an effect.
fn narrowing(
    config: &Config,
    component: &Loaded<'_>,
    kind: GrantKind,
    only: &Overlay,
) -> Option<Narrowing> {
    let is_narrowed = |(_, rights): &&(&Definition, Rights)| {
        remaining_rules(rights, kind, only).is_empty()
            && !remaining_rules(&without_sections(rights), kind, only).is_empty()
    };
    component
        .tools
        .iter()
        .filter(is_narrowed)
        .find_map(|(definition, _)| Narrowing::of(config, component.name, &definition.name, kind))
}

/// Returns true if the component is granted any part of a rule, whatever its tools declare.
fn is_granted(component: &Loaded<'_>, kind: GrantKind, only: &Overlay) -> bool {
    component.tools.first().is_some_and(|(_, rights)| {
        let granted = Rights::default().with_granted(rights.granted().clone().into());
        !remaining_rules(&granted, kind, only).is_empty()
    })
}

#[cfg(test)]
mod tests {
    use toolcell::Grants;
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn gaps_list_declared_but_ungranted_needs() {
        let mut grants = Grants::default();
        grants.http.push("GET https://a.example/v1".parse().unwrap());
        grants.http.push(
            "GET http://b.example"
                .parse::<toolcell::grants::HttpRule>()
                .unwrap()
                .with_private(["10.0.0.0/8".parse().unwrap()]),
        );
        grants.kv.push("write notes/*".parse().unwrap());
        grants.environment.insert("LANG".into(), "C".into());
        grants.directories.push(
            toolcell::grants::Directory::new("/data", "/x", toolcell::grants::Access::Write)
                .unwrap(),
        );
        let mut definition = Definition::new("t", "").unwrap();
        for (kind, pattern, expected) in rows::<(&str, &str, Option<Vec<&str>>)>(
            "gaps",
            "gaps_list_declared_but_ungranted_needs",
        ) {
            definition.needs = vec![Need::new(kind, pattern, "to work")];
            let Ok(rights) = Rights::new(Arc::new(grants.clone()), &definition) else { continue };
            let gaps = missing_needs(&Config::default(), "c", &rights, &definition);
            let granted =
                gaps.first().map(|gap| gap.granted.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(granted, expected, "{kind} {pattern}");
            assert!(gaps.iter().all(|gap| {
                gap.text().starts_with(&format!("declares {kind} {pattern} (reason: to work): "))
            }));
        }
    }
}
