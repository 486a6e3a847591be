//! A question: a tool asks a person, and the same call is made again with the answer. No cell waits
//! for the person.
//!
//! `cargo run --example question`, from the repository's root after `cargo xtask demo`. The person
//! is a script here.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use anyhow::Context as _;
use serde_json::{Value, json};
use toolcell::call::Resume;
use toolcell::{
    CallContext, CallOptions, CallResult, Component, Engine, Executor, Json, Outcome, Question,
    Sealer, ToolCall,
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let engine = Engine::builder().build()?;
    let component = Component::load(&engine, toolcell_examples::component("desk")?).await?;
    let tool = component.tool("book_table")?;

    // A tool's state travels through a client together with its question. The sealer makes sure
    // that it comes back unchanged, for the same tool, arguments and tenant. With
    // `Sealer::from_directory`, it can come back after a restart, too.
    let executor = Executor::new().with_sealer(Sealer::generate()?);
    let arguments = json!({"name": "Ada", "party_size": 2, "date": "2026-03-03"});
    let mut context = CallContext::default();
    context.tenant = Some("acme".into());
    for id in ["call-1", "call-2"] {
        let call = ToolCall::with_value(id, "book_table", &arguments);
        let options = CallOptions { context: context.clone().into(), ..CallOptions::default() };
        let completion = executor.call(tool, call, options).await;
        if let CallResult::Outcome(Outcome::AskUser(question)) = &completion.result {
            let answer = person(question);
            context.resume = Some(Resume { answer, state: question.state.clone() });
        } else {
            println!("tool: {}", completion.result.value().context("the call failed")?);
        }
    }
    Ok(())
}

/// A person who fills in a form: takes the last choice of every field.
fn person(question: &Question) -> Json {
    println!("tool: {}", question.question);
    let fields = question.options.as_ref().map(Json::to_value).unwrap_or_default();
    let fields = fields.as_array().into_iter().flatten();
    let chosen = fields.filter_map(|field| {
        let choice = field["choices"].as_array()?.last()?;
        Some((field["field"].as_str()?.to_owned(), choice.clone()))
    });
    let answer = Value::Object(chosen.collect());
    println!(" you: {answer}");
    answer.into()
}
