//! Decides about a request, and finds the rule of the configuration that decided.
//!
//! `explain` and `learn` call [`decided_by`] or [`decide`] with a tool's rights and a request, such
//! as "GET this URL". It returns an [`Answer`]: allowed, denied by a layer, or granted but not for
//! the private network of the host. The decision comes from the functions that decide in a call;
//! for HTTP, the name of the host is looked up. [`deciding_rule`] then returns the rule in its
//! written form with its line in the file. [`with_private`] writes a rule with further private
//! networks.

use std::collections::BTreeSet;

use toolcell::Overlay;
use toolcell::grants::{Decision, Denial, Directory, HttpRule, Layer, Request, Rights, toml_text};
use toolcell::http::{Egress, Route};

use super::rule_lines::{Item, RuleLines};
use crate::config::{Config, ResolvedComponent};

/// The decision about a request.
pub(crate) enum Answer {
    Allowed,
    /// Allowed, but the host's name has no address now.
    Unresolved(String),
    Denied(Denial),
    /// Granted, but not for addresses in these networks.
    Private(Vec<String>),
}

/// Returns the decision about a request, equal to that in a call.
pub(crate) async fn decide(rights: &Rights, request: &Request<'_>) -> Answer {
    decided_by(&Egress::new(), rights, request).await
}

/// Returns the decision about a request, with this resolver of names.
pub(crate) async fn decided_by(egress: &Egress, rights: &Rights, request: &Request<'_>) -> Answer {
    if let Request::Http { method, target } = request {
        return match egress.route(rights, *method, target).await {
            Route::Denied(denial) => Answer::Denied(denial),
            Route::Private(networks) => {
                Answer::Private(networks.iter().map(ToString::to_string).collect())
            }
            Route::Unresolved(problem) => Answer::Unresolved(problem),
            Route::Open | _ => Answer::Allowed,
        };
    }
    match rights.allows(request) {
        Decision::Allowed => Answer::Allowed,
        Decision::Denied(denial) => Answer::Denied(denial),
    }
}

/// Returns the rule as TOML with these private networks, added to those that it names already. The
/// networks of other rules are for other requests.
pub(crate) fn with_private<'a>(
    rights: &Rights,
    rule: &str,
    networks: impl IntoIterator<Item = &'a String>,
) -> String {
    let read = rule.parse::<HttpRule>().map(|rule| rule.to_string());
    let is_it = |granted: &&HttpRule| read.as_ref().is_ok_and(|rule| *rule == granted.to_string());
    let granted = rights.granted().http.iter().filter(is_it);
    let before = granted.flat_map(HttpRule::private).map(ToString::to_string);
    let networks: BTreeSet<_> =
        before.chain(networks.into_iter().cloned()).map(|network| toml_text(&network)).collect();
    let networks: Vec<_> = networks.into_iter().collect();
    format!("{{ rule = {}, private_networks = [{}] }}", toml_text(rule), networks.join(", "))
}

/// Returns the rule of the configuration that decided, if one did.
pub(crate) fn deciding_rule(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    (tenant, tool): (Option<&str>, &str),
    request: &Request<'_>,
    answer: &Answer,
) -> Option<Item> {
    let lines = RuleLines::read(config)?;
    let (name, configured) = chosen.configured?;
    let narrowed = request.kind().row().section;
    let place = match answer {
        Answer::Allowed | Answer::Unresolved(_) | Answer::Private(_) => {
            let place = ["components", name, "grants", request.kind().key()];
            let found = lines.items(&place).into_iter().find_map(|mut rule| {
                if let Request::File { .. } = request {
                    let is_it = |directory: &&Directory| directory.name == rule.text;
                    let found = configured.grants.directories.iter().find(is_it)?;
                    rule.text = format!("{} {}", found.access, found.name);
                }
                let is_covered = covers(request, &rule.text);
                if let Request::Environment { .. }
                | Request::Secret { .. }
                | Request::Reveal { .. } = request
                {
                    rule.text = request.to_string();
                }
                is_covered.then_some(rule)
            });
            let scratch = || {
                let part = lines.part(&["components", name, "grants", "scratch"])?;
                Some(Item { text: "scratch".to_owned(), ..part })
            };
            return found.or_else(scratch);
        }
        Answer::Denied(Denial { layer: Layer::Tool, .. }) => {
            vec!["components", name, "tools", tool, narrowed]
        }
        Answer::Denied(Denial { layer: Layer::Tenant, .. }) => vec!["tenants", tenant?, narrowed],
        Answer::Denied(_) => return None,
    };
    lines.setting(&place)
}

/// Returns true if a rule, as in a section that narrows, covers a request.
pub(crate) fn covers(request: &Request<'_>, rule: &str) -> bool {
    Overlay::only(request.kind(), rule).is_ok_and(|only| request.within(&only))
}

/// Returns true if a rule covers a request over HTTP.
pub(super) fn is_within(request: &Request<'_>, rule: &HttpRule) -> bool {
    matches!(request, Request::Http { method, target } if rule.covers(*method, target))
}
