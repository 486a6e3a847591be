//! Tests that each change of a component is reported with its place in the definition, and that
//! nothing else is.
//!
//! They also check that a huge change hides no other one, that time and lines are bounded, and that
//! changes of a configuration's text are shown by section and line, without comments.

use std::collections::BTreeMap;

use toolcell_test_guests::rows;

use super::*;

fn component(definition: &Value) -> ApprovedVersion {
    let definition: Definition = serde_json::from_value(definition.clone()).unwrap();
    ApprovedVersion {
        digest: "sha256:00".into(),
        kind: "tools".into(),
        imports: ["a".to_owned(), "b".to_owned()].into(),
        publisher: None,
        tools: BTreeMap::from([(definition.name.clone(), definition)]),
    }
}

fn shown(definition: &Definition) -> String {
    format!("tool {}\n  {}", definition.name, definition.description)
}

fn definition() -> Value {
    json!({
        "name": "t", "description": "Greets.\nTwice.", "parameters": {
            "properties": { "a/b": { "description": "who", "enum": ["x", "y"], "anyOf": [{ "type": "string" }] } },
        },
        "needs": [{ "kind": "http", "pattern": "GET https://a.example", "reason": "r" }],
    })
}

/// Returns the component with this description.
fn described(description: String) -> ApprovedVersion {
    let mut definition = definition();
    definition["description"] = description.into();
    component(&definition)
}

#[test]
fn each_change_has_its_place() {
    let old = component(&definition());
    for (place, changed, expected, words) in
        rows::<(&str, Value, &str, &str)>("approval/difference", "each_change_has_its_place")
    {
        let mut new = definition();
        *new.pointer_mut(place).unwrap() = changed;
        let new = component(&new);
        let difference = Difference { old: Some(&old), new: &new };
        assert_eq!(difference.state(), ApprovalState::Changed);
        let tools = difference.tools();
        let [change] = tools[0].2.as_slice() else { panic!("{expected}") };
        let lines = change.lines();
        let lines: Vec<_> = lines.iter().map(|line| line.trim()).collect();
        assert_eq!(format!("t{}: {}", change.pointer, lines.join(" ")), expected);
        assert_eq!(difference.sentence(), words);
    }
}

#[test]
fn comparison_yields_state_sentence_and_page() {
    let old = component(&definition());
    let standing = |change: fn(&mut ApprovedVersion)| {
        let mut new = old.clone();
        change(&mut new);
        let difference = Difference { old: Some(&old), new: &new };
        let lines = difference.page(&BTreeSet::new(), shown).lines.len();
        (difference.state().word(), difference.sentence(), lines)
    };
    assert_eq!(standing(|_| ()), ("approved", String::new(), 1));
    let code = standing(|new| new.digest = "sha256:11".into());
    assert_eq!(code, ("changed code", "its code changed".to_owned(), 1));
    let imports = standing(|new| new.imports = ["a".to_owned(), "c\u{202e}".to_owned()].into());
    let sentence = r"it also imports c\u{202e}; it no longer imports b";
    assert_eq!(imports, ("changed", sentence.to_owned(), 4));
    let gone = standing(|new| new.tools.clear());
    assert_eq!((gone.0, gone.1.split(';').next()), ("changed", Some("t: description")));
    let new = Difference { old: None, new: &old };
    assert_eq!(new.state(), ApprovalState::New);
    let Page { lines, is_cut } = new.page(&["b".to_owned()].into(), shown);
    assert!(!is_cut);
    for line in [
        "    + a",
        "    + 1 imports for its language runtime, which give access to nothing",
        "  tool t: new",
        "  Twice.",
        "      parameter a/b, enum: [\"x\",\"y\"]",
    ] {
        assert!(lines.iter().any(|shown| shown == line), "{line}: {lines:#?}");
    }
    assert_eq!(new.to_json()["tools"][0]["hash"], old.tools["t"].hash());
}

/// Long texts that are expensive to compare.
#[test]
fn comparison_time_and_lines_are_bounded() {
    let text = |seed: usize| {
        (0..200_000).map(|n| if n * seed % 7 < 3 { "a\n" } else { "b\n" }).collect::<String>()
    };
    let [old, new] = [3, 5].map(|seed| described(text(seed)));
    let page = Difference { old: Some(&old), new: &new }.page(&BTreeSet::new(), shown);
    let bound = MAX_LINES + 4;
    assert!(page.is_cut && page.lines.len() == bound, "{}", page.lines.len());
    let last = &page.lines[bound - 1];
    assert!(last.ends_with(" more characters: `--json` has all)"), "{last}");
}

/// A huge first change hides no other: each tool, each place, and the start of each change is
/// shown.
#[test]
fn huge_change_hides_no_other_change() {
    let huge = [
        ("lines", json!("\n".repeat(100_000))),
        ("characters", json!("x".repeat(1 << 20))),
        (
            "members",
            json!((0..3000).map(|n| (n.to_string(), json!(n))).collect::<serde_json::Map<_, _>>()),
        ),
        ("list", json!(vec!["x"; 100_000])),
    ];
    for (name, value) in huge {
        let mut first = definition();
        first["name"] = "a".into();
        first["parameters"]["default"] = value.clone();
        let (mut new, first) = (component(&definition()), component(&first));
        new.tools.extend(first.tools);
        let bare = |name: &str| component(&json!({ "name": name, "description": "" }));
        let mut old = bare("a");
        old.tools.extend(bare("t").tools);
        let Page { lines, is_cut } =
            Difference { old: Some(&old), new: &new }.page(&BTreeSet::new(), shown);
        assert_eq!(is_cut, name != "members", "{name}");
        let count = |line: &str| lines.iter().filter(|shown| *shown == line).count();
        for line in ["  tool a: changed", "  tool t: changed"] {
            assert_eq!(count(line), 1, "{name}: {line}");
        }
        for line in
            ["    /needs/0/pattern", "      + \"Greets.\"", "    /parameters/properties/a~1b/enum"]
        {
            assert_eq!(count(line), 2, "{name}: {line}");
        }
        let is_marker = |line: &&String| line.contains(" more characters: `--json` has all)");
        let markers = lines.iter().filter(is_marker).count();
        assert_eq!(markers, usize::from(is_cut), "{name}");
        let members = value.as_object().map_or(0, |members| 2 * members.len());
        let count = lines.len();
        assert!(count < MAX_LINES + 100 + members && count > members, "{name}: {count}");
    }
}

/// The old and the new text, whatever their number of lines.
#[test]
fn largest_description_is_shown_whole() {
    let [old, new] = ["o", "n"]
        .map(|letter| described(format!("{}\n{}", letter.repeat(3000), letter.repeat(1095))));
    let Page { lines, is_cut } =
        Difference { old: Some(&old), new: &new }.page(&BTreeSet::new(), shown);
    assert_eq!((lines.concat().matches('n').count() >= 4095, is_cut), (true, false));
}

/// Each text of the author that a description leaves out is shown with its place.
#[test]
fn definition_texts_not_yet_shown_are_listed() {
    let shown = "tool t\n  Greets. Twice.\n    a/b  \"x\" | \"y\"  optional  who\n  needs http GET https://a.example: r";
    for (place, value, expected) in rows::<(&str, Value, Vec<&str>)>(
        "approval/difference",
        "definition_texts_not_yet_shown_are_listed",
    ) {
        let mut definition = definition();
        definition["attributes"] = json!({});
        definition["extensions"] = json!({});
        definition["parameters"] =
            json!({ "properties": { "a/b": { "enum": ["x", "y"], "description": "who" } } });
        *definition.pointer_mut(place).unwrap() = value;
        let definition: Definition = serde_json::from_value(definition).unwrap();
        let Page { lines, is_cut } = Page::of_rest(&definition, shown);
        let lines: Vec<_> = lines.iter().map(|line| line.trim()).collect();
        assert_eq!((lines, is_cut), (expected, false));
    }
}

/// Checks the lines that are shown for each pair of texts of a configuration.
fn check_texts(table: &str) {
    for (old, new, expected) in
        rows::<(Option<&str>, &str, Vec<&str>)>("approval/difference", table)
    {
        let Page { lines, is_cut } = Page::of_texts(old, new);
        assert_eq!(lines, expected, "{old:?} {new:?}");
        assert!(!is_cut, "{new:?}");
    }
}

/// Lines are shown as in the file, without escaped quotes, below the section and the line number.
#[test]
fn changed_configuration_is_shown_by_section_and_line() {
    check_texts("changed_configuration_is_shown_by_section_and_line");
    let old = "# c\n[components.a]\npath = \"a.wasm\"\n\n[components.a.grants]\nhttp = [\"GET https://a.example\"]\nkv = []\n";
    let Page { lines, .. } =
        Page::of_texts(Some(old), &format!("{old}\n[tenants.zzz]\nhttp = []\n"));
    let at = old.lines().count() + 2;
    assert_eq!(lines[0], format!("    [tenants.zzz], line {at}"), "{lines:?}");
}

/// Comments are not part of what is approved. A line that only looks like a comment is shown with
/// all others.
#[test]
fn comments_and_empty_lines_are_left_out() {
    check_texts("comments_and_empty_lines_are_left_out");
}

#[test]
fn empty_needs_list_is_shown_once() {
    let mut given = definition();
    given["needs"] = json!([]);
    given["extensions"] = json!({ "needs": [] });
    let definition: Definition = serde_json::from_value(given).unwrap();
    let lines = |shown: &str| Page::of_rest(&definition, shown).lines;
    let told = |lines: Vec<String>| lines.iter().any(|line| line.trim() == "needs: []");
    assert!(told(lines("tool t")));
    assert!(!told(lines(
        "tool t\n  needs nothing: its list of needs is empty, so it can use no grant"
    )));
}
