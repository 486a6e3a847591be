//! Writes the sentence for each kind of fault, such as "expected at least 3".
//!
//! `Display` of a [`FaultKind`] is the only place where these sentences are made; models, logs and
//! the JSON form of a fault use it. For a value with several allowed forms it lists the expectation
//! of each, shortened.

use std::fmt;

use serde_json::Value;

use super::{FaultKind, LengthUnit};
use crate::json::JsonFault;
use crate::names::shorten;

/// Characters of one alternative in the sentence about all of them.
const MAX_ALTERNATIVE: usize = 160;

impl fmt::Display for LengthUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Characters => "characters",
            Self::Items => "items",
            Self::Members => "members",
        })
    }
}

/// Writes the sentence for the fault.
impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required { member } => write!(f, "required member `{member}` is missing"),
            Self::UnknownMember { member } => write!(f, "unknown member `{member}`"),
            Self::Type { types } => {
                write!(f, "expected {}", types.iter().map(|name| article(name)).collect::<Vec<_>>().join(" or "))
            }
            Self::Enum { allowed, more } => write!(f, "expected {}", list(allowed, *more)),
            Self::Range { minimum, exclusive_minimum, maximum, exclusive_maximum } => expected(
                f,
                [
                    minimum.as_ref().map(|bound| format!("at least {bound}")),
                    exclusive_minimum.as_ref().map(|bound| format!("more than {bound}")),
                    maximum.as_ref().map(|bound| format!("at most {bound}")),
                    exclusive_maximum.as_ref().map(|bound| format!("less than {bound}")),
                ],
            ),
            Self::Length { unit, minimum, maximum } => expected(
                f,
                [minimum.map(|bound| format!("at least {}", counted(bound, *unit))), maximum.map(|bound| format!("at most {}", counted(bound, *unit)))],
            ),
            Self::Pattern { pattern } => write!(f, "expected text that matches `{pattern}`"),
            Self::MultipleOf { multiple_of } => write!(f, "expected a multiple of {multiple_of}"),
            Self::UniqueItems => f.write_str("expected items that all differ"),
            Self::Alternatives { alternatives } if alternatives.is_empty() => {
                f.write_str("expected one of several alternatives")
            }
            Self::Alternatives { alternatives } => {
                let mut wants = Vec::new();
                for want in alternatives.iter().map(expectation) {
                    if !wants.contains(&want) {
                        wants.push(want);
                    }
                }
                let several = if wants.len() > 1 { "one of: " } else { "" };
                write!(f, "expected {several}{}", wants.join(" | "))
            }
            Self::Ambiguous => f.write_str("expected exactly one of the alternatives to fit; several do"),
            Self::Forbidden => f.write_str("nothing is allowed here"),
            Self::Syntax { message, line, column } => {
                write!(f, "{}", JsonFault::Syntax { message: message.clone(), line: *line, column: *column })
            }
            Self::TooDeep { maximum } => write!(f, "{}", JsonFault::TooDeep(*maximum)),
            Self::TooManyValues { maximum } => write!(f, "{}", JsonFault::TooManyNodes(*maximum)),
            Self::TooCostly => f.write_str(
                "expected a shorter, smaller or flatter value: this one is too costly to check against the tool's schema",
            ),
            Self::Schema { message } | Self::Rule { message } => f.write_str(message),
            Self::More { count } => write!(f, "{count} more"),
        }
    }
}

/// Returns what an alternative expects, derived from the fault against it.
fn expectation(kind: &FaultKind) -> String {
    let want = if let FaultKind::Required { member } = kind {
        format!("an object with `{member}`")
    } else if let FaultKind::UnknownMember { member } = kind {
        format!("an object without `{member}`")
    } else {
        kind.to_string()
    };
    shorten(want.strip_prefix("expected ").unwrap_or(&want), MAX_ALTERNATIVE)
}

fn counted(bound: u64, unit: LengthUnit) -> String {
    let unit = unit.to_string();
    format!("{bound} {}", if bound == 1 { unit.trim_end_matches('s') } else { &unit })
}

fn expected<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    bounds: [Option<String>; N],
) -> fmt::Result {
    write!(f, "expected {}", bounds.into_iter().flatten().collect::<Vec<_>>().join(" and "))
}

fn list(allowed: &[Value], more: usize) -> String {
    let shown = allowed.iter().map(Value::to_string);
    let rest = (more > 0).then(|| {
        if allowed.is_empty() {
            "one of the schema's values".to_owned()
        } else {
            format!("one of {more} more")
        }
    });
    shown.chain(rest).collect::<Vec<_>>().join(" or ")
}

fn article(name: &str) -> String {
    match name {
        "null" => "null".into(),
        "array" | "object" | "integer" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}
