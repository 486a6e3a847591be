//! Arguments and results against JSON Schema.
//!
//! In: a schema of a stranger and a value. Out: a compiled [`Schema`], or every [`Fault`] of the value.
//! Invariants: pure, offline, bounded: no reference leaves the document, no pattern backtracks, and a schema whose
//! check could take long is refused when it is compiled, or the value when it is checked.
//! Source: docs/contract.md, section 4; JSON Schema 2020-12.

mod fault;
mod measure;
mod unique;
mod work;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::defence::{Defence, stands};
use crate::json::Json;
use crate::outcome::Question;
use crate::refusal::{Fault, FaultKind};
use work::Work;

/// Memory of one compiled pattern in bytes: ordinary patterns take a few KiB, `(x{1,1000}){1000}` would take gigabytes.
const PATTERN_BYTES: usize = 128 << 10;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    schema: Value,
    validator: Validator,
    work: Work,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// What is wrong with the schema, in words for its author.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let work = Work::estimate(schema)?;
        let most = if stands(Defence::PatternBytes) { PATTERN_BYTES } else { usize::MAX };
        let validator = jsonschema::draft202012::options()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(most).dfa_size_limit(most))
            .with_keyword("uniqueItems", unique::keyword)
            .build(schema)
            .map_err(|error| format!("not a usable JSON Schema: {error}"))?;
        Ok(Self { schema: schema.clone(), validator, work })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Every fault, up to [`MAX_FAULTS`](crate::refusal::MAX_FAULTS) spelled out and the rest counted; none of them
    /// where the value and the schema are so large that looking for all would cost too much.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Vec<Fault>> {
        self.work.afford(value)?;
        if self.validator.is_valid(value) {
            return Ok(());
        }
        if self.work.affords_all_faults(value) {
            return Err(fault::all(&self.schema, value, self.validator.iter_errors(value)));
        }
        // Even the first error may hold all those of its alternatives.
        let message =
            "expected a value that fits the tool's schema; this value does not, and is too large to say where";
        Err(vec![Fault::of_kind("", FaultKind::Schema { message: message.to_owned() })])
    }
}

impl Question {
    /// Checks a person's answer against [`answer_schema`](Self::answer_schema). Any answer is good where there is none, or where
    /// it is no usable schema.
    ///
    /// # Errors
    /// Every fault of the answer.
    pub fn check_answer(&self, answer: &Json) -> Result<(), Vec<Fault>> {
        let Some(schema) = self.answer_schema.as_ref() else { return Ok(()) };
        Schema::compile(&schema.to_value()).map_or(Ok(()), |schema| schema.check(&answer.to_value()))
    }
}

#[cfg(test)]
mod bombs;
#[cfg(test)]
mod tests;
