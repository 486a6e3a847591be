//! Tests of the decision about a tool's request.
//!
//! Each layer, such as a tenant's overlay (rules that can only narrow a grant), may only take away;
//! the default allows nothing; a denial suggests the grant that would allow the request, and quotes
//! an untrusted text only up to a length. Others cover the notation of requests and the paths that
//! a directory may be opened at.

use std::collections::BTreeMap;

use super::*;
use crate::cases::rows;

mod effective;

fn granted() -> Grants {
    let mut grants = Grants::default();
    grants.http.push("GET,POST https://api.example.com/v1".parse().unwrap());
    grants.kv.push("write notes/*".parse().unwrap());
    grants.directories.push(
        crate::grants::Directory::new("/data", "/nowhere", crate::grants::Access::Read).unwrap(),
    );
    grants.environment.insert("LANG".into(), "C".into());
    grants.invoke.push("own lookup".parse().unwrap());
    grants
}

/// Returns the rights of a tool that declares nothing.
fn of(grants: Grants) -> Rights {
    Rights::new(grants.into(), &Definition::new("t", "").unwrap()).unwrap()
}

fn need(kind: &str, pattern: &str) -> Need {
    Need { kind: kind.into(), pattern: pattern.into(), reason: "to work".into() }
}

fn rights(needs: &[Need]) -> Rights {
    let mut definition = Definition::new("t", "").unwrap();
    definition.needs = needs.to_vec();
    Rights::new(granted().into(), &definition).unwrap()
}

fn denial(rights: &Rights, request: &Request<'_>) -> Option<Denial> {
    match rights.allows(request) {
        Decision::Allowed => None,
        Decision::Denied(denial) => Some(denial),
    }
}

fn denied(rights: &Rights, request: &str) -> Option<Layer> {
    denial(rights, &Request::parse(request).unwrap()).map(|denial| denial.layer)
}

#[test]
fn default_rights_allow_nothing() {
    let rights = Rights::default();
    for request in rows::<&str>("grants/rights", "default_rights_allow_nothing") {
        assert_eq!(denied(&rights, request), Some(Layer::Component), "{request}");
    }
}

#[test]
fn layers_only_narrow_rights() {
    let all = rights(&[]);
    let mut less = granted();
    less.tools.insert("t".into(), Overlay::deny_all());
    less.tools.insert("other".into(), Overlay::default());
    let less = of(less);
    assert_eq!(less.openings("/data", Access::Read), []);
    let nothing = Some(Arc::new(Overlay::deny_all()));
    let http = Some(vec!["GET https://elsewhere.example".parse().unwrap()]);
    let elsewhere = Some(Arc::new(Overlay { http, ..Overlay::default() }));
    let needs = [need("http", "GET https://api.example.com"), need("kv", "read notes/*")];
    let rights = BTreeMap::from([
        ("granted", all.clone()),
        ("declared", rights(&needs)),
        ("needs any tool", rights(&[need("invoke", "*")])),
        ("needs this tool", rights(&[need("invoke", "lookup")])),
        ("needs another tool", rights(&[need("invoke", "other")])),
        ("tool is denied all", less),
        ("tenant is denied all", all.narrowed(nothing.clone(), None)),
        ("call is denied all", all.narrowed(None, nothing)),
        ("tenant has another host", all.narrowed(elsewhere, None)),
    ]);
    for (name, request, layer) in
        rows::<(&str, &str, Option<Layer>)>("grants/rights", "layers_only_narrow_rights")
    {
        assert_eq!(denied(&rights[name], request), layer, "{name}: {request}");
    }
}

/// The suggested grant is a rule and allows the request.
#[test]
fn suggested_grant_allows_the_request() {
    let rights = Rights::default();
    for (request, grant) in [
        ("GET https://a.example/x?q=1", "http = [\"GET https://a.example/x\"]"),
        ("kv write k", "kv = [\"write k\"]"),
        ("kv list n/", "kv = [\"read n/*\"]"),
        // No smaller rule can be written.
        ("kv read a*b", "kv = [\"read a*\"]"),
        ("kv list a*b", "kv = [\"read a*\"]"),
        ("kv write  e", "kv = [\"write *\"]"),
        ("GET https://a.example/x%2fy", "http = [\"GET https://a.example/\"]"),
        ("reveal s", "reveal = [\"s\"]"),
    ] {
        let denial = denial(&rights, &Request::parse(request).unwrap()).expect(request);
        assert_eq!(denial.grant.as_deref(), Some(grant));
        let (key, rule) = (grant.split(' ').next().unwrap(), grant.split('"').nth(1).unwrap());
        let mut grants = Grants::default();
        grants.add(GrantKind::of_word(key).unwrap(), rule).unwrap();
        let again = of(grants).allows(&Request::parse(request).unwrap());
        assert_eq!(again, Decision::Allowed, "{request}");
    }
}

#[test]
fn scratch_directory_has_two_names() {
    let scratch =
        || Grants { scratch: Some(crate::grants::DirectoryQuota::default()), ..Grants::default() };
    let mut taken = scratch();
    taken.directories.push(crate::grants::Directory::new("/tmp", "/srv", Access::Read).unwrap());
    for (path, with_directory) in [("/scratch/x", None), ("/tmp/x", Some(Layer::Component))] {
        let request = Request::File { access: Access::Write, path: path.into() };
        let denial = denial(&Rights::default(), &request).expect(path);
        assert_eq!(denial.grant.as_deref(), Some("scratch = true"), "{path}");
        assert_eq!(of(scratch()).allows(&request), Decision::Allowed, "{path}");
        assert_eq!(denied(&of(taken.clone()), &format!("write {path}")), with_directory, "{path}");
    }
}

/// The suggested grant is a single rule, whatever an untrusted request contains.
#[test]
fn untrusted_text_stays_within_one_grant() {
    let hostile = "k\"]\nhttp = [\"GET https://evil.example";
    let needs = [
        need("kv", &format!("read {hostile}")),
        need("environment", hostile),
        need("secret", hostile),
    ];
    let asked = [
        Request::Key { access: crate::grants::Access::Read, key: hostile.into() },
        Request::Environment { name: hostile.into() },
        Request::Reveal { name: hostile.into() },
    ];
    let denied = asked.iter().map(|request| Suggestion::of(request).lines().concat());
    for line in denied.chain(grants_declared(&needs)) {
        assert!(!line.contains('\n') && !line.contains("k\"]"), "{line}");
        assert!(line.contains(r#"k\"]\nhttp = [\"GET"#), "{line}");
    }
}

/// An untrusted request is quoted up to a maximum length.
#[test]
fn long_request_is_truncated_in_its_denial() {
    for length in [1 << 11, 1 << 20] {
        let request = Request::Secret { name: "x".repeat(length).into() };
        let denial = denial(&Rights::default(), &request).expect("it is denied");
        assert!(denial.request.len() < MAX_REQUEST, "{denial:?}");
        // There is no grant for it. The hint gives the reason.
        assert_eq!(serde_json::to_value(&denial).unwrap()["grant"], serde_json::Value::Null);
        let hint = "no grant can allow it: the request cannot be written as a grant";
        assert_eq!(denial.hint(), hint);
    }
    // As a rule, this name would mean many tools.
    let request = Request::Invoke { tool: "a*".into(), own: false };
    assert_eq!(denial(&Rights::default(), &request).expect("it is denied").grant, None);
}

/// The forms are those of needs, grants and denials.
#[test]
fn request_may_name_its_kind() {
    for (typed, expected) in rows::<(&str, &str)>("grants/rights", "request_may_name_its_kind") {
        assert_eq!(Request::parse(typed).unwrap().to_string(), expected);
    }
}

#[test]
fn malformed_request_error_has_a_problem_and_hint() {
    for text in rows::<&str>("grants/rights", "malformed_request_error_has_a_problem_and_hint") {
        let bad = Request::parse(text).unwrap_err();
        assert!(!bad.problem.is_empty() && !bad.hint.is_empty(), "{text}");
    }
    assert!(declared(&[need("telepathy", "all")]).is_err());
    assert!(declared(&[need("http", "https://*")]).is_err());
}

#[test]
fn openings_are_topmost_paths_all_layers_allow() {
    let mut grants = Grants::default();
    for (name, access) in [("/data", Access::Write), ("/data/inner", Access::Read)] {
        grants.directories.push(crate::grants::Directory::new(name, "there", access).unwrap());
    }
    let rights = of(grants);
    let overlay = |rules: Vec<&str>| {
        let paths = Some(rules.iter().map(|rule| rule.parse().unwrap()).collect());
        Arc::new(Overlay { paths, ..Overlay::default() })
    };
    type Rules = Option<Vec<&'static str>>;
    for (tenant, call, expected) in
        rows::<(Rules, Rules, &str)>("grants/rights", "openings_are_topmost_paths_all_layers_allow")
    {
        let layers = format!("{tenant:?} and {call:?}");
        let narrowed = rights.narrowed(tenant.map(overlay), call.map(overlay));
        let found = narrowed
            .openings("/data", Access::Write)
            .into_iter()
            .map(|(path, access)| format!("{access} {path}"));
        assert_eq!(found.collect::<Vec<_>>().join(", "), expected, "{layers}");
    }
    let narrowed = rights.narrowed(Some(overlay(vec!["write /data/inner/x"])), None);
    let openings = narrowed.openings("/data/inner", Access::Read);
    assert_eq!(openings, [("/data/inner/x".to_owned(), Access::Read)]);
}

/// A need or `needs = []` in one tool means that the others get only what they declare.
#[test]
fn one_declaration_binds_all_tools_of_a_component() {
    let tool = |name: &str| {
        let mut tool = Definition::new(name, "").unwrap();
        match name {
            "needy" => tool.needs = vec![need("kv", "read notes/*")],
            "none" => drop(tool.extensions.insert("needs".to_owned(), serde_json::json!([]))),
            "titled" => drop(tool.extensions.insert("title".to_owned(), "T".into())),
            _ => {}
        }
        tool
    };
    for (tools, name, expected) in rows::<(Vec<&str>, &str, Option<Layer>)>(
        "grants/rights",
        "one_declaration_binds_all_tools_of_a_component",
    ) {
        let case = format!("{name} in {tools:?}");
        let tools: Vec<_> = tools.into_iter().map(tool).collect();
        let rights = Rights::in_component(granted().into(), &tool(name), &tools).unwrap();
        let asked = "kv read notes/1";
        assert_eq!(denied(&rights, asked), expected, "{case}");
        let elsewhere = rights.with_granted(Arc::default());
        assert_eq!(denied(&elsewhere, asked), expected.or(Some(Layer::Component)), "{case}");
    }
}
