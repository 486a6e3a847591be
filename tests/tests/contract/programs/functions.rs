//! Functions that a model may call, each built from its name, schema, handler and checks, in a
//! conversation with a role.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use serde_json::{Value, json};
use toolcell::message::ResultView;
use toolcell::tool::Invocation;
use toolcell::{
    CallContext, CallOptions, Definition, Executor, Outcome, Provider, Registry, RunOptions,
    Runner, Tool, ToolCall,
};
use toolcell_tests::wait_here;

use super::{example, form, named};

/// The state of a conversation: attributes by name.
fn state(attributes: Value) -> CallContext {
    let mut context = CallContext::default();
    context.metadata = Some(attributes.into());
    context
}

fn attribute(context: &CallContext, name: &str) -> Value {
    context.metadata.as_ref().map(|metadata| metadata.to_value()[name].clone()).unwrap_or_default()
}

fn view(tool: &Tool, arguments: &Value, state: CallContext) -> ResultView {
    let call = ToolCall::with_value("call-1", tool.definition().name.as_str(), arguments);
    let completion = wait_here(Executor::new().call(
        tool,
        call,
        CallOptions { context: state.into(), ..CallOptions::default() },
    ));
    ResultView::of(&completion, tool.definition())
}

fn weather() -> Result<Tool, toolcell::Error> {
    let definition = Definition::new("get_weather", "Get the current weather for a location")?
        .with_parameters(json!({
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "City name"},
                "limit": {"type": "integer", "default": 10},
            },
            "required": ["location"],
        }))
        .with_attribute("category", json!("weather"));
    Tool::native(
        definition,
        async |arguments: Value| json!({"temp": 22, "condition": "sunny", "location": arguments["location"]}),
    )
}

fn email(sent: &Arc<AtomicU32>) -> Result<Tool, toolcell::Error> {
    let sent = Arc::clone(sent);
    let definition = Definition::new("send_email", "Send an email")?.with_parameters(json!({
        "type": "object",
        "properties": {"to": {"type": "string"}, "subject": {"type": "string"}},
        "required": ["to", "subject"],
    }));
    let tool =
        Tool::native_blocking(definition, move |_: Value| json!(sent.fetch_add(1, SeqCst) + 1))?;
    Ok(tool.with_validator(|arguments| {
        let mut errors = Vec::new();
        if arguments["to"].as_str().is_none_or(|to| !to.contains('@')) {
            errors.push("Invalid email address".to_owned());
        }
        if arguments["subject"] == "" {
            errors.push("Empty subject".to_owned());
        }
        errors
    }))
}

fn admin() -> Result<Tool, toolcell::Error> {
    let definition = Definition::new("admin_action", "Perform an admin action")?;
    let tool = Tool::native(definition, async |_: Value| json!("done"))?;
    Ok(tool.with_visibility(|arguments, context| {
        attribute(context, "role") == "admin" && arguments["target"] != "itself"
    }))
}

#[test]
fn definition_has_name_schema_and_attributes() -> anyhow::Result<()> {
    let tool = weather()?;
    let definition = tool.definition();
    assert_eq!(definition.name, "get_weather");
    assert_eq!(definition.description, "Get the current weather for a location");
    assert_eq!(definition.attributes["category"], "weather");
    let parameters = definition.parameters.clone().unwrap_or_default();
    assert_eq!(parameters["required"], json!(["location"]));
    assert_eq!(
        Provider::OpenAi.definitions([definition])?.value,
        json!([{"type": "function", "function": {
            "name": "get_weather", "description": definition.description, "parameters": parameters,
            "strict": false,
        }}])
    );
    assert!(Definition::new("get weather", "").is_err_and(|error| error.is_definition()));
    Ok(())
}

#[test]
fn result_has_value_errors_and_attributes() -> anyhow::Result<()> {
    let tool = weather()?;
    let good = view(&tool, &json!({"location": "Oslo"}), CallContext::default());
    assert_eq!(
        good.result.as_ref().map(|value| value.to_value()["location"].clone()),
        Some(json!("Oslo"))
    );
    assert!(good.success && good.errors.is_empty());
    assert_eq!(good.attributes["category"], "weather");
    assert_eq!(serde_json::from_str::<Value>(&good.to_text())?["temp"], 22);

    let bad = view(&tool, &json!({}), CallContext::default());
    assert_eq!((bad.success, bad.result.as_ref(), bad.errors.len()), (false, None, 1));
    assert_eq!(bad.attributes["category"], "weather");
    assert_eq!(serde_json::from_str::<Value>(&bad.to_text())?, json!({"error": bad.errors[0]}));
    Ok(())
}

#[test]
fn function_without_parameters_takes_any_object() -> anyhow::Result<()> {
    let tool = Tool::native(named("echo"), async |arguments: Value| arguments)?;
    for (arguments, text) in [("", "{}"), ("{}", "{}"), (r#"{"a": [1]}"#, r#"{"a":[1]}"#)] {
        let call = ToolCall::new("call-1", "echo", arguments);
        let completion = wait_here(Executor::new().call(&tool, call, CallOptions::default()));
        assert_eq!(ResultView::of(&completion, tool.definition()).to_text(), text, "{arguments}");
    }
    Ok(())
}

/// A string is its own text; every other value becomes JSON.
#[test]
fn every_value_has_one_text() -> anyhow::Result<()> {
    let tool = Tool::native(named("says"), async |arguments: Value| arguments["value"].clone())?;
    let values = [
        (json!("done"), "done"),
        (json!(4.5), "4.5"),
        (json!(true), "true"),
        (json!([1, 2]), "[1,2]"),
        (Value::Null, "null"),
    ];
    for (value, text) in values {
        let view = view(&tool, &json!({"value": value}), CallContext::default());
        assert!(view.success);
        assert_eq!(view.to_text(), text);
    }
    Ok(())
}

#[test]
fn role_decides_visible_and_callable_tools() -> anyhow::Result<()> {
    let registry = Registry::new();
    registry.register_all([weather()?, admin()?])?;
    let names = |role: &str| {
        let visible =
            wait_here(registry.visible_tools(&Executor::new(), &state(json!({"role": role}))));
        visible.iter().map(|tool| tool.definition().name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("guest"), ["get_weather"]);
    assert_eq!(names("admin"), ["get_weather", "admin_action"]);

    let tool = admin()?;
    let cases = [("guest", "other", false), ("admin", "other", true), ("admin", "itself", false)];
    for (role, target, visible) in cases {
        let (arguments, state) = (json!({"target": target}), state(json!({"role": role})));
        assert_eq!(wait_here(tool.is_visible_with(&arguments, &state)), visible, "{role} {target}");
        let view = view(&tool, &arguments, state);
        assert_eq!(view.success, visible, "{role} {target}: {view:?}");
    }
    Ok(())
}

#[test]
fn arguments_are_validated_before_the_handler() -> anyhow::Result<()> {
    let sent = Arc::default();
    let tool = email(&sent)?;
    let arguments = json!({"to": "ada", "subject": ""});
    let call = ToolCall::with_value("call-1", "send_email", &arguments);
    let faults = wait_here(Executor::new().validate(&tool, call, CallOptions::default()))?;
    assert_eq!(faults.len(), 2);
    let bad = view(&tool, &arguments, CallContext::default());
    assert_eq!(bad.errors, ["Invalid email address", "Empty subject"]);
    assert_eq!(bad.to_text(), r#"{"error":"Invalid email address; Empty subject"}"#);
    assert_eq!(sent.load(SeqCst), 0);
    assert!(
        view(&tool, &json!({"to": "ada@example.com", "subject": "Hi"}), CallContext::default())
            .success
    );
    assert_eq!(sent.load(SeqCst), 1);
    Ok(())
}

#[test]
fn conversation_state_reaches_the_handler() -> anyhow::Result<()> {
    let tool = Tool::native(
        named("who"),
        async |_: Value, invocation: Arc<Invocation>| json!({"result": attribute(&invocation.context, "user")}),
    )?;
    assert_eq!(
        view(&tool, &json!({}), state(json!({"user": "ada"}))).to_text(),
        r#"{"result":"ada"}"#
    );
    Ok(())
}

/// One round with a model: it calls three functions at once, one of them with an error, and reads
/// three results.
#[test]
fn model_calls_functions_and_reads_results() -> anyhow::Result<()> {
    let registry = Registry::new();
    registry.register_all([
        weather()?,
        email(&Arc::default())?,
        example("calculator", "calculator")?,
    ])?;
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    let response = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": null, "tool_calls": [
        call("call-1", "get_weather", json!({"location": "Oslo"})),
        call("call-2", "send_email", json!({"to": "ada", "subject": "Hi"})),
        call("call-3", "calculator", json!({"expression": "2 * 21"})),
    ]}}]});
    let asked = Provider::OpenAi.calls(&response)?;
    let outcome = wait_here(Runner::new(registry).run(asked.calls.clone(), RunOptions::default()))?;
    assert_eq!(outcome.messages[0].attributes["category"], "weather");
    let results = Provider::OpenAi.results(&asked.answered(outcome.messages)).value;
    assert_eq!(
        results,
        json!([
            {"role": "tool", "tool_call_id": "call-1", "content": r#"{"condition":"sunny","location":"Oslo","temp":22}"#},
            {"role": "tool", "tool_call_id": "call-2", "content": r#"{"error":"Invalid email address"}"#},
            {"role": "tool", "tool_call_id": "call-3", "content": "42"},
        ])
    );
    Ok(())
}

/// A failure of the handler has the same text in its view and in the messages of a run.
#[test]
fn failure_text_is_equal_in_view_and_message() -> anyhow::Result<()> {
    let tool = Tool::native(named("fails"), async |_: Value| Outcome::error("no stock"))?;
    let registry = Registry::new();
    registry.register(tool.clone())?;
    let outcome = wait_here(
        Runner::new(registry).run([ToolCall::new("call-1", "fails", "{}")], RunOptions::default()),
    )?;
    assert_eq!(
        outcome.messages[0].content,
        view(&tool, &json!({}), CallContext::default()).to_text()
    );
    assert_eq!(form(&outcome.messages[0])["is_error"], true);
    Ok(())
}
