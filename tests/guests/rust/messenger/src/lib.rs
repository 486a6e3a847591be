//! Three tools: one passes a secret to another tool, one repeats its arguments, and one lists keys.

use toolcell_guest::invoke::{self, Error};
use toolcell_guest::{
    Failure, Halt, Outcome, Question, Value, http, json, kv, log, progress, secrets, tool, tools,
};

const SECRET: &str = "token";
const KEY: &str = "kept";
/// The word that `repeat` drops from its arguments.
const FILLER: &str = "and";

/// Calls the tool of this name, and returns how that ended. In `with`, its arguments as JSON text,
/// `$all` stands for the value of the secret, and `$1`, `$2` and `$3` for its thirds.
#[tool]
fn confide(to: String, with: String) -> Result<Value, Failure> {
    let value = secrets::reveal(SECRET)?;
    let (one, rest) = value.split_at(value.len() / 3);
    let (two, three) = rest.split_at(rest.len() / 2);
    let parts = [("$all", value.as_str()), ("$1", one), ("$2", two), ("$3", three)];
    let arguments = parts.into_iter().fold(with, |text, (name, part)| text.replace(name, part));
    let arguments: Value = arguments.parse().map_err(|error| Failure::new(format!("{error}")))?;
    Ok(call_ending(&to, &arguments))
}

/// Says the words, joined, in this way; `at` is a URL or the name of a tool where it needs one.
#[tool]
fn repeat(words: Vec<String>, how: String, at: String) -> Result<Outcome, Failure> {
    let text: String = words.into_iter().filter(|word| word != FILLER).collect();
    match how.as_str() {
        "value" => return Ok(Outcome::ok(json!({ "deep": [&text] }))),
        "error" => return Err(Failure::new(&text).data([&text])),
        "ask" => return Ok(Outcome::ask_user(Question::new(&text).options([&text]).state(&text))),
        "halt" => return Ok(Halt::new(&text, &text).into()),
        "log" => log::info!("it is {text}"),
        "stdout" => println!("it is {text}"),
        "stderr" => eprintln!("it is {text}"),
        "progress" => progress::report(1, None, text.as_str()),
        "panic" => panic!("{text}"),
        "value of a key" => drop(kv::set(KEY, text.as_bytes())?),
        "swapped" => drop(kv::compare_and_swap("swapped", None, text.as_bytes())?),
        "key" => drop(kv::set(&text, b"")?),
        "url" => return Ok(Outcome::ok(http::get(format!("{at}{text}")).send()?.status())),
        "header" => return Ok(Outcome::ok(http::get(at).header("x-key", &text).send()?.status())),
        "body" => return Ok(Outcome::ok(http::post(at).body(text).send()?.status())),
        "on" => return Ok(Outcome::ok(call_ending(&at, &json!({ "text": text })))),
        "name" => return Ok(Outcome::ok(call_ending(&text, &json!({})))),
        _ => return Err(Failure::new("that is no way to say it")),
    }
    Ok(Outcome::ok("said"))
}

/// The keys that the component has stored.
#[tool]
fn stored() -> Result<Vec<String>, Failure> {
    Ok(kv::list("").collect::<Result<Vec<_>, _>>()?)
}

fn call_ending(name: &str, arguments: &Value) -> Value {
    match invoke::call::<Value>(name, arguments) {
        Ok(value) => json!({ "ok": value }),
        Err(Error::Failed(said) | Error::AskUser(said) | Error::Halt(said)) => said,
        Err(Error::ToolError(said) | Error::Refused(said)) => said,
        Err(other) => json!({ "not called": other.to_string() }),
    }
}

tools![confide, repeat, stored];
