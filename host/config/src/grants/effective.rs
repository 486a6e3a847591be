//! Shows the effective grants of a tool: declared ∩ granted ∩ left to the tool ∩ tenant.
//!
//! `check`, `approve` and `inspect` show what a tool's calls may access. [`effective`] takes the
//! tool's rights, narrowed by the tenant's overlay if there is one. It returns rules by kind, in
//! the notation of a configuration, each within all layers; [`rows`] formats them. Without a bound
//! an untrusted definition could name any number of rules: above it, one line says that there are
//! too many, and none is shown.
//!
//! Not here: the intersection of rules, in `toolcell`.

use std::collections::BTreeMap;

use toolcell::grants::{GrantKind, HttpRule, Rights};

/// Shown instead of more rules than can be compared.
pub const TOO_MANY: &str = Rights::TOO_MANY;

/// Rules by kind of grant, in the notation of a configuration.
pub type Effective = BTreeMap<&'static str, Vec<String>>;

/// Returns the rules that all layers of these rights leave.
pub fn effective(rights: &Rights) -> Effective {
    let rules = GrantKind::all().map(|kind| (kind.key(), rights.effective(kind)));
    rules.filter(|(_, rules)| !rules.is_empty()).collect()
}

/// Returns true if some request is within both the rule and the granted rules.
pub fn overlaps(rule: &HttpRule, granted: &[HttpRule]) -> bool {
    granted.iter().any(|granted| granted.overlaps(rule))
}

/// Formats the rules for display: one line for each kind.
pub fn rows(left: &Effective) -> Vec<Vec<String>> {
    let row = |(kind, rules): (&&'static str, &Vec<String>)| {
        let note =
            "  (the tool READS these values, and can send them to any host that it may reach)";
        let is_read = *kind == GrantKind::Reveal.key();
        let (kind, note) = if is_read { ("REVEAL", note) } else { (*kind, "") };
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

    use toolcell::tool::Need;
    use toolcell::{Definition, Grants, Overlay};

    use super::*;

    #[test]
    fn effective_rights_intersect_all_layers() {
        let mut grants = Grants::default();
        for rule in ["GET,POST https://.example.com/v1", "GET http://other.example"] {
            grants.http.push(rule.parse().unwrap());
        }
        grants.kv.extend(["write notes/*", "read one"].map(|rule| rule.parse().unwrap()));
        grants.environment.insert("LANG".into(), "C".into());
        let mut overlay = Overlay::default();
        overlay.http = Some(vec!["GET https://api.example.com".parse().unwrap()]);
        let overlay = Arc::new(overlay);
        let left = |needs: &[(&str, &str)], tenant: Option<&Arc<Overlay>>| {
            let mut definition = Definition::new("t", "").unwrap();
            let needs = needs.iter().map(|(kind, pattern)| Need::new(*kind, *pattern, ""));
            definition.needs = needs.collect();
            let rights = Rights::new(Arc::new(grants.clone()), &definition)
                .unwrap()
                .narrowed(tenant.cloned(), None);
            effective(&rights)
                .into_iter()
                .map(|(kind, rules)| format!("{kind}: {}", rules.join("; ")))
                .collect::<Vec<_>>()
                .join(", ")
        };
        for (needs, is_narrowed, expected) in
            toolcell_test_guests::rows::<(Vec<(&str, &str)>, bool, &str)>(
                "grants/effective",
                "effective_rights_intersect_all_layers",
            )
        {
            let tenant = is_narrowed.then_some(&overlay);
            assert_eq!(left(&needs, tenant), expected, "{needs:?}");
        }
        // Too many rules are not shown in part: the first ones could hide the others.
        let many: Vec<_> = (0..=1024).map(|n| format!("read a/{n}")).collect();
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
        let expected = Effective::from([("kv", vec!["read notes/b/*".to_owned()])]);
        assert_eq!(effective(&rights), expected);
    }
}
