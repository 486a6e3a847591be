//! Hints for calls that fail: a pasted hint works, and equal facts have equal wording.

use std::fs;

use serde_json::json;
use toolcell_test_guests::{command_module, example};

use crate::place::Place;
use crate::remedies::{line, pasted};

const CLERK: &str = "[components.clerk]\npath = \"clerk.wasm\"\n";
const READS: &str = r#"{"steps": [["read", "/docs/in.txt"]]}"#;

fn place(config: &str, components: &[&str]) -> Place {
    let place = Place::new(config);
    for component in components {
        fs::copy(example(component), place.path().join(format!("{component}.wasm")))
            .expect("a place");
    }
    fs::write(place.path().join("program.wasm"), command_module()).expect("a place");
    place
}

/// Like a denied host or key: a file that a tool does not find, without a granted directory.
#[test]
fn ungranted_file_denial_prints_allowing_lines() {
    let denied = "denied: `read /docs/in.txt` is denied: it was not granted\n";
    let note = "note: the path is taken for a file: the grant is for its directory `/docs`, with all that it holds\n";
    for process in ["", "[host]\nisolation = \"process\"\n"] {
        let place = place(&format!("{CLERK}{process}"), &["clerk"]).approved();
        fs::create_dir(place.path().join("docs")).expect("a folder");
        fs::write(place.path().join("docs/in.txt"), "found").expect("a file");
        let ran = place.typed(&["run", "clerk", READS]);
        assert!(ran.stderr.starts_with(denied) && ran.stderr.contains(note), "{ran}");
        let hint = "hint: to allow it, add these lines to `toolcell.toml`, below the last line of the component's section, \
                    which begins in line 1, and approve it with `toolcell approve`:\n";
        assert!(ran.stderr.contains(hint), "{ran}");
        let lines =
            ["[components.clerk.grants]", "directories = "].map(|start| line(&ran.stderr, start));
        place.write(&format!("{CLERK}{}\n{process}", lines.join("\n")));
        place.approve();
        let ran = place.typed(&["run", "clerk", READS]);
        assert_eq!(
            (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
            (0, "[\"found\"]\n", ""),
            "{ran}"
        );
        // A file that a granted directory does not contain is an error of the tool, not a denial.
        let missing = place.typed(&["run", "clerk", r#"{"steps": [["read", "/docs/other.txt"]]}"#]);
        assert_eq!(
            (missing.stdout.as_str(), missing.stderr.as_str()),
            ("[\"NotFound\"]\n", ""),
            "{missing}"
        );
    }
    // A file that no configuration names, and a program that calls its first directory by another
    // name.
    let place = place("", &["clerk"]);
    fs::create_dir(place.path().join("docs")).expect("a folder");
    fs::write(place.path().join("docs/in.txt"), "found").expect("a file");
    let call = format!("toolcell run clerk.wasm '{READS}'");
    let option = pasted(&place, &call, &[]);
    let option = line(&option.stderr, "--grant ");
    assert_eq!(
        pasted(&place, &format!("{call} {option}"), &[]).stdout,
        "[\"found\"]\n",
        "{option}"
    );
    // A program has no directory for the path, so that no request is denied: its error text is
    // searched.
    let call = "toolcell run --as command program.wasm args:='[\"path\"]'";
    let program = pasted(&place, call, &[]);
    let note = "note: `program` names `/docs/in.txt`, which is not granted\n";
    assert!(
        program.status == 10 && program.stderr.contains(note) && !program.stderr.contains("denied"),
        "{program}"
    );
    let hint = line(&program.stderr, "hint: `");
    let (learn, _) = hint.trim_start_matches("hint: `").split_once('`').expect("a command");
    assert_eq!(pasted(&place, learn, &[]).status, 0, "{hint}");
}

/// Functions and programs too: the printed configuration has their kind.
#[test]
fn learn_finds_needs_of_programs() {
    let place = place("", &[]);
    fs::remove_file(place.path().join("toolcell.toml")).expect("a place");
    let call = ["program.wasm", "args:=[\"note\"]"];
    let learned = place.typed(&[&["learn", "--as", "command"], &call[..]].concat());
    assert_eq!(learned.status, 0, "{learned}");
    assert!(
        learned
            .stdout
            .starts_with("[components.program]\npath = \"program.wasm\"\nas = \"command\"\n"),
        "{learned}"
    );
    fs::write(place.path().join("data/note.txt"), "kept").expect("a file");
    place.write(&learned.stdout.replace("path = \"root\"", "path = \"data\""));
    place.approve();
    let ran = place.typed(&["run", "program", call[1]]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "kept\n"), "{ran}");
    let configured = place.typed(&[&["learn", "--as", "command"], &call[..]].concat());
    assert!(
        configured.status == 2 && configured.stderr.contains("which `toolcell.toml` configures"),
        "{configured}"
    );
}

/// By `run` and `explain`, in one sentence and with one exit status.
#[test]
fn run_and_explain_agree_on_ungranted_import() {
    let config = "[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\n\
                  secrets = { fetch_token = { destination = \"https://a.example\", source = { file = \"token\" } } }\n";
    let place = place(config, &["fetch"]).approved();
    let error = "error: HERE/fetch.wasm: the component imports interfaces that are not granted: toolcell:tool/http@0.1.0\n";
    let ran = place.typed(&["run", "fetch", "url=https://a.example/x"]);
    let explained = place.typed(&["explain", "fetch", "secret fetch_token"]);
    for shown in [&ran, &explained] {
        assert!(shown.status == 1 && shown.stderr.contains(error), "{shown}");
    }
    for shown in [&ran, &explained] {
        let hint = line(&shown.stderr, "hint: ");
        let learn = "hint: its tools do not declare their needs: `toolcell learn fetch ";
        assert!(hint.starts_with(learn), "{shown}");
    }
    let json = place.typed(&["explain", "fetch", "secret fetch_token", "--json"]);
    assert_eq!((json.status, &json.json()["error"]["kind"]), (1, &json!("not_granted")), "{json}");
}

/// White space is not arguments: the message says that they are empty, beside the missing member.
#[test]
fn blank_arguments_are_reported_as_empty() {
    let place = Place::new("");
    fs::write(place.path().join("blank"), " ".repeat(1 << 20)).expect("a file");
    for (typed, named) in [
        ("", "the text of the arguments"),
        ("  \n", "the text of the arguments"),
        ("@blank", "`blank`"),
    ] {
        for command in ["run", "learn"] {
            let shown = place.typed(&[command, "hello.wasm", "greet", typed]);
            let told = format!("  - {named} is empty, or only white space, which means `{{}}`\n");
            assert!(
                shown.status == 21 && shown.stderr.contains(&told),
                "{command} {typed:?}: {shown}"
            );
            let form = if typed == "@blank" {
                "one JSON object to `blank`"
            } else {
                "NAME=VALUE, or one JSON object in quotes for the shell"
            };
            let hint = format!("hint: write {form}; `toolcell inspect hello.wasm` shows");
            assert!(shown.stderr.contains(&hint), "{shown}");
        }
    }
    let none = place.typed(&["run", "hello.wasm", "greet"]);
    assert!(none.status == 21 && !none.stderr.contains("white space"), "{none}");
}

/// The narrowing section has to be changed. The hint to approve the change is printed once, with
/// the command.
#[test]
fn change_hint_mentions_approval_once() {
    const AFTER: &str =
        "hint: after the change of the configuration, approve it with `toolcell approve`\n";
    let config = "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\nkv = [\"write notes/*\"]\n\
                  [components.notes.tools.notes]\nkv = [\"read notes/a\"]\n[tenants.acme]\nkv = []\n";
    let place = place(config, &["notes"]).approved();
    let add = ["notes", "action=add", "title=b", "text=x"];
    for command in ["run", "learn"] {
        for tenant in [&[][..], &["--tenant", "acme"]] {
            let shown = place.typed(&[&[command], &add[..], tenant].concat());
            assert_eq!(shown.stderr.matches(AFTER).count(), 1, "{shown}");
        }
    }
    for words in [&["kv write notes/b"][..], &["kv read notes/a", "--tenant", "acme"]] {
        let explained = place.typed(&[&["explain", "notes"], words].concat());
        assert!(explained.status == 21 && explained.stderr.ends_with(AFTER), "{explained}");
    }
}
