//! Calls other tools, and itself.

use toolcell_guest::invoke::{self, Error};
use toolcell_guest::{Value, json, tool, tools};

/// Runs for so many rounds, makes each call so often, and returns how the last of each ended. A
/// call is the name of a tool and its arguments as JSON text.
#[tool]
fn relay(calls: Vec<[String; 2]>, times: Option<u64>, rounds: Option<u64>) -> Vec<Value> {
    for round in 0..rounds.unwrap_or_default() {
        std::hint::black_box(round);
    }
    calls.iter().map(|[name, arguments]| last(name, arguments, times.unwrap_or(1))).collect()
}

fn last(name: &str, arguments: &str, times: u64) -> Value {
    let arguments: Value = arguments.parse().expect("JSON");
    let mut ended = Value::Null;
    for _ in 0..times {
        ended = match invoke::call::<Value>(name, &arguments) {
            Ok(value) => json!({ "ok": value }),
            Err(Error::Denied(sentence)) => json!({ "denied": sentence }),
            Err(Error::Limit(sentence)) => json!({ "limit": sentence }),
            Err(Error::Unavailable(sentence)) => json!({ "unavailable": sentence }),
            Err(Error::Failed(error)) => json!({ "error": error }),
            Err(Error::AskUser(question)) => json!({ "ask_user": question }),
            Err(Error::Halt(halt)) => json!({ "halt": halt }),
            Err(Error::ToolError(error)) => json!({ "tool_error": error }),
            Err(Error::Refused(refusal)) => json!({ "refusal": refusal }),
            Err(other) => panic!("{other}"),
        };
    }
    ended
}

tools![relay];
