//! A person's answer to a tool's question, asked for at the terminal.
//!
//! In: the question. Out: an answer that fits its schema; none where the person gives none.
//! Not here: an answer that is typed with the command (`--answer`).

use toolcell::{Json, Question};

use crate::files;
use crate::printer::{Listener, Printer};
use crate::{schema, target};

/// Asks until the answer fits. `None` where no person can see the question and answer it, or one leaves the answer empty.
pub(super) fn ask(printer: &Printer, question: &Question) -> Option<Json> {
    if printer.listener() != Listener::Reader {
        return None;
    }
    let schema = question.answer_schema.as_ref().map(Json::to_value);
    let types = schema.as_ref().map(schema::own_types).unwrap_or_default();
    loop {
        printer.prompt("your answer (empty: answer later): ");
        let typed = files::answer()?;
        let typed = typed.trim();
        if typed.is_empty() {
            return None;
        }
        let answer = Json::from(answer(typed, &types));
        match question.check_answer(&answer) {
            Ok(()) => return Some(answer),
            Err(faults) => {
                printer.note("error", "the answer is not what the tool asks for");
                faults.iter().for_each(|fault| printer.point(&fault.to_string()));
            }
        }
    }
}

/// What was typed as a value: JSON where the schema says nothing and it is JSON.
fn answer(typed: &str, types: &[&str]) -> serde_json::Value {
    if types.is_empty() {
        return serde_json::from_str(typed).unwrap_or_else(|_| typed.into());
    }
    target::value(typed, types)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::answer;

    #[test]
    fn an_answer_is_text_or_json_as_the_schema_says() {
        for (typed, types, expected) in [
            ("two", &[][..], json!("two")),
            ("2", &[], json!(2)),
            ("2", &["string"], json!("2")),
            ("2", &["integer"], json!(2)),
            ("{\"a\": 1}", &["object"], json!({"a": 1})),
            ("x", &["object"], json!("x")),
        ] {
            assert_eq!(answer(typed, types), expected, "{typed}");
        }
    }
}
