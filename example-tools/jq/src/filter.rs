//! Compiles a jq filter and runs it on one value.
//!
//! In: the text of the filter, the input, values for `$names`. Out: the outputs, at most `limit`.
//! Invariants: a filter reads only its input and variables: no environment, clock, files or further
//! inputs.
//! Not here: conversion between JSON and jq values (`value`), error messages for filters that do
//! not compile (`complaint`).

use std::collections::BTreeMap;

use jaq_core::data::JustLut;
use jaq_core::load::{Arena, File, Loader, parse};
use jaq_core::{Compiler, Ctx, Vars};
use jaq_json::Val;
use serde_json::Value;

use crate::{complaint, value};

/// Levels of nested brackets in a filter. The parser recurses on them, and its stack holds a few
/// times as many.
const MAX_NESTING: usize = 100;
/// Characters of an error message that quotes values: a model needs its beginning, not the whole
/// input again.
const MAX_MESSAGE: usize = 400;
/// Native filters that read the environment or the clock. The prelude defines harmless ones with
/// the same names.
const OUTSIDE: [&str; 4] = ["env", "localtime", "now", "strflocaltime"];
static PRELUDE: &str = include_str!("prelude.jq");

/// The outputs of a filter.
#[derive(Debug, PartialEq)]
pub(crate) struct Outputs {
    pub(crate) values: Vec<Value>,
    /// True if the filter had more outputs than the limit.
    pub(crate) more: bool,
}

/// Runs `filter` on `input`.
///
/// # Errors
/// The compile errors with their positions, or the first error that the filter raised and did not
/// catch.
pub(crate) fn run(
    filter: &str,
    input: Value,
    variables: &BTreeMap<String, Value>,
    limit: usize,
) -> Result<Outputs, String> {
    if nesting(filter) > MAX_NESTING {
        return Err(format!("the filter has brackets nested deeper than {MAX_NESTING} levels"));
    }
    let names = names(variables)?;
    let values = variables.values().cloned().chain([Value::Object(serde_json::Map::new())]);
    let values = values.map(value::from_json).collect::<Result<Vec<_>, _>>()?;

    let prelude = parse(PRELUDE, |parser| parser.defs()).unwrap_or_default();
    let definitions =
        jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(prelude);
    let natives = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code: filter, path: () })
        .map_err(|errors| complaint::unreadable(filter, &errors))?;
    let compiled = Compiler::default()
        .with_funs(natives.filter(|(name, ..)| !OUTSIDE.contains(name)))
        .with_global_vars(names.iter().map(String::as_str))
        .compile(modules)
        .map_err(|errors| complaint::undefined(filter, &errors))?;

    let context = Ctx::<JustLut<Val>>::new(&compiled.lut, Vars::new(values));
    let mut outputs = Vec::new();
    for output in compiled.id.run((context, value::from_json(input)?)) {
        let output = match output {
            Ok(output) => output,
            Err(raised) => match raised.get_err() {
                Ok(error) => return Err(runtime_error(&error.into_val(), outputs.len())),
                // `halt`: the filter has ended.
                Err(_) => break,
            },
        };
        if outputs.len() == limit {
            return Ok(Outputs { values: outputs, more: true });
        }
        outputs.push(value::to_json(&output)?);
    }
    Ok(Outputs { values: outputs, more: false })
}

/// Returns `$name` for each variable, and `$ENV`, in the order of their values.
fn names(variables: &BTreeMap<String, Value>) -> Result<Vec<String>, String> {
    let word = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some(odd) = variables.keys().find(|name| !word(name)) {
        return Err(format!(
            "`{odd}` cannot be the name of a variable: use letters, digits and `_`, without the `$`"
        ));
    }
    Ok(variables.keys().map(String::as_str).chain(["ENV"]).map(|name| format!("${name}")).collect())
}

/// Returns the depth of nested brackets. Brackets in strings count too: this is only a bound.
fn nesting(filter: &str) -> usize {
    let mut deepest = 0;
    let mut depth = 0_usize;
    for character in filter.chars() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn runtime_error(raised: &Val, outputs: usize) -> String {
    let mut text = match value::to_json(raised) {
        Ok(Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(unspeakable) => unspeakable,
    };
    if let Some((cut, _)) = text.char_indices().nth(MAX_MESSAGE) {
        text.truncate(cut);
        text.push('…');
    }
    match outputs {
        0 => text,
        1 => format!("{text} (after 1 output)"),
        many => format!("{text} (after {many} outputs)"),
    }
}

#[cfg(test)]
mod tests;
