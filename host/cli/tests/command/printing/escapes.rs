//! Control characters in every text of an untrusted component or configuration: none is printed
//! raw.

use std::fs;

use toolcell::tool::is_invisible;
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place as At, herald, rows};

use crate::place::Place;
use crate::typed::CommandResult;

/// Clears the screen, changes colours in two ways, reverses the line, rings the bell, hides
/// characters, and forges one of our own lines.
const TEXT: &str = "a\u{1b}[2J\u{9b}31m\u{202e}b\u{2066}\u{7}\u{8}\u{200b}\u{feff}\u{e0041}\u{85}\rc\nerror: forged\n\ttab";
/// The text in JSON, as the value of a result and in a schema.
const VALUE: &str = "{\"a\u{202e}\": \"\\u001b[2J\u{9b}31m\\nerror: forged\u{200b}\"}";
const SCHEMA: &str = "{\"type\": \"object\", \"properties\": {\"p\\u001b[2J\u{202e}\": {\"type\": \"string\", \
     \"description\": \"d\\u001b[31m\u{9b}\\nerror: forged\", \"enum\": [\"e\\u001b[2J\u{2066}\"]}}, \"required\": [\"p\\u001b[2J\u{202e}\"]}";
const NEEDS: &[[&str; 3]] =
    &[["http", "GET https://a.example/", TEXT], ["kv", "read notes/*", TEXT]];
/// Needs of unknown or malformed kinds.
const STRANGE: &[[&str; 3]] =
    &[["http", "GET https://a.example/\u{1b}[2J", TEXT], ["k\u{1b}[2J\u{9b}", TEXT, TEXT]];
const CONFIG: &str = r#"
[components.herald]
path = "herald.wasm"
[components.herald.grants]
environment = { LANG = "v\u001b[2J\u202e" }
kv = ["write notes/*"]
secrets = { token = { destination = "https://a.example", source = { file = "token" } } }
"#;

fn hostile_guest(schema: Option<&'static str>) -> Hostile {
    let behaving = Hostile::new(At::Execute, Misdeed::None);
    Hostile { description: TEXT, needs: NEEDS, parameters: schema, ..behaving }
}

/// Checks that the output has no control character and no forged line.
fn is_harmless(words: &[&str], shown: &CommandResult) {
    let is_json =
        words.iter().any(|word| *word == "--json" || *word == "--stream" || *word == "--format");
    // A plain-text result for a program is byte for byte the tool's.
    let is_result = words.contains(&"run") && !is_json;
    let printed = [if is_result { "" } else { shown.stdout.as_str() }, shown.stderr.as_str()];
    for text in printed {
        let harmful: Vec<_> =
            text.chars().filter(|c| is_invisible(*c) && *c != '\n' && *c != '\t').collect();
        assert!(harmful.is_empty(), "{words:?}: {harmful:?} in {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{words:?}: {text}");
    }
}

#[test]
fn component_text_never_reaches_terminal_raw() {
    let place = Place::new(CONFIG);
    let calls = "{\"id\": \"i\\u001b[2J\\u202e\", \"name\": \"herald\", \"arguments\": {}}\n";
    fs::write(place.path().join("calls.jsonl"), calls).expect("a place");
    let answers = [
        Answer::Echo,
        Answer::Value(VALUE),
        Answer::Error(TEXT),
        Answer::Ask(TEXT),
        Answer::Halt(TEXT),
    ];
    let bad = |schema| herald(TEXT, hostile_guest(schema), Answer::Echo);
    let kinds = answers
        .map(|answer| herald(TEXT, hostile_guest(None), answer))
        .into_iter()
        .chain([bad(Some(SCHEMA))]);
    let named = ["--config", "toolcell.toml"];
    let commands: Vec<Vec<&str>> = rows("escapes", "component_text_never_reaches_terminal_raw");
    let mut ran = 0;
    for component in kinds {
        fs::write(place.path().join("herald.wasm"), component).expect("a place");
        place.approve();
        for words in &commands {
            let shown = place.typed(&[&named, &words[..]].concat());
            is_harmless(words, &shown);
            ran += usize::from(words[0] == "run" && shown.stderr.contains("tool log error: a"));
        }
        // The approved component is replaced, and the difference is shown.
        let changed = herald(TEXT, hostile_guest(Some(SCHEMA)), Answer::Halt("other"));
        fs::write(place.path().join("herald.wasm"), changed).expect("a place");
        for words in [&["approve"][..], &["approve", "--json"], &["run", "herald", "herald"]] {
            is_harmless(words, &place.typed(&[&named, words].concat()));
        }
    }
    assert!(ran > 0, "what it logs is shown while it runs");
}

#[test]
fn unusable_input_is_quoted_with_escapes() {
    let place = Place::new("");
    let misnamed =
        Hostile { name: "n\u{1b}[2J\u{202e}", ..Hostile::answering(Answer::Echo) }.component();
    let import = String::from_utf8_lossy(b"wasi:cli/exit@0.2.6").into_owned();
    let exits = Hostile::new(At::Execute, Misdeed::Exit).component();
    let mut imports = exits.clone();
    let at =
        |bytes: &[u8]| bytes.windows(import.len()).position(|window| window == import.as_bytes());
    while let Some(at) = at(&imports) {
        imports[at + 9..at + 13].copy_from_slice(b"\x1b[2J");
    }
    fs::write(place.path().join("n\u{1b}[2J.wasm"), exits).expect("a place");
    let strange = herald(TEXT, Hostile { needs: STRANGE, ..hostile_guest(None) }, Answer::Echo);
    for (file, bytes) in
        [("misnamed.wasm", misnamed), ("imports.wasm", imports), ("strange.wasm", strange)]
    {
        fs::write(place.path().join(file), bytes).expect("a place");
        for words in [
            &["inspect", file][..],
            &["inspect", file, "--json"],
            &["run", file, "x"],
            &["list", file],
        ] {
            let shown = place.typed(words);
            assert_eq!(shown.status, 1, "{shown}");
            is_harmless(words, &shown);
        }
    }
    for words in [
        &["list", "n\u{1b}[2J.wasm"][..],
        &["inspect", "n\u{1b}[2J.wasm"],
        &["run", "no\u{1b}[2J\u{202e}", "x"],
    ] {
        is_harmless(words, &place.typed(words));
    }
    for config in [
        "[components.\"c\\u001b[2J\"]\npath = \"x\"",
        "[components.c]\npath = \"x\\u001b[2J\"\ngrants = { http = [\"GET \\u001b[2J\\u202e\"] }",
        "[components.c]\npath = \"hello.wasm\"\ngrants = { directories = [{ name = \"/\\u001b[2J\", path = \"\\u001b\" }] }",
        "\u{202e} = broken\u{9b}",
    ] {
        place.write(config);
        for words in [&["check"][..], &["check", "--json"], &["approve"], &["list", "c"]] {
            is_harmless(words, &place.typed(&[&["--config", "toolcell.toml"], words].concat()));
        }
    }
}
