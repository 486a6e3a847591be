//! A validator's errors in words that a model can act on.

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use crate::names;
use crate::refusal::{Fault, MAX_FAULTS};

/// How much of an offending value is quoted, in characters.
const QUOTE: usize = 60;
/// How much of what one alternative would have wanted is told, in characters.
const WANT: usize = 160;
/// How many allowed values are listed.
const LISTED: usize = 12;
/// How many faults of the alternative that was probably meant are spelled out.
const MEANT: usize = 4;

/// A schema, and the members that it declares anywhere.
struct Known<'a> {
    schema: &'a Value,
    declared: HashSet<&'a str>,
}

/// All faults, the ones over [`MAX_FAULTS`] counted.
pub(super) fn all<'a>(schema: &Value, errors: impl Iterator<Item = ValidationError<'a>>) -> Vec<Fault> {
    let mut known = Known { schema, declared: HashSet::new() };
    declarations(schema, &mut known.declared);
    let mut faults = Vec::new();
    let mut more = 0_usize;
    for error in errors {
        if faults.len() < MAX_FAULTS { faults.extend(explain(&known, &error)) } else { more += 1 }
    }
    one_for_a_mistyped_name(&mut faults);
    more += faults.len().saturating_sub(MAX_FAULTS);
    faults.truncate(MAX_FAULTS);
    if more > 0 {
        faults.push(Fault::new("", format!("{more} more")));
    }
    faults
}

fn explain(known: &Known<'_>, error: &ValidationError<'_>) -> Vec<Fault> {
    use ValidationErrorKind as Kind;
    let path = error.instance_path().as_str();
    let value = error.instance();
    let one = |expected: String| vec![Fault::new(path, expected).with_got(quote(value))];
    match error.kind() {
        Kind::Required { property } => {
            let name = &shorten(property.as_str().unwrap_or_default(), QUOTE);
            let mut fault = Fault::new(format!("{path}/{name}"), missing(name));
            if let Some(near) = nearest_stranger(known, value, name) {
                fault.got = Some(shorten(near, QUOTE));
                fault.nearest = Some(name.to_owned());
            }
            vec![fault]
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let mut faults: Vec<Fault> = unexpected
                .iter()
                .take(MAX_FAULTS - 1)
                .map(|name| {
                    let shown = shorten(name, QUOTE);
                    let mut fault = Fault::new(format!("{path}/{shown}"), format!("unknown member `{shown}`"));
                    fault.nearest = nearest_property(known.schema, error, name);
                    fault
                })
                .collect();
            let more = unexpected.len() - faults.len();
            if more > 0 {
                faults.push(Fault::new(path, format!("{more} more unknown members")));
            }
            faults
        }
        Kind::Enum { options } => {
            vec![allowed(error, format!("expected {}", list(options)))]
        }
        Kind::Constant { expected_value } => vec![allowed(error, format!("expected {}", quote(expected_value)))],
        Kind::Type { kind } => one(format!("expected {}", types(kind))),
        Kind::Minimum { limit } => one(format!("expected at least {limit}")),
        Kind::ExclusiveMinimum { limit } => one(format!("expected more than {limit}")),
        Kind::Maximum { limit } => one(format!("expected at most {limit}")),
        Kind::ExclusiveMaximum { limit } => one(format!("expected less than {limit}")),
        Kind::MinLength { limit } => one(format!("expected at least {limit} characters")),
        Kind::MaxLength { limit } => one(format!("expected at most {limit} characters")),
        Kind::MinItems { limit } => one(format!("expected at least {limit} items")),
        Kind::MaxItems { limit } => one(format!("expected at most {limit} items")),
        Kind::MinProperties { limit } => one(format!("expected at least {limit} members")),
        Kind::MaxProperties { limit } => one(format!("expected at most {limit} members")),
        Kind::Pattern { pattern } => one(format!("expected text that matches `{pattern}`")),
        Kind::Format { format } => one(format!("expected a {format}")),
        // The only keyword of our own.
        Kind::UniqueItems | Kind::Custom { .. } => one("expected items that all differ".into()),
        Kind::MultipleOf { multiple_of } => one(format!("expected a multiple of {multiple_of}")),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let mut faults = vec![allowed(error, alternatives(known, context))];
            faults.extend(meant(known, error, context));
            faults
        }
        Kind::OneOfMultipleValid { .. } => one("expected exactly one of the alternatives to fit; several do".into()),
        Kind::FalseSchema => one("nothing is allowed here".into()),
        Kind::AdditionalItems { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Contains
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Not { .. }
        | Kind::PropertyNames { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::Referencing(_) => one(shorten(&error.masked_with("the value").to_string(), 200)),
    }
}

fn missing(name: &str) -> String {
    format!("required member `{name}` is missing")
}

/// A mistyped name of a required member is one mistake: the fault of the unknown member stays, which names the required one.
fn one_for_a_mistyped_name(faults: &mut Vec<Fault>) {
    let meant = |fault: &Fault| {
        let (parent, _) = fault.path.rsplit_once('/')?;
        let name = fault.nearest.as_ref().filter(|_| fault.expected.starts_with("unknown member "))?;
        Some((format!("{parent}/{name}"), missing(name)))
    };
    let meant: HashSet<_> = faults.iter().filter_map(meant).collect();
    faults.retain(|fault| !meant.contains(&(fault.path.clone(), fault.expected.clone())));
}

/// What each alternative would have wanted, in short.
fn alternatives(known: &Known<'_>, context: &[Vec<ValidationError<'_>>]) -> String {
    let first_errors = context.iter().take(LISTED).filter_map(|errors| errors.first());
    let wants = first_errors.map(|error| {
        let faults = inside(known, error);
        let want = faults.first().map(|fault| fault.expected.as_str()).unwrap_or_default();
        shorten(want.strip_prefix("expected ").unwrap_or(want), WANT)
    });
    format!("expected one of: {}", wants.collect::<Vec<_>>().join(" | "))
}

/// An error inside of an alternative. Its own alternatives are not spelled out: they multiply.
fn inside(known: &Known<'_>, error: &ValidationError<'_>) -> Vec<Fault> {
    let nests = matches!(error.kind(), ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. });
    if nests { vec![allowed(error, "expected one of several alternatives".into())] } else { explain(known, error) }
}

/// What is wrong inside of a value by the alternative that was probably meant: one that takes a value of this type, if
/// possible with these constants (they tell alternatives apart), and has the least to find fault with.
fn meant(known: &Known<'_>, error: &ValidationError<'_>, context: &[Vec<ValidationError<'_>>]) -> Vec<Fault> {
    let path = error.instance_path().as_str();
    let fixed = |error: &&ValidationError<'_>| {
        matches!(error.kind(), ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. })
    };
    let type_fits = |errors: &&Vec<ValidationError<'_>>| {
        let other = |error: &ValidationError<'_>| matches!(error.kind(), ValidationErrorKind::Type { .. });
        !errors.iter().any(|error| error.instance_path().as_str() == path && other(error))
    };
    let distance = |errors: &&Vec<ValidationError<'_>>| (errors.iter().filter(fixed).count(), errors.len());
    let closest = context.iter().filter(type_fits).min_by_key(distance).into_iter().flatten();
    let mut faults: Vec<_> = closest.take(MEANT).flat_map(|error| inside(known, error)).collect();
    one_for_a_mistyped_name(&mut faults);
    faults
        .into_iter()
        .filter(|fault| fault.path != path)
        .take(MEANT)
        .map(|fault| Fault { expected: format!("in the closest alternative: {}", fault.expected), ..fault })
        .collect()
}

/// A fault of a value that is none of those allowed, with the most similar of them.
fn allowed(error: &ValidationError<'_>, expected: String) -> Fault {
    let value = error.instance();
    let mut fault = Fault::new(error.instance_path().as_str(), expected).with_got(quote(value));
    if let Some(given) = value.as_str() {
        let mut texts = Vec::new();
        gather(error, error, &mut texts);
        fault.nearest = names::nearest(given, texts).map(str::to_owned);
    }
    fault
}

/// The texts that stand at the place of `whole` by an error about it, and by its alternatives'.
fn gather<'a>(whole: &ValidationError<'_>, error: &'a ValidationError<'_>, texts: &mut Vec<&'a str>) {
    use ValidationErrorKind as Kind;
    if error.instance_path().as_str() != whole.instance_path().as_str() {
        return;
    }
    if let Kind::Constant { expected_value } = error.kind() {
        texts.extend(expected_value.as_str());
    } else if let Kind::Enum { options } = error.kind() {
        texts.extend(options.as_array().into_iter().flatten().filter_map(Value::as_str));
    } else if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind() {
        context.iter().flatten().for_each(|error| gather(whole, error, texts));
    }
}

/// The present member that is most like a missing one, of those that the schema declares nowhere: one that it declares is
/// there in its own right.
fn nearest_stranger<'a>(known: &Known<'_>, value: &'a Value, name: &str) -> Option<&'a str> {
    let members = value.as_object()?.keys().map(String::as_str);
    names::nearest(name, members.filter(|member| !known.declared.contains(member)))
}

/// The members that a schema declares, wherever it does.
fn declarations<'a>(schema: &'a Value, declared: &mut HashSet<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| declarations(item, declared)),
        Value::Object(keywords) => {
            let properties = keywords.get("properties").and_then(Value::as_object);
            declared.extend(properties.into_iter().flat_map(|members| members.keys().map(String::as_str)));
            keywords.values().for_each(|value| declarations(value, declared));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The declared member that is most like an unknown one, of those that are missing. The declarations stand beside the
/// keyword that failed.
fn nearest_property(schema: &Value, error: &ValidationError<'_>, name: &str) -> Option<String> {
    let (beside, _) = error.schema_path().as_str().rsplit_once('/')?;
    let declared = schema.pointer(beside)?.get("properties")?.as_object()?;
    let missing = declared.keys().map(String::as_str).filter(|declared| error.instance().get(declared).is_none());
    names::nearest(name, missing).map(str::to_owned)
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => article(&one.to_string()),
        TypeKind::Multiple(set) => set.iter().map(|one| article(&one.to_string())).collect::<Vec<_>>().join(" or "),
    }
}

fn article(name: &str) -> String {
    match name {
        "null" => "null".into(),
        "array" | "object" | "integer" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn list(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = options.iter().take(LISTED).map(quote).collect::<Vec<_>>().join(" or ");
    if options.len() > LISTED {
        text.push_str(&format!(" or one of {} more", options.len() - LISTED));
    }
    text
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

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most).chain(['…']).collect() }
}
