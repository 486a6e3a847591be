//! Files by which other programs start `toolcell`: the systemd unit and the container file.
//!
//! The tests check the texts, and run the command with the words in them. They start no service and
//! no container.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::place::Place;

/// Reads a file of the repository.
fn file(name: &str) -> String {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the directives of the unit; those of one name are joined.
fn directives(unit: &str) -> BTreeMap<&str, String> {
    let mut found = BTreeMap::<_, String>::new();
    for line in unit.lines().filter(|line| !line.starts_with(['#', '[']) && !line.is_empty()) {
        let (name, value) =
            line.split_once('=').unwrap_or_else(|| panic!("not a directive: {line}"));
        let joined = found.entry(name).or_default();
        *joined = format!("{joined} {value}").trim().to_owned();
    }
    found
}

/// Checks that the command can serve with these words, once a tenant has a key. Some texts in the
/// words are replaced by paths of a place with an approved component.
fn is_accepted(words: &[&str], replaced: &[(&str, &str)]) {
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\n").approved();
    fs::create_dir(place.path().join("cache")).expect("a place");
    let path = |word: &&str| {
        replaced.iter().fold((*word).to_owned(), |word, (from, to)| word.replace(from, to))
    };
    let words: Vec<_> = words.iter().map(path).collect();
    let state =
        words.iter().skip_while(|word| *word != "--state-dir").nth(1).expect("a state directory");
    let add = ["tenant", "add", "acme", "--config", "toolcell.toml", "--state-dir", state.as_str()];
    let added = place.typed(&add);
    assert_eq!(added.status, 0, "{added}");
    let shown = place.shown(place.command().args(&words).arg("--check"));
    assert_eq!(
        (shown.status, shown.stdout.as_str()),
        (0, "1 tool, 1 tenant, 0 problems\n"),
        "{shown}"
    );
}

#[test]
fn systemd_unit_is_hardened_and_starts_server() {
    let unit = file("packaging/toolcell.service");
    let found = directives(&unit);
    let expected = [
        ("Type", "notify"),
        ("NotifyAccess", "main"),
        ("Restart", "on-failure"),
        ("DynamicUser", "yes"),
        ("StateDirectory", "toolcell"),
        ("CacheDirectory", "toolcell"),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"),
        ("PrivateDevices", "yes"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("RestrictNamespaces", "yes"),
        ("SystemCallArchitectures", "native"),
        ("SystemCallFilter", "@system-service ~@privileged"),
        // Compiled code is made executable after it was written.
        ("MemoryDenyWriteExecute", "no"),
    ];
    for (name, value) in expected {
        assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
    }
    let words: Vec<_> = found["ExecStart"].split(' ').collect();
    let seconds = |text: &str| {
        text.strip_suffix('s').and_then(|text| text.parse::<u64>().ok()).expect("seconds")
    };
    let drain =
        words.iter().skip_while(|word| **word != "--drain-timeout").nth(1).expect("a drain");
    assert!(
        seconds(&found["TimeoutStopSec"]) > seconds(drain),
        "systemd would kill a server that drains"
    );
    let (program, words) = words.split_first().expect("a command");
    assert_eq!(*program, "/usr/local/bin/toolcell");
    let paths =
        [("/etc/toolcell/", ""), ("${STATE_DIRECTORY}", "state"), ("${CACHE_DIRECTORY}", "cache")];
    is_accepted(words, &paths);
}

#[test]
fn container_runs_server_unprivileged_without_shell() {
    let text = file("packaging/Containerfile");
    let last = text.rsplit("\nFROM ").next().expect("a stage");
    assert!(last.starts_with("scratch\n") && !last.contains("\nRUN "), "{last}");
    assert!(
        last.contains("\nUSER 65532:65532\n") && last.contains("\nSTOPSIGNAL SIGTERM\n"),
        "{last}"
    );
    let words = |name: &str| -> Vec<String> {
        let line = last.lines().find_map(|line| line.strip_prefix(name)).expect("an instruction");
        let value: Value = serde_json::from_str(line).expect("the form without a shell");
        serde_json::from_value(value).expect("words")
    };
    assert_eq!(words("ENTRYPOINT "), ["/usr/local/bin/toolcell"]);
    let command = words("CMD ");
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    is_accepted(
        &command,
        &[("/etc/toolcell/", ""), ("/var/lib/toolcell", "state"), ("/var/cache/toolcell", "cache")],
    );
}
