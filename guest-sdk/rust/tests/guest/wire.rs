//! Conversion of definitions, calls and outcomes, through the exports as the host calls them.

use std::collections::BTreeMap;
use std::time::Duration;

use toolcell_guest::__private::{Entry, Tool, abi, wire};
use toolcell_guest::{Context, Failure, Halt, Link, Outcome, Output, Part, Question, json, tool};

/// Cannot be written as JSON, because a key is not a string.
fn unwritable() -> BTreeMap<Vec<u8>, u8> {
    [(vec![1], 1)].into()
}

/// Says what it is told to say.
#[tool(title = "Say", validate = |shape| vec![shape.clone()], read_only, needs = [kv("read *", "r")])]
fn say(shape: String) -> Outcome {
    match shape.as_str() {
        "ok" => {
            let link = Link::new("file:x").name("x").description("an x").mime_type("text/plain");
            let output = Output::new(1)
                .message("one")
                .part(Part::text("t"))
                .part(Part::image("image/png", [1, 2]));
            let output = output.part(Part::audio("audio/wav", [3])).part(Part::resource_link(link));
            let text = Part::resource("file:a.csv", "text/csv", "a,b");
            output.part(text).part(Part::resource("file:b", "x/y", vec![4])).end_turn().into()
        }
        "bad ok" => Outcome::Ok(Output::new(unwritable())),
        "error" => {
            Failure::new("no").data(json!([1])).retry_after(Duration::from_micros(1_500)).into()
        }
        "bad error" => Failure::new("no").data(unwritable()).into(),
        "ask" => Question::new("?").options(["a"]).answer_schema::<u8>().state(json!(null)).into(),
        "bad ask" => Question::new("?").state(unwritable()).into(),
        "halt" => Halt::new("enough", "all").into(),
        _ => Halt::new("enough", unwritable()).into(),
    }
}

/// Repeats where it was called from.
#[tool]
fn whence(context: &Context) -> String {
    let (id, left, tenant) = (context.call_id(), context.remaining(), context.tenant());
    format!("{id} {left:?} {tenant:?} {:?}", context.state::<u8>())
}

const TOOLS: &[Entry] = &[<say as Tool>::ENTRY, <whence as Tool>::ENTRY];

fn call(name: &str, arguments: &str) -> abi::ToolCall {
    abi::ToolCall { id: "c1".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn context() -> abi::Context {
    abi::Context {
        session_id: None,
        request_id: None,
        thread_id: None,
        run_id: None,
        tenant: Some("acme".to_owned()),
        metadata: None,
        remaining_ms: 20,
        attempt: 1,
        resume: Some(abi::Resume { answer: "true".to_owned(), state: Some("7".to_owned()) }),
        extensions: Vec::new(),
    }
}

fn run(shape: &str) -> abi::Outcome {
    wire::execute(TOOLS, call("say", &json!({ "shape": shape }).to_string()), context())
}

fn message(outcome: abi::Outcome) -> String {
    let abi::Outcome::Error(failure) = outcome else { panic!("not an error: {outcome:?}") };
    failure.message
}

#[test]
fn describe_returns_all_definitions() {
    let definitions = wire::describe(TOOLS);
    let names: Vec<&str> = definitions.iter().map(|definition| definition.name.as_str()).collect();
    assert_eq!(names, ["say", "whence"]);
    assert_eq!(definitions[0].checks, abi::Checks::VALIDATE);
    assert_eq!(definitions[0].hints, abi::Hints::READ_ONLY);
    assert_eq!(definitions[0].extensions, [("title".to_owned(), "\"Say\"".to_owned())]);
    assert_eq!(definitions[0].needs[0].kind, "kv");
    assert_eq!(definitions[1].checks, abi::Checks::empty());
    let parameters = r#"{"additionalProperties":false,"properties":{},"type":"object"}"#;
    assert_eq!(definitions[1].parameters.as_deref(), Some(parameters));
}

#[test]
fn outcomes_keep_their_members_on_the_wire() {
    let abi::Outcome::Ok(output) = run("ok") else { panic!("not ok") };
    let told = (output.value.as_str(), output.message.as_deref(), output.end_turn);
    assert_eq!(told, ("1", Some("one"), true));
    assert_eq!(output.parts.len(), 6);
    assert_eq!(output.extensions[0].0, "resources");
    let named: serde_json::Value = serde_json::from_str(&output.extensions[0].1).expect("JSON");
    let csv = json!({"part": 4, "uri": "file:a.csv", "mime_type": "text/csv"});
    assert_eq!(named, json!([csv, {"part": 5, "uri": "file:b", "mime_type": "x/y"}]));
    let abi::Outcome::Error(failure) = run("error") else { panic!("not an error") };
    let told = (failure.data.as_deref(), failure.retryable, failure.retry_after_ms);
    assert_eq!(told, (Some("[1]"), Some(true), Some(2)));
    let abi::Outcome::AskUser(question) = run("ask") else { panic!("not a question") };
    let told = (question.options.as_deref(), question.state.as_deref());
    assert_eq!(told, (Some(r#"["a"]"#), Some("null")));
    let schema = r#"{"maximum":255,"minimum":0,"type":"integer"}"#;
    assert_eq!(question.answer_schema.as_deref(), Some(schema));
    let abi::Outcome::Halt(halt) = run("halt") else { panic!("not a halt") };
    assert_eq!((halt.reason.as_str(), halt.result.as_str()), ("enough", "\"all\""));
}

#[test]
fn unserializable_value_is_an_error() {
    let problem = "cannot be written as JSON: key must be a string";
    assert_eq!(message(run("bad ok")), format!("the tool's result {problem}"));
    assert_eq!(message(run("bad error")), format!("no (its details {problem})"));
    assert_eq!(message(run("bad ask")), format!("the tool's state {problem}"));
    assert_eq!(message(run("bad halt")), format!("the tool's result {problem}"));
}

#[test]
fn context_reaches_the_tool() {
    let outcome = wire::execute(TOOLS, call("whence", "{}"), context());
    let abi::Outcome::Ok(output) = outcome else { panic!("not ok") };
    assert_eq!(output.value, r#""c1 20ms Some(\"acme\") Some(Ok(7))""#);
}

#[test]
fn unknown_tool_names_are_refused() {
    let unknown = "this component has no tool named `sya`";
    assert_eq!(message(wire::execute(TOOLS, call("sya", "{}"), context())), unknown);
    assert_eq!(wire::validate(TOOLS, &call("sya", "{}")), [unknown]);
    assert_eq!(wire::validate(TOOLS, &call("say", r#"{"shape":"odd"}"#)), ["odd"]);
    assert!(!wire::visible(TOOLS, "sya", context()));
    assert!(wire::visible(TOOLS, "say", context()));
}
