//! Checks converted definitions against the restrictions of each provider, with checkers that share
//! no code with the conversions.

use serde_json::{Map, Value, json};
use toolcell::runtime::Placement;
use toolcell::{Grants, Provider, Tool};
use toolcell_test_guests::bytes;
use toolcell_tests::load_with;

use crate::{engine, named};

type Complaints = Vec<String>;

/// Returns the faults of a request's tools.
fn complaints(provider: Provider, tools: &Value) -> Complaints {
    let mut found = Vec::new();
    let gemini = || tools.pointer("/0/functionDeclarations").and_then(Value::as_array);
    let list = if provider == Provider::Gemini { gemini() } else { tools.as_array() };
    for tool in list.expect("a list of tools") {
        match provider {
            Provider::OpenAi => openai(&tool["function"], &mut found),
            Provider::OpenAiResponses => openai(tool, &mut found),
            Provider::Anthropic => anthropic(tool, &mut found),
            Provider::Gemini => {
                if let Some(parameters) = tool.get("parameters") {
                    if parameters["type"] != "OBJECT" || parameters.get("properties").is_none() {
                        found.push("the top is no object with members".into());
                    }
                    gemini_schema(parameters, 0, &mut found);
                }
            }
            Provider::Mcp => {
                object_at_top(&tool["inputSchema"], &[], &mut found);
                plain(&tool["inputSchema"], &mut found);
                if let Some(output) = tool.get("outputSchema") {
                    object_at_top(output, &[], &mut found);
                }
                let known = ["name", "description", "inputSchema", "outputSchema", "annotations"];
                only(tool, &known, &mut found);
            }
            Provider::AgUi => only(tool, &["name", "description", "parameters"], &mut found),
        }
    }
    found
}

fn only(value: &Value, known: &[&str], found: &mut Complaints) {
    let keys = value.as_object().expect("an object").keys();
    let unknown = keys.filter(|key| !known.contains(&key.as_str()));
    found.extend(unknown.map(|key| format!("`{key}` is not known")));
}

fn object_at_top(schema: &Value, forbidden: &[&str], found: &mut Complaints) {
    if schema["type"] != "object" {
        found.push("the top is no object".into());
    }
    let at_top = forbidden.iter().filter(|word| schema.get(**word).is_some());
    found.extend(at_top.map(|word| format!("`{word}` at the top")));
}

fn openai(tool: &Value, found: &mut Complaints) {
    let schema = &tool["parameters"];
    object_at_top(schema, &["oneOf", "anyOf", "allOf", "enum", "not"], found);
    if !schema["properties"].is_object() || tool["strict"] != json!(false) {
        found.push("no members, or `strict` left to chance".into());
    }
    plain(schema, found);
    walk(schema, &mut |keywords| {
        let is_array = match keywords.get("type") {
            Some(Value::Array(kinds)) => kinds.contains(&json!("array")),
            kind => kind == Some(&json!("array")),
        };
        if is_array && !keywords.contains_key("items") {
            found.push("an array without items".into());
        }
    });
}

fn anthropic(tool: &Value, found: &mut Complaints) {
    let schema = &tool["input_schema"];
    object_at_top(schema, &["oneOf", "anyOf", "allOf", "$ref"], found);
    plain(schema, found);
    let allowed = |name: &str| {
        name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    let members = schema["properties"].as_object().expect("members").keys();
    let refused = members.filter(|name| !allowed(name));
    found.extend(refused.map(|name| format!("the member `{name}`")));
}

/// Finds members whose schemas are booleans, and references that lead nowhere.
fn plain(schema: &Value, found: &mut Complaints) {
    walk(schema, &mut |keywords| {
        let members = keywords.get("properties").and_then(Value::as_object);
        if members.into_iter().flatten().any(|(_, member)| !member.is_object()) {
            found.push("a member's schema that is no object".into());
        }
        let reference = keywords.get("$ref").and_then(Value::as_str);
        if reference
            .is_some_and(|reference| schema.pointer(reference.trim_start_matches('#')).is_none())
        {
            found.push("a reference to nowhere".into());
        }
    });
}

/// Calls `look` with every object that may be a schema, also in lists and maps of schemas, but not
/// with objects that are data.
fn walk(schema: &Value, look: &mut impl FnMut(&Map<String, Value>)) {
    let Value::Object(keywords) = schema else { return };
    look(keywords);
    for (keyword, value) in keywords
        .iter()
        .filter(|(keyword, _)| !["enum", "const", "default"].contains(&keyword.as_str()))
    {
        let in_map = ["properties", "patternProperties", "$defs", "dependentSchemas"]
            .contains(&keyword.as_str());
        match value {
            Value::Object(map) if in_map => map.values().for_each(|inner| walk(inner, look)),
            Value::Array(list) => list.iter().for_each(|inner| walk(inner, look)),
            Value::Object(_) => walk(value, look),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn gemini_schema(schema: &Value, depth: usize, found: &mut Complaints) {
    const EVERY: [&str; 4] = ["type", "title", "description", "nullable"];
    let Value::Object(fields) = schema else {
        return found.push(format!("{schema} is no schema"));
    };
    if let Some(forms) = fields.get("anyOf") {
        if fields.len() > 1 {
            found.push("something beside `anyOf`".into());
        }
        let forms = forms.as_array().expect("a list");
        if forms.len() < 2 || forms.iter().any(|form| form.get("anyOf").is_some()) {
            found.push("alternatives that are none".into());
        }
        return forms.iter().for_each(|form| gemini_schema(form, depth + 1, found));
    }
    let own: &[&str] = match fields.get("type").and_then(Value::as_str) {
        Some("OBJECT") => &["properties", "required", "minProperties", "maxProperties"],
        Some("ARRAY") => &["items", "minItems", "maxItems"],
        Some("STRING") => &["enum", "format", "minLength", "maxLength", "pattern"],
        Some("INTEGER" | "NUMBER") => &["minimum", "maximum", "format"],
        Some("BOOLEAN" | "NULL") => &[],
        kind => return found.push(format!("{kind:?} is no type")),
    };
    only(schema, &[&EVERY[..], own].concat(), found);
    if let Some(values) = fields.get("enum")
        && !values.as_array().is_some_and(|values| {
            !values.is_empty()
                && values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty()))
        })
    {
        found.push(format!("{values} is no list of strings"));
    }
    let members = fields.get("properties").map(|members| members.as_object().expect("a map"));
    if members.is_some_and(Map::is_empty) {
        found.push("an empty list of members".into());
    }
    for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !members.is_some_and(|members| members.contains_key(name.as_str().unwrap_or_default())) {
            found.push(format!("{name} is required and not declared"));
        }
    }
    members
        .into_iter()
        .flat_map(Map::values)
        .for_each(|member| gemini_schema(member, depth + 1, found));
    match fields.get("items") {
        Some(items) => gemini_schema(items, depth + 1, found),
        None if fields["type"] == "ARRAY" => found.push("an array without items".into()),
        None => {}
    }
    if depth > 50 {
        found.push("too many levels".into());
    }
}

#[test]
fn every_example_tool_converts_for_every_provider() {
    let engine = engine(Placement::Cells);
    let mut definitions = Vec::new();
    for (name, _) in toolcell_test_guests::COMPONENTS {
        let component =
            load_with(&engine, bytes(name), Grants::default()).expect("a component that loads");
        definitions.extend(component.tools().iter().map(|tool| tool.definition().clone()));
    }
    assert!(definitions.len() > 8, "these are not all tools");
    for provider in Provider::ALL {
        let converted =
            provider.definitions(&definitions).unwrap_or_else(|error| panic!("{error}"));
        let found = complaints(provider, &converted.value);
        assert!(found.is_empty(), "{provider}: {found:?}\n{:#}", converted.value);
        for note in converted.notes {
            let mut known = definitions.iter();
            let definition = known.find(|definition| definition.name == note.tool);
            let definition = definition.unwrap_or_else(|| panic!("{note}"));
            println!("{provider}: {note}");
            let mut parts = ["/parameters", "/output"].iter();
            let is_inside = parts.any(|part| note.pointer.starts_with(part));
            assert!(is_inside, "{note}: {definition:?}");
        }
    }
}

/// A deterministic random number generator (xorshift).
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn json(&mut self, of: &[&str]) -> Value {
        serde_json::from_str(self.one(of)).expect("JSON")
    }
}

/// Returns a schema of random keywords, sensible or not.
fn schema(dice: &mut Xorshift, depth: usize) -> Value {
    if depth == 0 || dice.below(12) == 0 {
        return dice.json(&[
            "true",
            "false",
            "{}",
            r#"{"type": "string"}"#,
            r##"{"$ref": "#/$defs/a"}"##,
            r##"{"$ref": "#/$defs/b"}"##,
            r##"{"$ref": "#"}"##,
        ]);
    }
    let mut keywords = Map::new();
    for _ in 0..=dice.below(4) {
        let kinds = ["object", "array", "string", "integer", "number", "boolean", "null"];
        let (keyword, value) = match dice.below(24) {
            0..=3 => ("type", json!(dice.one(&kinds))),
            4 => ("type", json!([dice.one(&kinds[..3]), dice.one(&kinds[3..])])),
            5..=8 => ("properties", {
                let names = ["a", "b", "long name", "x/y~z"];
                let members = (0..=dice.below(3))
                    .map(|index| (names[index].to_owned(), schema(dice, depth - 1)));
                members.collect::<Map<_, _>>().into()
            }),
            9 => ("required", json!([dice.one(&["a", "b", "missing"])])),
            10 => (
                dice.one(&["items", "not", "contains", "if", "additionalProperties"]),
                schema(dice, depth - 1),
            ),
            11 => ("items", schema(dice, depth - 1)),
            12..=15 => (
                dice.one(&["anyOf", "oneOf", "allOf", "prefixItems"]),
                (0..=dice.below(2)).map(|_| schema(dice, depth - 1)).collect(),
            ),
            16 => ("enum", dice.json(&[r#"["a", ""]"#, r#"[1, "a", null]"#, "[{}]"])),
            17 => ("const", dice.json(&[r#""a""#, "2.5", "null"])),
            18 => (
                dice.one(&["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"]),
                json!(dice.below(9)),
            ),
            19 => (dice.one(&["minLength", "maxItems", "minProperties"]), json!(dice.below(9))),
            20 => ("format", json!(dice.one(&["date-time", "uri", "int32"]))),
            21 => ("description", json!("Said.")),
            22 => (dice.one(&["uniqueItems", "deprecated"]), json!(dice.below(2) == 0)),
            _ => (dice.one(&["default", "x-unknown", "multipleOf"]), json!(3)),
        };
        keywords.insert(keyword.to_owned(), value);
    }
    keywords.into()
}

#[test]
fn any_schema_is_refused_or_fits_the_provider() {
    let mut dice = Xorshift(0x9E37_79B9_7F4A_7C15);
    let (mut good, mut said, mut refused) = (0, 0, 0);
    for round in 0..1500 {
        let mut parameters = schema(&mut dice, 4);
        if let Value::Object(keywords) = &mut parameters {
            let defs = json!({"a": schema(&mut dice, 2), "b": schema(&mut dice, 2)});
            keywords.insert("$defs".into(), defs);
            // Most arguments have a valid form.
            if round % 4 > 0 {
                keywords.insert("type".into(), json!("object"));
                keywords.remove("enum");
                keywords.remove("const");
            }
        }
        let definition = named("t").with_parameters(parameters);
        good += usize::from(Tool::manual(definition.clone()).is_ok());
        for provider in Provider::ALL {
            match provider.definitions([&definition]) {
                Ok(converted) => {
                    let found = complaints(provider, &converted.value);
                    let value = &converted.value;
                    assert!(found.is_empty(), "{provider}: {found:?}\n{value:#}\n{definition:?}");
                    said += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(
        good > 300 && said > 2000 && refused > 100,
        "{good} good schemas, {said} said, {refused} refused"
    );
}
