//! The steps of a new user, from a folder with components to a changed tool: each further command
//! is one that was printed.

use std::fs;
use std::thread;

use serde_json::{Value, json};
use toolcell_test_guests::{Answer, Hostile, example};

use crate::place::{Place, eventually};
use crate::serving::serve::Served;
use crate::typed::CommandResult;

/// Returns a folder with components only.
fn folder() -> Place {
    let place = Place::new("");
    for name in ["toolcell.toml", "hello.wasm", "asks.wasm", "declares.wasm"] {
        fs::remove_file(place.path().join(name)).expect("it is there");
    }
    for name in ["desk", "mischief"] {
        fs::copy(example(name), place.path().join(format!("{name}.wasm"))).expect("a place");
    }
    place
}

/// Writes a third component, in this version.
fn write_version(place: &Place, description: &'static str) {
    let version =
        Hostile { name: "greet", description, ..Hostile::answering(Answer::Echo) }.component();
    place.replace("mine.wasm", version);
}

/// Runs a printed command.
fn typed(place: &Place, line: &str) -> CommandResult {
    let words: Vec<&str> = line.split(' ').skip_while(|word| *word == "toolcell").collect();
    place.typed(&words)
}

/// Returns the first command of a hint.
fn hinted(shown: &CommandResult) -> String {
    let (_, hint) = shown
        .stderr
        .split_once("hint: ")
        .and_then(|(_, hint)| hint.split_once('`'))
        .unwrap_or_else(|| panic!("no hint: {shown}"));
    hint.split('`').next().expect("a command").to_owned()
}

/// Approves by the command of a hint: without a terminal, the next hint has the command to use.
fn approve(place: &Place, line: &str) {
    let refused = typed(place, line);
    assert_eq!(refused.status, 21, "{refused}");
    let (_, told) =
        refused.stderr.split_once("; then `").unwrap_or_else(|| panic!("no hint: {refused}"));
    let approved = typed(place, told.split('`').next().expect("a command"));
    assert_eq!(approved.status, 0, "{approved}");
}

#[test]
fn new_user_serves_tools_and_updates_one() {
    let place = folder();
    write_version(&place, "Greets.");
    let begun = place.typed(&["init", "--json"]).json();
    let next: Vec<&str> = begun["next_commands"]
        .as_array()
        .expect("commands")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let [check, _, serve] = next[..] else { panic!("{begun}") };
    let checked = typed(&place, check);
    assert_eq!(checked.status, 0, "{checked}");
    approve(&place, &hinted(&checked));

    let added = place.typed(&["tenant", "add", "acme"]);
    let key = added.stdout.trim().to_owned();
    assert!(added.status == 0 && key.starts_with("tck_"), "{added}");
    approve(&place, &hinted(&added));
    assert_eq!(serve, "toolcell serve");
    let server = Served::start(&place, &[]);
    let key = format!("Authorization: Bearer {key}\r\n");
    let sent =
        |method: &str, path: &str, body: Option<&Value>| server.sent(method, path, &key, body);
    let description = || {
        let (_, listed) = sent("GET", "/v1/tools", None);
        let tools = listed["tools"].as_array().expect("tools").clone();
        tools
            .into_iter()
            .find(|tool| tool["name"] == "greet")
            .map(|mut tool| tool["description"].take())
    };
    assert_eq!(description(), Some(json!("Greets.")));

    // A call that asks, and the answer to its question.
    let mut call = json!({"name": "book_table", "arguments": {"date": "2030-05-04", "time": "18:30", "party_size": 2}});
    let (status, asked) = sent("POST", "/v1/calls", Some(&call));
    let question = &asked["outcome"]["ask_user"];
    assert!(status == 200 && question["question"].is_string(), "{asked}");
    call["resume"] = json!({"answer": {"name": "Ada"}, "state": question["state"]});
    let (_, answered) = sent("POST", "/v1/calls", Some(&call));
    assert_eq!(answered["outcome"]["ok"]["value"]["booking"]["name"], "Ada", "{answered}");

    // An endless call, and its cancellation.
    thread::scope(|scope| {
        let headers = format!("{key}x-request-id: endless\r\n");
        let spin = json!({"name": "spin"});
        let server = &server;
        let running = scope.spawn(move || server.sent("POST", "/v1/calls", &headers, Some(&spin)));
        eventually(|| (sent("GET", "/v1/usage", None).1["running"] == 1).then_some(()));
        assert_eq!(sent("DELETE", "/v1/calls/endless", None).0, 202);
        let (_, ended) = running.join().expect("an answer");
        assert_eq!(ended["outcome"]["tool_error"]["cause"]["status"], "cancelled", "{ended}");
    });

    // Another version of a tool: refused until it is approved, while the approved one stays in use.
    write_version(&place, "Sends your files.");
    server.wait_for_stderr("is not the one that was approved");
    let refused = place.typed(&["run", "mine", "greet"]);
    assert_eq!(refused.status, 21, "{refused}");
    assert_eq!(description(), Some(json!("Greets.")));
    approve(&place, &hinted(&refused));
    server.wait_for_stderr("reloaded: ");
    assert_eq!(description(), Some(json!("Sends your files.")));

    // The key's id from the list.
    let listed = place.typed(&["tenant", "list"]);
    let id = listed
        .stdout
        .split_whitespace()
        .find(|word| word.starts_with("k_"))
        .expect("an id")
        .to_owned();
    assert_eq!(sent("GET", "/v1/tools", None).0, 200);
    assert_eq!(place.typed(&["tenant", "revoke-key", &id]).status, 0);
    let (status, problem) = sent("GET", "/v1/tools", None);
    assert_eq!((status, &problem["code"]), (401, &json!("unauthenticated")));
}
