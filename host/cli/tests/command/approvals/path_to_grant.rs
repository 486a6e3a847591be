//! From an unknown component to a call of its tool, following the output of the commands.

use std::fs;

use toolcell_test_guests::bytes;

use crate::place::Place;
use crate::server::Server;
use crate::typed::CommandResult;

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
