//! Matches the regular expressions of a schema with bounded time and memory.
//!
//! It provides the validator's keyword `pattern`, and prepares the names of `patternProperties`.
//! [`Pattern::new`] compiles a pattern of at most 8 MiB when compiled. A pattern without
//! look-around and back-references is matched in linear time. Any other backtracks: each match
//! takes a bounded number of steps, and all matches of one check share a budget. A match over these
//! bounds counts neither as a match nor as a mismatch: [`watched`] runs the check and reports the
//! unfinished match, and the value is refused.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fancy_regex::{CompileError, Error};
use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

use super::ecma::{self, translate};
use super::keywords::each_subschema;
use crate::controls::bound;
use crate::names::shorten;

/// Bytes of memory of a compiled pattern of weight 1. Ordinary patterns take a few KiB.
const PATTERN_BYTES: usize = 128 << 10;
/// The weights of patterns: the limits of their memory, as multiples of [`PATTERN_BYTES`].
/// `.{1,255}` has the second, and `.{1,1000}` the third; `(x{1,1000}){1000}` would take gigabytes.
const WEIGHTS: [usize; 4] = [1, 4, 16, 64];
/// The maximum number of backtracking steps of a match.
const BACKTRACKS: usize = 1_000;
/// The maximum cost of all matches of one check that backtrack or whose patterns have a larger
/// weight than 1. Each match costs the length of its text, to the power that the nesting of its
/// look-arounds gives, times the weight. Between two backtracking steps a match may take as many
/// steps.
const BACKTRACK_BUDGET: u64 = 1 << 20;
/// The maximum number of times that the validator repeats a check with a pattern for names whose
/// match did not finish, to decide the check and to list its faults.
const RUNS: u64 = 128;

/// The reason why a pattern cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is not a regular expression.
    Unreadable,
    /// It takes too much memory.
    TooLarge,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    engine: Engine,
    weight: u64,
}

#[derive(Debug)]
enum Engine {
    Linear(regex::Regex),
    /// With the exponent of the cost: a match costs the length of the text to this power.
    Backtracking(fancy_regex::Regex, u32),
}

/// The number of look-arounds in a pattern that may each take as many bytes as a pattern. More
/// look-arounds share the bytes of this many.
const LOOKS: usize = 8;

impl Pattern {
    /// Compiles a pattern as ECMA-262. A pattern that is not ECMA-262 is compiled in the syntax of
    /// the linear engine.
    pub(super) fn new(text: &str) -> Result<Self, Unusable> {
        let mut built = Err(Unusable::TooLarge);
        for weight in WEIGHTS {
            built = Self::within(text, most_bytes().saturating_mul(weight), weight as u64);
            if !matches!(built, Err(Unusable::TooLarge)) {
                break;
            }
        }
        built
    }

    /// Compiles a pattern within this many bytes.
    fn within(text: &str, most: usize, weight: u64) -> Result<Self, Unusable> {
        let linear = |spelled: &str| {
            let built =
                regex::RegexBuilder::new(spelled).size_limit(most).dfa_size_limit(most).build();
            built.map(Engine::Linear).map_err(|error| {
                let is_large = matches!(error, regex::Error::CompiledTooBig(_));
                if is_large { Unusable::TooLarge } else { Unusable::Unreadable }
            })
        };
        let engine = match translate(text) {
            None => linear(text)?,
            Some(spelled) if !spelled.backtracks => linear(&spelled.text)?,
            Some(spelled) => {
                // Each look-around is compiled by itself: many share the bytes of a few.
                let looks = ["(?=", "(?!", "(?<"]
                    .iter()
                    .map(|look| spelled.text.matches(look).count())
                    .sum::<usize>();
                let most = most * LOOKS / looks.max(LOOKS);
                let mut builder = fancy_regex::RegexBuilder::new(&spelled.text);
                builder
                    .delegate_size_limit(most)
                    .delegate_dfa_size_limit(most)
                    .backtrack_limit(backtracks());
                let built = builder.build().map_err(|error| {
                    let is_large = matches!(error, Error::CompileError(inner)
                        if matches!(*inner, CompileError::InnerError(_)));
                    if is_large { Unusable::TooLarge } else { Unusable::Unreadable }
                })?;
                Engine::Backtracking(built, spelled.power)
            }
        };
        Ok(Self { text: text.to_owned(), engine, weight })
    }

    /// Returns the memory of the compiled pattern in units of an ordinary one, rounded up.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the exponent of the cost: a match costs the length of a name to this power.
    pub(super) fn power(&self) -> u32 {
        match self.engine {
            Engine::Linear(_) => 1,
            Engine::Backtracking(_, power) => power,
        }
    }

    fn matches(&self, text: &str) -> bool {
        let matched = || match &self.engine {
            Engine::Linear(regex) if self.weight == 1 => Some(regex.is_match(text)),
            _ if !is_affordable(text, self.power(), self.weight) => None,
            Engine::Linear(regex) => Some(regex.is_match(text)),
            Engine::Backtracking(regex, _) => regex.is_match(text).ok(),
        };
        // The engine panics on some patterns: https://github.com/rust-lang/regex/issues/1344
        let matched = catch_unwind(AssertUnwindSafe(matched)).ok().flatten();
        matched.unwrap_or_else(|| {
            CHECK.with_borrow_mut(|check| {
                check.unfinished.get_or_insert_with(|| (self.text.clone(), text.to_owned()));
            });
            false
        })
    }
}

/// The maximum number of characters that are quoted of a pattern.
const QUOTE: usize = 60;

/// Returns the maximum number of bytes of a compiled pattern of weight 1.
pub(super) fn most_bytes() -> usize {
    bound!(PatternBytes, PATTERN_BYTES)
}

/// Returns the maximum number of backtracking steps of a match.
pub(super) fn backtracks() -> usize {
    bound!(PatternBacktracks, BACKTRACKS)
}

/// The state of the check that runs on this thread: the cost of its backtracking matches, and the
/// pattern and the text of the first match that did not finish.
#[derive(Default)]
struct Check {
    cost: u64,
    unfinished: Option<(String, String)>,
}

thread_local! {
    static CHECK: RefCell<Check> = RefCell::default();
}

/// Returns true if the budget of this check allows the match and all earlier matches have finished.
fn is_affordable(text: &str, power: u32, weight: u64) -> bool {
    let cost = (text.len() as u64).saturating_pow(power).saturating_mul(weight);
    CHECK.with_borrow_mut(|check| {
        check.cost = check.cost.saturating_add(cost);
        check.unfinished.is_none() && check.cost <= bound!(PatternBacktracks, BACKTRACK_BUDGET)
    })
}

/// Runs a check. Returns its answer, and the pattern and the text of a match that did not finish;
/// the answer is then meaningless.
pub(super) fn watched<T>(check: impl FnOnce() -> T) -> (T, Option<(String, String)>) {
    CHECK.set(Check::default());
    let answer = check();
    (answer, CHECK.take().unfinished)
}

/// Returns the schema with the names of `patternProperties` in the engine's syntax, and true if one
/// of them backtracks.
pub(super) fn translate_names(schema: &Value) -> (Value, bool) {
    let mut schema = schema.clone();
    let mut backtracks = false;
    each_subschema(&mut schema, &mut |keywords| {
        let names = keywords.get("patternProperties").and_then(Value::as_object);
        backtracks |= names.is_some_and(|names| names.keys().any(|name| name_weight(name) > 1));
    });
    each_subschema(&mut schema, &mut |keywords| {
        let Some(names) = keywords.get_mut("patternProperties").and_then(Value::as_object_mut)
        else {
            return;
        };
        for (name, value) in std::mem::take(names) {
            // The validator does not change a pattern that begins with a look-around.
            let spelled = if backtracks {
                ecma::translate_backtracking(&name).map(|one| format!("(?=){}", one.text))
            } else {
                ecma::translate(&name).map(|one| one.text)
            };
            let mut spelled = spelled.unwrap_or(name);
            // Two patterns may be spelled alike: `\d` and `[0-9]`.
            while names.contains_key(&spelled) {
                spelled.push_str("(?:)");
            }
            names.insert(spelled, value);
        }
    });
    (schema, backtracks)
}

/// Returns the cost of a pattern for names, as a number of patterns that do not backtrack. The
/// validator repeats a check in which a match did not finish up to [`RUNS`] times.
pub(super) fn name_weight(name: &str) -> u64 {
    if ecma::translate(name).is_some_and(|spelled| spelled.backtracks) { RUNS } else { 1 }
}

/// Creates the keyword `pattern`.
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    pattern: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let text =
        pattern.as_str().ok_or_else(|| ValidationError::schema("`pattern` must be a string"))?;
    let compiled =
        Pattern::new(text).map_err(|unusable| ValidationError::schema(unusable.about(text)))?;
    Ok(Box::new(compiled))
}

impl Unusable {
    /// Returns the problem with this pattern, in words for its author.
    pub(super) fn about(&self, pattern: &str) -> String {
        let pattern = shorten(pattern, QUOTE);
        match self {
            Self::Unreadable => format!("`{pattern}` is not a regular expression (ECMA-262)"),
            Self::TooLarge => {
                format!("the pattern `{pattern}` takes too much memory: repeat less in it")
            }
        }
    }
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) { Ok(()) } else { Err(ValidationError::custom(self.text.clone())) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        value.as_str().is_none_or(|text| self.matches(text))
    }
}
