//! A validator's errors in words that a model can act on.

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

/// All faults, the ones over [`MAX_FAULTS`] counted.
pub(super) fn all<'a>(schema: &Value, errors: impl Iterator<Item = ValidationError<'a>>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut more = 0_usize;
    for error in errors {
        if faults.len() < MAX_FAULTS { faults.extend(explain(schema, &error)) } else { more += 1 }
    }
    if more > 0 {
        faults.push(Fault::new("", format!("{more} more")));
    }
    faults
}

fn explain(schema: &Value, error: &ValidationError<'_>) -> Vec<Fault> {
    use ValidationErrorKind as Kind;
    let path = error.instance_path().as_str();
    let value = error.instance();
    let one = |expected: String| vec![Fault::new(path, expected).got(quote(value))];
    match error.kind() {
        Kind::Required { property } => {
            let name = &shorten(property.as_str().unwrap_or_default(), QUOTE);
            let mut fault = Fault::new(format!("{path}/{name}"), format!("required member `{name}` is missing"));
            fault.nearest = value
                .as_object()
                .and_then(|members| names::nearest(name, members.keys().map(String::as_str)))
                .map(|near| format!("`{name}` instead of `{near}`"));
            vec![fault]
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let mut faults: Vec<Fault> = unexpected
                .iter()
                .take(MAX_FAULTS)
                .map(|name| {
                    let shown = shorten(name, QUOTE);
                    let mut fault = Fault::new(format!("{path}/{shown}"), format!("unknown member `{shown}`"));
                    fault.nearest = nearest_property(schema, error, name);
                    fault
                })
                .collect();
            if let Some(more) = unexpected.len().checked_sub(MAX_FAULTS).filter(|more| *more > 0) {
                faults.push(Fault::new(path, format!("{more} more unknown members")));
            }
            faults
        }
        Kind::Enum { options } => {
            let mut fault = Fault::new(path, format!("expected {}", list(options))).got(quote(value));
            let texts = options.as_array().into_iter().flatten().filter_map(Value::as_str);
            fault.nearest =
                value.as_str().and_then(|given| names::nearest(given, texts)).map(|near| format!("\"{near}\""));
            vec![fault]
        }
        Kind::Constant { expected_value } => one(format!("expected {}", quote(expected_value))),
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
        Kind::UniqueItems => one("expected items that all differ".into()),
        Kind::MultipleOf { multiple_of } => one(format!("expected a multiple of {multiple_of}")),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => one(alternatives(schema, context)),
        Kind::OneOfMultipleValid { .. } => one("expected exactly one of the alternatives to fit; several do".into()),
        Kind::FalseSchema => one("nothing is allowed here".into()),
        Kind::AdditionalItems { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Contains
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::Custom { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Not { .. }
        | Kind::PropertyNames { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::Referencing(_) => one(shorten(&error.masked_with("the value").to_string(), 200)),
    }
}

/// What each alternative would have wanted, in short. Alternatives inside of alternatives are not spelled out: they
/// multiply.
fn alternatives(schema: &Value, context: &[Vec<ValidationError<'_>>]) -> String {
    let first_errors = context.iter().take(LISTED).filter_map(|errors| errors.first());
    let wants = first_errors.map(|error| {
        let nests =
            matches!(error.kind(), ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. });
        if nests {
            return "one of several alternatives".to_owned();
        }
        let faults = explain(schema, error);
        let want = faults.first().map(|fault| fault.expected.as_str()).unwrap_or_default();
        shorten(want.strip_prefix("expected ").unwrap_or(want), WANT)
    });
    format!("expected one of: {}", wants.collect::<Vec<_>>().join(" | "))
}

/// The declared member that is most like an unknown one. The declarations stand beside the keyword that failed.
fn nearest_property(schema: &Value, error: &ValidationError<'_>, name: &str) -> Option<String> {
    let (beside, _) = error.schema_path().as_str().rsplit_once('/')?;
    let declared = schema.pointer(beside)?.get("properties")?.as_object()?;
    names::nearest(name, declared.keys().map(String::as_str)).map(|near| format!("`{near}`"))
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
