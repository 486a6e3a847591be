//! From an unknown component to a call of its tool, following the output of the commands.

use std::fs;

use toolcell_test_guests::{Answer, Hostile, Misdeed, Place as Within, bytes};

use crate::place::Place;
use crate::server::Server;
use crate::typed::{CommandResult, check};

/// The address of the server in the guest, as long as that of any port with five digits.
const DECLARED: &str = "127.0.0.1:65535";
const CALL: &str = r#"{"day": "2026-03-03"}"#;

/// Returns the guest that needs a grant of each kind, for this server.
pub(crate) fn forecast(server: &Server) -> Vec<u8> {
    let mut component = bytes("forecast");
    let (declared, actual) = (DECLARED.as_bytes(), server.address());
    assert_eq!(declared.len(), actual.len());
    let mut replaced = 0;
    for at in 0..component.len() - declared.len() {
        if component[at..].starts_with(declared) {
            component[at..at + declared.len()].copy_from_slice(actual.as_bytes());
            replaced += 1;
        }
    }
    assert!(replaced > 0, "it names its server");
    component
}

/// Returns the command that a text shows in backticks, as words.
fn shown_command(text: &str, beginning: &str) -> Vec<String> {
    let start = text
        .find(&format!("`toolcell {beginning}"))
        .unwrap_or_else(|| panic!("no `{beginning}`: {text}"));
    let command = text[start + 1..].split('`').next().expect("a command");
    command.split(' ').skip(1).map(str::to_owned).collect()
}

#[test]
fn new_component_gets_its_grants_in_five_commands() {
    let server = Server::answering("21.5");
    let place = Place::new("");
    fs::remove_file(place.path().join("toolcell.toml")).unwrap();
    fs::remove_dir_all(place.path().join("data")).unwrap();
    fs::write(place.path().join("forecast.wasm"), forecast(&server)).unwrap();
    let mut commands = 0;
    let mut typed = |words: &[&str], token: Option<&str>| -> CommandResult {
        commands += 1;
        place.shown(place.command().envs(token.map(|token| ("forecast_token", token))).args(words))
    };

    // 1. Inspect the component.
    let inspected = typed(&["inspect", "forecast.wasm"], None);
    assert_eq!(inspected.status, 0, "{inspected}");

    // 2. Learn the needs of a call. The command is printed; the arguments of the call are added to
    //    it.
    let learn = shown_command(&inspected.stderr, "learn");
    let learn: Vec<_> = learn.iter().map(String::as_str).chain([CALL]).collect();
    let learned = typed(&learn, None);
    assert_eq!((learned.status, server.heads().len()), (0, 0), "it asks no server: {learned}");

    // The printed lines are pasted, with the operator's own values filled in as the steps say.
    for step in [
        "create `data` beside the configuration",
        "`CITY`: write its value",
        "set the environment variable `forecast_token`",
    ] {
        assert!(learned.stderr.contains(step), "{learned}");
    }
    assert_eq!(learned.stdout.matches('…').count(), 1, "{learned}");
    let config = learned.stdout.replace('…', "Bern");
    place.write(&config);
    fs::create_dir(place.path().join("data")).unwrap();
    fs::write(place.path().join("data/unit.txt"), "°C").unwrap();

    // 3. and 4. Approve. Without a terminal, the first command has the second one in its hint.
    let approve = shown_command(&learned.stderr, "approve");
    let asked = typed(&approve.iter().map(String::as_str).collect::<Vec<_>>(), None);
    assert_eq!(asked.status, 21, "{asked}");
    let approve = shown_command(&asked.stderr, "approve --yes");
    let approved = typed(&approve.iter().map(String::as_str).collect::<Vec<_>>(), None);
    assert_eq!(approved.status, 0, "{approved}");

    // 5. Run it.
    let run = ["run", "forecast", "forecast", CALL];
    let ran = typed(&run, Some("s3cret-value"));
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "Bern: 21.5 °C (1)\n"), "{ran}");
    let heads = server.heads();
    assert!(heads.len() == 1 && heads[0].contains("Bearer s3cret-value"), "{heads:?}");
    assert!(commands <= 6, "{commands}");

    // The grants are minimal: without any one of the lines the call fails.
    let lines: Vec<_> = config.lines().collect();
    let grants = lines.iter().position(|line| line.ends_with(".grants]")).expect("grants");
    assert_eq!(lines.len() - grants - 1, 5, "{config}");
    for left_out in grants + 1..lines.len() {
        let fewer: Vec<_> = lines
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != left_out)
            .map(|(_, line)| *line)
            .collect();
        place.write(&fewer.join("\n"));
        place.approve();
        let ran = place.shown(place.command().env("forecast_token", "s3cret-value").args(run));
        assert_ne!(ran.status, 0, "without `{}`: {ran}", lines[left_out]);
    }
}

/// All facts that the host has about it, whatever is granted.
#[test]
fn inspect_shows_ungranted_component() {
    let place = Place::new("");
    fs::copy(toolcell_test_guests::example("forecast"), place.path().join("forecast.wasm"))
        .unwrap();
    let shown = place.typed(&["inspect", "forecast.wasm"]);
    check("inspect_not_granted", &shown);
    let json = place.typed(&["inspect", "forecast.wasm", "--json"]).json();
    assert_eq!(
        (&json["loadable"], &json["error"]["kind"]),
        (&false.into(), &"not_granted".into()),
        "{json}"
    );
    assert_eq!(json["tools"][0]["needs"].as_array().map(Vec::len), Some(5), "{json}");
    check("learn_all_kinds", &place.typed(&["learn", "forecast.wasm", "forecast", CALL]));
}

/// The tool's own error text says that a file is missing. The note names the missing grant, and the
/// hint the command that shows the needs of the call.
#[test]
fn tool_failure_names_ungranted_needs() {
    const CONFIG: &str = "[components.search]\npath = \"search.wasm\"\n[components.search.grants]\n\
                          directories = [{ name = \"/data\", path = \"data\", access = \"read\" }]\n";
    const NEEDS: &[[&str; 3]] =
        &[["filesystem", "read /data", "to read"], ["kv", "write a/*", "to remember"]];
    let place = Place::new(CONFIG);
    fs::write(place.path().join("search.wasm"), bytes("file_search")).unwrap();
    fs::write(place.path().join("other.wasm"), bytes("file_search")).unwrap();
    for (file, tool) in [
        ("says", Hostile::answering(Answer::Error("no such file"))),
        ("traps", Hostile::new(Within::Execute, Misdeed::Abort)),
        ("works", Hostile::answering(Answer::Value("1"))),
    ] {
        let component = Hostile { needs: NEEDS, ..tool }.component();
        fs::write(place.path().join(file).with_extension("wasm"), component).unwrap();
    }
    place.approve();
    let file = "note: `file_search` declares filesystem read /data, which is not granted\n";
    let both = "note: `hostile` declares filesystem read /data, which is not granted\n\
                note: `hostile` declares kv write a/*, which is not granted\n";
    // A need that is granted in part has no note.
    let part = "note: `hostile` declares filesystem read /data, which is not granted\n";
    let hint =
        |words: &str| format!("hint: `toolcell learn {words}` shows what this call asks for\n");
    for (words, status, notes, learn) in [
        (
            &["run", "other.wasm", "text=x"][..],
            10,
            file,
            "other.wasm file_search '{\"text\":\"x\"}'",
        ),
        (&["run", "search", "text=x", "folder=nowhere"], 10, "", ""),
        (&["run", "other.wasm", "text=x", "folder=.."], 21, "", ""),
        (&["run", "says.wasm"], 10, both, "says.wasm hostile '{}'"),
        (&["run", "says.wasm", "--grant", "kv=write a/b"], 10, part, "says.wasm hostile '{}'"),
        (&["run", "traps.wasm"], 20, both, "traps.wasm hostile '{}'"),
        (&["run", "works.wasm"], 0, "", ""),
        (&["run", "says.wasm", "--json"], 10, "", ""),
    ] {
        let shown = place.typed(words);
        assert_eq!(shown.status, status, "{words:?}: {shown}");
        let told = if notes.is_empty() { String::new() } else { format!("{notes}{}", hint(learn)) };
        // For a denied path, the lines that allow it follow.
        let is_denied = shown.stderr.starts_with("denied: ");
        assert_eq!(is_denied, words[1] == "other.wasm" && status == 10, "{words:?}: {shown}");
        let is_last = is_denied || shown.stderr.ends_with(&told);
        assert!(shown.stderr.contains(&told) && is_last, "{words:?}: {shown}");
        assert_eq!(shown.stderr.contains("declares"), !notes.is_empty(), "{words:?}: {shown}");
    }
    let learned = place.typed(&["learn", "other.wasm", "file_search", "{\"text\":\"x\"}"]);
    assert!(learned.status == 0 && learned.stdout.contains("directories = "), "{learned}");
}
