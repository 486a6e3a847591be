//! Checks arguments and results against JSON Schema.
//!
//! When a tool is made, [`Schema::compile`] takes the untrusted schema of its definition, of any
//! draft, and returns a [`Schema`], or the problem in words for its author. For each call,
//! [`Schema::check`] takes a value and returns every [`Fault`] (32 in full, the rest counted), so
//! that a model can correct all of them. Checks are pure and offline: no reference leaves the
//! document. Work and memory are bounded: a schema whose check could take too long is refused when
//! it is compiled, or the value when it is checked. Parts that cannot be enforced are left out with
//! a warning, which never makes the schema stricter.
//!
//! Source: docs/contract.md, section 4; JSON Schema 2020-12.

mod ecma;
mod fault;
mod index;
mod keywords;
mod measure;
mod pattern;
mod translate;
mod unique;
mod work;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::definition::Definition;
use super::json::Json;
use super::outcome::Question;
use super::outcome::refusal::{Fault, FaultKind};
pub use index::decoded;
use translate::{Translated, translate};
use work::Work;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    translated: Translated,
    validator: Validator,
    work: Work,
}

impl Schema {
    /// Compiles a schema of any draft.
    ///
    /// # Errors
    /// The problem of the schema, in words for its author.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        work::admit(schema)?;
        let translated = translate(schema)?;
        let work = Work::estimate(&translated.schema)?;
        let most = pattern::most_bytes();
        let (named, backtracks) = pattern::translate_names(&translated.schema);
        let options = jsonschema::draft202012::options()
            .offline()
            .with_keyword("pattern", pattern::keyword)
            .with_keyword("uniqueItems", unique::keyword);
        let options = if backtracks {
            let engine = PatternOptions::fancy_regex().backtrack_limit(pattern::backtracks());
            options.with_pattern_options(engine.size_limit(most).dfa_size_limit(most))
        } else {
            options
                .with_pattern_options(PatternOptions::regex().size_limit(most).dfa_size_limit(most))
        };
        let validator = options.build(&named).map_err(|error| {
            let place = error.instance_path().as_str();
            format!("not a usable JSON Schema: at `{place}`: {error}")
        })?;
        Ok(Self { translated, validator, work })
    }

    /// Returns the translated schema (2020-12), against which values are checked.
    pub fn text(&self) -> &Value {
        &self.translated.schema
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Every fault, up to [`Refusal::MAX_FAULTS`](crate::outcome::refusal::Refusal::MAX_FAULTS) in
    /// full and the rest counted. A single fault without details if the value and the schema are so
    /// large that collecting all faults would cost too much.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Fault>> {
        self.work.check_budget(value)?;
        let (is_valid, unfinished) = pattern::watched(|| self.validator.is_valid(value));
        if let Some(unfinished) = unfinished {
            return Err(vec![fault::unfinished(value, unfinished)]);
        }
        if is_valid {
            return Ok(());
        }
        if self.work.affords_all_faults(value) {
            let all =
                || fault::all(&self.translated.schema, value, self.validator.iter_errors(value));
            return Err(pattern::watched(all).0);
        }
        // A single error may already hold all errors of its alternatives.
        let message = "expected a value that fits the tool's schema; this value does not, and is too large to say where";
        Err(vec![Fault::of_kind("", FaultKind::Schema { message: message.to_owned() })])
    }
}

impl Definition {
    /// Returns the parts of its schemas that cannot be enforced and are left out when a `Tool` is
    /// made from it, such as a pattern that is not a regular expression.
    /// Each text begins with the place, as a JSON pointer from `parameters` or `output`.
    #[must_use]
    pub fn unenforced(&self) -> Vec<String> {
        let parts = [("parameters", &self.parameters), ("output", &self.output)];
        let each = parts.into_iter().filter_map(|(part, schema)| Some((part, schema.as_ref()?)));
        let found = each.flat_map(|(part, schema)| {
            let translated = work::admit(schema).and_then(|()| translate(schema));
            let warnings = translated.map(|translated| translated.warnings).unwrap_or_default();
            warnings.into_iter().map(move |(at, problem)| format!("{part}{at} {problem}"))
        });
        found.collect()
    }
}

impl Question {
    /// Checks a person's answer against [`answer_schema`](Self::answer_schema). Without a schema,
    /// or with an unusable one, every answer is accepted.
    ///
    /// # Errors
    /// Every fault of the answer.
    pub fn check_answer(&self, answer: &Json) -> Result<(), Vec<Fault>> {
        let Some(schema) = self.answer_schema.as_ref() else { return Ok(()) };
        Schema::compile(&schema.to_value())
            .map_or(Ok(()), |schema| schema.check(&answer.to_value()))
    }
}

#[cfg(test)]
mod bombs;
#[cfg(test)]
mod drafts;
#[cfg(test)]
mod tests;
