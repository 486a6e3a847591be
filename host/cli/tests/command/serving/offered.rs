//! The tools that each tenant is offered, in every list and call.

use std::fs;

use serde_json::{Value, json};
use toolcell_test_guests::example;

use crate::place::Place;
use crate::serving::serve::Served;
use crate::serving::stdio::Client;

const CONFIG: &str = "[components.hello]\npath = \"hello.wasm\"\n[components.desk]\npath = \"desk.wasm\"\n\
                      [components.relay]\npath = \"relay.wasm\"\ngrants.invoke = [\"gre*\"]\n";

/// Returns a configuration with these lines in the tenants' sections.
fn config(acme: &str, globex: &str) -> String {
    format!("{CONFIG}[tenants.acme]\n{acme}\n[tenants.globex]\n{globex}\n")
}

fn place(acme: &str, globex: &str) -> Place {
    Place::new(&config(acme, globex)).approved()
}

/// Returns arguments with which `relay` calls a tool.
fn relayed(tool: &str) -> Value {
    json!({"calls": [[tool, json!({"name": "Ada"}).to_string()]]})
}

/// Returns the text of an answer without the parts that differ in every answer, and with one name
/// for each tool.
fn without_names(answer: &str, tool: &str) -> String {
    let is_shared = |line: &&str| {
        !["date:", "x-request-id:"].iter().any(|own| line.to_lowercase().starts_with(own))
    };
    let text = answer.lines().filter(is_shared).collect::<Vec<_>>().join("\n");
    match text.find("\"request_id\":\"") {
        Some(at) => format!("{}{}", &text[..at], &text[at + "\"request_id\":\"".len() + 36..]),
        None => text,
    }
    .replace(tool, "TOOL")
}

#[test]
fn key_gives_access_to_its_tenants_tools_only() {
    let place = place("tools = [\"greet\"]", "tools = [\"book_*\", \"relay\"]");
    let (acme, globex) = (place.key("acme"), place.key("globex"));
    let server = Served::start(&place, &[]);
    let listed = |key: &str| -> Vec<String> {
        let page = server.asked("GET", "/v1/tools", Some(key), None).1;
        let tools = page["tools"].as_array().expect("tools").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    let lists = || [listed(&acme), listed(&globex)];
    // As long as `greet`, so that the answers have equal lengths.
    let invented = "xyzzy";
    let answers = |key: &str, tool: &str| {
        let headers = format!("Authorization: Bearer {key}\r\n");
        let body = json!({"name": tool, "arguments": {}});
        [("GET", format!("/v1/tools/{tool}"), None), ("POST", "/v1/calls".to_owned(), Some(&body))]
            .map(|(method, path, body)| {
                without_names(&server.answer(method, &path, &headers, body), tool)
            })
    };
    let is_unknown = |key: &str, tool: &str| {
        let hidden = answers(key, tool);
        assert!(
            hidden
                .iter()
                .all(|told| told.starts_with("HTTP/1.1 404") && told.contains("unknown_tool")),
            "{hidden:?}"
        );
        hidden == answers(key, invented)
    };
    assert_eq!(lists(), [vec!["greet"], vec!["book_table", "relay"]]);
    assert_eq!(server.greets(Some(&acme)).0, 200);
    assert!(is_unknown(&globex, "greet"));
    let invoked = |tool: &str| {
        let body = json!({"name": "relay", "arguments": relayed(tool)});
        server.asked("POST", "/v1/calls", Some(&globex), Some(&body)).1["outcome"]["ok"]["value"][0]
            .clone()
    };
    assert_eq!(invoked("greet")["tool_error"]["reason"], "not_found");
    assert_eq!(invoked("greet"), invoked("gre_x"));

    // A reload changes the lists, and a pattern includes a new tool.
    fs::copy(example("calculator"), place.path().join("calculator.wasm")).expect("a place");
    let added = "[components.calculator]\npath = \"calculator.wasm\"\n";
    place.write(&format!(
        "{added}{}",
        config("tools = [\"rel*\", \"calc*\"]", "tools = [\"gre*\", \"relay\"]")
    ));
    place.approve();
    server.wait_for_stderr("reloaded: added calculator");
    assert_eq!(lists(), [vec!["calculator", "relay"], vec!["greet", "relay"]]);
    assert!(is_unknown(&acme, "greet"));
    assert_eq!(server.greets(Some(&globex)).0, 200);
    assert_eq!(invoked("greet")["ok"], "Hello, Ada!");
    place.write(&format!("{added}{}", config("tools = []", "")));
    place.approve();
    server.wait_for_stderr("reloaded: the same components as before");
    assert_eq!(
        lists(),
        [vec![], vec!["book_table", "calculator", "greet", "relay", "submit_plan"]]
    );
}

#[test]
fn stdio_client_lists_its_tenants_tools() {
    let place = place("tools = [\"greet\"]", "tools = []");
    for (tenant, expected) in [("acme", json!(["greet"])), ("globex", json!([]))] {
        let mut client =
            Client::start(place.command().args(["serve", "--stdio", "--tenant", tenant]));
        client.opens();
        let listed = client.asks("tools/list", &json!({}));
        let names: Vec<_> = listed["tools"]
            .as_array()
            .expect("tools")
            .iter()
            .map(|tool| tool["name"].clone())
            .collect();
        assert_eq!(json!(names), expected);
        assert_eq!(client.ends(), Some(0));
    }
}
