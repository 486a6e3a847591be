//! An agent loop: makes the calls of a model until the model makes no further call, and passes the
//! questions of tools to a person.
//!
//! `cargo run --example agent_loop [COMPONENT …]`, from the repository's root after `cargo xtask
//! demo`. The model and the person are scripts here. A real model is a request over HTTP with the
//! same JSON.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use toolcell::call::Resume;
use toolcell::run::Halted;
use toolcell::step::{HistoryEntry, RawCall, Step};
use toolcell::{
    Component, Engine, Executor, Json, Provider, Registry, Sealer, Stepper, ToolCall, Turn,
};

const COMPONENTS: [&str; 2] = [
    "example-tools/target/wasm32-wasip2/release/calculator.wasm",
    "example-tools/target/wasm32-wasip2/release/desk.wasm",
];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::new();
    let engine = Engine::builder().build()?;
    for path in paths() {
        let component = Component::load(&engine, std::fs::read(&path).context(path)?).await?;
        registry.register_all(component.tools().iter().cloned())?;
    }

    // A tool's state travels through a client together with its question. The sealer makes sure
    // that it comes back unchanged.
    let executor = Executor::new().with_sealer(Sealer::generate()?);
    let stepper = Stepper::new(registry.clone()).with_executor(executor);
    let mut turn = Turn::default();
    turn.context.tenant = Some("acme".into());

    // If this format cannot express a part of a definition, `notes` says so, beside the `value`.
    let tools = Provider::OpenAi.definitions(&registry.list())?.value;
    let mut messages = vec![
        json!({"role": "user", "content": "Dinner for two on 3 March, 40 each plus 10 %: book it."}),
    ];
    let mut model = script().into_iter();
    let mut done = false;
    while !done {
        let request = json!({"messages": messages, "tools": tools});
        let response = respond(&mut model, &request)?;
        let said = &response["choices"][0]["message"];
        messages.push(said.clone());

        let asked = Provider::OpenAi.calls(&response)?;
        done = asked.calls.is_empty() && asked.unreadable.is_empty();
        let mut results = Vec::new();
        for call in asked.calls.clone() {
            println!("model: {} {}", call.name, call.arguments);
            let entry = answered(&stepper, call, &mut turn).await?;
            // A tool can halt the loop as well.
            done |= entry.halted.is_some();
            let message = entry.message();
            println!(" tool: {}", message.content);
            results.push(message);
        }
        // Calls that could not be parsed get an answer too, so that the model can try again.
        if let Value::Array(results) = Provider::OpenAi.results(&asked.answered(results)).value {
            messages.extend(results);
        }
        turn.iteration += 1;
        if let Some(text) = said["content"].as_str() {
            println!("model: {text}");
        }
    }
    Ok(())
}

/// Makes a call, and repeats it with the person's answer as long as the tool asks a question. No
/// cell waits for the answer.
async fn answered(
    stepper: &Stepper,
    call: ToolCall,
    turn: &mut Turn,
) -> anyhow::Result<HistoryEntry> {
    let mut call = RawCall::from(call);
    loop {
        // A mistake of the model, such as an unknown tool, becomes an entry that the model can
        // read. After too many mistakes in a row, the step ends the turn.
        let Step::History { entry, .. } = stepper.step(call.clone(), turn).await else {
            bail!("the turn is over")
        };
        let Some(Halted::AskUser { question, options, state, .. }) = &entry.halted else {
            return Ok(*entry);
        };
        let answer = person(question, options.as_ref());
        call = call.with_resume(Resume { answer, state: state.clone() });
    }
}

/// A person who fills in a form: takes the last choice of every field.
fn person(question: &str, options: Option<&Json>) -> Json {
    println!(" tool: {question}");
    let fields = options.map(Json::to_value).unwrap_or_default();
    let fields = fields.as_array().into_iter().flatten();
    let chosen = fields.filter_map(|field| {
        let choice = field["choices"].as_array()?.last()?;
        Some((field["field"].as_str()?.to_owned(), choice.clone()))
    });
    let answer = Value::Object(chosen.collect());
    println!("  you: {answer}");
    answer.into()
}

/// A scripted model: returns the next message of the script and ignores the request.
fn respond(script: &mut impl Iterator<Item = Value>, _request: &Value) -> anyhow::Result<Value> {
    let message = script.next().context("the script is over")?;
    Ok(json!({"choices": [{"index": 0, "message": message}]}))
}

/// The model's messages: a call of an unknown tool, the correct calls, and a final text.
fn script() -> Vec<Value> {
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    let sum = json!({"expression": "2 * 40 * 1.1"});
    let table = json!({"name": "Ada", "party_size": 2, "date": "2026-03-03"});
    let calling =
        |calls: Vec<Value>| json!({"role": "assistant", "content": null, "tool_calls": calls});
    vec![
        calling(vec![call("call-1", "calculate", sum.clone())]),
        calling(vec![call("call-2", "calculator", sum), call("call-3", "book_table", table)]),
        json!({"role": "assistant", "content": "Booked for half past nine. It will be 88 in all."}),
    ]
}

/// Returns the paths of the components on the command line, or those of the example tools.
fn paths() -> Vec<String> {
    let given: Vec<_> = std::env::args().skip(1).collect();
    if given.is_empty() { COMPONENTS.map(Into::into).into() } else { given }
}
