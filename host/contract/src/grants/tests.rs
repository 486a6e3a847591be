//! Tests of the notation of grant rules, and of the requests that they cover.
//!
//! A table pairs HTTP rules with URLs that try to escape them: other ports, look-alike hosts,
//! encoded slashes. Further tests refuse rules that are too broad or malformed, and check the
//! prefixes of path and key rules.

use super::rights::Request;
use super::*;
use crate::cases::rows;

#[test]
fn http_rule_covers_only_its_requests() {
    let requests = rows::<(&str, &str)>("grants", "requests");
    let matrix = rows::<(&str, &str)>("grants", "rules").into_iter().flat_map(|(rule, covers)| {
        assert_eq!(covers.len(), requests.len(), "{rule}");
        let each = requests.clone().into_iter().zip(covers.chars());
        each.map(move |((method, url), mark)| (rule, method, url, mark == '+'))
    });
    for (rule, method, url, expected) in
        rows::<(&str, &str, &str, bool)>("grants", "covers").into_iter().chain(matrix)
    {
        let parsed: HttpRule = rule.parse().unwrap();
        let covers = match Target::parse(url) {
            Ok(target) => parsed.covers(Method::parse(method).unwrap(), &target),
            Err(_) => false,
        };
        assert_eq!(covers, expected, "{rule} and {method} {url}");
        let again: HttpRule = parsed.to_string().parse().unwrap();
        assert_eq!(again, parsed, "{rule} as text");
    }
}

#[test]
fn smallest_http_rule_covers_its_request() {
    for (url, expected) in rows::<(&str, &str)>("grants", "smallest_http_rule_covers_its_request") {
        let target = Target::parse(url).unwrap();
        let rule = HttpRule::smallest(Method::Post, &target);
        assert_eq!(rule.to_string(), expected, "{url}");
        let pasted: HttpRule = expected.parse().unwrap();
        assert!(pasted == rule && pasted.covers(Method::Post, &target), "{url}");
    }
}

#[test]
fn http_rule_covers_only_its_port() {
    let rules =
        [("https://a.example", 443), ("https://a.example:22", 22), ("https://.example.com:0", 0)];
    let rules = rules.map(|(rule, port)| (rule.parse::<HttpRule>().unwrap(), port));
    for port in 0..=u16::MAX {
        for host in ["a.example", "a.example.com"] {
            let target = Target::parse(&format!("https://{host}:{port}/")).unwrap();
            for (rule, its) in &rules {
                let is_its_host = rule.to_string().contains("//.") == host.ends_with(".com");
                let covers = rule.covers(Method::Get, &target);
                assert_eq!(covers, is_its_host && port == *its, "{rule} and {host}:{port}");
            }
        }
    }
}

#[test]
fn overbroad_or_malformed_http_rule_is_refused() {
    for rule in rows::<&str>("grants", "overbroad_or_malformed_http_rule_is_refused") {
        assert!(rule.parse::<HttpRule>().is_err(), "{rule}");
    }
}

#[test]
fn url_parses_to_one_unambiguous_target() {
    let parsed = |text: &str| match Target::parse(text) {
        Ok(target) => target.as_str().to_owned(),
        Err(problem) => format!("{problem:?}"),
    };
    for (text, expected) in rows::<(&str, &str)>("grants", "url_parses_to_one_unambiguous_target") {
        assert_eq!(parsed(text), expected, "{text:?}");
    }
    assert_eq!(parsed(&format!("http://a.example/{}", "x".repeat(9000))), "TooLong");
}

#[test]
fn path_and_key_rules_cover_only_their_own_prefix() {
    type Case = (&'static str, &'static str, &'static str, bool);
    for (rule, access, path, expected) in rows::<Case>("grants", "path_rules") {
        let covers = rule.parse::<PathRule>().unwrap().covers(Access::parse(access).unwrap(), path);
        assert_eq!(covers, expected, "{rule} and {access} {path}");
    }
    for rule in rows::<&str>("grants", "malformed_path_rules") {
        assert!(rule.parse::<PathRule>().is_err(), "{rule}");
    }
    let missing = "read".parse::<PathRule>().unwrap_err();
    assert_eq!(missing.to_string(), "`read`: the path is missing");
    for (rule, access, key, expected) in rows::<Case>("grants", "key_rules") {
        let covers = rule.parse::<KeyRule>().unwrap().covers(Access::parse(access).unwrap(), key);
        assert_eq!(covers, expected, "{rule} and {access} {key}");
    }
    assert!("write notes/*".parse::<KeyRule>().unwrap().covers_prefix(Access::Read, "notes/2"));
    assert!(!"write notes/*".parse::<KeyRule>().unwrap().covers_prefix(Access::Read, "no"));
    for rule in rows::<&str>("grants", "malformed_key_rules") {
        assert!(rule.parse::<KeyRule>().is_err(), "{rule}");
    }
}

/// Code that handles every kind relies on the rows alone.
#[test]
fn rows_describe_each_kind() {
    let words: Vec<_> = GrantKind::words().collect();
    assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len(), "{words:?}");
    for kind in GrantKind::all() {
        let row = kind.row();
        assert!(row.interface().is_none_or(|interface| interface == row.key), "{kind:?}");
        assert_eq!(GrantKind::wait_of(row.key), row.wait, "{kind:?}");
        // Only the directory of a call has no form of its own.
        assert_eq!(row.requests.is_empty(), row.rules.is_none(), "{kind:?}");
        let of_example = row.example.split('=').next().unwrap();
        for word in [row.key, of_example] {
            assert_eq!(GrantKind::of_word(word), Some(kind), "{word}");
        }
        for form in row.requests {
            let request = Request::parse(form).unwrap();
            assert_eq!(request.kind(), kind, "{form}");
            let mut grants = Grants::default();
            let is_only_rules = row.is_list() && kind != GrantKind::Directories;
            assert_eq!(grants.add(kind, &request.rule()).is_ok(), is_only_rules, "{form}");
            let added = [request.rule()].into_iter().filter(|_| is_only_rules);
            assert_eq!(grants.remaining(kind, &[]), added.collect::<Vec<_>>(), "{form}");
            assert_eq!(grants.kinds().contains(&kind), is_only_rules, "{form}");
        }
        let mut overlay = Overlay::default();
        assert_eq!(overlay.rules(kind), None, "{kind:?}");
        // Only the directory of a call has no rules and no needs.
        if row.rules.is_some() {
            assert_eq!(GrantKind::of_need(row.need), Some(kind));
            assert_eq!(GrantKind::of_word(row.need), Some(kind));
            overlay.narrow(kind, &[]).unwrap();
            assert_eq!(overlay.rules(kind), Some(Vec::new()), "{kind:?}");
        } else {
            assert!(row.need.is_empty() && overlay.narrow(kind, &[]).is_err(), "{kind:?}");
        }
    }
    let needs = "`http`, `filesystem`, `environment`, `secret`, `reveal`, `kv` or `invoke`";
    assert_eq!(GrantKind::listed(|row| [row.need]), needs);
}
