//! What a tool declares and is not granted, and rules of a configuration that allow nothing.
//!
//! In: the tools of components under their grants. Out: needs with the part that is granted, rules with their place.
//! Invariants: decided by the same rights as a call; a part that cannot be computed is not reported.

use std::sync::Arc;

use serde::Serialize;
use toolcell::{Definition, Need, Overlay, Rights};

use crate::clean;
use crate::config::effective::{self, TOO_MANY};
use crate::config::{Config, Problem, RuleOf, WrittenRule};

/// A component that was loaded: its name in the configuration, and the rights of each of its tools.
pub(crate) struct Loaded<'a> {
    pub(crate) name: &'a str,
    pub(crate) tools: Vec<(&'a Definition, Rights)>,
}

/// A need that is not granted, or only in part.
///
/// # Shape
/// As JSON: `{"kind", "pattern", "reason", "granted"}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Gap {
    #[serde(flatten)]
    need: Need,
    /// The rules that are left of it.
    granted: Vec<String>,
}

impl Gap {
    /// The need, its reason, and what is granted of it.
    pub(crate) fn text(&self) -> String {
        let Need { kind, pattern, reason, .. } = &self.need;
        let granted = if self.granted.is_empty() {
            "not granted".to_owned()
        } else {
            format!("granted only {}", self.granted.join("; "))
        };
        // Its author's words stay in one line.
        clean::note(&clean::shown(&format!("declares {kind} {pattern} ({reason}): {granted}"))).into_owned()
    }

    /// The need as the rest of a sentence about the tool, if no part of it is granted.
    pub(crate) fn clause(&self) -> Option<String> {
        let Need { kind, pattern, .. } = &self.need;
        let clause = || format!("declares {kind} {pattern}, which is not granted");
        self.granted.is_empty().then(|| clean::note(&clean::shown(&clause())).into_owned())
    }
}

/// What a tool declares and is not granted.
pub(crate) fn of(rights: &Rights, definition: &Definition) -> Vec<Gap> {
    let gap = |need: &Need| {
        let (kind, rule, only) = layer(need)?;
        let granted = left(rights, definition, kind, &only);
        let is_whole =
            granted.iter().any(|left| *left == rule || *left == TOO_MANY || left.starts_with(&format!("{rule} (")));
        (!is_whole).then(|| Gap { need: need.clone(), granted })
    };
    definition.needs.iter().filter_map(gap).collect()
}

/// The key of a configuration for a need, its rule as it is printed, and what leaves this rule alone.
fn layer(need: &Need) -> Option<(&'static str, String, Overlay)> {
    let mut only = Overlay::default();
    let name = || Some([need.pattern.clone()].into());
    let (kind, rule) = match need.kind.as_str() {
        "http" => {
            let rules = only.http.insert(vec![need.pattern.parse().ok()?]);
            ("http", rules.first()?.to_string())
        }
        "filesystem" => {
            let rules = only.files.insert(vec![need.pattern.parse().ok()?]);
            ("directories", rules.first()?.to_string())
        }
        "kv" => {
            let rules = only.keys.insert(vec![need.pattern.parse().ok()?]);
            ("kv", rules.first()?.to_string())
        }
        "invoke" => {
            let rules = only.invoke.insert(vec![need.pattern.parse().ok()?]);
            ("invoke", rules.first()?.to_string())
        }
        "environment" => {
            only.environment = name();
            ("environment", need.pattern.clone())
        }
        "secret" => {
            only.secrets = name();
            ("secrets", need.pattern.clone())
        }
        "reveal" => {
            only.reveal = name();
            ("reveal", need.pattern.clone())
        }
        _ => return None,
    };
    Some((kind, rule, only))
}

/// What the rights leave of one more layer.
fn left(rights: &Rights, definition: &Definition, kind: &str, only: &Overlay) -> Vec<String> {
    let narrowed = rights.narrowed(Some(Arc::new(only.clone())), None);
    effective::effective(&narrowed, definition, Some(only)).remove(kind).unwrap_or_default()
}

/// The rules that allow no request of any tool. `components` are all of the configuration, or some; a tenant's rules are
/// looked at only where all are there.
pub(crate) fn idle(config: &Config, components: &[Loaded<'_>]) -> Vec<Problem> {
    let is_complete = components.len() == config.components.len();
    let allows = |WrittenRule { kind, only, .. }: &WrittenRule, component: &Loaded<'_>, tool: Option<&str>| {
        let tools = component.tools.iter().filter(|(definition, _)| tool.is_none_or(|tool| definition.name == tool));
        tools.into_iter().any(|(definition, rights)| !left(rights, definition, kind, only).is_empty())
    };
    let is_idle = |rule: &&WrittenRule| match &rule.of {
        RuleOf::Component(name) => {
            components.iter().find(|component| component.name == name).is_some_and(|found| !allows(rule, found, None))
        }
        RuleOf::Tool(name, tool) => {
            let component = components.iter().find(|component| component.name == name);
            component.is_some_and(|found| !allows(rule, found, Some(tool)))
        }
        RuleOf::Tenant(_) => is_complete && !components.iter().any(|component| allows(rule, component, None)),
    };
    let mut idle: Vec<_> = config.rules.iter().filter(is_idle).map(|rule| told(config, rule)).collect();
    idle.sort_by_key(|problem| (problem.line, problem.column));
    idle
}

fn told(config: &Config, rule: &WrittenRule) -> Problem {
    let WrittenRule { of, kind, place, .. } = rule;
    let text = clean::shown(&place.message);
    let useless = format!("the rule `{text}` in {kind} has no effect");
    let (message, hint) = match of {
        RuleOf::Component(name) => {
            let has_tools = config.components.get(name).is_some_and(|component| !component.tools.is_empty());
            let narrowed =
                if has_tools { format!(", or [components.{name}.tools] takes it away") } else { String::new() };
            (
                format!("{useless}: no tool of `{name}` declares it{narrowed}"),
                format!("remove the rule; `toolcell inspect {name}` shows what the tools declare"),
            )
        }
        RuleOf::Tool(name, tool) => (
            format!("{useless}: the tool `{tool}` does not declare it, or the component `{name}` is not granted it"),
            "remove the rule, or grant it to the component first: a tool's section can only narrow those grants"
                .to_owned(),
        ),
        RuleOf::Tenant(name) => (
            format!("{useless} for the tenant `{name}`: no component is granted it"),
            "remove the rule, or grant it to a component: a tenant's section can only take away".to_owned(),
        ),
    };
    Problem { message, hint, ..place.clone() }
}

#[cfg(test)]
mod tests {
    use toolcell::Grants;

    use super::*;

    #[test]
    fn what_is_declared_and_not_granted() {
        let mut grants = Grants::default();
        grants.http.push("GET https://a.example/v1".parse().unwrap());
        grants.http.push(
            "GET http://b.example".parse::<toolcell::HttpRule>().unwrap().with_private(["10.0.0.0/8".parse().unwrap()]),
        );
        grants.keys.push("write notes/*".parse().unwrap());
        grants.environment.insert("LANG".into(), "C".into());
        grants.directories.push(toolcell::Directory::new("/data", "/x", toolcell::Access::Write).unwrap());
        let mut definition = Definition::new("t", "").unwrap();
        for (kind, pattern, expected) in [
            ("http", "GET https://a.example/v1", None),
            ("http", "GET https://a.example/v1/users", None),
            ("http", "GET,POST https://a.example/v1", Some(&["GET https://a.example/v1"][..])),
            ("http", "GET https://.a.example", Some(&[])),
            ("http", "GET http://b.example", None),
            ("http", "GET https://c.example", Some(&[])),
            ("kv", "read notes/*", None),
            ("kv", "write *", Some(&["write notes/*"])),
            ("kv", "read other", Some(&[])),
            ("filesystem", "read /data", None),
            ("filesystem", "write /data/x", None),
            ("filesystem", "read /other", Some(&[])),
            ("environment", "LANG", None),
            ("environment", "HOME", Some(&[])),
            ("secret", "token", Some(&[])),
            ("reveal", "token", Some(&[])),
        ] {
            definition.needs = vec![Need::new(kind, pattern, "to work")];
            let Ok(rights) = Rights::new(Arc::new(grants.clone()), &definition) else { continue };
            let gaps = of(&rights, &definition);
            let granted = gaps.first().map(|gap| gap.granted.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(granted.as_deref(), expected, "{kind} {pattern}");
            assert!(gaps.iter().all(|gap| gap.text().starts_with(&format!("declares {kind} {pattern} (to work): "))));
        }
    }
}
