//! Data about a tool and its calls: annotations in the list, and the receipt in results.

use serde_json::{Value, json};
use toolcell::tool::Hints;
use toolcell::{Registry, Tool};
use toolcell_server::mcp::McpOptions;

use super::client::{Client, eras, stateless};
use super::fixture::service;
use crate::setup::{named, serving};

const PAGE: &str = include_str!("../../../../../docs/json.md");

#[tokio::test]
async fn tool_hints_become_annotations_none_without_hints() {
    let all = [[true, true, false, true], [true, false, false, false], [false, true, true, false]];
    let registry = Registry::new();
    let tool = |name: &str, hints: Hints| {
        let mut definition = named(name);
        definition.hints = hints;
        let tool = Tool::native(definition, async |_: Value| json!("done")).unwrap();
        registry.register(tool).unwrap();
    };
    for (at, [read_only, idempotent, destructive, open_world]) in (0..).zip(all) {
        let mut hints = Hints::default();
        (hints.read_only, hints.idempotent) = (read_only, idempotent);
        (hints.destructive, hints.open_world) = (destructive, open_world);
        tool(&format!("tool_{at}"), hints);
    }
    tool("tool_without", Hints::default());
    for (mut client, meta) in eras(&serving(&registry), &McpOptions::default()).await {
        let listed =
            client.ask(1, "tools/list", json!({"_meta": meta})).await["result"]["tools"].take();
        for (at, [read_only, idempotent, destructive, open_world]) in (0..).zip(all) {
            let expected = json!({"readOnlyHint": read_only, "idempotentHint": idempotent,
                "destructiveHint": destructive, "openWorldHint": open_world});
            assert_eq!(listed[at]["annotations"], expected, "{listed}");
        }
        let without = &listed[all.len()];
        assert_eq!(without["name"], "tool_without", "{listed}");
        assert_eq!(without.get("annotations"), None, "{listed}");
        client.end().await.unwrap();
    }
}

/// Checks calls with each kind of ending.
#[tokio::test]
async fn every_result_has_the_documented_usage_receipt() {
    let (_, example) = PAGE.split_once("```json Usage\n").unwrap();
    let (example, _) = example.split_once("\n```").unwrap();
    let example: Value = serde_json::from_str(example).unwrap();
    let members =
        |receipt: &Value| -> Vec<String> { receipt.as_object().unwrap().keys().cloned().collect() };
    for (mut client, meta) in eras(&service().0, &McpOptions::default()).await {
        for (tool, arguments) in [
            ("echo", json!({"n": 1})),
            ("echo", json!({"n": "x"})),
            ("ask", json!({})),
            ("halt", json!({})),
            ("fail", json!({})),
        ] {
            let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
            let told = client.ask(1, "tools/call", params).await;
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
    let service = serving(&Registry::new());
    let options = || McpOptions { instructions: Some("Hello.".into()), ..McpOptions::default() };
    let opened = Client::start(service.clone(), options()).initialize(json!({})).await;
    let mut client = Client::start(service, options());
    let discovered = client.ask(1, "server/discover", json!({"_meta": stateless(json!({}))})).await;
    for told in [opened, discovered] {
        let text = told["result"]["instructions"].as_str().unwrap();
        assert!(text.starts_with("Hello.\n") && text.contains("`toolcell approve`"), "{told}");
    }
}
