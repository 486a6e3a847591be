//! Limits a tool that another tool calls to the rights of its caller.
//!
//! [`Rights::allows`] asks it last. A request passes if no tool made the call, or if the rights of
//! the calling tool allow the request too and the request means one and the same thing for both
//! tools. A path must lead to one directory of the host, a variable must have one value, a secret
//! must be bound to the same requests, and keys must be those of one store. Otherwise the request
//! is denied. Chains of calls are followed to the first tool.

use std::sync::Arc;

use ipnet::IpNet;

use super::{Decision, Request, Rights};
use crate::grants::{Directory, Grants, Method, Overlay, SCRATCH, TEMPORARY, Target, is_below};

impl Rights {
    /// Returns true if the tool that made the call is allowed this request too. True if no tool
    /// made the call.
    pub(super) fn caller_allows(&self, request: &Request<'_>) -> bool {
        let Some(caller) = &self.caller else { return true };
        caller.allows(request) == Decision::Allowed && self.means_the_same(caller, request)
    }

    fn means_the_same(&self, caller: &Self, request: &Request<'_>) -> bool {
        let (own, others) = (&*self.granted, &*caller.granted);
        match request {
            Request::Http { .. } | Request::Invoke { .. } | Request::Reveal { .. } => true,
            Request::File { path, .. } => {
                match [own, others].map(|grants| host_path(grants, path)) {
                    [None, None] => is_below(path, SCRATCH) || is_below(path, TEMPORARY),
                    [one, other] => one.is_some() && one == other,
                }
            }
            Request::Environment { name } => {
                own.environment.get(name.as_ref()) == others.environment.get(name.as_ref())
            }
            Request::Secret { name } => {
                own.secrets.get(name.as_ref()) == others.secrets.get(name.as_ref())
            }
            Request::Key { .. } | Request::Keys { .. } => self.store() == caller.store(),
        }
    }

    /// Returns all overlays, those of the tools that led to the call included.
    pub(super) fn overlays(&self) -> impl Iterator<Item = &Arc<Overlay>> {
        let chain = std::iter::successors(Some(self), |rights| rights.caller.as_deref());
        chain
            .flat_map(|rights| [&rights.declared, &rights.tool, &rights.tenant, &rights.call])
            .flatten()
    }

    /// Returns the private networks that a request may go to.
    #[doc(hidden)]
    pub fn private_networks(&self, method: Method, target: &Target) -> Vec<IpNet> {
        let rules = self.granted.http.iter().filter(|rule| rule.covers(method, target));
        let networks = rules.flat_map(|rule| rule.private()).copied();
        match &self.caller {
            None => networks.collect(),
            Some(caller) => {
                let others = caller.private_networks(method, target);
                networks
                    .filter(|network| others.iter().any(|other| other.contains(network)))
                    .collect()
            }
        }
    }
}

/// Resolves a tool's path on the host, as the directory that contains it and the rest of the path.
fn host_path<'a>(grants: &'a Grants, path: &'a str) -> Option<(&'a std::path::Path, &'a str)> {
    let holds = |directory: &&Directory| is_below(path, &directory.name);
    let directory =
        grants.directories.iter().filter(holds).max_by_key(|directory| directory.name.len())?;
    Some((&directory.path, path.get(directory.name.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::rows;
    use crate::definition::Definition;
    use crate::grants::rights::Layer;
    use crate::grants::{Access, DirectoryQuota, Injection, SecretGrant};

    const SECRET: &str = "token";

    fn rights(name: &str, path: &str, language: &str, bound_to: &str) -> Rights {
        let mut grants = Grants::default();
        grants.http.push(bound_to.parse().unwrap());
        grants.directories.push(Directory::new("/data", path, Access::Write).unwrap());
        grants.environment.insert("LANG".into(), language.into());
        grants
            .secrets
            .insert(SECRET.into(), SecretGrant::new(bound_to.parse().unwrap(), Injection::Bearer));
        grants.reveal.insert(SECRET.into());
        grants.scratch = Some(DirectoryQuota::default());
        grants.kv.push("write notes/*".parse().unwrap());
        grants.invoke.push("own other".parse().unwrap());
        grants.store = Some(name.into());
        Rights::new(Arc::new(grants), &Definition::new(name, "").unwrap()).unwrap()
    }

    #[test]
    fn called_tool_has_at_most_its_callers_rights() {
        let all = || rights("called", "/srv/a", "C", "https://a.example");
        let callers = [
            ("no rights", Rights::default()),
            // Each component has its own keys.
            ("another component", rights("caller", "/srv/a", "C", "https://a.example")),
            ("a tool of one component", all()),
            ("the words for other things", rights("caller", "/srv/b", "D", "https://b.example")),
            // The narrowing applies through the whole chain of callers.
            ("a caller without rights", all().within_caller(Some(Arc::default()))),
        ];
        for (asked, left) in rows::<(&str, &str)>(
            "grants/rights/caller",
            "called_tool_has_at_most_its_callers_rights",
        ) {
            let request = Request::parse(asked).unwrap();
            assert_eq!(left.len(), callers.len(), "{asked}");
            for ((name, caller), mark) in callers.iter().zip(left.chars()) {
                let called = all().within_caller(Some(Arc::new(caller.clone())));
                let layer = match called.allows(&request) {
                    Decision::Allowed => None,
                    Decision::Denied(denial) => Some(denial.layer),
                };
                assert_eq!(layer, (mark != '+').then_some(Layer::Caller), "{name}: {asked}");
            }
        }
    }

    #[test]
    fn paths_open_only_where_the_whole_call_chain_may() {
        let overlay =
            Overlay { paths: Some(vec!["read /data/in".parse().unwrap()]), ..Overlay::default() };
        let caller = rights("caller", "/srv/a", "C", "https://a.example")
            .narrowed(None, Some(Arc::new(overlay)));
        let called = rights("called", "/srv/a", "C", "https://a.example")
            .within_caller(Some(Arc::new(caller)));
        let openings = called.openings("/data", Access::Write);
        assert_eq!(openings, [("/data/in".to_owned(), Access::Read)]);
    }

    #[test]
    fn private_networks_are_intersected_with_callers() {
        let with = |networks: &[&str]| {
            let rule: crate::grants::HttpRule = "http://localhost".parse().unwrap();
            let networks = networks.iter().map(|network| network.parse::<IpNet>().unwrap());
            let mut grants = Grants::default();
            grants.http.push(rule.with_private(networks));
            Rights::new(Arc::new(grants), &Definition::new("t", "").unwrap()).unwrap()
        };
        let target = Target::parse("http://localhost/").unwrap();
        let called = with(&["127.0.0.0/8", "10.1.0.0/16"]);
        let of = |rights: &Rights| rights.private_networks(Method::Get, &target).len();
        assert_eq!(of(&called), 2);
        assert_eq!(of(&called.within_caller(Some(Arc::new(with(&["10.0.0.0/8"]))))), 1);
        assert_eq!(of(&called.within_caller(Some(Arc::new(with(&[]))))), 0);
    }
}
