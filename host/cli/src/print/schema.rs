//! Describes a JSON Schema in few words for a person.
//!
//! `inspect`, `run` and the parser of arguments pass the schema of a tool's parameters or of a
//! question's answer. [`parameters`] lists the members, nested ones with their path
//! (`style.digits`), each with a type, its bounds and a description; [`kind`] names the type of the
//! whole, such as "array of string (at most 3 items)". [`types_of`] and [`own_types`] return the
//! JSON types that a value may have. The schema is untrusted and can have any shape: nothing fails,
//! references are followed to a bounded depth, and the answer is `any` where it is not clear.
//!
//! Not here: the check of a value against a schema, which the library does.

use serde_json::Value;

/// The most nested references and alternatives that are followed.
const MAX_DEPTH: usize = 5;
/// The most alternatives and values that are listed.
const MAX_CHOICES: usize = 16;
/// The most members that are listed, nested members included.
const MAX_MEMBERS: usize = 100;
/// Characters of a pattern that are shown.
const MAX_PATTERN: usize = 60;

/// One member of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) required: bool,
    pub(crate) description: String,
}

/// Returns the members that an object schema names, and those nested in them: `style.digits`,
/// `steps[].id`.
pub(crate) fn parameters(schema: &Value) -> Vec<Parameter> {
    let mut found = Vec::new();
    members(schema, schema, "", 0, &mut found);
    found
}

fn members(schema: &Value, root: &Value, above: &str, depth: usize, found: &mut Vec<Parameter>) {
    let target = resolve(schema, root, 0);
    if depth > MAX_DEPTH {
        return;
    }
    if depth > 0 && target.get("type").and_then(Value::as_str) == Some("array") {
        if let Some(items) = target.get("items") {
            members(items, root, &format!("{above}[]"), depth + 1, found);
        }
        return;
    }
    for alternative in
        ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| target.get(key)?.as_array()).flatten()
    {
        members(alternative, root, above, depth + 1, found);
    }
    let required = target.get("required").and_then(Value::as_array);
    for (name, member) in target.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        if found.len() >= MAX_MEMBERS || found.iter().any(|parameter| parameter.name == path) {
            continue;
        }
        let default = member.get("default").or_else(|| resolve(member, root, 0).get("default"));
        let default = default.map(|value| format!("; default {value}")).unwrap_or_default();
        found.push(Parameter {
            name: path.clone(),
            kind: format!("{}{default}", kind_of(member, root, 0)),
            required: required.is_some_and(|names| names.iter().any(|required| required == name)),
            description: description(member, root),
        });
        members(member, root, &path, depth + 1, found);
    }
}

/// Returns the type that the schema accepts, in words.
pub(crate) fn kind(schema: &Value) -> String {
    kind_of(schema, schema, 0)
}

/// Returns the JSON types that a member of the object may have; none if the schema does not say.
pub(crate) fn types_of<'a>(schema: &'a Value, member: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let members = resolve(schema, schema, 0).get("properties");
    if let Some(member) = members.and_then(|members| members.get(member)) {
        types(member, schema, 0, &mut found);
    }
    found
}

/// Returns the JSON types that the schema accepts; none if it does not say.
pub(crate) fn own_types(schema: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    types(schema, schema, 0, &mut found);
    found
}

fn types<'a>(schema: &'a Value, root: &'a Value, depth: usize, found: &mut Vec<&'a str>) {
    if depth > MAX_DEPTH {
        return;
    }
    let schema = resolve(schema, root, depth);
    let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    match schema.get("type") {
        Some(Value::String(name)) => found.push(name),
        Some(Value::Array(names)) => found.extend(names.iter().filter_map(Value::as_str)),
        Some(_) | None => {
            // A text that is not JSON is understood whatever the types are: next to a number, it
            // must not make a typed number a text.
            let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
            let values = schema.get("const").into_iter().chain(list("enum"));
            for value in values.filter(|value| value.as_str().is_none_or(is_json)) {
                found.push(type_of(value));
            }
            for inner in ["anyOf", "oneOf", "allOf"].into_iter().flat_map(list) {
                types(inner, root, depth + 1, found);
            }
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn description(schema: &Value, root: &Value) -> String {
    let own = schema.get("description").or_else(|| resolve(schema, root, 0).get("description"));
    own.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the target of a reference, or the schema itself.
fn resolve<'a>(schema: &'a Value, root: &'a Value, depth: usize) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    match reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?)) {
        Some(target) if depth < MAX_DEPTH => resolve(target, root, depth + 1),
        Some(_) | None => schema,
    }
}

fn kind_of(schema: &Value, root: &Value, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return "any".to_owned();
    }
    let schema = resolve(schema, root, depth);
    if *schema == Value::Bool(false) {
        return "nothing".to_owned();
    }
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    if let Some(values) = list("enum") {
        return choices(values.iter().map(ToString::to_string), " | ");
    }
    if let Some(schemas) = list("anyOf").or_else(|| list("oneOf")) {
        return choices(schemas.iter().map(|schema| kind_of(schema, root, depth + 1)), " or ");
    }
    if let Some([only]) = list("allOf").map(Vec::as_slice) {
        return kind_of(only, root, depth + 1);
    }
    match schema.get("type") {
        Some(Value::String(name)) => type_text(name, schema, root, depth),
        Some(Value::Array(names)) => choices(
            names.iter().filter_map(Value::as_str).map(|name| type_text(name, schema, root, depth)),
            " or ",
        ),
        Some(_) | None if schema.get("properties").is_some() => "object".to_owned(),
        Some(_) | None => "any".to_owned(),
    }
}

fn type_text(name: &str, schema: &Value, root: &Value, depth: usize) -> String {
    let word = match schema.get("items") {
        Some(items) if name == "array" => format!("array of {}", kind_of(items, root, depth + 1)),
        Some(_) | None => name.to_owned(),
    };
    let bounds = match name {
        "array" => counted(schema, "Items", "items"),
        "string" => counted(schema, "Length", "characters"),
        "integer" | "number" => range(schema),
        _ => None,
    };
    let of_text = |key: &str| schema.get(key).and_then(Value::as_str).filter(|_| name == "string");
    let format = of_text("format").map(str::to_owned);
    let pattern = of_text("pattern").map(|pattern| {
        format!("matches {}", pattern.chars().take(MAX_PATTERN).collect::<String>())
    });
    let bounds: Vec<_> = [format, bounds, pattern].into_iter().flatten().collect();
    if bounds.is_empty() { word } else { format!("{word} ({})", bounds.join(", ")) }
}

/// Returns the bounds on a number of characters or items.
fn counted(schema: &Value, of: &str, unit: &str) -> Option<String> {
    let bound = |side: &str| schema.get(format!("{side}{of}")).and_then(Value::as_u64);
    match (bound("min").filter(|least| *least > 0), bound("max")) {
        (Some(least), Some(most)) if least == most => Some(format!("{most} {unit}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most} {unit}")),
        (Some(least), None) => Some(format!("at least {least} {unit}")),
        (None, Some(most)) => Some(format!("at most {most} {unit}")),
        (None, None) => None,
    }
}

/// Returns the bounds of a number.
fn range(schema: &Value) -> Option<String> {
    let bound = |key: &str| schema.get(key).filter(|value| value.is_number());
    let side = |key: &str, words: &str| bound(key).map(|value| format!("{words} {value}"));
    let (least, most) = match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => (Some(format!("{least} to {most}")), None),
        _ => (
            side("minimum", "at least").or_else(|| side("exclusiveMinimum", "more than")),
            side("maximum", "at most").or_else(|| side("exclusiveMaximum", "less than")),
        ),
    };
    let bounds = [least, most, side("multipleOf", "multiple of")];
    let bounds: Vec<_> = bounds.into_iter().flatten().collect();
    (!bounds.is_empty()).then(|| bounds.join(", "))
}

fn choices(kinds: impl Iterator<Item = String>, between: &str) -> String {
    let mut known: Vec<String> = Vec::new();
    for kind in kinds {
        if known.len() == MAX_CHOICES {
            known.push("…".to_owned());
            break;
        }
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
    if known.is_empty() { "any".to_owned() } else { known.join(between) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn kind_describes_schema() {
        for (schema, expected) in rows::<(Value, &str)>("schema", "kind_describes_schema") {
            assert_eq!(kind(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn parameters_list_nested_members() {
        let schema = json!({
            "$defs": {"step": {"type": "object", "description": "A step."}},
            "properties": {
                "first": {"$ref": "#/$defs/step"},
                "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            },
            "required": ["first", 3],
        });
        let found = parameters(&schema);
        let find = |name: &str| found.iter().find(|parameter| parameter.name == name).unwrap();
        assert_eq!(
            (find("steps").kind.as_str(), find("steps").required),
            ("array of object", false)
        );
        assert_eq!((find("first").description.as_str(), find("first").required), ("A step.", true));
        assert_eq!(parameters(&json!({"properties": 3})), []);
        let deep = json!({
            "properties": {
                "style": {"anyOf": [{"$ref": "#/$defs/style"}, {"type": "null"}]},
                "steps": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}},
                "itself": {"$ref": "#"},
            },
            "$defs": {"style": {"properties": {"digits": {"type": "integer", "default": 1}}, "required": ["digits"]}},
        });
        let found = parameters(&deep);
        assert!(found.len() <= MAX_MEMBERS);
        let find = |name: &str| found.iter().find(|parameter| parameter.name == name).unwrap();
        assert_eq!(
            (find("style.digits").kind.as_str(), find("style.digits").required),
            ("integer; default 1", true)
        );
        assert_eq!(find("steps[].id").kind, "string");
    }
}
