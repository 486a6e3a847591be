//! The settings for MCP clients in the documentation: the server that they start answers the
//! client.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::place::Place;
use crate::serving::stdio::{Client, REVISION};

/// Each page with such settings, and the number of its blocks.
const PAGES: [(&str, usize); 2] = [("docs/serving.md", 1), ("docs/clients.md", 3)];
/// The placeholder of the configuration in the blocks.
const CONFIG: &str = "/path/to/toolcell.toml";

/// Returns the commands of the settings on a page, as words.
fn commands(page: &str) -> Vec<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository");
    let text = fs::read_to_string(root.join(page)).expect("a page");
    let blocks =
        text.split("```json\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default());
    let settings = blocks.filter_map(|block| {
        let settings: Value = serde_json::from_str(block).expect("JSON");
        let server = ["mcpServers", "servers"]
            .iter()
            .find_map(|name| Some(settings.get(name)?["toolcell"].clone()))?;
        let arguments = server["args"].as_array().expect("arguments").clone();
        let words = [vec![server["command"].clone()], arguments].concat();
        Some(words.iter().map(|word| word.as_str().expect("text").to_owned()).collect())
    });
    settings.collect()
}

/// Returns the results of `initialize`, `tools/list` and `tools/call` for a client of the command.
fn session(command: &mut Command) -> [Value; 3] {
    let mut client = Client::start(command);
    let (opened, listed) = (client.opens(), client.asks("tools/list", &json!({})));
    let called =
        client.asks("tools/call", &json!({ "name": "greet", "arguments": { "name": "Ada" } }));
    assert_eq!(client.ends(), Some(0));
    [opened, listed, called]
}

/// Returns a folder with a component, after `toolcell init` and `toolcell approve`.
fn folder() -> Place {
    let place = Place::new("");
    for file in ["toolcell.toml", "asks.wasm", "declares.wasm"] {
        fs::remove_file(place.path().join(file)).expect("a place");
    }
    let made = place.typed(&["init"]);
    assert_eq!(made.status, 0, "{made}");
    place.approved()
}

#[test]
fn settings_on_each_page_start_working_server() {
    let place = folder();
    let config = place.path().join("toolcell.toml").display().to_string();
    let mut copied: Vec<_> = PAGES
        .iter()
        .flat_map(|(page, count)| {
            let commands = commands(page);
            assert_eq!(commands.len(), *count, "{page}");
            commands
        })
        .collect();
    copied.dedup();
    let answers = |words: &[String], more: &[&str]| {
        let (program, words) = words.split_first().expect("a command");
        assert_eq!(program, "toolcell");
        assert!(words.iter().any(|word| word == CONFIG), "{words:?}");
        // The client chooses the working directory; with that of the file, its name is enough.
        for (folder, config) in [(Path::new("/"), &*config), (place.path(), "toolcell.toml")] {
            let words = words.iter().map(|word| word.replace(CONFIG, config));
            let [opened, listed, called] =
                session(place.command().current_dir(folder).args(words).args(more));
            assert_eq!(opened["serverInfo"]["name"], "toolcell", "{config}: {opened}");
            assert_eq!(opened["protocolVersion"], REVISION, "{config}: {opened}");
            assert_eq!(listed["tools"][0]["name"], "greet", "{config}: {listed}");
            assert_eq!(called["content"][0]["text"], "Hello, Ada!", "{config}: {called}");
        }
    };
    copied.iter().for_each(|words| answers(words, &[]));
    // The option that the pages add for a configuration with tenants.
    let added = place.typed(&["tenant", "add", "acme"]);
    assert_eq!(added.status, 0, "{added}");
    place.approve();
    copied.iter().for_each(|words| answers(words, &["--tenant", "acme"]));
}
