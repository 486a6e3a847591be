//! Tests untrusted input: schemas that refer to the host's network, and error texts that try to
//! break out of their JSON string.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};

use serde_json::{Value, json};
use toolcell::message::JsonEncoder;
use toolcell::outcome::HandlerError;
use toolcell::{Executor, Outcome, RunOptions, Runner, Tool, ToolCall};
use toolcell_test_guests::rows;
use toolcell_tests::wait_here;

use crate::{call, form, named, native, registry};

/// Returns schemas that refer to the URL `at`, at the root and nested, with each keyword that can
/// refer.
fn pointing(at: &str) -> Vec<Value> {
    let keywords =
        ["$ref", "$schema", "$id", "id", "$dynamicRef", "$recursiveRef", "$anchor", "$vocabulary"];
    let schemas = keywords.into_iter().flat_map(|keyword| {
        let word = if keyword == "$vocabulary" { json!({at: true}) } else { json!(at) };
        let points = json!({keyword: word});
        [
            points.clone(),
            json!({"properties": {"a": points}}),
            json!({"anyOf": [{"items": points}, true]}),
            json!({"$defs": {"x": points}, "properties": {"a": {"$ref": "#/$defs/x"}}}),
            json!({"$defs": {"x": points, "y": {"$ref": at}}}),
            json!({"$id": at, "properties": {"a": {"$ref": "other.json"}}}),
        ]
    });
    schemas.collect()
}

#[test]
fn remote_schemas_are_never_fetched() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port of loopback");
    listener.set_nonblocking(true).expect("a socket that can");
    let address = listener.local_addr().expect("its address");
    let mut loaded = 0;
    for schema in ["http", "https", "ftp"]
        .iter()
        .flat_map(|scheme| pointing(&format!("{scheme}://{address}/s.json")))
    {
        let definitions =
            [named("t").with_parameters(schema.clone()), named("t").with_output(schema)];
        for definition in definitions {
            let Ok(tool) = Tool::native(definition, async |_: Value| json!({"a": [1]})) else {
                continue;
            };
            loaded += 1;
            call(&Executor::new(), &tool, r#"{"a": [1]}"#);
        }
    }
    assert!(loaded > 0, "some are only names");
    // A client that had connected would wait here.
    let peer = listener.accept().map(|(_, peer)| peer).map_err(|error| error.kind());
    assert_eq!(peer, Err(ErrorKind::WouldBlock));
}

/// Returns texts that try to break out of their JSON string, or to pass for instructions or markup.
fn texts() -> Vec<String> {
    let short = rows::<String>("contract/calls/strangers", "texts").into_iter();
    short.chain(["x".repeat(1 << 20), "\u{1}".repeat(100_000)]).collect()
}

/// The text of an error is always one string in one member. The contract passes it through
/// unchanged, so the limit of a result bounds its cost.
#[test]
fn error_text_stays_one_json_string() {
    for text in texts() {
        for outcome in [
            Outcome::error(&*text),
            Outcome::Error(HandlerError::new(&*text).with_data(json!(text))),
        ] {
            let has_data = matches!(&outcome, Outcome::Error(error) if error.data.is_some());
            let tool = native("t", async move |_: Value| outcome.clone());
            let fits = text.len() < 1 << 20;
            let completion = call(&Executor::new(), &tool, "{}");
            let told = form(&completion.result);
            let runner = Runner::new(registry([tool])).with_encoder(JsonEncoder);
            let calls = [ToolCall::new("1", "t", "{}")];
            let ran = wait_here(runner.run(calls, RunOptions::default())).expect("it is known");
            assert_eq!(ran.messages.len(), 1);
            let read: Value = serde_json::from_str(&ran.messages[0].content).expect("JSON");
            let names: Vec<_> =
                read.as_object().expect("an object").keys().map(String::as_str).collect();
            if has_data && !fits {
                assert_eq!(told["tool_error"]["reason"], "invalid_return");
                assert_eq!(names, ["error"]);
                continue;
            }
            assert_eq!(told["error"]["message"], text);
            assert_eq!(read["error"], text);
            assert_eq!(names, if has_data { &["data", "error"][..] } else { &["error"] });
        }
    }
}
