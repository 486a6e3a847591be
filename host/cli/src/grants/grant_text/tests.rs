//! Tests that new grants are added beside old ones, in every form that the old ones can have.
//!
//! TOML allows lists in one or several lines, inline tables, dotted keys, and headers for parts of
//! a section. For each, the lines to paste must keep the old grants and give valid TOML.

use toolcell_test_guests::rows;

use super::*;

/// The place of the grants in the rows.
const GRANTS: [&str; 3] = ["components", "x", "grants"];

/// Below the header of a part, another kind would count as a member of that part.
#[test]
fn grants_with_only_subtables_get_own_header() {
    for (old, expected) in
        rows::<(&str, &str)>("grant_text", "grants_with_only_subtables_get_own_header")
    {
        let text = format!("[components.x]\npath = \"x\"\n{old}\n");
        let asked = Suggestion::of(&Request::parse("kv read b").unwrap());
        let rules = RuleLines::of(text.clone());
        let lines = merged(&rules, &GRANTS, asked.additions(), &[]).unwrap().join("\n");
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
    for (old, asked, expected) in rows::<(&str, &str, &str)>("grant_text", "merge_keeps_old_grants")
    {
        let header = match old.split(['.', ' ']).next() {
            Some("components") => "",
            Some("grants") => "[components.x]",
            _ => "[components.x.grants]",
        };
        let rules = RuleLines::of(format!("{header}\n{old}\n"));
        let asked = Suggestion::of(&Request::parse(asked).unwrap());
        let lines = merged(&rules, &GRANTS, asked.additions(), &[]).unwrap();
        assert_eq!(lines.join("\n"), expected, "{old}");
        let pasted = format!("{header}\n{expected}\n");
        assert!(pasted.parse::<toml::Table>().is_ok(), "{pasted}");
    }
}

/// TOML does not allow a header for a part of an inline table.
#[test]
fn component_in_an_inline_table_is_replaced() {
    for (old, expected) in
        rows::<(&str, Option<&str>)>("grant_text", "component_in_an_inline_table_is_replaced")
    {
        let asked = Suggestion::of(&Request::parse("kv read b").unwrap());
        let lines = inline_lines(&RuleLines::of(format!("{old}\n")), "x", &asked);
        let lines = lines.map(|lines| lines.join("\n"));
        assert_eq!(lines.as_deref(), expected, "{old}");
        let header = old.split_once('\n').map_or("", |(header, _)| header);
        let pasted = format!("{header}\n{}\n", lines.unwrap_or_default());
        assert!(pasted.parse::<toml::Table>().is_ok(), "{pasted}");
    }
}
