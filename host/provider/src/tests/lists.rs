//! Tests of lists with a tool that an API cannot express: its note, and the other tools, which
//! stay.
//!
//! They also check the note of a recursive schema or a description that was cut, parts of 0 bytes in
//! every format, and a sound with the media type of an image.

use serde_json::json;
use toolcell_contract::outcome::{Media, Part, Resource, ResourceContent};

use super::super::schema::MAX_RECURSION;
use super::super::{Conversion, Definition, Message, Provider};
use super::{Value, gemini};

#[test]
fn recursion_is_cut_with_a_note() {
    let words = "More of the same form, which is not written out here.";
    let cut = json!({"type": "OBJECT", "description": words});
    let inside = |inner: Value| json!({"type": "OBJECT", "properties": {"next": inner}});
    let whole = |times: usize| (0..=times).fold(cut.clone(), |inner, _| inside(inner));
    let (converted, notes) = gemini(json!({"$ref": "#/$defs/Loop"})).unwrap();
    assert_eq!(converted, whole(MAX_RECURSION));
    assert_eq!(notes, ["/parameters/$defs/Loop"]);
    // Too large with the full number of expansions, but not with one.
    let many = |_| json!({"description": "x".repeat(30), "anyOf": vec![json!({"$ref": "#/$defs/Wide"}); 12]});
    let members: serde_json::Map<_, _> = (0..4).map(|n| (format!("m{n}"), many(n))).collect();
    let schema = json!({
        "properties": {"x": {"$ref": "#/$defs/Wide"}}, "$defs": {"Wide": {"type": "object", "properties": members}},
    });
    let definition = Definition::new("t", "").unwrap().with_parameters(schema);
    let converted = Provider::Gemini.definitions([&definition]).unwrap();
    let changes: Vec<_> = converted.notes.iter().map(|note| note.change.as_str()).collect();
    assert_eq!(changes, ["written out inside of itself once, and cut there"]);
    // A cycle of references without a value in between is accepted.
    for circle in ["#/$defs/Round", "#"] {
        let (_, notes) = gemini(json!({"$ref": circle})).unwrap();
        let has_place = notes.iter().any(|pointer| pointer.starts_with("/parameters"));
        assert!(has_place, "{circle}: {notes:?}");
    }
}

/// Each of these tools alone takes most of what a list may take. A small tool behind them stays.
#[test]
fn list_of_exploding_schemas_is_bounded() {
    let members: serde_json::Map<_, _> =
        (0..200).map(|n| (format!("m{n}"), json!({"$ref": "#/$defs/Wide"}))).collect();
    let schema = json!({
        "properties": {"x": {"$ref": "#/$defs/Wide"}}, "$defs": {"Wide": {"type": "object", "properties": members}},
    });
    let tool =
        |n: u32| Definition::new(format!("t{n}"), "").unwrap().with_parameters(schema.clone());
    let mut tools: Vec<_> = (0..20).map(tool).collect();
    tools.push(Definition::new("small", "").unwrap().with_parameters(json!({"type": "object"})));
    let Conversion { value, notes } = Provider::Gemini.definitions(&tools).unwrap();
    let names = value[0]["functionDeclarations"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["t0", "small"]);
    let left_out = notes.iter().filter(|note| note.change.contains("left out of the list"));
    assert_eq!(left_out.count(), 19);
}

#[test]
fn long_description_is_cut_for_chat_completions() {
    for (provider, pointer, given, expected) in [
        (Provider::OpenAi, "/0/function/description", 1024, (1024, 0)),
        (Provider::OpenAi, "/0/function/description", 1025, (1024, 1)),
        (Provider::OpenAiResponses, "/0/description", 1025, (1025, 0)),
    ] {
        let definition = Definition::new("t", "é".repeat(given)).unwrap();
        let Conversion { value, notes } = provider.definitions([&definition]).unwrap();
        let shown = value.pointer(pointer).and_then(Value::as_str).unwrap();
        assert_eq!((shown.chars().count(), notes.len()), expected, "{provider} {given}");
    }
}

#[test]
fn bad_tool_is_left_out_of_the_list() {
    let tool =
        |name: &str, schema: Value| Definition::new(name, "").unwrap().with_parameters(schema);
    let bad = [
        tool("nowhere", json!({"properties": {"a": {"$ref": "#/$defs/missing"}}})),
        tool("none", json!({"type": "object", "not": {}})),
    ];
    let good = tool("good", json!({"type": "object"}));
    for provider in Provider::ALL {
        let given = [&bad[0], &good, &bad[1], &good];
        let Conversion { value, notes } = provider.definitions(given).unwrap();
        let list =
            if provider == Provider::Gemini { &value[0]["functionDeclarations"] } else { &value };
        let left_out: Vec<_> =
            notes.iter().filter(|note| note.change.contains("left out of the list")).collect();
        let listed = list.as_array().unwrap().len();
        assert_eq!(listed + left_out.len(), 4, "{provider}: {value} {notes:?}");
        assert!(value.to_string().contains("good") && left_out.len() >= 2, "{provider}: {notes:?}");
        let last = left_out.last().map(|note| (&*note.tool, &*note.pointer));
        assert_eq!(last, Some(("good", "/name")), "{provider}");
        // The list, or a page of it, is empty then.
        assert!(provider.definitions([&bad[1]]).is_err(), "{provider}");
        let Conversion { value, notes } = provider.page([&bad[1]]);
        assert_eq!((value, notes.len()), (json!([]), 1), "{provider}");
        assert_eq!(provider.definitions([]).unwrap().value, json!([]), "{provider}");
    }
}

#[test]
fn empty_media_is_described_in_every_form() {
    let media = |data: &[u8]| Media { mime_type: String::new(), data: data.to_vec() };
    for part in [Part::Image(media(b"")), Part::Audio(media(b""))] {
        let message = Message::new("c", "draw", "drawn").with_part(part.clone());
        for provider in Provider::ALL {
            let Conversion { value, notes } = provider.results(std::slice::from_ref(&message));
            let (value, case) = (value.to_string(), format!("{provider}: {part:?}"));
            assert!(!value.contains(r#""""#), "{case}: {value}");
            assert!(value.contains("of 0 bytes (application/octet-stream)"), "{case}: {value}");
            let reasons: Vec<_> =
                notes.iter().map(|note| (note.pointer.as_str(), note.reason.as_str())).collect();
            assert_eq!(reasons, [("/parts/0", "it has no bytes")], "{case}");
        }
    }
    let uri = || "x:y".to_owned();
    let bytes = ResourceContent::Bytes { data: vec![0] };
    let (name, description, mime_type, size) = (None, None, Some(String::new()), None);
    let link = Part::ResourceLink { uri: uri(), name, description, mime_type, size };
    for part in [
        Part::Image(media(b"a")),
        Part::Audio(media(b"a")),
        Part::Resource(Resource { uri: uri(), mime_type: Some(" ".into()), content: bytes }),
        link,
    ] {
        let message = Message::new("c", "draw", "").with_part(part);
        let sent = Provider::Mcp.results(&[message]).value.to_string();
        assert!(sent.contains(r#""mimeType":"application/octet-stream""#), "{sent}");
    }
}

#[test]
fn sound_with_the_type_of_an_image_is_described() {
    let sound = Part::Audio(Media { mime_type: "image/png".into(), data: vec![0; 3] });
    let message = Message::new("c", "draw", "drawn").with_part(sound);
    for provider in [Provider::OpenAi, Provider::OpenAiResponses, Provider::Anthropic] {
        let sent = provider.results(std::slice::from_ref(&message)).value.to_string();
        let words = "[audio of 3 bytes (image/png) that cannot be shown here]";
        assert!(sent.contains(words) && !sent.contains("base64"), "{provider}: {sent}");
    }
}
