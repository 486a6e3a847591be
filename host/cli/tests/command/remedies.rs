//! Hints for denied requests: the printed lines can be pasted unchanged, and work.

use std::fs;
use std::process::Command;

use serde_json::json;
use toolcell_test_guests::example;

use crate::path_to_grant::forecast;
use crate::place::Place;
use crate::server::Server;
use crate::typed::CommandResult;

fn place(config: &str, components: &[&str]) -> Place {
    let place = Place::new(config);
    for component in components {
        fs::copy(example(component), place.path().join(format!("{component}.wasm")))
            .expect("a place");
    }
    place
}

/// Returns the first line with this beginning, without its indentation.
pub(crate) fn line<'a>(text: &'a str, beginning: &str) -> &'a str {
    let found = text.lines().map(str::trim_start).find(|line| line.starts_with(beginning));
    found.unwrap_or_else(|| panic!("no `{beginning}`: {text}"))
}

/// Runs a printed line in a shell in the place, unchanged.
pub(crate) fn pasted(place: &Place, line: &str, variables: &[(&str, &str)]) -> CommandResult {
    let ours = place.command();
    let mut words = vec![ours.get_program()];
    words.extend(ours.get_args());
    let words: Vec<_> = words.iter().map(|word| word.to_str().expect("UTF-8")).collect();
    let script = format!("toolcell() {{ {} \"$@\"; }}\n{line}", words.join(" "));
    let mut shell = Command::new("sh");
    shell.env_clear().current_dir(place.path()).args(["-c", &script]);
    shell
        .envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .envs(variables.iter().copied());
    place.shown(&mut shell)
}

/// Replaces the line of the configuration that the printed one names, and approves.
fn put_in_place(place: &Place, line: &str) {
    let (new, place_of) = line.split_once("  # in place of line ").expect("a line and its place");
    let number: usize = place_of.trim().parse().expect("a number");
    let path = place.path().join("toolcell.toml");
    let config = fs::read_to_string(&path).expect("a configuration");
    let lines =
        config.lines().enumerate().map(|(at, old)| if at + 1 == number { new } else { old });
    place.write(&(lines.collect::<Vec<_>>().join("\n") + "\n"));
    place.approve();
}

/// The hint after a change of a section or a rule.
const AFTER: &str =
    "hint: after the change of the configuration, approve it with `toolcell approve`\n";

/// A host without a grant, a private network that the rule does not name, a key that the tool's
/// section removes.
#[test]
fn run_denial_prints_the_allowing_line() {
    let server = Server::answering("here");
    let url = server.url("/x");
    let fetch = |grants: &str| {
        format!("[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\n{grants}\n")
    };
    let notes = "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\nkv = [\"write notes/*\"]\n\
                 [components.notes.tools.notes]\nkv = [\"read notes/a\"]\n";
    let get = format!("url={url}");
    let add = ["run", "notes", "action=add", "title=b", "text=x"];
    let private = "private_networks = [\"127.0.0.1/32\"]";
    for (config, words, denied, beginning, hint) in [
        (
            fetch("http = [\"GET https://example.com\"]"),
            &["run", "fetch", &get][..],
            format!("denied: `GET {url}` is denied: it was not granted"),
            "http = [\"GET https://example.com\", { rule = ",
            "hint: to allow it, apply these lines to [components.fetch.grants] in `toolcell.toml`, line 3, and approve it with `toolcell approve`:",
        ),
        (
            notes.to_owned(),
            &add,
            "denied: `kv write notes/b` is denied for this tool".to_owned(),
            "kv = [\"read notes/a\", \"write notes/b\"]",
            "hint: to allow it, write this in [components.notes.tools.notes]: ",
        ),
    ] {
        let place = place(&config, &["fetch", "notes"]).approved();
        let ran = place.typed(words);
        assert_eq!(ran.status, 10, "{ran}");
        assert!(ran.stderr.contains(&denied) && ran.stderr.contains(hint), "{ran}");
        assert_eq!(ran.stderr.matches("approve it with `toolcell approve`").count(), 1, "{ran}");
        let printed = ran.stderr.replace("]: kv", "]:\nkv");
        put_in_place(&place, line(&printed, beginning));
        let ran = place.typed(words);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran}");
        let told = place.typed(&[words, &["--json"]].concat());
        assert_eq!(told.stderr, "", "{told}");
    }
    // A rule exists, but does not name the network.
    let rule = format!("\"GET {}\"", server.url("/"));
    let place = place(&fetch(&format!("http = [{rule}]")), &["fetch"]).approved();
    let ran = place.typed(&["run", "fetch", &get]);
    let denied = format!(
        "denied: `GET {url}` is denied: its host is on a private network that its grant does not name"
    );
    assert!(ran.status == 10 && ran.stderr.contains(&denied), "{ran}");
    let new = line(&ran.stderr, "hint: to allow it, write this in place of the rule: ");
    assert!(ran.stderr.ends_with(AFTER), "{ran}");
    let explained = place.typed(&["explain", "fetch", &format!("GET {url}")]);
    assert!(explained.status == 21 && explained.stderr.ends_with(AFTER), "{explained}");
    let new = new.rsplit_once("the rule: ").expect("a rule").1;
    assert!(new.contains(private), "{ran}");
    place.write(&fetch(&format!("http = [{new}]")));
    place.approve();
    assert_eq!(place.typed(&["run", "fetch", &get]).status, 0);
}

/// For a file that no configuration names, the lines are options of the command.
#[test]
fn denial_with_grant_option_prints_allowing_option() {
    let server = Server::answering("here");
    let place = place("", &["fetch"]);
    let call = format!("toolcell run fetch.wasm url={}", server.url("/x"));
    let other = "--grant http=https://example.com";
    let denied = pasted(&place, &format!("{call} {other}"), &[]);
    assert!(
        denied.status == 10 && denied.stderr.contains("hint: to allow it, add to the command:\n"),
        "{denied}"
    );
    let option = line(&denied.stderr, "--grant ");
    let ran = pasted(&place, &format!("{call} {other} {option}"), &[]);
    assert_eq!((ran.status, server.heads().len()), (0, 1), "{option}: {ran}");
    let denied = pasted(&place, &format!("{call} --grant http={}", server.url("/")), &[]);
    assert!(
        denied.status == 10 && denied.stderr.contains("write this in place of the grant of `GET"),
        "{denied}"
    );
    let option = line(&denied.stderr, "--grant ");
    let ran = pasted(&place, &format!("{call} {option}"), &[]);
    assert_eq!((ran.status, server.heads().len()), (0, 2), "{option}: {ran}");
}

/// `inspect`, `run` and `explain` print options to try a component with. These options are
/// complete, whatever was requested.
#[test]
fn printed_options_to_try_a_component_work() {
    let server = Server::answering("21.5");
    let place = place("", &["notes"]);
    fs::remove_file(place.path().join("toolcell.toml")).expect("a place");
    fs::write(place.path().join("forecast.wasm"), forecast(&server)).expect("a place");
    fs::write(place.path().join("data/unit.txt"), "C").expect("a place");
    let day = "toolcell run forecast.wasm day=2026-03-03";
    let list = "toolcell run notes.wasm action=list";
    let add = "toolcell run notes.wasm action=add title=a text=x";
    for (seen, call) in [
        ("toolcell inspect forecast.wasm", day),
        (day, day),
        ("toolcell explain forecast.wasm 'environment CITY'", day),
        ("toolcell explain forecast.wasm 'secret forecast_token'", day),
        ("toolcell explain forecast.wasm 'read /data/unit.txt'", day),
        ("toolcell inspect notes.wasm", list),
        (list, list),
        ("toolcell explain notes.wasm 'kv write notes/a'", add),
    ] {
        let shown = pasted(&place, seen, &[]);
        let told = &shown.stderr;
        let try_it = line(
            told,
            "or, to try it without a configuration, add to `toolcell run` or `toolcell batch`:",
        );
        let (before, after) = told.split_once(try_it).expect("it is there");
        assert!(!before.contains("then:"), "what is to be done is for both ways: {shown}");
        let options = line(after, "--grant ");
        let is_filled_in =
            !options.contains('…') || after.contains("write its value in place of `…`");
        assert!(is_filled_in, "{shown}");
        let token = [("forecast_token", "s3cret-value")];
        let ran = pasted(&place, &format!("{call} {}", options.replace('…', "Bern")), &token);
        // With the grant of one need alone the other needs are missing, but the component can be
        // called.
        assert!(!ran.stderr.contains("not granted:") && ran.status != 2, "{seen}: {ran}");
        let is_whole = !seen.contains("explain forecast");
        assert!(ran.status == 0 || !is_whole, "{seen}: {ran}");
    }
}

/// The command that shows the needs of a call has the arguments of the call.
#[test]
fn learn_hint_repeats_typed_arguments() {
    let place = place("", &["clerk"]);
    let call = json!({ "action": "it's" }).to_string();
    let refused = place.typed(&["run", "asks.wasm", "asks", &call]);
    let hint = "`toolcell learn asks.wasm asks '{\"action\":\"it'\\''s\"}'` shows what this call asks for\n";
    assert!(refused.status == 1 && refused.stderr.ends_with(hint), "{refused}");
    let learned = pasted(&place, refused.stderr.split('`').nth(1).expect("a command"), &[]);
    assert_eq!(learned.status, 0, "{learned}");
    let inspected = place.typed(&["inspect", "asks.wasm"]);
    let command = inspected
        .stderr
        .split('`')
        .find(|text| text.starts_with("toolcell learn"))
        .expect("a command");
    assert!(
        !inspected.stderr.contains("ARGS") && pasted(&place, command, &[]).status == 0,
        "{inspected}"
    );
}

/// The example names an existing component.
#[test]
fn explain_example_can_be_pasted() {
    let several =
        "[components.fetch]\npath = \"fetch.wasm\"\n[components.notes]\npath = \"notes.wasm\"\n";
    for (config, words) in [
        (several, &["explain"][..]),
        (several, &["explain", "https://example.com"]),
        (several, &["explain", "notes"]),
        ("", &["explain"]),
    ] {
        let place = place(config, &["fetch", "notes"]);
        let shown = place.typed(words);
        let (_, example) =
            shown.stderr.split_once("for instance `").unwrap_or_else(|| panic!("{shown}"));
        let explained = pasted(&place, example.trim_end().trim_end_matches('`'), &[]);
        assert!(shown.status == 2 && explained.status == 21, "{shown}{explained}");
    }
}

/// The section that narrows a tool is named if the component is granted the tool's needs.
#[test]
fn need_removed_by_tool_section_names_that_section() {
    const CONFIG: &str = "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\nkv = [\"write notes/*\"]\n\
                          [components.notes.tools.notes]\nkv = [\"read notes/a\"]\n\
                          [components.search]\npath = \"file_search.wasm\"\n[components.search.grants]\n\
                          directories = [{ name = \"/data\", path = \"data\", access = \"read\" }]\n\
                          [components.search.tools.file_search]\npaths = []\n";
    let place = place(CONFIG, &["notes", "file_search"]);
    let part = "`notes` declares kv write notes/* (reason: to keep the notes): granted to the component, but \
                [components.notes.tools.notes] (`toolcell.toml`, line 6) leaves only read notes/a";
    let all = "declares filesystem read /data (reason: to search the files in it): granted to the component, but \
               [components.search.tools.file_search] (`toolcell.toml`, line 12) takes it away";
    let approved = place.typed(&["approve", "--yes"]);
    assert!(approved.stdout.contains(part) && approved.stdout.contains(all), "{approved}");
    let checked = place.typed(&["check"]);
    assert!(
        checked.stdout.contains(all) && !checked.to_string().contains("not granted"),
        "{checked}"
    );
    let idle = "the rule `read /data` in directories has no effect: [components.search.tools.file_search] \
                (`toolcell.toml`, line 12) takes it away\n";
    assert!(checked.stderr.contains(idle), "{checked}");
    let gap =
        &place.typed(&["check", "--json"]).json()["components"][1]["tools"][0]["unmet_needs"][0];
    let by = json!({ "section": "components.search.tools.file_search", "file": "toolcell.toml", "line": 12 });
    assert_eq!(gap["narrowed_by"], by, "{gap}");
    let ran = place.typed(&["run", "search", "text=x"]);
    let note = "note: `file_search` declares filesystem read /data, which the component is granted, but \
                [components.search.tools.file_search] (`toolcell.toml`, line 12) takes it away\n";
    assert!(ran.status == 10 && ran.stderr.contains(note), "{ran}");
}

/// The reason matches the loaded tools, and the advice leaves a component that can be called.
#[test]
fn rule_without_effect_is_reported_with_reason() {
    let notes = "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\n";
    let tool = "[components.notes.tools.notes]\n";
    let fetch = "[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\nhttp = [\"GET https://a.example\"]\n\
                 [components.fetch.tools.fetch]\nhttp = []\n";
    let kv = "kv = [\"write notes/*\"]\n";
    for (config, reason, hint) in [
        (
            format!("{notes}kv = [\"read other/*\"]\n"),
            "no tool of `notes` declares it",
            "in place of it, write what the tools declare: `write notes/*`; `toolcell inspect --config toolcell.toml notes` shows all of it",
        ),
        (
            format!("{notes}{kv}http = [\"https://a.example\"]\n"),
            "no tool of `notes` declares it",
            "remove the rule; `toolcell inspect --config toolcell.toml notes` shows what the tools declare",
        ),
        (
            fetch.to_owned(),
            "[components.fetch.tools.fetch] (`toolcell.toml`, line 6) takes it away",
            "write it in [components.fetch.tools.fetch] too, or remove the list there: a tool's section can only take away",
        ),
        (
            format!("{notes}{kv}{tool}kv = [\"read other/*\"]\n"),
            "the component `notes` is not granted it",
            "remove the rule, or grant it to the component first: a tool's section can only narrow those grants",
        ),
        (
            format!(
                "{notes}{kv}http = [\"https://a.example\"]\n{tool}http = [\"https://a.example\"]\n"
            ),
            "the tool `notes` does not declare it",
            "remove the rule; `toolcell inspect --config toolcell.toml notes` shows what the tool declares",
        ),
        (
            format!("{notes}{kv}{tool}kv = []\n[tenants.acme]\nkv = [\"read notes/a\"]\n"),
            "[components.notes.tools.notes] (`toolcell.toml`, line 6) takes it away",
            "write it in [components.notes.tools.notes] too, or remove it here: sections can only take away",
        ),
        (
            format!("{notes}{kv}[tenants.acme]\nkv = [\"read other/*\"]\n"),
            "no component is granted it",
            "remove the rule, or grant it to a component: a tenant's section can only take away",
        ),
        (
            format!(
                "{notes}{kv}http = [\"https://a.example\"]\n[tenants.acme]\nhttp = [\"https://a.example\"]\n"
            ),
            "no tool that is granted it declares it",
            "remove the rule: a tool can use only what it declares",
        ),
    ] {
        let place = place(&config, &["notes", "fetch"]);
        let checked = place.typed(&["check", "--config", "toolcell.toml"]);
        let warned: Vec<_> = checked.stderr.lines().collect();
        let told = warned.windows(2).any(|pair| {
            pair[0].starts_with("warning: ")
                && pair[0].ends_with(reason)
                && pair[1] == format!("hint: {hint}")
        });
        assert!(told, "{reason}: {checked}");
    }
}

/// A file that was tried is named beside the proposed directory; in JSON with the variables.
#[test]
fn learn_names_tried_files_and_variables() {
    let server = Server::answering("21.5");
    let place = place("", &[]);
    fs::write(place.path().join("forecast.wasm"), forecast(&server)).expect("a place");
    let call = ["learn", "forecast.wasm", "day=2026-03-03"];
    let shown = place.typed(&call);
    let note = "note: `/data` is granted with all that it holds: the tool asked for `read /data/unit.txt`\n";
    assert!(shown.stderr.contains(note), "{shown}");
    fs::copy(example("clerk"), place.path().join("clerk.wasm")).expect("a place");
    let listed = place.typed(&["learn", "clerk.wasm", r#"{"steps": [["list", "/all"]]}"#]);
    assert!(
        listed.stdout.contains("/all") && !listed.stderr.contains("with all that it holds"),
        "{listed}"
    );
    let json = place.typed(&[&call[..], &["--json"]].concat()).json();
    let denied: Vec<_> = json["denials"].as_array().expect("a list").iter().collect();
    for (request, grant) in [
        (
            "read /data/unit.txt",
            "directories = [{ name = \"/data\", path = \"…\", access = \"read\" }]",
        ),
        ("environment CITY", "environment = { CITY = \"…\" }"),
    ] {
        let expected = json!({ "layer": "component", "request": request, "grant": grant });
        assert!(denied.iter().any(|denial| **denial == expected), "{request}: {json}");
    }
}

/// Lines for a section further below have a comment that says so, and the sentence about them
/// mentions it.
#[test]
fn each_printed_line_names_its_location() {
    let place = place(
        "[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\nhttp = [\"https://a.example\"]\n\
         [components.fetch.grants.secrets]\nother = { destination = \"https://a.example\" }\n",
        &["fetch"],
    );
    let shown = place.typed(&["learn", "fetch", "url=https://a.example/x", "with_token:=true"]);
    assert!(
        shown.stdout.starts_with("# add below [components.fetch.grants.secrets], line 5:\n"),
        "{shown}"
    );
    let hint = "hint: to allow this call, apply the lines printed above to [components.fetch.grants] in `toolcell.toml`, \
                line 3 and below (a comment names the line that it is for); then:\n";
    assert!(shown.stderr.contains(hint), "{shown}");
}

/// In every form of the secret: the call is refused, but the command line is valid.
#[test]
fn grant_option_secret_without_value_refuses_call() {
    let place = place("", &["fetch"]);
    let secret = "secret=fetch_token=https://a.example";
    let call = [
        "run",
        "fetch.wasm",
        "url=https://a.example/x",
        "--grant",
        "http=https://a.example",
        "--grant",
        secret,
    ];
    let shown = place.typed(&call);
    let cause = "error: `--grant secret=fetch_token=https://a.example`: the secret `fetch_token` has no usable value: the \
                 environment variable `fetch_token` is not set; calls of the tool `fetch` are refused\n";
    assert!(shown.status == 21 && shown.stderr.contains("  reason: unset_secret\n"), "{shown}");
    assert!(shown.stderr.contains(cause), "{shown}");
    let json = place.typed(&[&call[..], &["--json"]].concat());
    assert_eq!(
        (json.status, &json.json()["outcome"]["refusal"]["kind"]),
        (21, &"unset_secret".into()),
        "{json}"
    );
}
