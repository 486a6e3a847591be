//! From an empty folder to a call by an MCP client, following only the output and the files of the
//! commands.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::place::Place;
use crate::serving::stdio::Client;
use crate::typed::CommandResult;

/// Returns the commands `toolcell …` in the blocks of a page, without their comments.
fn commands(page: &str) -> Vec<Vec<&str>> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or_default());
    lines
        .filter_map(|line| Some(line.strip_prefix("toolcell ")?.split_whitespace().collect()))
        .collect()
}

/// Runs the command in a folder of the place. `PATH` is empty, so that a build uses only the
/// project's files.
fn typed(place: &Place, folder: &str, words: &[&str]) -> CommandResult {
    place.shown(place.command().current_dir(place.path().join(folder)).env("PATH", "").args(words))
}

/// Runs the install command of a failed build's hint in a shell, with all programs of this machine.
fn install(place: &Place, built: &CommandResult) {
    let (_, hinted) =
        built.stderr.split_once("\nhint: ").unwrap_or_else(|| panic!("no hint: {built}"));
    let command = hinted.split('`').nth(1).unwrap_or_else(|| panic!("no command: {built}"));
    let page = fs::read_to_string(place.path().join("greeter/README.md")).expect("a page");
    assert!(page.contains(&command.replace("greeter/", "")), "{command}: {page}");
    // A registry may be unreachable for a moment.
    let mut told = String::new();
    let is_installed = (0..3).any(|_| {
        let done = Command::new("sh")
            .args(["-c", command])
            .current_dir(place.path())
            .output()
            .expect("a shell");
        told += &String::from_utf8_lossy(&done.stderr);
        done.status.success()
    });
    assert!(is_installed, "{command}: {told}");
}

/// Follows the steps from nothing to a call by an MCP client.
fn walk(language: &str) {
    let place = Place::new("");
    for file in ["toolcell.toml", "hello.wasm", "asks.wasm", "declares.wasm"] {
        fs::remove_file(place.path().join(file)).expect("it is there");
    }
    let made = typed(&place, "", &["new", "greeter", "--language", language]);
    let next: Vec<Vec<&str>> =
        made.stdout.lines().map(|line| line.split(' ').skip(1).collect()).collect();
    assert_eq!(next, [["build", "greeter"], ["test", "greeter"], ["dev", "greeter"]], "{made}");
    if !["js", "ts"].contains(&language) {
        install(&place, &typed(&place, "", &next[0]));
    }
    for words in next.iter().filter(|words| words[0] != "dev") {
        let shown = typed(&place, "", words);
        assert_eq!(shown.status, 0, "{words:?}: {shown}");
    }
    // The project's page has the rest.
    let page = fs::read_to_string(place.path().join("greeter/README.md")).expect("a page");
    let mut server = None;
    for words in commands(&page) {
        match words[0] {
            "dev" => {}
            "serve" => server = Some(words),
            "approve" => {
                // Without a terminal it cannot ask: the hint has the command for scripts.
                let asked = typed(&place, "greeter", &words);
                assert_eq!(asked.status, 21, "{asked}");
                let (_, hinted) = asked.stderr.split_once("; then `toolcell ").expect("a hint");
                let words: Vec<_> =
                    hinted.split('`').next().expect("a command").split(' ').collect();
                let approved = typed(&place, "greeter", &words);
                assert_eq!(approved.status, 0, "{words:?}: {approved}");
            }
            "run" => assert_eq!(typed(&place, "greeter", &words).stdout, "Hello, Ada!\n"),
            _ => assert_eq!(typed(&place, "greeter", &words).status, 0, "{words:?}"),
        }
    }
    let folder = place.path().join("greeter");
    let mut client =
        Client::start(place.command().current_dir(&folder).args(server.expect("a server")));
    client.opens();
    let listed = client.asks("tools/list", &json!({}));
    let [tool] = &listed["tools"].as_array().expect("tools")[..] else {
        panic!("one tool: {listed}")
    };
    assert_eq!(
        (&tool["name"], &tool["inputSchema"]["required"]),
        (&json!("greet"), &json!(["name"])),
        "{listed}"
    );
    let called = client.asks("tools/call", &json!({"name": "greet", "arguments": {"name": "Ada"}}));
    assert_eq!(called["content"][0]["text"], "Hello, Ada!", "{called}");
    assert_eq!(client.ends(), Some(0));
}

#[test]
fn printed_commands_lead_to_mcp_client_call() {
    ["js", "ts"].into_iter().for_each(walk);
}

#[test]
#[ignore = "needs the registry of Python: `cargo xtask languages` runs it"]
fn missing_compiler_error_names_next_command() {
    ["python", "c"].into_iter().for_each(walk);
}
