//! The three tools that replace a long list.

use serde_json::{Value, json};
use toolcell::{CallResult, Definition, Refusal, Registry, Tenant, Tool, ToolCall, Turn};
use toolcell_server::service::{ManyTools, RunRequest, StepRequest};
use toolcell_server::{CallRequest, Principal, RequestError, ServedTools, Service};
use toolcell_test_guests::rows;

use crate::setup::native;

const FACADE: [&str; 3] = ["tools_call", "tools_describe", "tools_search"];

/// Returns tools `area_verb` that answer with their name and arguments. Those of the area `hidden`
/// are invisible.
fn registry() -> Registry {
    let registry = Registry::new();
    for area in ["invoice", "calendar", "hidden"] {
        for (verb, description) in [
            ("create", "Creates a new one"),
            ("delete", "Removes one for good"),
            ("find", "Looks one up"),
        ] {
            let name = format!("{area}_{verb}");
            let description = format!("{description} in the {area} system.");
            let definition = Definition::new(&name, description).unwrap().with_parameters(json!({
                "type": "object",
                "properties": {"id": {"type": "integer"}, "note": {"type": "string", "description": "A remark"}},
                "required": ["id"],
            }));
            let answer = move |arguments: Value| {
                let answer = json!({"tool": name, "arguments": arguments});
                async move { answer }
            };
            let tool = Tool::native(definition, answer).unwrap();
            registry.register(tool.with_visibility(move |_, _| area != "hidden")).unwrap();
        }
    }
    registry
}

fn service(many: ManyTools) -> Service {
    let served = ServedTools::new(&registry()).with_many_tools(many);
    let tools = ["invoice_create", "invoice_find"].map(|name| name.parse().expect("a rule"));
    let few = Tenant { tools: Some(tools.into()), ..Tenant::default() };
    let served = served.with_tenant("all", Tenant::default()).with_tenant("few", few);
    Service::builder(served.with_anonymous(Tenant::default())).build().expect("a service")
}

fn above(tools: usize) -> Service {
    service(ManyTools { threshold: tools, ..ManyTools::default() })
}

async fn names(service: &Service, principal: &Principal) -> Vec<String> {
    let page = service.tools(principal, None).await.expect("a page");
    page.tools.iter().map(|tool| tool.definition().name.clone()).collect()
}

async fn called(service: &Service, tool: &str, given: Value) -> Result<CallResult, RequestError> {
    let request = CallRequest::new(ToolCall::new("1", tool, given.to_string()));
    Ok(service.call(&Principal::local(), request).await?.completion.result)
}

async fn value(service: &Service, tool: &str, arguments: Value) -> Value {
    let result = called(service, tool, arguments).await.expect("the call is made");
    result.value().unwrap_or_else(|| panic!("{result:?}")).to_value()
}

#[tokio::test]
async fn search_replaces_only_tenants_long_tool_lists() {
    let service = above(5);
    let tenant = |name| Principal::new(Some(name), "key");
    assert_eq!(names(&service, &tenant("all")).await, FACADE);
    assert_eq!(names(&service, &tenant("few")).await, ["invoice_create", "invoice_find"]);
    let whole = above(9);
    assert_eq!(names(&whole, &tenant("all")).await.len(), 6, "without the hidden ones");
    let refused = called(&whole, "tools_search", json!({"query": "x"})).await;
    let refused = refused.expect_err("there is no search");
    assert!(matches!(refused, RequestError::UnknownTool { .. }), "{refused:?}");
}

#[tokio::test]
async fn tool_is_found_described_and_called() {
    let service = above(5);
    let found =
        value(&service, "tools_search", json!({"query": "remove an invoice", "limit": 1.0})).await;
    let expected = json!({"name": "invoice_delete", "description": "Removes one for good in the invoice system.", "parameters": ["id", "note?"]});
    assert_eq!(found, json!({"tools": [expected]}));

    let names = json!({"names": ["invoice_delete", "hidden_find", "no_such"]});
    let described = value(&service, "tools_describe", names).await;
    assert_eq!(described["tools"][0]["parameters"]["required"], json!(["id"]));
    // A hidden tool is like none.
    assert_eq!(described["unknown"], json!(["hidden_find", "no_such"]));

    let call = json!({"name": "invoice_delete", "arguments": {"id": 7}});
    let answer = value(&service, "tools_call", call).await;
    assert_eq!(answer, json!({"tool": "invoice_delete", "arguments": {"id": 7}}));
    let direct = value(&service, "invoice_delete", json!({"id": 7})).await;
    assert_eq!(direct, answer, "its own name works too");

    let metrics = service.metrics_text();
    let counted = r#"toolcell_calls_total{tenant="",tool="tools_search",outcome="ok"} 1"#;
    assert!(metrics.lines().any(|line| line == counted), "{metrics}");
}

#[tokio::test]
async fn searches_reveal_no_hidden_tools() {
    let service = above(5);
    for query in ["hidden", "hidden system", "hidden_create", "find"] {
        let found = value(&service, "tools_search", json!({"query": query, "limit": 20})).await;
        assert!(!found.to_string().contains("hidden"), "{query}: {found}");
    }
    for name in ["hidden_find", "no_such"] {
        let call = json!({"name": name, "arguments": {"id": 1}});
        let refused = called(&service, "tools_call", call).await;
        let is_unknown =
            matches!(&refused, Err(RequestError::UnknownTool { name: told, .. }) if told == name);
        assert!(is_unknown, "{refused:?}");
    }
}

#[tokio::test]
async fn argument_errors_refer_to_the_target_tool() {
    let service = above(5);
    for (arguments, expected) in rows::<(Value, &str)>("server/many", "bad_arguments") {
        let result = called(&service, "tools_call", arguments.clone()).await.expect("an answer");
        let CallResult::Refusal(Refusal::InvalidArguments(faults)) = &result else {
            panic!("{arguments}: {result:?}")
        };
        let told = serde_json::to_string(faults).expect("JSON");
        assert!(told.contains(expected), "{arguments}: {told}");
    }
}

#[tokio::test]
async fn search_answers_stay_within_token_budget() {
    let service = service(ManyTools { threshold: 5, tokens: 60 });
    let found = value(&service, "tools_search", json!({"query": "invoice", "limit": 20})).await;
    assert_eq!(found["tools"].as_array().map(Vec::len), Some(2), "{found}");
    assert_eq!(found["omitted"], json!(1), "{found}");
    let all = ["invoice_create", "invoice_find"];
    let described = value(&service, "tools_describe", json!({"names": all})).await;
    // The first is always whole.
    assert_eq!(described["omitted"], json!(["invoice_find"]), "{described}");
}

#[tokio::test]
async fn runs_and_steps_call_the_target_tool() {
    let service = above(5);
    let arguments = json!({"name": "invoice_find", "arguments": {"id": 3}}).to_string();
    let request = RunRequest::new([ToolCall::new("1", "tools_call", arguments.clone())]);
    let outcome = service.run(&Principal::local(), request).await.expect("a run");
    let told = serde_json::to_string(&outcome.messages).expect("JSON");
    assert!(told.contains("invoice_find") && !told.contains("tools_call"), "{told}");

    let calls = [ToolCall::new("1", "tools_call", arguments)];
    let request = StepRequest::new(calls, Turn::default());
    let (steps, _) = service.steps(&Principal::local(), request).await.expect("steps");
    let told = format!("{steps:?}");
    assert!(told.contains("invoice_find") && told.contains("success: true"), "{told}");
}

#[tokio::test]
async fn authors_tool_takes_precedence_over_search() {
    let registry = registry();
    registry.register(native("tools_call", async |_: Value| json!(1))).unwrap();
    let many = ManyTools { threshold: 1, ..ManyTools::default() };
    let served = ServedTools::new(&registry).with_many_tools(many);
    let service = Service::builder(served).build().expect("a service");
    assert_eq!(names(&service, &Principal::local()).await.len(), 7);
}
