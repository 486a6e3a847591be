//! Tests which tools the patterns of a tenant offer, and that invalid lists are errors with line
//! and column.
//!
//! They read small configurations with a list `tools`, and check that an unknown name is reported
//! with a hint and a pattern is not.

use toolcell_test_guests::rows;

use crate::problem::in_order;
use crate::{Configuration, Problem, ReadOptions};

/// Reads a configuration that ends with this text.
fn read(text: &str) -> Result<Configuration, Vec<Problem>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolcell.toml");
    std::fs::write(&file, format!("[components.notes]\npath = \"notes.wasm\"\n{text}")).unwrap();
    Configuration::read_with(file, ReadOptions::new()).map_err(|error| error.problems().to_vec())
}

#[test]
fn tenant_is_offered_tools_matching_its_patterns() {
    const TOOLS: [&str; 4] = ["greet", "greeting", "notes_add", "notes_list"];
    for (section, expected) in rows::<(&str, Vec<&str>)>(
        "tenants/offered",
        "tenant_is_offered_tools_matching_its_patterns",
    ) {
        let config = read(&format!("[tenants.acme]\n{section}\n[tenants.other]\n")).unwrap();
        let offered = |tenant| {
            TOOLS.into_iter().filter(|tool| config.offers(tenant, tool)).collect::<Vec<_>>()
        };
        assert_eq!(offered(Some("acme")), expected, "{section}");
        assert_eq!([offered(Some("other")), offered(None)], [TOOLS, TOOLS], "{section}");
    }
}

#[test]
fn invalid_tool_lists_are_errors_with_their_place() {
    for (text, place, message) in rows::<(&str, (_, _), &str)>(
        "tenants/offered",
        "invalid_tool_lists_are_errors_with_their_place",
    ) {
        let problems = read(text).unwrap_err();
        let [problem] = problems.as_slice() else { panic!("{text}: {problems:?}") };
        assert_eq!((problem.line, problem.column), place, "{text}: {problem}");
        assert!(problem.message.contains(message) && !problem.hint.is_empty(), "{text}: {problem}");
    }
}

#[test]
fn unknown_tool_names_are_reported_patterns_are_not() {
    let config =
        read("[tenants.acme]\ntools = [\"grete\", \"greet\", \"later_*\", \"unlike\"]\n[tenants.other]\n").unwrap();
    let unknown = config
        .tenants
        .values()
        .flat_map(|tenant| tenant.unknown_tools(["greet", "notes"].into_iter()))
        .collect();
    let unknown = in_order(unknown);
    let told = unknown.iter().map(|problem| (problem.column, &*problem.message, &*problem.hint));
    let message = |name| format!("`tools` has the name `{name}`, and no component has such a tool");
    let [grete, unlike] = ["grete", "unlike"].map(message);
    let expected = [
        (10, grete.as_str(), "did you mean `greet`?"),
        (39, unlike.as_str(), "correct the name, or remove it"),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}
