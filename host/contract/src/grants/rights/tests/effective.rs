//! The effective rules of random layers allow exactly the requests that the rights allow.

use std::sync::LazyLock;

use super::*;
use crate::cases::rows;
use crate::grants::{Directory, DirectoryQuota, Injection, SecretGrant, TEMPORARY};

const CASES: u64 = 2000;
/// A kind of grant, accesses or methods that stand in front of a place, and places.
type Places = (GrantKind, Vec<&'static str>, Vec<&'static str>);

static PLACES: LazyLock<Vec<Places>> = LazyLock::new(|| {
    let kind = |word| GrantKind::of_word(word).expect(word);
    let places = rows::<(&str, Vec<&str>, Vec<&str>)>("grants/rights/effective", "places");
    places.into_iter().map(|(word, accesses, places)| (kind(word), accesses, places)).collect()
});

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn rules(&mut self, accesses: &[&str], places: &[&str]) -> Vec<String> {
        let count = self.below(4);
        let rule = |_| {
            let (access, place) = (self.below(accesses.len()), self.below(places.len()));
            format!("{}{}", accesses[access], places[place])
        };
        (0..count).map(rule).collect()
    }

    /// An overlay that narrows some kinds.
    fn overlay(&mut self, odds: usize) -> Overlay {
        let mut overlay = Overlay::default();
        for (kind, accesses, places) in &*PLACES {
            if self.below(odds) == 0 {
                let rules = self.rules(accesses, places);
                let rules: Vec<_> = rules.iter().map(String::as_str).collect();
                overlay.narrow(*kind, &rules).unwrap();
            }
        }
        overlay
    }

    fn grants(&mut self) -> Grants {
        let rules = self.overlay(1);
        let mut grants = Grants {
            http: rules.http.unwrap(),
            kv: rules.kv.unwrap(),
            invoke: rules.invoke.unwrap(),
            reveal: rules.reveal.unwrap(),
            scratch: (self.below(2) == 0).then(DirectoryQuota::default),
            ..Grants::default()
        };
        for rule in rules.paths.unwrap() {
            let access = [Access::Read, Access::Write][self.below(2)];
            grants.directories.push(Directory::new(rule.below(), "/srv", access).unwrap());
        }
        let bound: crate::grants::HttpRule = "https://a.example.com".parse().unwrap();
        let use_ = || SecretGrant::new(bound.clone(), Injection::Bearer);
        grants.secrets = rules.secrets.unwrap().into_iter().map(|name| (name, use_())).collect();
        let names = rules.environment.unwrap().into_iter();
        grants.environment = names.map(|name| (name, String::new())).collect();
        grants
    }

    fn needs(&mut self) -> Vec<Need> {
        let declared = self.overlay(2);
        let needs = GrantKind::all().flat_map(|kind| {
            let rules = declared.rules(kind).unwrap_or_default().into_iter();
            rules.map(move |rule| Need::new(kind.row().need, rule, ""))
        });
        needs.collect()
    }
}

/// The requests that the rules name, and others.
fn requests() -> Vec<Request<'static>> {
    let named = PLACES.iter().flat_map(|(kind, accesses, places)| {
        let is_plain = matches!(kind, GrantKind::Http | GrantKind::Directories);
        let word = if is_plain { String::new() } else { format!("{} ", kind.row().need) };
        accesses.iter().flat_map(move |access| {
            let word = word.clone();
            let texts = places.iter().map(move |place| format!("{word}{access}{place}"));
            texts.collect::<Vec<_>>()
        })
    });
    let named: Vec<_> = named.collect();
    let texts = named
        .iter()
        .map(String::as_str)
        .chain(rows::<&str>("grants/rights/effective", "other_requests"));
    // A rule for all subdomains is not a request.
    let texts = texts.filter(|text| !text.contains("//."));
    texts.filter_map(|text| Request::parse(text).ok()).collect()
}

#[test]
fn effective_rules_allow_what_rights_allow() {
    let requests = requests();
    assert!(requests.len() > 60, "{}", requests.len());
    for case in 0..CASES {
        let mut random = Random(case);
        let mut grants = random.grants();
        let mut definition = Definition::new("t", "").unwrap();
        definition.needs = random.needs();
        grants.tools.insert("t".to_owned(), random.overlay(4));
        let [tenant, call] = [random.overlay(4), random.overlay(6)].map(Arc::new);
        let rights = Rights::new(Arc::new(grants.clone()), &definition).unwrap();
        let rights = rights.narrowed(Some(tenant), Some(call));
        let mut left = Overlay::deny_all();
        for kind in GrantKind::all() {
            let rules = rights.effective(kind);
            // No rule stands for less than another one.
            for rule in &rules {
                let alone = Overlay::only(kind, rule).unwrap();
                let is_least =
                    |request: &&Request<'_>| request.kind() == kind && request.rule() == *rule;
                for request in requests.iter().filter(is_least) {
                    assert_eq!(rights.allows(request), Decision::Allowed, "{case}: {request}");
                    assert!(request.within(&alone), "{case}: {request}");
                }
            }
            if !rules.is_empty() {
                left.narrow(kind, &rules.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
            }
        }
        for request in &requests {
            // `/tmp` is shown only where a layer names it, and can have exceptions.
            let is_temporary =
                matches!(request, Request::File { path, .. } if is_below(path, TEMPORARY));
            if !is_temporary {
                let is_allowed = rights.allows(request) == Decision::Allowed;
                assert_eq!(request.within(&left), is_allowed, "{case}: {request}, {grants:?}");
            }
        }
    }
}
