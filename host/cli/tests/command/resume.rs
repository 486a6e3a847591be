//! A question, and the answer in another process: refused answers, and the place of the key.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::typed::{CommandResult, command, example, typed};

const ARGUMENTS: &str = r#"{"date": "2026-03-03", "time": "19:30", "party_size": 2}"#;
const ANSWER: &str = r#"{"name": "Ada"}"#;

/// Makes the call that asks, and returns the state of its question.
fn asked(words: &[&str]) -> String {
    let shown = typed(&[&["run", "desk.wasm", "book_table", ARGUMENTS, "--json"], words].concat());
    assert_eq!(shown.status, 11, "{shown}");
    shown.json()["outcome"]["ask_user"]["state"].as_str().expect("a sealed state").to_owned()
}

fn answered(arguments: &str, words: &[&str]) -> CommandResult {
    typed(&[&["run", "desk.wasm", "book_table", arguments, "--answer", ANSWER], words].concat())
}

#[test]
fn resume_state_is_valid_only_for_its_call() {
    let state = asked(&["--context", r#"{"tenant": "acme"}"#]);
    let acme = ["--context", r#"{"tenant": "acme"}"#];
    let cut = &state[..state.len() - 1];
    let quoted = format!("\"{state}\"");
    let other = ARGUMENTS.replace('2', "3");
    let with = |state| [&acme[..], &["--state", state]].concat();
    let table: [(&str, Vec<&str>, i32, &str, &str); 8] = [
        (ARGUMENTS, with(&state), 0, "", ""),
        (ARGUMENTS, with(&quoted), 0, "", ""),
        (ARGUMENTS, acme.to_vec(), 21, "resume_missing", "repeat the `--state`"),
        (ARGUMENTS, with(cut), 21, "resume_tampered", "copy `--state` whole"),
        (ARGUMENTS, with("{}"), 21, "resume_tampered", "use the state directory"),
        (ARGUMENTS, vec!["--state", &state], 21, "resume_foreign", "name the tenant"),
        (&other, with(&state), 21, "resume_other_arguments", "pass the same arguments"),
        ("{}", with(&state), 21, "resume_other_arguments", "pass the same arguments"),
    ];
    for (arguments, words, status, kind, hint) in table {
        let shown = answered(arguments, &words);
        assert_eq!(shown.status, status, "{shown}");
        if status == 21 {
            assert!(
                shown.stderr.contains(&format!("  reason: {kind}\n")) && shown.stdout.is_empty(),
                "{shown}"
            );
            assert!(
                shown.stderr.lines().any(|line| line.starts_with("hint: ") && line.contains(hint)),
                "{shown}"
            );
            let json = answered(arguments, &[&words[..], &["--json"]].concat());
            assert_eq!(
                (json.status, &json.json()["outcome"]["refusal"]["kind"]),
                (21, &kind.into()),
                "{json}"
            );
        }
    }
}

#[test]
fn invalid_answer_is_refused_and_can_be_retried() {
    let state = asked(&[]);
    let answered = |answer| {
        typed(&["run", "desk.wasm", "book_table", ARGUMENTS, "--answer", answer, "--state", &state])
    };
    let wrong = answered(r#"{"name": 7}"#);
    assert_eq!((wrong.status, wrong.stdout.as_str()), (21, ""), "{wrong}");
    for told in [
        "the answer does not fit the question: at `/name`: ",
        "  reason: invalid_answer\n",
        "hint: correct `--answer`",
    ] {
        assert!(wrong.stderr.contains(told), "{told}: {wrong}");
    }
    assert_eq!(answered(ANSWER).status, 0);
}

#[test]
fn rebuilt_tool_refuses_old_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("desk");
    // One more custom section, named `x`.
    fs::write(&path, [fs::read(example("desk")).unwrap().as_slice(), &[0, 2, 1, b'x']].concat())
        .unwrap();
    let state = asked(&[]);
    let words = [
        "run",
        path.to_str().unwrap(),
        "book_table",
        ARGUMENTS,
        "--answer",
        ANSWER,
        "--state",
        &state,
    ];
    let shown = typed(&words);
    assert_eq!(shown.status, 21, "{shown}");
    assert!(shown.stderr.contains("the tool has changed since it asked the question"), "{shown}");
    assert!(shown.stderr.contains("hint: leave out `--answer` and `--state`"), "{shown}");
}

#[test]
fn resume_key_is_kept_in_named_state_dir() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("state");
    let words = ["--state-dir", dir.to_str().unwrap()];
    let state = asked(&words);
    let with_state = ["--state-dir", dir.to_str().unwrap(), "--state", &state];
    assert_eq!(answered(ARGUMENTS, &with_state).status, 0);
    // The user's own state directory has another key.
    assert_eq!(answered(ARGUMENTS, &["--state", &state]).status, 21);
    let shown = typed(&["run", "desk.wasm", "book_table", ARGUMENTS, words[0], words[1]]);
    assert!(
        shown.stderr.contains(&format!("--state-dir {} --state tc2.", dir.display())),
        "{shown}"
    );
    // With a key that others can read, no question is asked and no answer is accepted. Calls that
    // need no key still work.
    fs::set_permissions(dir.join("resume.key"), fs::Permissions::from_mode(0o644)).unwrap();
    for shown in [
        answered(ARGUMENTS, &with_state),
        typed(&["run", "desk.wasm", "book_table", words[0], words[1]]),
    ] {
        assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{shown}");
        assert!(shown.stderr.contains("resume.key can be read or written by others"), "{shown}");
        assert!(shown.stderr.contains("hint: remove the file, and a new key is made"), "{shown}");
    }
    assert_eq!(
        typed(&["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#, words[0], words[1]]).status,
        0
    );
}

#[test]
fn missing_state_dir_fails_only_calls_that_need_it() {
    let run = |component: &str, words: &[&str]| {
        let mut command = command();
        command.env_remove("XDG_STATE_HOME").arg("run").arg(example(component)).args(words);
        let output = command.output().expect("the binary runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let status = output.status.code().expect("no signal");
        CommandResult { status, stdout: text(output.stdout), stderr: text(output.stderr) }
    };
    assert_eq!(run("hello", &["greet", r#"{"name": "Ada"}"#]).status, 0);
    let key = Path::new(env!("CARGO_TARGET_TMPDIR")).join("elsewhere");
    let known = ["--state-dir", key.to_str().unwrap()];
    for words in [&["book_table"][..], &["book_table", "--answer", "1"]] {
        let shown = run("desk", words);
        assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{shown}");
        assert!(shown.stderr.contains("neither `XDG_STATE_HOME` nor `HOME` is set"), "{shown}");
        assert!(shown.stderr.contains("hint: name a directory with `--state-dir DIR`"), "{shown}");
        assert_ne!(run("desk", &[words, &known].concat()).status, 1);
    }
}
