//! From an empty folder to a tool that an MCP client calls, with nothing but what each command prints and writes.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::place::Place;
use crate::stdio::Client;
use crate::typed::Shown;

/// The commands of the blocks of a page, without their comments.
fn commands(page: &str) -> Vec<Vec<&str>> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or_default());
    lines.map(|line| line.split_whitespace().skip(1).collect()).collect()
}

#[test]
fn the_commands_that_are_told_lead_to_a_call_of_an_mcp_client() {
    for language in ["js", "ts"] {
        let place = Place::new("");
        for file in ["toolcell.toml", "hello.wasm", "asks.wasm", "declares.wasm"] {
            fs::remove_file(place.path().join(file)).expect("it is there");
        }
        let typed = |folder: &Path, words: &[&str]| -> Shown {
            place.shown(place.command().current_dir(place.path().join(folder)).args(words))
        };
        let made = typed(Path::new(""), &["new", "greeter", "--lang", language]);
        let next: Vec<Vec<&str>> = made.stdout.lines().map(|line| line.split(' ').skip(1).collect()).collect();
        assert_eq!(next, [["build", "greeter"], ["test", "greeter"], ["dev", "greeter"]], "{made}");
        for words in next.iter().filter(|words| words[0] != "dev") {
            let shown = typed(Path::new(""), words);
            assert_eq!(shown.status, 0, "{words:?}: {shown}");
        }
        // The rest is on the page of the project.
        let folder = place.path().join("greeter");
        let page = fs::read_to_string(folder.join("README.md")).expect("a page");
        let mut server = None;
        for words in commands(&page) {
            match words[0] {
                "dev" => {}
                "serve" => server = Some(words),
                "approve" => {
                    // Without a terminal it cannot ask: the hint says how a script approves.
                    let asked = typed(&folder, &words);
                    assert_eq!(asked.status, 21, "{asked}");
                    let (_, hinted) = asked.stderr.split_once("; then `toolcell ").expect("a hint");
                    let words: Vec<_> = hinted.split('`').next().expect("a command").split(' ').collect();
                    let approved = typed(&folder, &words);
                    assert_eq!(approved.status, 0, "{words:?}: {approved}");
                }
                "run" => assert_eq!(typed(&folder, &words).stdout, "Hello, Ada!\n"),
                _ => assert_eq!(typed(&folder, &words).status, 0, "{words:?}"),
            }
        }
        let mut client = Client::start(place.command().current_dir(&folder).args(server.expect("a server")));
        client.opens();
        let listed = client.asks("tools/list", &json!({}));
        let [tool] = &listed["tools"].as_array().expect("tools")[..] else { panic!("one tool: {listed}") };
        assert_eq!((&tool["name"], &tool["inputSchema"]["required"]), (&json!("greet"), &json!(["name"])), "{listed}");
        let called = client.asks("tools/call", &json!({"name": "greet", "arguments": {"name": "Ada"}}));
        assert_eq!(called["content"][0]["text"], "Hello, Ada!", "{called}");
        assert_eq!(client.ends(), Some(0));
    }
}
