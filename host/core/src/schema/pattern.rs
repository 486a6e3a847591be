//! Patterns of a schema: ECMA-262 regular expressions.
//!
//! In: a pattern and a text. Out: whether it matches, or that this could not be told within the
//! bounds.
//! Invariants: a pattern without look-around and back-references is matched in linear time. Another
//! one backtracks, and its backtracking and its texts are bounded.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

use super::ecma::{self, spell};
use super::keywords::each_subschema;
use crate::defence::{Defence, stands};
use crate::refusal::shorten;

/// Memory of one compiled pattern in bytes: ordinary patterns take a few KiB, `(x{1,1000}){1000}`
/// would take gigabytes.
const PATTERN_BYTES: usize = 128 << 10;
/// Times that a backtracking match may go back.
pub(super) const BACKTRACKS: usize = 1_000;
/// What all backtracking matches of one check may cost: each costs the length of its text, to the
/// power that the nesting of its look-arounds gives. Between two steps back a match may take as
/// many steps.
const BACKTRACK_BUDGET: usize = 1 << 20;
/// Times that the validator may run a check with a pattern for names that did not end, to judge it
/// and to tell its faults.
const RUNS: u64 = 128;

/// Why a pattern cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is no regular expression.
    Unreadable,
    /// It takes too much memory.
    TooLarge,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Linear(regex::Regex),
    /// With the power of a text's length that a match costs.
    Backtracking(fancy_regex::Regex, u32),
}

/// Look-arounds of a pattern that may each have as many bytes as a pattern.
const LOOKS: usize = 8;

impl Pattern {
    /// Compiles a pattern: as ECMA-262 has it, and what that cannot read, as the linear engine
    /// does.
    pub(super) fn new(text: &str) -> Result<Self, Unusable> {
        let most = most_bytes();
        let linear = |spelled: &str| {
            let built =
                regex::RegexBuilder::new(spelled).size_limit(most).dfa_size_limit(most).build();
            built.map(Engine::Linear).map_err(|error| {
                let is_large = matches!(error, regex::Error::CompiledTooBig(_));
                if is_large { Unusable::TooLarge } else { Unusable::Unreadable }
            })
        };
        let engine = match spell(text) {
            None => linear(text)?,
            Some(spelled) if !spelled.backtracks => linear(&spelled.text)?,
            Some(spelled) => {
                // Each look-around is compiled for itself: many share the bytes of a few.
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
                    let is_inner =
                        |inner: &fancy_regex::CompileError| matches!(inner, fancy_regex::CompileError::InnerError(_));
                    let is_large = matches!(&error, fancy_regex::Error::CompileError(inner) if is_inner(inner));
                    if is_large { Unusable::TooLarge } else { Unusable::Unreadable }
                })?;
                Engine::Backtracking(built, spelled.power)
            }
        };
        Ok(Self { text: text.to_owned(), engine })
    }

    /// The power of a name's length that a match costs.
    pub(super) fn power(&self) -> u32 {
        match self.engine {
            Engine::Linear(_) => 1,
            Engine::Backtracking(_, power) => power,
        }
    }

    fn matches(&self, text: &str) -> bool {
        let matched = match &self.engine {
            // The engine panics on some patterns: https://github.com/rust-lang/regex/issues/1344
            Engine::Linear(regex) => catch_unwind(AssertUnwindSafe(|| regex.is_match(text))).ok(),
            Engine::Backtracking(regex, power) if afforded(text, *power) => {
                catch_unwind(AssertUnwindSafe(|| regex.is_match(text))).ok().and_then(Result::ok)
            }
            Engine::Backtracking(..) => None,
        };
        matched.unwrap_or_else(|| {
            CHECK.with_borrow_mut(|check| {
                check.unfinished.get_or_insert_with(|| (self.text.clone(), text.to_owned()));
            });
            false
        })
    }
}

/// How much of a text is quoted that a pattern could not be matched with, in characters.
const QUOTE: usize = 60;

/// Bytes that one compiled pattern may have.
pub(super) fn most_bytes() -> usize {
    if stands(Defence::PatternBytes) { PATTERN_BYTES } else { usize::MAX }
}

/// Times that a match may go back.
pub(super) fn backtracks() -> usize {
    bounded(BACKTRACKS)
}

fn bounded(most: usize) -> usize {
    if stands(Defence::PatternBacktracks) { most } else { usize::MAX }
}

/// What the backtracking matches of the check that runs on this thread have cost, and the first
/// that did not end: its pattern and its text.
#[derive(Default)]
struct Check {
    cost: u64,
    unfinished: Option<(String, String)>,
}

thread_local! {
    static CHECK: RefCell<Check> = RefCell::default();
}

/// Whether the budget of this check has room for a match, and the matches before have all ended.
fn afforded(text: &str, power: u32) -> bool {
    CHECK.with_borrow_mut(|check| {
        check.cost = check.cost.saturating_add((text.len() as u64).saturating_pow(power));
        check.unfinished.is_none() && check.cost <= bounded(BACKTRACK_BUDGET) as u64
    })
}

/// Runs a check. Besides its answer: the pattern and the text of a match that did not end, with
/// which the answer means nothing.
pub(super) fn watched<T>(check: impl FnOnce() -> T) -> (T, Option<(String, String)>) {
    CHECK.set(Check::default());
    let answer = check();
    (answer, CHECK.take().unfinished)
}

/// The schema with the names of `patternProperties` in the engine's spelling, and whether one of
/// them has to go back.
pub(super) fn spell_names(schema: &Value) -> (Value, bool) {
    let mut schema = schema.clone();
    let mut backtracks = false;
    each_subschema(&mut schema, &mut |keywords| {
        backtracks |=
            names(keywords).is_some_and(|names| names.keys().any(|name| name_weight(name) > 1));
    });
    each_subschema(&mut schema, &mut |keywords| {
        let Some(names) = keywords.get_mut("patternProperties").and_then(Value::as_object_mut)
        else {
            return;
        };
        let spelled = std::mem::take(names).into_iter().map(|(name, value)| {
            // The validator leaves a pattern as it is that begins to look around.
            let spelled = if backtracks {
                ecma::spell_to_go_back(&name).map(|one| format!("(?=){}", one.text))
            } else {
                ecma::spell(&name).map(|one| one.text)
            };
            (spelled.unwrap_or(name), value)
        });
        *names = spelled.collect();
    });
    (schema, backtracks)
}

fn names(keywords: &Map<String, Value>) -> Option<&Map<String, Value>> {
    keywords.get("patternProperties").and_then(Value::as_object)
}

/// What a pattern for names costs, as the number of those that never go back. The validator repeats
/// a check in which one did not end, as often as [`RUNS`] says.
pub(super) fn name_weight(name: &str) -> u64 {
    if ecma::spell(name).is_some_and(|spelled| spelled.backtracks) { RUNS } else { 1 }
}

/// Makes the keyword `pattern`.
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
    /// The problem with this pattern, in words for its author.
    pub(super) fn about(&self, pattern: &str) -> String {
        let pattern = shorten(pattern, QUOTE);
        match self {
            Self::Unreadable => format!("`{pattern}` is not a regular expression (ECMA-262)"),
            Self::TooLarge => {
                format!(
                    "the pattern `{pattern}` takes more than {PATTERN_BYTES} bytes of memory: repeat less in it"
                )
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
