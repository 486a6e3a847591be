//! Data about a tool and its calls: annotations in the list, and the receipt in results.

use serde_json::{Value, json};
use toolcell::tool::Hints;
use toolcell::{Definition, Registry, Tool};
use toolcell_server::mcp::McpOptions;
use toolcell_server::{ServedTools, Service};

use super::client::{Client, stateless};
use super::fixture::service;

const PAGE: &str = include_str!("../../../../../docs/json.md");

/// Returns a client of each era, with the metadata of its requests.
async fn clients(service: &Service) -> [(Client, Value); 2] {
    let mut session = Client::start(service.clone(), McpOptions::default());
    session.initialize(json!({})).await;
    [
        (session, json!({})),
        (Client::start(service.clone(), McpOptions::default()), stateless(json!({}))),
    ]
}

#[tokio::test]
async fn tool_hints_become_annotations_none_without_hints() {
    let all = [[true, true, false, true], [true, false, false, false], [false, true, true, false]];
    let registry = Registry::new();
    let tool = |name: String, hints: Hints| {
        let mut definition = Definition::new(name, "Does it.").unwrap();
        definition.hints = hints;
        registry
            .register(Tool::native(definition, async |_: Value| json!("done")).unwrap())
            .unwrap();
    };
    for (at, [read_only, idempotent, destructive, open_world]) in (0..).zip(all) {
        let mut hints = Hints::default();
        (hints.read_only, hints.idempotent) = (read_only, idempotent);
        (hints.destructive, hints.open_world) = (destructive, open_world);
        tool(format!("tool_{at}"), hints);
    }
    tool("tool_without".into(), Hints::default());
    let service = Service::builder(ServedTools::new(&registry)).build().unwrap();
    for (mut client, meta) in clients(&service).await {
        let listed =
            client.ask(1, "tools/list", json!({"_meta": meta})).await["result"]["tools"].take();
        for (at, [read_only, idempotent, destructive, open_world]) in (0..).zip(all) {
            let expected = json!({"readOnlyHint": read_only, "idempotentHint": idempotent,
                "destructiveHint": destructive, "openWorldHint": open_world});
            assert_eq!(listed[at]["annotations"], expected, "{listed}");
        }
        let without = &listed[all.len()];
        assert_eq!(
            (&without["name"], without.get("annotations")),
            (&json!("tool_without"), None),
            "{listed}"
        );
        client.end().await.unwrap();
    }
}

/// Checks calls with each kind of ending.
#[tokio::test]
async fn every_result_has_the_documented_usage_receipt() {
    let example = PAGE
        .split_once("```json Usage\n")
        .and_then(|(_, rest)| rest.split_once("\n```"))
        .unwrap()
        .0;
    let example: Value = serde_json::from_str(example).unwrap();
    let members =
        |receipt: &Value| -> Vec<String> { receipt.as_object().unwrap().keys().cloned().collect() };
    let (service, ..) = service();
    for (mut client, meta) in clients(&service).await {
        for (tool, arguments) in [
            ("echo", json!({"n": 1})),
            ("echo", json!({"n": "x"})),
            ("ask", json!({})),
            ("halt", json!({})),
            ("fail", json!({})),
        ] {
            let told = client
                .ask(1, "tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}))
                .await;
            let receipt = &told["result"]["_meta"]["toolcell/usage"];
            assert!(receipt.is_object(), "{tool}: {told}");
            assert_eq!(members(receipt), members(&example), "{tool}: {told}");
            assert!(receipt["wall_us"].is_u64() && receipt["host_calls"] == 0, "{tool}: {told}");
            // A native tool has no instructions to count.
            assert!(receipt["fuel"].is_null(), "{tool}: {told}");
            assert_eq!(receipt["bytes_in"], arguments.to_string().len(), "{tool}: {told}");
        }
        client.end().await.unwrap();
    }
}

#[tokio::test]
async fn server_without_tools_says_why_in_instructions() {
    let service = Service::builder(ServedTools::new(&Registry::new())).build().unwrap();
    let options = || McpOptions { instructions: Some("Hello.".into()), ..McpOptions::default() };
    let opened = Client::start(service.clone(), options()).initialize(json!({})).await;
    let mut client = Client::start(service, options());
    let discovered = client.ask(1, "server/discover", json!({"_meta": stateless(json!({}))})).await;
    for told in [opened, discovered] {
        let text = told["result"]["instructions"].as_str().unwrap();
        assert!(text.starts_with("Hello.\n") && text.contains("`toolcell approve`"), "{told}");
    }
}
