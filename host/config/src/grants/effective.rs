//! Computes the effective grants of a tool: declared ∩ granted ∩ left to the tool ∩ tenant.
//!
//! `check`, `approve` and `inspect` show what a tool's calls may access. [`effective`] takes the
//! tool's rights, its definition and, for a tenant, the tenant's overlay (rules that only narrow).
//! It returns rules by kind, in the notation of a configuration, each within all layers; [`rows`]
//! formats them. Without a bound an untrusted definition could name any number of rules: above it,
//! one line says that there are too many, and none is shown.
//!
//! The result is exact for this reason: of two hosts, two paths or two key prefixes, either one
//! contains the other, or they are disjoint. So the intersection consists of hosts, paths and
//! prefixes that occur in a layer, and such a rule is within all layers exactly if its smallest
//! request is.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use toolcell::grants::{
    Access, Decision, HttpRule, InvokeRule, KeyRule, Method, PathRule, Request, Rights, Target,
};
use toolcell::{Definition, Overlay};

/// A label that no rule names.
const ANY_LABEL: &str = "any-label-of-toolcell";
/// A character that no rule's key ends in.
const ANY_KEY: char = '\u{10ffff}';
/// Maximum number of rules to compare. An untrusted definition can name any number.
const MAX_RULES: usize = 1024;
/// Shown instead of more rules than that. No rule is shown, so that a part is not mistaken for all.
pub const TOO_MANY: &str =
    "more rules than can be shown here: `toolcell explain` says whether one request is allowed";

/// Rules by kind of grant, in the notation of a configuration.
pub type Effective = BTreeMap<&'static str, Vec<String>>;

/// Returns the effective rules, out of all that any layer names.
pub fn effective(rights: &Rights, definition: &Definition, tenant: Option<&Overlay>) -> Effective {
    let granted = rights.granted();
    let overlays: Vec<_> = granted.tools.get(&definition.name).into_iter().chain(tenant).collect();
    let declared = |kind: &str| -> Vec<String> {
        definition
            .needs
            .iter()
            .filter(|need| need.kind == kind)
            .map(|need| need.pattern.clone())
            .collect()
    };
    let is_allowed = |request: &Request<'_>| rights.allows(request) == Decision::Allowed;
    let mut left = Effective::new();

    let mut rules: Vec<HttpRule> = granted.http.clone();
    rules.extend(declared("http").iter().filter_map(|rule| rule.parse().ok()));
    rules.extend(overlays.iter().flat_map(|overlay| overlay.http.clone().unwrap_or_default()));
    insert(&mut left, "http", http(&rules, &granted.http, is_allowed));

    let mut paths: BTreeSet<String> =
        granted.directories.iter().map(|directory| directory.name.clone()).collect();
    paths.extend(granted.scratch.map(|_| "/scratch".to_owned()));
    let rules = declared("filesystem")
        .into_iter()
        .chain(texts(overlays.iter().filter_map(|overlay| overlay.paths.as_ref())));
    paths.extend(rules.filter_map(|rule| Some(rule.split_once(' ')?.1.to_owned())));
    let may = |access, path: &str| is_allowed(&Request::File { access, path: path.into() });
    let files = |path: String| {
        let access = strongest_access(|access| may(access, &path))?;
        PathRule::new(access, &path).ok()
    };
    let covers = |rule: &PathRule, other: &PathRule| {
        let other = other.to_string();
        other.split_once(' ').is_some_and(|(word, path)| rule.covers(access(word), path))
    };
    insert(&mut left, "directories", bounded(paths, files, covers));

    let rules = texts([&granted.kv]).chain(declared("kv"));
    let rules = rules.chain(texts(overlays.iter().filter_map(|overlay| overlay.kv.as_ref())));
    let all = rules.filter_map(|rule| Some(rule.split_once(' ')?.1.to_owned())).collect();
    let may = |access, key: &str| is_allowed(&Request::Key { access, key: least_key(key).into() });
    let keys = |key: String| {
        let access = strongest_access(|access| may(access, &key))?;
        format!("{access} {key}").parse().ok()
    };
    let covers = |rule: &KeyRule, other: &KeyRule| {
        let other = other.to_string();
        other.split_once(' ').is_some_and(|(word, key)| rule.covers(access(word), &least_key(key)))
    };
    insert(&mut left, "kv", bounded(all, keys, covers));

    let rules = texts([&granted.invoke]).chain(declared("invoke"));
    let rules = rules.chain(texts(overlays.iter().filter_map(|overlay| overlay.invoke.as_ref())));
    let all = rules.map(|rule| rule.strip_prefix("own ").unwrap_or(&rule).to_owned()).collect();
    let calls = |tool: String| {
        let may =
            |own: &bool| is_allowed(&Request::Invoke { tool: least_key(&tool).into(), own: *own });
        let own = [true, false].into_iter().find(may)?;
        format!("{}{tool}", if own { "own " } else { "" }).parse().ok()
    };
    let covers = |rule: &InvokeRule, other: &InvokeRule| {
        let other = other.to_string();
        let (own, tool) = other.strip_prefix("own ").map_or((false, &*other), |tool| (true, tool));
        rule.covers(&least_key(tool), own)
    };
    insert(&mut left, "invoke", bounded(all, calls, covers));

    let may = |request: Request<'_>| is_allowed(&request);
    let names = granted
        .environment
        .keys()
        .filter(|name| may(Request::Environment { name: name.as_str().into() }));
    insert(&mut left, "environment", names.cloned().collect());
    let names =
        granted.secrets.keys().filter(|name| may(Request::Secret { name: name.as_str().into() }));
    insert(&mut left, "secrets", names.cloned().collect());
    let names =
        granted.reveal.iter().filter(|name| may(Request::Reveal { name: name.as_str().into() }));
    insert(&mut left, "reveal", names.cloned().collect());
    left
}

/// Returns true if some request is within both the rule and the granted rules.
pub fn overlaps(rule: &HttpRule, granted: &[HttpRule]) -> bool {
    let is_in_both = |request: &Request<'_>| {
        let Request::Http { method, target } = request else { return false };
        rule.covers_target(target) && granted.iter().any(|granted| granted.covers(*method, target))
    };
    !http(&[granted, std::slice::from_ref(rule)].concat(), &[], is_in_both).is_empty()
}

/// Returns the effective HTTP rules, with the private networks that they allow.
fn http(
    rules: &[HttpRule],
    granted: &[HttpRule],
    is_allowed: impl Fn(&Request<'_>) -> bool,
) -> Vec<String> {
    let places: Vec<_> = rules.iter().map(without_methods).collect();
    let split = |place: &String| {
        let at = place.find("://").and_then(|at| Some(at + 3 + place.get(at + 3..)?.find('/')?));
        at.and_then(|at| place.split_at_checked(at))
            .map(|(host, path)| (host.to_owned(), path.to_owned()))
    };
    let (hosts, paths): (BTreeSet<_>, BTreeSet<_>) = places.iter().filter_map(split).unzip();
    if hosts.len() * paths.len() > MAX_RULES {
        return vec![TOO_MANY.to_owned()];
    }
    let mut left: Vec<(Method, HttpRule, Target)> = Vec::new();
    for place in hosts.iter().flat_map(|host| paths.iter().map(move |path| format!("{host}{path}")))
    {
        for method in Method::ALL {
            let Ok(rule) = format!("{} {place}", method.as_str()).parse() else { continue };
            for (method, target) in requests(&rule) {
                if is_allowed(&Request::Http { method, target: Cow::Borrowed(&target) }) {
                    left.push((method, rule.clone(), target));
                }
            }
        }
    }
    let mut spelled = BTreeMap::<String, (Vec<&str>, BTreeSet<String>)>::new();
    for (method, rule, target) in &left {
        let within = |(_, other, _): &(Method, HttpRule, Target)| {
            other != rule && other.covers(*method, target)
        };
        if !left.iter().any(within) {
            let (methods, private) = spelled.entry(without_methods(rule)).or_default();
            methods.push(method.as_str());
            let networks = granted
                .iter()
                .filter(|granted| granted.covers(*method, target))
                .flat_map(HttpRule::private);
            private.extend(networks.map(ToString::to_string));
        }
    }
    let line = |(place, (methods, private)): (String, (Vec<&str>, BTreeSet<String>))| {
        let private: Vec<_> = private.into_iter().collect();
        let private = if private.is_empty() {
            String::new()
        } else {
            format!(" (also at PRIVATE addresses: {})", private.join(", "))
        };
        format!("{} {place}{private}", methods.join(","))
    };
    spelled.into_iter().map(line).collect()
}

fn insert(left: &mut Effective, kind: &'static str, rules: Vec<String>) {
    if !rules.is_empty() {
        left.insert(kind, rules);
    }
}

fn texts<'a, T: ToString + 'a>(
    rules: impl IntoIterator<Item = &'a Vec<T>>,
) -> impl Iterator<Item = String> {
    rules.into_iter().flatten().map(ToString::to_string)
}

/// Returns the rules for these places, without those that another one contains. Too many places
/// give [`TOO_MANY`].
fn bounded<T: ToString + PartialEq>(
    places: BTreeSet<String>,
    rule: impl Fn(String) -> Option<T>,
    covers: impl Fn(&T, &T) -> bool,
) -> Vec<String> {
    if places.len() > MAX_RULES {
        return vec![TOO_MANY.to_owned()];
    }
    minimal(places.into_iter().filter_map(rule).collect(), covers)
}

fn strongest_access(may: impl Fn(Access) -> bool) -> Option<Access> {
    [Access::Write, Access::Read].into_iter().find(|access| may(*access))
}

fn access(word: &str) -> Access {
    if word == "write" { Access::Write } else { Access::Read }
}

/// Returns the smallest key that the rule covers.
fn least_key(key: &str) -> String {
    key.strip_suffix('*').map_or_else(|| key.to_owned(), |prefix| format!("{prefix}{ANY_KEY}"))
}

/// Returns the rules without those that another one contains.
fn minimal<T: ToString + PartialEq>(rules: Vec<T>, covers: impl Fn(&T, &T) -> bool) -> Vec<String> {
    let is_within = |rule: &T| rules.iter().any(|other| other != rule && covers(other, rule));
    rules.iter().filter(|rule| !is_within(rule)).map(ToString::to_string).collect()
}

/// Returns the smallest request of a rule for each of its methods: at its own path and, for a
/// suffix of hosts, at a label that no rule names.
fn requests(rule: &HttpRule) -> Vec<(Method, Target)> {
    let Ok(target) =
        Target::parse(&without_methods(rule).replacen("://.", &format!("://{ANY_LABEL}."), 1))
    else {
        return Vec::new();
    };
    Method::ALL
        .into_iter()
        .filter(|method| rule.covers(*method, &target))
        .map(|method| (method, target.clone()))
        .collect()
}

/// Returns the rule without its methods.
pub(crate) fn without_methods(rule: &HttpRule) -> String {
    let text = rule.to_string();
    text.split_once(' ').map_or_else(|| text.clone(), |(_, place)| place.to_owned())
}

/// Formats the rules for display: one line for each kind.
pub fn rows(left: &Effective) -> Vec<Vec<String>> {
    let row = |(kind, rules): (&&'static str, &Vec<String>)| {
        let kind = if *kind == "reveal" { "REVEAL" } else { *kind };
        let note = if kind == "REVEAL" {
            "  (the tool READS these values, and can send them to any host that it may reach)"
        } else {
            ""
        };
        vec![kind.to_owned(), format!("{}{note}", rules.join("; "))]
    };
    if left.is_empty() {
        vec![vec!["grants: none".to_owned()]]
    } else {
        left.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use toolcell::Grants;
    use toolcell::tool::Need;

    use super::*;

    #[test]
    fn effective_rights_intersect_all_layers() {
        let mut grants = Grants::default();
        for rule in ["GET,POST https://.example.com/v1", "GET http://other.example"] {
            grants.http.push(rule.parse().unwrap());
        }
        grants.kv.extend(["write notes/*", "read one"].map(|rule| rule.parse().unwrap()));
        grants.environment.insert("LANG".into(), "C".into());
        let need = |(kind, pattern): (&str, &str)| -> Need {
            serde_json::from_value(json!({ "kind": kind, "pattern": pattern, "reason": "" }))
                .unwrap()
        };
        let mut overlay = Overlay::default();
        overlay.http = Some(vec!["GET https://api.example.com".parse().unwrap()]);
        let overlay = Arc::new(overlay);
        let left = |needs: &[(&str, &str)], tenant: Option<&Arc<Overlay>>| {
            let mut definition = Definition::new("t", "").unwrap();
            definition.needs = needs.iter().copied().map(need).collect();
            let rights = Rights::new(Arc::new(grants.clone()), &definition)
                .unwrap()
                .narrowed(tenant.cloned(), None);
            let left = effective(&rights, &definition, tenant.map(|overlay| &**overlay));
            left.into_iter()
                .map(|(kind, rules)| format!("{kind}: {}", rules.join("; ")))
                .collect::<Vec<_>>()
                .join(", ")
        };
        assert_eq!(
            left(&[], None),
            "environment: LANG, http: GET http://other.example/; GET,POST https://.example.com/v1, \
             kv: write notes/*; read one"
        );
        let needs = [
            ("http", "POST https://a.example.com/v1/users"),
            ("kv", "read notes/a"),
            ("kv", "write other"),
        ];
        assert_eq!(
            left(&needs, None),
            "http: POST https://a.example.com/v1/users, kv: read notes/a"
        );
        assert_eq!(left(&needs, Some(&overlay)), "kv: read notes/a");
        assert_eq!(
            left(&[("http", "https://api.example.com")], None),
            "http: GET https://api.example.com/v1"
        );
        assert_eq!(
            left(&[("http", "https://.example.com/v1/a")], Some(&overlay)),
            "http: GET https://api.example.com/v1/a"
        );
        assert_eq!(left(&[("reveal", "key")], None), "");
        // Too many rules are not shown in part: the first ones could hide the others.
        let many: Vec<_> = (0..=MAX_RULES).map(|n| format!("read a/{n}")).collect();
        let many: Vec<_> =
            many.iter().map(|key| ("kv", key.as_str())).chain([("kv", "read one")]).collect();
        assert_eq!(left(&many, None), format!("kv: {TOO_MANY}"));
        let mut single = Overlay::default();
        single.http = Some(Vec::new());
        single.kv = Some(vec!["read notes/b/*".parse().unwrap()]);
        single.environment = Some([].into());
        grants.tools.insert("t".into(), single);
        let definition = Definition::new("t", "").unwrap();
        let rights = Rights::new(Arc::new(grants), &definition).unwrap();
        let left = effective(&rights, &definition, Some(&Overlay::default()));
        assert_eq!(left, Effective::from([("kv", vec!["read notes/b/*".to_owned()])]));
    }
}
