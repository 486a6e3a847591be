//! Functions that a model may call, each built from its name, schema, handler and checks, in a
//! conversation with a role.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use serde_json::{Value, json};
use toolcell::message::ResultView;
use toolcell::tool::Invocation;
use toolcell::{
    CallContext, CallOptions, Definition, Executor, Outcome, Provider, RunOptions, Runner, Tool,
    ToolCall,
};
use toolcell_test_guests::rows;
use toolcell_tests::{context, wait_here};

use super::example;
use crate::{form, inside, named, native, registry};

/// The state of a conversation: attributes by name.
fn state(attributes: Value) -> CallContext {
    context(&json!({ "metadata": attributes }))
}

fn attribute(context: &CallContext, name: &str) -> Value {
    context.metadata.as_ref().map(|metadata| metadata.to_value()[name].clone()).unwrap_or_default()
}

fn view(tool: &Tool, arguments: &str, state: CallContext) -> ResultView {
    let completion = crate::call_with(&Executor::new(), tool, arguments, inside(state));
    ResultView::of(&completion, tool.definition())
}

fn stateless(tool: &Tool, arguments: &str) -> ResultView {
    view(tool, arguments, CallContext::default())
}

fn weather() -> Tool {
    let definition = Definition::new("get_weather", "Get the current weather for a location")
        .expect("a name")
        .with_parameters(json!({
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "City name"},
                "limit": {"type": "integer", "default": 10},
            },
            "required": ["location"],
        }))
        .with_attribute("category", json!("weather"));
    let handler = async |arguments: Value| json!({"temp": 22, "condition": "sunny", "location": arguments["location"]});
    Tool::native(definition, handler).expect("a tool")
}

fn email(sent: &Arc<AtomicU32>) -> Tool {
    let sent = Arc::clone(sent);
    let definition = named("send_email").with_parameters(json!({
        "type": "object",
        "properties": {"to": {"type": "string"}, "subject": {"type": "string"}},
        "required": ["to", "subject"],
    }));
    let send = move |_: Value| json!(sent.fetch_add(1, SeqCst) + 1);
    let tool = Tool::native_blocking(definition, send).expect("a tool");
    tool.with_validator(|arguments| {
        let mut errors = Vec::new();
        if arguments["to"].as_str().is_none_or(|to| !to.contains('@')) {
            errors.push("Invalid email address".to_owned());
        }
        if arguments["subject"] == "" {
            errors.push("Empty subject".to_owned());
        }
        errors
    })
}

fn admin() -> Tool {
    native("admin_action", async |_: Value| json!("done")).with_visibility(|arguments, context| {
        attribute(context, "role") == "admin" && arguments["target"] != "itself"
    })
}

#[test]
fn definition_has_name_schema_and_attributes() {
    let tool = weather();
    let definition = tool.definition();
    assert_eq!(definition.name, "get_weather");
    assert_eq!(definition.description, "Get the current weather for a location");
    assert_eq!(definition.attributes["category"], "weather");
    let parameters = definition.parameters.clone().unwrap_or_default();
    assert_eq!(parameters["required"], json!(["location"]));
    assert_eq!(
        Provider::OpenAi.definitions([definition]).expect("a form").value,
        json!([{"type": "function", "function": {
            "name": "get_weather", "description": definition.description, "parameters": parameters,
            "strict": false,
        }}])
    );
    assert!(Definition::new("get weather", "").is_err_and(|error| error.is_definition()));
}

#[test]
fn result_has_value_errors_and_attributes() {
    let read = |view: &ResultView| serde_json::from_str::<Value>(&view.to_text()).expect("JSON");
    let tool = weather();
    let good = stateless(&tool, r#"{"location": "Oslo"}"#);
    let location = good.result.as_ref().map(|value| value.to_value()["location"].clone());
    assert_eq!(location, Some(json!("Oslo")));
    assert!(good.success && good.errors.is_empty());
    assert_eq!(good.attributes["category"], "weather");
    assert_eq!(read(&good)["temp"], 22);

    let bad = stateless(&tool, "{}");
    assert_eq!((bad.success, bad.result.as_ref(), bad.errors.len()), (false, None, 1));
    assert_eq!(bad.attributes["category"], "weather");
    assert_eq!(read(&bad), json!({"error": bad.errors[0]}));
}

#[test]
fn function_without_parameters_takes_any_object() {
    let tool = native("echo", async |arguments: Value| arguments);
    for (arguments, text) in [("", "{}"), ("{}", "{}"), (r#"{"a": [1]}"#, r#"{"a":[1]}"#)] {
        assert_eq!(stateless(&tool, arguments).to_text(), text, "{arguments}");
    }
}

/// A string is its own text; every other value becomes JSON.
#[test]
fn every_value_has_one_text() {
    let tool = native("says", async |arguments: Value| arguments["value"].clone());
    for (value, text) in
        rows::<(Value, &str)>("contract/programs/functions", "every_value_has_one_text")
    {
        let view = stateless(&tool, &json!({"value": value}).to_string());
        assert!(view.success);
        assert_eq!(view.to_text(), text);
    }
}

#[test]
fn role_decides_visible_and_callable_tools() {
    let registry = registry([weather(), admin()]);
    let names = |role: &str| {
        let state = state(json!({"role": role}));
        let visible = wait_here(registry.visible_tools(&Executor::new(), &state));
        visible.iter().map(|tool| tool.definition().name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("guest"), ["get_weather"]);
    assert_eq!(names("admin"), ["get_weather", "admin_action"]);

    let tool = admin();
    let cases = [("guest", "other", false), ("admin", "other", true), ("admin", "itself", false)];
    for (role, target, visible) in cases {
        let (arguments, state) = (json!({"target": target}), state(json!({"role": role})));
        assert_eq!(wait_here(tool.is_visible_with(&arguments, &state)), visible, "{role} {target}");
        let view = view(&tool, &arguments.to_string(), state);
        assert_eq!(view.success, visible, "{role} {target}: {view:?}");
    }
}

#[test]
fn arguments_are_validated_before_the_handler() {
    let sent = Arc::default();
    let tool = email(&sent);
    let arguments = r#"{"to": "ada", "subject": ""}"#;
    let call = ToolCall::new("call-1", "send_email", arguments);
    let faults = wait_here(Executor::new().validate(&tool, call, CallOptions::default()));
    assert_eq!(faults.expect("an answer").len(), 2);
    let bad = stateless(&tool, arguments);
    assert_eq!(bad.errors, ["Invalid email address", "Empty subject"]);
    assert_eq!(bad.to_text(), r#"{"error":"Invalid email address; Empty subject"}"#);
    assert_eq!(sent.load(SeqCst), 0);
    assert!(stateless(&tool, r#"{"to": "ada@example.com", "subject": "Hi"}"#).success);
    assert_eq!(sent.load(SeqCst), 1);
}

#[test]
fn conversation_state_reaches_the_handler() {
    let tool = native(
        "who",
        async |_: Value, invocation: Arc<Invocation>| json!({"result": attribute(&invocation.context, "user")}),
    );
    let view = view(&tool, "{}", state(json!({"user": "ada"})));
    assert_eq!(view.to_text(), r#"{"result":"ada"}"#);
}

/// One round with a model: it calls three functions at once, one of them with an error, and reads
/// three results.
#[test]
fn model_calls_functions_and_reads_results() {
    let tools = [weather(), email(&Arc::default()), example("calculator", "calculator")];
    let call = |(id, name, arguments): (&str, &str, &str)| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    let calls = rows::<(&str, &str, &str)>("contract/programs/functions", "calls_of_a_model");
    let calls: Vec<_> = calls.into_iter().map(call).collect();
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let response = json!({"choices": [{"index": 0, "message": message}]});
    let asked = Provider::OpenAi.calls(&response).expect("calls");
    let runner = Runner::new(registry(tools));
    let outcome = wait_here(runner.run(asked.calls.clone(), RunOptions::default()));
    let outcome = outcome.expect("it starts");
    assert_eq!(outcome.messages[0].attributes["category"], "weather");
    let results = Provider::OpenAi.results(&asked.answered(outcome.messages)).value;
    let expected = rows::<Value>("contract/programs/functions", "results_for_a_model");
    assert_eq!(results, json!(expected));
}

/// A failure of the handler has the same text in its view and in the messages of a run.
#[test]
fn failure_text_is_equal_in_view_and_message() {
    let tool = native("fails", async |_: Value| Outcome::error("no stock"));
    let runner = Runner::new(registry([tool.clone()]));
    let calls = [ToolCall::new("call-1", "fails", "{}")];
    let outcome = wait_here(runner.run(calls, RunOptions::default())).expect("it starts");
    assert_eq!(outcome.messages[0].content, stateless(&tool, "{}").to_text());
    assert_eq!(form(&outcome.messages[0])["is_error"], true);
}
