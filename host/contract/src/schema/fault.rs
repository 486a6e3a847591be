//! Turns the errors of the JSON Schema validator into faults that a model can act on.
//!
//! `Schema::check` calls [`all`] once a value has failed. It takes the validator's errors and
//! returns a [`Fault`] for each, with the place, the expectation, the value found (shortened), the
//! nearest allowed name, and a hint such as "send a JSON array, not text". A mistyped required
//! member is one fault instead of two. For a value with several allowed forms, it adds the faults
//! against the form that was probably meant. At most 32 faults are listed; the rest is counted.

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::{Map, Number, Value};

use crate::json::{inside, member_name, parse_strict};
use crate::names::{self, shorten};
use crate::outcome::refusal::{Fault, FaultKind, LengthUnit, Refusal};

/// The maximum number of characters that are quoted of an offending value.
const QUOTE: usize = 60;
/// The maximum number of allowed values that are listed.
const LISTED: usize = 12;
/// Bytes. A longer text is not parsed as JSON to find out if its author meant JSON.
const LONGEST_TEXT: usize = 64 << 10;
/// The maximum number of faults of the probably intended alternative that are spelled out.
const MAX_INTENDED: usize = 4;

/// A value, its schema, and the member names that the schema declares anywhere.
struct Known<'a> {
    value: &'a Value,
    schema: &'a Value,
    declared: HashSet<&'a str>,
}

/// Returns all faults; those over [`Refusal::MAX_FAULTS`] are only counted.
pub(super) fn all<'a>(
    schema: &Value,
    value: &Value,
    errors: impl Iterator<Item = ValidationError<'a>>,
) -> Vec<Fault> {
    let mut known = Known { value, schema, declared: HashSet::new() };
    declarations(schema, &mut known.declared);
    let mut faults = Vec::new();
    let mut more = 0_usize;
    for error in errors {
        if faults.len() < Refusal::MAX_FAULTS {
            faults.extend(explain(&known, &error))
        } else {
            more += 1
        }
    }
    merge_misspelled(&mut faults);
    more += faults.len().saturating_sub(Refusal::MAX_FAULTS);
    faults.truncate(Refusal::MAX_FAULTS);
    if more > 0 {
        faults.push(Fault::of_kind("", FaultKind::More { count: more }));
    }
    faults
}

/// Creates the fault of a value that contains a text whose match with a pattern did not finish.
pub(super) fn unfinished(value: &Value, (pattern, text): (String, String)) -> Fault {
    let message = format!(
        "expected a text whose match with the pattern `{}` ends within the limits of work; a shorter text takes less",
        shorten(&pattern, QUOTE)
    );
    let place = place_of(value, &text).unwrap_or_default();
    Fault::of_kind(&place, FaultKind::Schema { message }).with_actual(quote(&Value::String(text)))
}

/// Returns the place of the first occurrence of a text in a value.
fn place_of(value: &Value, text: &str) -> Option<String> {
    match value {
        Value::String(found) => (found == text).then(String::new),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| Some(format!("/{index}{}", place_of(item, text)?)))
        }
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            Some(format!("{}{}", below("", name), place_of(member, text)?))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn explain(known: &Known<'_>, error: &ValidationError<'_>) -> Vec<Fault> {
    let mut faults = faults_of(known, error);
    let hint =
        if error.instance().is_null() { omit_hint(known, error) } else { written_as_text(error) };
    let path = error.instance_path().as_str();
    if let Some(fault) = faults.first_mut().filter(|fault| fault.path == path) {
        fault.hint = hint;
    }
    faults
}

/// Returns the hint to send JSON instead of text, if the value is text and JSON of another type is
/// expected.
fn written_as_text(error: &ValidationError<'_>) -> Option<String> {
    let text = error.instance().as_str()?;
    let types = expected_types(error)?;
    let is_wanted = |name: &str| types.iter().any(|wanted| wanted == name);
    let read = if text.len() <= LONGEST_TEXT { parse_strict(text).ok() } else { None };
    let is_number = is_wanted("number") || is_wanted("integer");
    let wanted = match read {
        Some(Value::Array(_)) if is_wanted("array") => "array",
        Some(Value::Object(_)) if is_wanted("object") => "object",
        Some(Value::Number(_)) if is_number => "number",
        Some(Value::Bool(_)) if is_wanted("boolean") => "boolean",
        Some(_) | None => ["array", "object"].into_iter().find(|name| is_wanted(name))?,
    };
    Some(format!("send a JSON {wanted}, not text"))
}

/// Returns the types that a value may have, if its type is the only fault.
fn expected_types(error: &ValidationError<'_>) -> Option<Vec<String>> {
    use ValidationErrorKind as Kind;
    if let Kind::Type { kind } = error.kind() {
        Some(types(kind))
    } else if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind() {
        let here = |inner: &&ValidationError<'_>| {
            inner.instance_path().as_str() == error.instance_path().as_str()
        };
        let each = context.iter().map(|errors| expected_types(errors.iter().find(here)?));
        Some(each.collect::<Option<Vec<_>>>()?.concat())
    } else {
        None
    }
}

/// Returns the hint to leave a member out, if its value is `null` and the member is optional.
fn omit_hint(known: &Known<'_>, error: &ValidationError<'_>) -> Option<String> {
    let (above, member) = error.instance_path().as_str().rsplit_once('/')?;
    let (beside, inside) = error.evaluation_path().as_str().rsplit_once("/properties/")?;
    let is_member =
        known.value.pointer(above)?.is_object() && inside.split('/').next() == Some(member);
    let object = followed(known.schema, beside).filter(|_| is_member)?;
    let name = member_name(member);
    let mut required = object.get("required").and_then(Value::as_array).into_iter().flatten();
    let is_required = required.any(|required| *required == *name);
    (!is_required).then(|| format!("leave `{}` out", shorten(&name, QUOTE)))
}

/// Returns the part of a schema at this pointer, which may lead through references.
fn followed<'a>(schema: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    let mut part = schema;
    for step in pointer.split('/').skip(1) {
        part = part.pointer(&format!("/{step}"))?;
        if let Value::String(reference) = part {
            part = schema.pointer(reference.strip_prefix('#')?)?;
        }
    }
    part.as_object()
}

fn faults_of(known: &Known<'_>, error: &ValidationError<'_>) -> Vec<Fault> {
    use ValidationErrorKind as Kind;
    let path = error.instance_path().as_str();
    let value = error.instance();
    let one = |kind: FaultKind| vec![Fault::of_kind(path, kind).with_actual(quote(value))];
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let kind = FaultKind::Required { member: shorten(name, QUOTE) };
            let fault = Fault::of_kind(below(path, name), kind);
            let mut fault =
                value.as_object().map_or(fault.clone(), |members| fault.with_members(members));
            if let Some(near) = nearest_unknown(known, value, name) {
                fault.actual = Some(shorten(near, QUOTE));
                fault.nearest = Some(shorten(name, QUOTE));
            }
            vec![fault]
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unknown_members(known, error, unexpected.iter().map(String::as_str))
        }
        Kind::Enum { options } => {
            vec![allowed(error, one_of(options.as_array().map(Vec::as_slice).unwrap_or_default()))]
        }
        Kind::Constant { expected_value } => {
            vec![allowed(error, one_of(std::slice::from_ref(expected_value)))]
        }
        Kind::Type { kind } => one(FaultKind::Type { types: types(kind) }),
        Kind::Minimum { limit }
        | Kind::ExclusiveMinimum { limit }
        | Kind::Maximum { limit }
        | Kind::ExclusiveMaximum { limit } => one(range(error.kind(), limit)),
        Kind::MinLength { limit } => one(FaultKind::at_least(*limit, LengthUnit::Characters)),
        Kind::MaxLength { limit } => one(FaultKind::at_most(*limit, LengthUnit::Characters)),
        Kind::MinItems { limit } => one(FaultKind::at_least(*limit, LengthUnit::Items)),
        Kind::MaxItems { limit } => one(FaultKind::at_most(*limit, LengthUnit::Items)),
        Kind::MinProperties { limit } => one(FaultKind::at_least(*limit, LengthUnit::Members)),
        Kind::MaxProperties { limit } => one(FaultKind::at_most(*limit, LengthUnit::Members)),
        Kind::Pattern { pattern } => one(FaultKind::Pattern { pattern: pattern.clone() }),
        // The custom keywords are `pattern`, whose message is the pattern, and `uniqueItems`.
        Kind::Custom { keyword, message } if keyword == "pattern" => {
            one(FaultKind::Pattern { pattern: message.clone() })
        }
        Kind::UniqueItems | Kind::Custom { .. } => one(FaultKind::UniqueItems),
        Kind::MultipleOf { multiple_of } => {
            one(FaultKind::MultipleOf { multiple_of: plain(*multiple_of) })
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let mut faults = vec![allowed(error, alternatives(known, context))];
            faults.extend(intended_faults(known, error, context));
            faults
        }
        Kind::OneOfMultipleValid { .. } => one(FaultKind::Ambiguous),
        // The validator reports this for an object without any declared member, with the value of
        // its first member.
        Kind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
            let members =
                known.value.pointer(path).and_then(Value::as_object).into_iter().flatten();
            unknown_members(known, error, members.map(|(name, _)| name.as_str()))
        }
        Kind::FalseSchema => one(FaultKind::Forbidden),
        Kind::Contains => one(FaultKind::Schema {
            message: "expected an item that fits the schema of `contains`".to_owned(),
        }),
        Kind::AdditionalItems { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::Format { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Not { .. }
        | Kind::PropertyNames { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::Referencing(_) => one(FaultKind::Schema {
            message: shorten(&error.masked_with("the value").to_string(), 200),
        }),
    }
}

/// Returns a fault for each member of an object that its schema does not allow.
fn unknown_members<'a>(
    known: &Known<'_>,
    error: &ValidationError<'_>,
    mut names: impl Iterator<Item = &'a str>,
) -> Vec<Fault> {
    let path = error.instance_path().as_str();
    let unknown = |name: &str| {
        let member = shorten(name, QUOTE);
        let mut fault = Fault::of_kind(below(path, name), FaultKind::UnknownMember { member });
        fault.nearest = nearest_property(known.schema, error, name);
        fault
    };
    let mut faults: Vec<Fault> =
        names.by_ref().take(Refusal::MAX_FAULTS - 1).map(unknown).collect();
    let count = names.count();
    if count > 0 {
        faults.push(Fault::of_kind(path, FaultKind::More { count }));
    }
    faults
}

/// Returns the place of a member as a JSON pointer.
fn below(path: &str, member: &str) -> String {
    inside(path, &shorten(member, QUOTE))
}

/// Merges the two faults of a mistyped required member: the fault of the unknown member stays,
/// which names the required one.
fn merge_misspelled(faults: &mut Vec<Fault>) {
    let meant = |fault: &Fault| {
        let FaultKind::UnknownMember { .. } = fault.kind else { return None };
        let (parent, _) = fault.path.rsplit_once('/')?;
        Some(below(parent, fault.nearest.as_ref()?))
    };
    let meant: HashSet<_> = faults.iter().filter_map(meant).collect();
    faults.retain(|fault| {
        !matches!(fault.kind, FaultKind::Required { .. }) || !meant.contains(&fault.path)
    });
}

/// Returns the expectation of each alternative, in short.
fn alternatives(known: &Known<'_>, context: &[Vec<ValidationError<'_>>]) -> FaultKind {
    let first_errors = context.iter().take(LISTED).filter_map(|errors| errors.first());
    let wants = first_errors.filter_map(|error| nested_faults(known, error).into_iter().next());
    FaultKind::Alternatives { alternatives: wants.map(|fault| fault.kind).collect() }
}

/// Returns the faults of an error inside of an alternative. Nested alternatives are not spelled
/// out, because they multiply.
fn nested_faults(known: &Known<'_>, error: &ValidationError<'_>) -> Vec<Fault> {
    let nests = matches!(
        error.kind(),
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. }
    );
    let unsaid = FaultKind::Alternatives { alternatives: Vec::new() };
    if nests { vec![allowed(error, unsaid)] } else { explain(known, error) }
}

/// Returns the faults inside of a value against the alternative that was probably meant: one that
/// accepts the value's type, if possible with these constants (which distinguish alternatives), and
/// has the fewest faults.
fn intended_faults(
    known: &Known<'_>,
    error: &ValidationError<'_>,
    context: &[Vec<ValidationError<'_>>],
) -> Vec<Fault> {
    use ValidationErrorKind as Kind;
    let path = error.instance_path().as_str();
    let has_other_type = |error: &ValidationError<'_>| {
        error.instance_path().as_str() == path && matches!(error.kind(), Kind::Type { .. })
    };
    let type_fits = |errors: &&Vec<ValidationError<'_>>| !errors.iter().any(has_other_type);
    let is_fixed = |error: &&ValidationError<'_>| {
        matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
    };
    let distance =
        |errors: &&Vec<ValidationError<'_>>| (errors.iter().filter(is_fixed).count(), errors.len());
    let closest = context.iter().filter(type_fits).min_by_key(distance).into_iter().flatten();
    let mut faults: Vec<_> =
        closest.take(MAX_INTENDED).flat_map(|error| nested_faults(known, error)).collect();
    merge_misspelled(&mut faults);
    faults
        .into_iter()
        .filter(|fault| fault.path != path)
        .take(MAX_INTENDED)
        .map(|fault| Fault { in_alternative: true, ..fault })
        .collect()
}

/// Creates the fault of a value that is not allowed, with the most similar allowed value.
fn allowed(error: &ValidationError<'_>, kind: FaultKind) -> Fault {
    let value = error.instance();
    let mut fault = Fault::of_kind(error.instance_path().as_str(), kind).with_actual(quote(value));
    if let Some(given) = value.as_str() {
        let mut texts = Vec::new();
        collect_texts(error, &mut texts);
        fault.nearest = names::nearest(given, texts).map(str::to_owned);
    }
    fault
}

/// Collects the allowed values that are strings, from an error and its alternatives.
fn collect_texts<'a>(error: &'a ValidationError<'_>, texts: &mut Vec<&'a str>) {
    use ValidationErrorKind as Kind;
    if let Kind::Constant { expected_value } = error.kind() {
        texts.extend(expected_value.as_str());
    } else if let Kind::Enum { options } = error.kind() {
        texts.extend(options.as_array().into_iter().flatten().filter_map(Value::as_str));
    } else if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind() {
        context.iter().flatten().for_each(|error| collect_texts(error, texts));
    }
}

/// Returns the present member that is most similar to a missing one. Members that the schema
/// declares anywhere are not candidates, because they are probably not misspelled.
fn nearest_unknown<'a>(known: &Known<'_>, value: &'a Value, name: &str) -> Option<&'a str> {
    let members = value.as_object()?.keys().map(String::as_str);
    names::nearest(name, members.filter(|member| !known.declared.contains(member)))
}

/// Collects the member names that a schema declares anywhere.
fn declarations<'a>(schema: &'a Value, declared: &mut HashSet<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| declarations(item, declared)),
        Value::Object(keywords) => {
            let properties = keywords.get("properties").and_then(Value::as_object);
            declared.extend(properties.into_iter().flat_map(Map::keys).map(String::as_str));
            keywords.values().for_each(|value| declarations(value, declared));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the missing declared member that is most similar to an unknown one. The declarations are
/// next to the keyword that failed.
fn nearest_property(schema: &Value, error: &ValidationError<'_>, name: &str) -> Option<String> {
    let (beside, _) = error.schema_path().as_str().rsplit_once('/')?;
    let declared = schema.pointer(beside)?.get("properties")?.as_object()?;
    let missing = declared
        .keys()
        .map(String::as_str)
        .filter(|declared| error.instance().get(declared).is_none());
    names::nearest(name, missing).map(str::to_owned)
}

fn types(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(set) => set.iter().map(|one| one.to_string()).collect(),
    }
}

/// Creates the fault of a value that is not one of these. A long option is only counted: cut, it
/// would be another value.
fn one_of(options: &[Value]) -> FaultKind {
    let short = options.iter().filter(|option| option.to_string().chars().count() <= QUOTE);
    let allowed: Vec<_> = short.take(LISTED).cloned().collect();
    FaultKind::Enum { more: options.len() - allowed.len(), allowed }
}

/// Creates the fault of a number that exceeds a bound.
fn range(keyword: &ValidationErrorKind, limit: &Value) -> FaultKind {
    use ValidationErrorKind as Kind;
    let bound = |is_this: bool| limit.as_number().filter(|_| is_this).cloned();
    FaultKind::Range {
        minimum: bound(matches!(keyword, Kind::Minimum { .. })),
        exclusive_minimum: bound(matches!(keyword, Kind::ExclusiveMinimum { .. })),
        maximum: bound(matches!(keyword, Kind::Maximum { .. })),
        exclusive_maximum: bound(matches!(keyword, Kind::ExclusiveMaximum { .. })),
    }
}

/// Returns the shortest JSON number of this value: the validator has turned `3` into `3.0`.
fn plain(number: f64) -> Number {
    let text = number.to_string();
    serde_json::from_str(&text).unwrap_or_else(|_| Number::from(0))
}

fn quote(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) if members.len() > 3 => format!("an object of {}", members.len()),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            shorten(&value.to_string(), QUOTE)
        }
    }
}
