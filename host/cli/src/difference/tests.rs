//! What is otherwise is told with its place, and nothing else is.

use std::collections::BTreeMap;

use super::*;

fn component(definition: &Value) -> Approved {
    let definition: Definition = serde_json::from_value(definition.clone()).unwrap();
    Approved {
        digest: "sha256:00".into(),
        imports: ["a".to_owned(), "b".to_owned()].into(),
        publisher: None,
        tools: BTreeMap::from([(definition.name.clone(), definition)]),
    }
}

fn definition() -> Value {
    json!({
        "name": "t", "description": "Greets.\nTwice.", "parameters": {
            "properties": { "a/b": { "description": "who", "enum": ["x", "y"], "anyOf": [{ "type": "string" }] } },
        },
        "needs": [{ "kind": "http", "pattern": "GET https://a.example", "reason": "r" }],
    })
}

#[test]
fn each_change_has_its_place() {
    let old = component(&definition());
    for (place, changed, expected) in [
        ("/description", json!("Greets.\nTwice, and more."), "t/description: - \"Twice.\" + \"Twice, and more.\""),
        ("/description", json!("Greets.\nTwice.\n"), "t/description: + \"\""),
        ("/description", json!("Gr\u{200b}eets.\nTwice."), r#"t/description: - "Greets." + "Gr\u{200b}eets.""#),
        ("/description", json!("Greets. \nTwice."), r#"t/description: - "Greets." + "Greets. ""#),
        ("/parameters/properties/a~1b/enum", json!(["x"]), r#"t/parameters/properties/a~1b/enum: - ["x","y"] + ["x"]"#),
        (
            "/parameters/properties/a~1b/enum/1",
            json!(null),
            r#"t/parameters/properties/a~1b/enum: - ["x","y"] + ["x",null]"#,
        ),
        (
            "/parameters/properties/a~1b/anyOf",
            json!([{ "type": "string" }, { "const": 1 }]),
            "t/parameters/properties/a~1b/anyOf/1/const: + 1",
        ),
        (
            "/parameters/properties",
            json!({}),
            "t/parameters/properties: - {\"a/b\":{\"anyOf\":[{\"type\":\"string\"}],\
            \"description\":\"who\",\"enum\":[\"x\",\"y\"]}} + {}",
        ),
        (
            "/parameters",
            json!({ "properties": 1 }),
            "t/parameters/properties: - {\"a/b\":{\"anyOf\":[{\"type\":\"string\"}],\
            \"description\":\"who\",\"enum\":[\"x\",\"y\"]}} + 1",
        ),
        (
            "/needs/0/pattern",
            json!("https://a.example"),
            "t/needs/0/pattern: - \"GET https://a.example\" + \"https://a.example\"",
        ),
    ] {
        let mut new = definition();
        *new.pointer_mut(place).unwrap() = changed;
        let new = component(&new);
        let difference = Difference { old: Some(&old), new: &new };
        assert_eq!(difference.standing(), Standing::Changed);
        let told: Vec<_> = difference.tools()[0]
            .2
            .iter()
            .map(|change| {
                let lines: Vec<_> = change.lines().iter().map(|line| line.trim().to_owned()).collect();
                format!("t{}: {}", change.place, lines.join(" "))
            })
            .collect();
        assert_eq!(told, [expected]);
        assert!(difference.sentence().starts_with(expected.split(": ").next().unwrap()));
    }
}

#[test]
fn how_it_stands() {
    let old = component(&definition());
    let standing = |change: fn(&mut Approved)| {
        let mut new = old.clone();
        change(&mut new);
        let difference = Difference { old: Some(&old), new: &new };
        (difference.standing().word(), difference.sentence(), difference.lines(&BTreeSet::new()).len())
    };
    assert_eq!(standing(|_| ()), ("locked", String::new(), 1));
    assert_eq!(standing(|new| new.digest = "sha256:11".into()), ("rebuilt", String::new(), 1));
    let imports = standing(|new| new.imports = ["a".to_owned(), "c\u{202e}".to_owned()].into());
    assert_eq!(imports, ("changed", r"it also imports c\u{202e}; it no longer imports b".to_owned(), 4));
    let gone = standing(|new| new.tools.clear());
    assert_eq!((gone.0, gone.1.split(';').next()), ("changed", Some("t/description")));
    let new = Difference { old: None, new: &old };
    assert_eq!(new.standing(), Standing::New);
    let lines = new.lines(&["b".to_owned()].into());
    for line in [
        "    + a",
        "    + 1 for its language runtime, which reach nothing",
        "  tool t: new",
        "      + \"Twice.\"",
        "    /parameters/properties/a~1b/enum",
    ] {
        assert!(lines.iter().any(|shown| shown == line), "{line}: {lines:#?}");
    }
    assert_eq!(new.to_json()["tools"][0]["hash"], old.tools["t"].hash());
}

/// Long, and made to be hard to compare.
#[test]
fn a_strangers_text_costs_a_bounded_time_and_a_bounded_number_of_lines() {
    let text = |seed: usize| (0..200_000).map(|n| if n * seed % 7 < 3 { "a\n" } else { "b\n" }).collect::<String>();
    let [old, new] = [3, 5].map(|seed| {
        let mut definition = definition();
        definition["description"] = text(seed).into();
        component(&definition)
    });
    let lines = Difference { old: Some(&old), new: &new }.lines(&BTreeSet::new());
    assert_eq!(lines.len(), MAX_LINES + 1);
    assert!(lines[MAX_LINES].contains("more lines"), "{}", lines[MAX_LINES]);
}
