//! Finds grants that are too narrow for the requests of a dry run, and the text that widens them.
//!
//! After a dry run (a run without effects), `learn` calls [`changed`] with the tool's rights and
//! the recorded requests. Two kinds of rules are found: an HTTP rule that covers a URL but not the
//! private network of its host, and a secret whose `for` does not cover the place where the tool
//! used it. The result has the parts of `toolcell.toml` to replace, the requests that are not
//! granted until then, and warnings. The decisions come from the functions that decide in a call. A
//! name is looked up only if the user approved the rule that names it.

use std::collections::{BTreeMap, BTreeSet};

use toolcell::grants::{Decision, Host, HttpRule, Request, Rights, Suggestion, toml_text};
use toolcell::runtime::Recording;

use crate::config::{Config, ResolvedComponent};
use crate::grants::decision::{self, Answer};
use crate::grants::grant_text::Change;
use crate::grants::rule_lines::RuleLines;

/// Rules that are to be changed.
#[derive(Default)]
pub(super) struct Changed {
    pub(super) changes: Vec<Change>,
    /// Requests that are not granted until the change.
    pub(super) requests: Vec<Request<'static>>,
    pub(super) warnings: BTreeSet<String>,
}

/// Finds the rules that are too narrow for the recorded requests.
pub(super) async fn changed(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    rights: &Rights,
    recorded: &Recording,
    is_approved: bool,
) -> Changed {
    let mut found = Changed::default();
    let Some((rules, (name, _))) = RuleLines::read(config).zip(chosen.configured) else {
        return found;
    };
    let allowed =
        recorded.requests.iter().filter(|request| rights.allows(request) == Decision::Allowed);
    let mut private = BTreeMap::new();
    for request in allowed {
        if let Request::Http { target, .. } = request {
            let is_local = !matches!(target.host(), Host::Name(name) if name != "localhost");
            if !is_local && !is_approved {
                continue;
            }
            let Answer::Private(networks) = decision::decide(rights, request).await else {
                continue;
            };
            let mut granted = rules.items(&["components", name, "grants", "http"]).into_iter();
            let Some(rule) = granted.find(|item| decision::covers(request, &item.text)) else {
                continue;
            };
            found.warnings.extend(Suggestion::of(request).warnings());
            found.requests.push(request.clone());
            let (_, all) = private.entry(rule.span.start).or_insert((rule, BTreeSet::new()));
            all.extend(networks);
        }
        if let Request::Secret { name: secret } = request {
            let Some(used) = rights.granted().secrets.get(secret.as_ref()) else { continue };
            let places = recorded.secrets.get(secret.as_ref()).into_iter().flatten();
            let missing =
                places.filter(|(method, target)| !used.destination.covers(*method, target));
            let missing: Vec<_> =
                missing.map(|(method, target)| HttpRule::smallest(*method, target)).collect();
            let place = ["components", name, "grants", "secrets", secret, "destination"];
            let Some(part) = rules.part(&place).filter(|_| !missing.is_empty()) else { continue };
            let both = [std::slice::from_ref(&used.destination), &missing].concat();
            let rule = one_rule(secret, &both).unwrap_or_else(|| {
                let rule = one_rule(secret, &missing).unwrap_or_else(|| Suggestion::PLACEHOLDER.to_owned());
                found.warnings.insert(format!(
                    "a secret is for one host: the line printed for `{secret}` says `{rule}` in place of `{}`",
                    used.destination
                ));
                rule
            });
            found.requests.push(request.clone());
            found.changes.push(Change {
                kind: "secrets",
                part,
                key: "destination = ",
                text: toml_text(&rule),
            });
        }
    }
    for (rule, networks) in private.into_values() {
        let text = decision::with_private(rights, &rule.text, &networks);
        found.changes.push(Change { kind: "http", part: rule, key: "", text });
    }
    found
}

/// Returns the rule of a secret for requests under all these rules; none if they have different
/// hosts.
fn one_rule(secret: &str, rules: &[HttpRule]) -> Option<String> {
    let mut suggestion = Suggestion::default();
    rules.iter().for_each(|rule| suggestion.add_secret(secret, rule));
    let table: toml::Table = suggestion.to_paste().concat().parse().ok()?;
    let rule = table.get("secrets")?.get(secret)?.get("destination")?.as_str()?;
    (rule != Suggestion::PLACEHOLDER).then(|| rule.to_owned())
}
