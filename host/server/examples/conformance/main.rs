//! The fixture of the public MCP conformance suite: the tools, prompts and resources that its
//! scenarios name.
//!
//! Prints its URL on one line, and serves until standard input is closed.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a fixture")]

mod extension;
mod inputs;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use toolcell::tool::Invocation;
use toolcell::{Component, Definition, Engine, Outcome, Question, Registry, Tool};
use toolcell_server::mcp::{McpOptions, routes};
use toolcell_server::{Authenticator, HttpServer, ListenOptions, ServedTools, Service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = tools().await?;
    let service = Service::builder(ServedTools::new(&registry)).build()?;
    let fixture = extension::Fixture { service: service.clone(), registry };
    let options =
        McpOptions { extension: Arc::new(fixture), sessions: 1000, ..McpOptions::default() };
    let listen =
        ListenOptions { protected: routes(service.clone(), options), ..ListenOptions::default() };
    let server = HttpServer::bind(service, Authenticator::open(), listen).await?;
    println!("http://{}/mcp", server.address());
    server
        .serve(async {
            let _ = tokio::io::stdin().read(&mut [0]).await;
        })
        .await;
    Ok(())
}

/// Returns the tools of the service: those of a component, and closures that ask questions.
async fn tools() -> Result<Registry, Box<dyn std::error::Error>> {
    let engine = Engine::builder().build()?;
    let component = Component::load(&engine, toolcell_test_guests::bytes("suite")).await?;
    let registry = Registry::new();
    registry.register_all(component.tools().iter().cloned())?;
    registry.register_all([
        in_rounds("test_streaming_elicitation", &[("What is your name?", "name", "string")]),
        in_rounds(
            "test_input_required_result_request_state",
            &[("Please confirm", "ok", "boolean")],
        ),
        in_rounds(
            "test_input_required_result_tampered_state",
            &[("Please confirm", "ok", "boolean")],
        ),
        in_rounds(
            "test_input_required_result_multi_round",
            &[
                ("Step 1: What is your name?", "name", "string"),
                ("Step 2: What is your favorite color?", "color", "string"),
            ],
        ),
        asks("test_elicitation_sep1034_defaults", defaults()),
        asks("test_elicitation_sep1330_enums", enums()),
        asks(
            "test_elicitation",
            json!({
                "type": "object",
                "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
                "required": ["username", "email"],
            }),
        ),
    ])?;
    Ok(registry)
}

/// Returns a tool that asks for these values and answers with them.
fn asks(name: &str, schema: Value) -> Tool {
    let definition = Definition::new(name, format!("The fixture {name}.")).unwrap();
    let answer = move |arguments: Value, call: Arc<Invocation>| {
        let schema = schema.clone();
        async move {
            match &call.context.resume {
                Some(resume) => {
                    Outcome::ok(json!(format!("action=accept, content={}", resume.answer)))
                }
                None => {
                    let message =
                        arguments["message"].as_str().unwrap_or("Fill in the form").to_owned();
                    Outcome::AskUser(Question::new(message).with_answer_schema(schema))
                }
            }
        }
    };
    Tool::native(definition, answer).unwrap()
}

/// Returns a tool that asks for one field after the other, and answers with all of them. Its state
/// has the fields so far.
fn in_rounds(name: &str, fields: &'static [(&str, &str, &str)]) -> Tool {
    let definition = Definition::new(name, format!("The fixture {name}.")).unwrap();
    let answer = async move |_: Value, call: Arc<Invocation>| {
        let mut got = Vec::new();
        if let Some(resume) = &call.context.resume {
            let before = resume.state.as_ref().map(|state| state.to_value());
            got.extend(before.and_then(|before| before.as_array().cloned()).unwrap_or_default());
            got.push(resume.answer.to_value());
        }
        match fields.get(got.len()) {
            Some((message, field, kind)) => {
                let schema = json!({"type": "object", "properties": {*field: {"type": kind}}, "required": [field]});
                Outcome::AskUser(
                    Question::new(*message).with_answer_schema(schema).with_state(json!(got)),
                )
            }
            None => Outcome::ok(json!(format!("state-ok: {}", json!(got)))),
        }
    };
    Tool::native(definition, answer).unwrap()
}

fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }})
}

fn enums() -> Value {
    let titled = |text: &str| {
        json!([
            {"const": "value1", "title": format!("First {text}")},
            {"const": "value2", "title": format!("Second {text}")},
            {"const": "value3", "title": format!("Third {text}")},
        ])
    };
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    }})
}
