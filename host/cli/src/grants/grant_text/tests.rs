//! Tests that new grants are added beside old ones, in every form that the old ones can have.
//!
//! TOML allows lists in one or several lines, inline tables, dotted keys, and headers for parts of
//! a section. For each, the lines to paste must keep the old grants and give valid TOML.

use toolcell::grants::Request;

use super::*;

/// Below the header of a part, another kind would count as a member of that part.
#[test]
fn grants_with_only_subtables_get_own_header() {
    for (old, expected) in [
        (
            "[components.x.grants.environment]\nA = \"1\"",
            "[components.x.grants]\nkv = [\"read b\"]",
        ),
        (
            "[components.x.grants]\n[components.x.grants.environment]\nA = \"1\"",
            "kv = [\"read b\"]",
        ),
        (
            "[components.x.grants]\nreveal = []\n[components.x.grants.environment]\nA = \"1\"",
            "kv = [\"read b\"]",
        ),
    ] {
        let text = format!("[components.x]\npath = \"x\"\n{old}\n");
        let asked = Suggestion::of(&Request::parse("kv read b").unwrap());
        let lines = merged(&RuleLines::of(text.clone()), "x", &asked, &[]).unwrap().join("\n");
        assert_eq!(lines, expected, "{old}");
        let header = if lines.starts_with('[') { "" } else { "[components.x.grants]\n" };
        let pasted = match text.split_once("[components.x.grants]\n") {
            Some((before, after)) => format!("{before}{header}{lines}\n{after}"),
            None => format!("{text}{lines}\n"),
        };
        assert!(pasted.parse::<toml::Table>().is_ok(), "{pasted}");
    }
}

/// In every form of the old grants, the new lines replace and keep them.
#[test]
fn merge_keeps_old_grants() {
    for (old, asked, expected) in [
        ("kv = [\"read a\"]", "kv read b", "kv = [\"read a\", \"read b\"]  # in place of line 2"),
        (
            "kv = [\n  \"read a\",\n]",
            "kv read b",
            "kv = [\"read a\", \"read b\"]  # in place of lines 2 to 4",
        ),
        ("kv = []", "kv read b", "kv = [\"read b\"]  # in place of line 2"),
        ("kv = [\n  # one\n]", "kv read b", "# add to `kv`, lines 2 to 4: \"read b\""),
        (
            "environment = { A = \"1\" }",
            "environment B",
            "environment = { A = \"1\", B = \"…\" }  # in place of line 2",
        ),
        (
            "[components.x.grants.environment]\nA = \"1\"",
            "environment B",
            "# add below [components.x.grants.environment], line 2:\nB = \"…\"",
        ),
        (
            "secrets = { k = { destination = \"https://a.example\" } }",
            "reveal k",
            "reveal = [\"k\"]",
        ),
        ("scratch = false", "write /scratch/x", "scratch = true  # in place of line 2"),
        ("reveal = []", "kv read b", "kv = [\"read b\"]"),
        (
            "grants.kv = [\"read a\"]",
            "kv read b",
            "grants.kv = [\"read a\", \"read b\"]  # in place of line 2",
        ),
        (
            "grants.kv = [\"read a\"]",
            "reveal k",
            "grants.secrets = { k = { source = { env = \"k\" } } }\ngrants.reveal = [\"k\"]",
        ),
        ("grants.environment.A = \"1\"", "kv read b", "grants.kv = [\"read b\"]"),
        (
            "grants = { kv = [\"read a\"] }",
            "kv read b",
            "grants = { kv = [\"read a\", \"read b\"] }  # in place of line 2",
        ),
        (
            "grants = { kv = [\n  \"read a\",\n], reveal = [] }",
            "invoke t",
            "grants = { kv = [ \"read a\", ], reveal = [], invoke = [\"t\"] }  # in place of lines 2 to 4",
        ),
        (
            "grants = { kv = [\n  # one\n] }",
            "invoke t",
            "# in `grants`, lines 2 to 4, write: invoke = [\"t\"]",
        ),
        ("grants = {}", "kv read b", "grants = { kv = [\"read b\"] }  # in place of line 2"),
    ] {
        let section = if old.starts_with("grants") { "x" } else { "x.grants" };
        let rules = RuleLines::of(format!("[components.{section}]\n{old}\n"));
        let lines =
            merged(&rules, "x", &Suggestion::of(&Request::parse(asked).unwrap()), &[]).unwrap();
        assert_eq!(lines.join("\n"), expected, "{old}");
    }
}
