//! Tests of all formats with payloads as in each API's public reference.
//!
//! For each provider, a file of expected definitions, calls and results is compared with the
//! conversion of common inputs. Further tests cover the detection of an API, the special rules of
//! Gemini's schemas, keywords of earlier drafts, and hostile schemas, whose conversion must take
//! bounded time.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcell_contract::call::ToolCall;

use super::*;
use crate::cases::rows;

mod lists;

/// The input of every provider.
#[derive(Deserialize)]
struct Inputs {
    definitions: BTreeMap<String, Vec<Definition>>,
    messages: BTreeMap<String, Vec<Message>>,
}

/// The expected result for one provider: an output, or the pointer of an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payloads {
    definitions: Vec<Case>,
    calls: Vec<Case>,
    results: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    name: String,
    input: Value,
    output: Option<Value>,
    /// Unreadable calls: the id, and the pointer of the error or `cut: REASON`.
    #[serde(default)]
    unreadable: Vec<(Option<String>, String)>,
    error: Option<String>,
    #[serde(default)]
    notes: Vec<String>,
}

impl Case {
    /// Returns the name of an input.
    fn key(&self) -> &str {
        self.input.as_str().unwrap()
    }

    fn check(&self, provider: Provider, got: Result<Conversion, ProviderError>) {
        let case = format!("{provider}: {} {}", self.name, self.input);
        match got {
            Ok(converted) => {
                assert_eq!(Some(&converted.value), self.output.as_ref(), "{case}");
                let pointers: Vec<_> =
                    converted.notes.into_iter().map(|note| note.pointer).collect();
                assert_eq!(pointers, self.notes, "{case}");
            }
            Err(
                ProviderError::Inexpressible { pointer, .. }
                | ProviderError::Malformed { pointer, .. },
            ) => {
                assert_eq!(Some(pointer), self.error, "{case}");
            }
            Err(error) => panic!("{case}: {error}"),
        }
    }
}

/// Reads a file of `src/payloads`.
fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(format!("src/payloads/{name}.json")).expect(name);
    serde_json::from_str(&text).expect(name)
}

fn payloads(provider: Provider) -> Payloads {
    read(provider.name())
}

#[test]
fn definitions_convert_for_every_provider() {
    let given: Inputs = read("given");
    for provider in Provider::ALL {
        for case in payloads(provider).definitions {
            case.check(provider, provider.definitions(&given.definitions[case.key()]));
        }
    }
}

#[test]
fn calls_parse_from_every_provider() {
    for provider in Provider::ALL {
        for case in payloads(provider).calls {
            let mut unreadable = Vec::new();
            let calls = provider.calls(&case.input).map(|read| {
                unreadable.extend(read.unreadable.into_iter().map(|call| match call.error {
                    ProviderError::Malformed { pointer, .. } => (call.id, pointer),
                    ProviderError::Truncated { reason, .. } => (call.id, format!("cut: {reason}")),
                    error @ (ProviderError::Unknown { .. }
                    | ProviderError::Inexpressible { .. }
                    | ProviderError::UnknownForm
                    | ProviderError::AmbiguousForm { .. }) => panic!("{error}"),
                }));
                let calls =
                    read.calls.into_iter().map(|call| json!([call.id, call.name, call.arguments]));
                Conversion { value: calls.collect(), notes: Vec::new() }
            });
            assert_eq!(unreadable, case.unreadable, "{provider}: {} {}", case.name, case.input);
            case.check(provider, calls);
        }
    }
}

/// Each payload that contains a call identifies its API.
#[test]
fn payload_form_is_detected() {
    let mut seen = 0;
    for provider in Provider::ALL {
        for case in payloads(provider).calls {
            let has_calls = provider.calls(&case.input).is_ok_and(|read| !read.calls.is_empty());
            // The parameters of an MCP request alone have the same form as this crate's calls.
            let is_bare = provider == Provider::Mcp
                && case.input.get("params").is_none()
                && !case.input.is_array();
            if has_calls && !is_bare {
                let found = Provider::detect(&case.input);
                assert_eq!(found, Ok(provider), "{provider}: {}", case.input);
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen} payloads");
}

/// The answers of unreadable calls are at the positions of these calls.
#[test]
fn unreadable_calls_are_answered_in_order() {
    let list = [(Some("a"), ""), (Some("b"), "t"), (None, "t"), (Some("d"), ""), (Some("e"), "t")];
    let call = |(id, name): (Option<&str>, &str)| json!({"id": id, "function": {"name": name, "arguments": "{}"}});
    let read = Provider::OpenAi.calls(&Value::from(list.map(call))).unwrap();
    assert_eq!(read.calls, ["b", "e"].map(|id| ToolCall::new(id, "t", "{}")));
    let places: Vec<_> =
        read.unreadable.iter().map(|call| (call.index, call.id.as_deref())).collect();
    assert_eq!(places, [(0, Some("a")), (2, None), (3, Some("d"))]);
    let messages = read.answered(["b", "e"].map(|id| Message::new(id, "t", "ok")).into());
    let answers: Vec<_> =
        messages.iter().map(|message| (message.tool_call_id.as_str(), message.is_error)).collect();
    assert_eq!(answers, [("a", true), ("b", false), ("d", true), ("e", false)]);
    assert_eq!(
        messages[0].content,
        r#"{"error":"not as openai sends it: at `/0/function/name`: expected the function's name"}"#
    );
}

#[test]
fn results_convert_for_every_provider() {
    const MEMBERS: [&str; 7] =
        ["tool_call_id", "name", "content", "parts", "is_error", "end_turn", "attributes"];
    let written: Value = read("given");
    let messages = written["messages"].as_object().unwrap().values();
    for message in messages.flat_map(|list| list.as_array().unwrap()) {
        // A misspelt member would be read as absent.
        for member in message.as_object().unwrap().keys() {
            assert!(MEMBERS.contains(&member.as_str()), "{member}: {message}");
        }
    }
    let given: Inputs = read("given");
    for provider in Provider::ALL {
        for case in payloads(provider).results {
            case.check(provider, Ok(provider.results(&given.messages[case.key()])));
        }
    }
}

#[test]
fn provider_names_parse_and_typos_get_a_hint() {
    for provider in Provider::ALL {
        assert_eq!(provider.name().parse(), Ok(provider));
    }
    for (asked, hint) in
        [("antropic", "did you mean `anthropic`?"), ("mistral", "there are: openai, ")]
    {
        let error = asked.parse::<Provider>().unwrap_err();
        assert!(error.to_string().contains(asked), "{error}");
        assert!(error.hint().contains(hint), "{}", error.hint());
    }
}

/// Converts one member of a Gemini schema. Returns the result and the places of the notes.
fn gemini(member: Value) -> Result<(Value, Vec<String>), ProviderError> {
    let schema = json!({"properties": {"x": member}, "$defs": {
        "Unit": {"type": "string", "enum": ["m", "ft"], "description": "A unit."},
        "Loop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Loop"}}},
        "Round": {"allOf": [{"$ref": "#/$defs/Unit"}, {"$ref": "#/$defs/Round"}]},
        "Deep": {"anyOf": [{"$ref": "#/$defs/Unit"}, {"type": "null"}]},
    }});
    let definition = Definition::new("t", "").unwrap().with_parameters(schema);
    let mut converted = Provider::Gemini.definitions([&definition])?;
    let member =
        converted.value[0]["functionDeclarations"][0]["parameters"]["properties"]["x"].take();
    let short = |note: Note| note.pointer.replace("/parameters/properties/x", "");
    Ok((member, converted.notes.into_iter().map(short).collect()))
}

#[test]
fn schemas_convert_to_gemini_with_notes() {
    for (member, expected, notes) in
        rows::<(Value, Value, Vec<&str>)>("lib", "schemas_convert_to_gemini_with_notes")
    {
        let (got, noted) = gemini(member.clone()).unwrap();
        assert_eq!(got, expected, "{member}");
        assert_eq!(noted, notes, "{member}");
    }
}

#[test]
fn schema_gemini_cannot_express_is_refused() {
    let deep = (0..60).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
    let rows = rows::<(Value, &str)>("lib", "schema_gemini_cannot_express_is_refused");
    for (member, problem) in rows.into_iter().chain([(deep, "stand inside each other")]) {
        let error = gemini(member.clone()).unwrap_err();
        assert!(error.to_string().contains(problem), "{member}: {error}");
    }
}

/// Schemas that would double at each level, or that are cyclic, take bounded time in every
/// conversion.
#[test]
fn hostile_schemas_are_refused() {
    let doubling = |keyword: &str| {
        let level = |n: u32| {
            let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
            (format!("l{n}"), json!({keyword: [next, next]}))
        };
        let mut defs: Value = (0..60).map(level).collect::<serde_json::Map<_, _>>().into();
        defs["l60"] = json!({"type": "object"});
        json!({"$defs": defs, "properties": {"x": {"$ref": "#/$defs/l0"}}, "allOf": [{"$ref": "#/$defs/l0"}]})
    };
    let chain: serde_json::Map<_, _> = (0..900)
        .map(|n| (format!("d{n}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]})))
        .collect();
    let wide: Vec<_> = (0..2000).map(|n| json!({"const": format!("{n}")})).collect();
    let listed = |first: u32| (first..first + 2500).map(|n| format!("v{n}")).collect::<Vec<_>>();
    let both = json!({"allOf": [{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/other"}]});
    let both: serde_json::Map<_, _> = (0..70).map(|n| (format!("b{n}"), both.clone())).collect();
    for schema in [
        doubling("allOf"),
        doubling("anyOf"),
        doubling("oneOf"),
        json!({"$defs": chain, "$ref": "#/$defs/d0"}),
        json!({"properties": {"x": {"description": "x".repeat(30_000), "oneOf": wide}}}),
        // Lists of values whose members are compared with each other, again and again.
        json!({"properties": both,
            "$defs": {"one": {"enum": listed(0)}, "other": {"enum": listed(2499)}}}),
        (0..3000).fold(json!({}), |inner, _| json!({ "not": inner })),
    ] {
        let definition =
            Definition::new("t", "").unwrap().with_parameters(schema.clone()).with_output(schema);
        assert!(Provider::Gemini.definitions([&definition]).is_err());
        for provider in Provider::ALL {
            // Some may succeed in APIs with references: each conversion only has to return.
            let _ = provider.definitions([&definition]);
        }
    }
}

/// Alternatives beside alternatives become a form for each pair. To compare each form with all
/// others would take minutes.
#[test]
fn many_forms_are_compared_in_bounded_time() {
    let bounds =
        |count: u32, keyword: &str| (0..count).map(|n| json!({keyword: n})).collect::<Vec<_>>();
    let (converted, notes) =
        gemini(json!({"type": "string", "anyOf": bounds(50, "minLength"), "oneOf": bounds(800, "maxLength")}))
            .unwrap();
    assert_eq!(converted["anyOf"].as_array().map(Vec::len), Some(50 * 800));
    assert_eq!(notes.len(), 50);
}

/// The names of definitions in a reference may be percent-encoded, and the host writes them so.
#[test]
fn percent_encoded_reference_is_followed() {
    let size = json!({"type": "string"});
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/Gr%C3%B6%C3%9Fe"}, "b": {"$ref": "#/$defs/List%5Bint%5D"}},
        "$defs": {"Größe": size, "List[int]": size}});
    let definition = Definition::new("t", "").unwrap().with_parameters(schema);
    for provider in Provider::ALL {
        let Conversion { notes, .. } = provider.definitions([&definition]).unwrap();
        assert_eq!(notes, [], "{provider}");
    }
}

#[test]
fn reference_into_a_rewritten_part_is_refused() {
    let schema = json!({"allOf": [{"properties": {"a": {"type": "string"}, "b": {"$ref": "#/allOf/0/properties/a"}}}]});
    let definition = Definition::new("t", "").unwrap().with_parameters(schema);
    let error = Provider::OpenAi.definitions([&definition]).unwrap_err();
    assert!(error.to_string().contains("move that part to `$defs`"), "{error}");
    for other in [Provider::Mcp, Provider::Gemini] {
        assert!(other.definitions([&definition]).is_ok(), "{other}");
    }
}

/// Only the keywords of 2020-12 are rewritten: parts that it does not have stay as they are, dead
/// references included.
#[test]
fn keywords_of_earlier_drafts_are_kept() {
    let dead = json!({"$ref": "#/nowhere"});
    let list = json!({"type": "array", "items": [true, dead], "additionalItems": dead});
    let rules = json!({"list": dead});
    let schema = json!({"type": "object", "properties": {"list": list}, "dependencies": rules});
    let definition = Definition::new("t", "").unwrap().with_parameters(schema);
    for provider in
        [Provider::OpenAi, Provider::OpenAiResponses, Provider::Anthropic, Provider::Mcp]
    {
        let converted = provider.definitions([&definition]).unwrap().value.to_string();
        for kept in [list.to_string(), rules.to_string()] {
            assert!(converted.contains(&kept), "{provider}: {converted}");
        }
    }
}
