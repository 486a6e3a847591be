//! Asks a person at the terminal for the answer to a tool's question.
//!
//! A tool can end its call with a question to the user. `run` then calls [`ask`] with the question.
//! It prompts until the answer that the person enters fits the question's JSON Schema and, if the
//! question lists plain options, is one of them. It returns the answer as JSON, or `None` if there
//! is no terminal or the person enters nothing. The schema's type decides if the text is read as
//! text or as JSON.
//!
//! Not here: an answer on the command line (`--answer`), in `args/context.rs`.

use serde_json::Value;
use toolcell::{Json, Question};

use crate::args::target;
use crate::os::files;
use crate::print::{Listener, Printer, schema};

/// Asks until the answer fits. `None` if no person can see the question and answer it, or the
/// answer is empty.
pub(super) fn ask(printer: &Printer, question: &Question) -> Option<Json> {
    if printer.listener() != Listener::Reader {
        return None;
    }
    let schema = question.answer_schema.as_ref().map(Json::to_value);
    let types = schema.as_ref().map(schema::own_types).unwrap_or_default();
    let choices = choices(question);
    loop {
        printer.lines("your answer (empty: answer later): ");
        let typed = files::answer()?;
        let typed = typed.trim();
        if typed.is_empty() {
            return None;
        }
        let answer = answer(typed, &types, &choices);
        if !choices.is_empty() && !choices.contains(&answer) {
            printer.error("the answer is none of the options");
            continue;
        }
        let answer = Json::from(answer);
        match question.check_answer(&answer) {
            Ok(()) => return Some(answer),
            Err(faults) => {
                printer.error("the answer is not what the tool asks for");
                faults.iter().for_each(|fault| printer.print_item("error", fault));
            }
        }
    }
}

/// Returns the options of a question that are answers: plain values that fit its schema. Other
/// options describe answers.
fn choices(question: &Question) -> Vec<Value> {
    let is_answer = |value: &Value| {
        !(value.is_object() || value.is_array())
            && question.check_answer(&Json::from(value.clone())).is_ok()
    };
    match question.options.as_ref().map(Json::to_value) {
        Some(Value::Array(options)) if options.iter().all(is_answer) => options,
        Some(_) | None => Vec::new(),
    }
}

/// Returns the typed text as a value: the option with this text, otherwise JSON if the schema
/// states no type and the text is JSON.
fn answer(typed: &str, types: &[&str], choices: &[Value]) -> Value {
    if types.is_empty() && choices.iter().any(|choice| choice == typed) {
        return typed.into();
    }
    if types.is_empty() {
        return serde_json::from_str(typed).unwrap_or_else(|_| typed.into());
    }
    target::value(typed, types)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_decides_if_answer_is_text_or_json() {
        for (typed, types, expected) in [
            ("two", &[][..], json!("two")),
            ("2", &[], json!(2)),
            ("2", &["string"], json!("2")),
            ("2", &["integer"], json!(2)),
            ("{\"a\": 1}", &["object"], json!({"a": 1})),
            ("x", &["object"], json!("x")),
        ] {
            assert_eq!(answer(typed, types, &[]), expected, "{typed}");
        }
        assert_eq!(
            answer("2", &[], &[json!("1"), json!("2")]),
            json!("2"),
            "an option that is text"
        );
        assert_eq!(answer("2", &[], &[json!(1), json!(2)]), json!(2), "an option that is a number");
    }

    #[test]
    fn only_plain_options_become_choices() {
        for (options, choices) in [
            (json!(["18:00", "20:00"]), 2),
            (json!([1, true, null]), 3),
            (json!([{"field": "time", "choices": ["18:00"]}]), 0),
            (json!({"a": 1}), 0),
            (json!([]), 0),
        ] {
            assert_eq!(super::choices(&Question::new("?").with_options(options)).len(), choices);
        }
        let member = Question::new("?")
            .with_options(json!(["18:00"]))
            .with_answer_schema(json!({"type": "object"}));
        assert!(super::choices(&member).is_empty(), "options of a member of the answer");
    }
}
