//! The command at a terminal, and without a standard output.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::place::Place;
use crate::typed::{command, example, typed};

/// The prompt for an answer.
const PROMPT: &str = "your answer (empty: answer later): ";

/// Runs the command at the terminal of `script`, which every Debian has (package `bsdutils`). Sends
/// `lines` once the output contains `after`. Returns the exit status and the output.
fn at_a_terminal(
    environment: &[(&str, &str)],
    words: &[&str],
    (after, lines): (&str, &str),
) -> (Option<i32>, String) {
    let mut call = command();
    call.args(words);
    let words = std::iter::once(call.get_program()).chain(call.get_args());
    let quoted = words
        .map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")))
        .collect::<Vec<_>>();
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &quoted.join(" "), "/dev/null"]);
    script.env_remove("NO_COLOR").env("TERM", "xterm").envs(environment.iter().copied());
    script.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child =
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command `script`");
    let (mut input, mut output) =
        (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&seen).contains(after) {
        let read = output.read(&mut piece).expect("it is open");
        assert!(read > 0, "no `{after}`: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    input.write_all(lines.as_bytes()).expect("it reads");
    drop(input);
    output.read_to_end(&mut seen).expect("it ends");
    let status = child.wait().expect("it ends").code();
    (status, String::from_utf8(seen).expect("UTF-8").replace("\r\n", "\n"))
}

#[test]
fn errors_are_coloured_only_at_a_terminal() {
    let hello = example("hello").display().to_string();
    assert_eq!(
        typed(&["inspect", &hello]).status,
        0,
        "otherwise a spinner is drawn while it is compiled"
    );
    let words = ["run", &hello, "gret"];
    let (status, seen) = at_a_terminal(&[], &words, ("", ""));
    assert_eq!(status, Some(1), "{seen}");
    assert!(
        seen.contains("\u{1b}[1;31merror\u{1b}[0m: there is no tool `gret`"),
        "{}",
        seen.escape_debug()
    );
    assert!(seen.contains("\u{1b}[1;36mhint\u{1b}[0m: did you mean"), "{}", seen.escape_debug());
    let (_, plain) = at_a_terminal(&[("NO_COLOR", "1")], &words, ("", ""));
    assert!(
        plain.contains("error: there is no tool") && !plain.contains('\u{1b}'),
        "{}",
        plain.escape_debug()
    );
    let piped = |variable: Option<&str>| {
        let output = command()
            .args(words)
            .envs(variable.map(|name| (name, "1")))
            .output()
            .expect("the binary runs");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    assert!(
        !piped(None).contains('\u{1b}')
            && piped(Some("CLICOLOR_FORCE")).contains("\u{1b}[1;31merror")
    );
    let (_, usage) = at_a_terminal(&[], &["run", &hello, "--feul", "1"], ("", ""));
    assert!(
        usage.contains("\u{1b}[1;31merror\u{1b}[0m: unexpected argument"),
        "{}",
        usage.escape_debug()
    );
}

#[test]
fn prompt_repeats_until_answer_is_valid() {
    let desk = example("desk").display().to_string();
    assert_eq!(
        typed(&["inspect", &desk]).status,
        0,
        "otherwise a spinner is drawn while it is compiled"
    );
    let words = ["run", &desk, "book_table", r#"{"name": "Ada", "date": "2026-03-03"}"#];
    let (status, seen) = at_a_terminal(
        &[],
        &words,
        (PROMPT, "{\"party_size\": \"two\"}\n{\"party_size\": 2, \"time\": \"19:30\"}\n"),
    );
    assert_eq!((status, seen.matches(PROMPT).count()), (Some(0), 2), "{seen}");
    assert!(
        seen.contains("the answer is not what the tool asks for\n  - at `/party_size`: expected"),
        "{seen}"
    );
    assert!(seen.contains("\"booking\"") && !seen.contains("--answer ANSWER"), "{seen}");
    let (status, seen) = at_a_terminal(&[], &words, (PROMPT, "\n"));
    assert!(status == Some(11) && seen.contains("--answer ANSWER"), "{seen}");
    // No call is running: the process ends at once.
    let (status, seen) = at_a_terminal(&[], &words, (PROMPT, "\u{3}"));
    assert!(status == Some(130) && !seen.contains("interrupted"), "{status:?} {seen}");
    // With `--json`, or if a program reads the output, no answer is requested.
    let (status, seen) = at_a_terminal(&[], &[&words[..], &["--json"]].concat(), ("", ""));
    assert!(status == Some(11) && !seen.contains("your answer"), "{seen}");
    assert_eq!(typed(&words).status, 11);
}

#[test]
fn answer_must_be_one_of_the_options() {
    const TOOL: &str = r#"import { askUser, tool } from "toolcell";
export default tool({ name: "when", description: "Asks.", handler: (_, context) =>
    context.answer ?? askUser("When?", { options: ["18:00", "20:00"] }) });"#;
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "when"]).status, 0);
    std::fs::write(place.path().join("when/src/tool.js"), TOOL).expect("a file");
    let built = place.typed(&["build", "when"]);
    assert_eq!(built.status, 0, "{built}");
    let file = place.path().join("when/when.wasm").display().to_string();
    let (status, seen) =
        at_a_terminal(&[("NO_COLOR", "1")], &["run", &file], (PROMPT, "19:00\n20:00\n"));
    assert!(seen.contains("error: the answer is none of the options\n"), "{seen}");
    assert_eq!((status, seen.matches(PROMPT).count()), (Some(0), 2), "{seen}");
}

/// After a no, the hint does not repeat the way to approve.
#[test]
fn answer_other_than_yes_approves_nothing() {
    const QUESTION: &str = "approve this? [y/N] ";
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\n");
    let (file, lock) = (place.path().join("toolcell.toml"), place.path().join("toolcell.lock"));
    let words = ["--config", file.to_str().expect("UTF-8"), "approve"];
    for (answer, status, told) in [
        (
            "n\n",
            21,
            "error: not approved, and nothing was written\nhint: change what you do not want to allow; ",
        ),
        (
            "\n",
            21,
            "error: not approved, and nothing was written\nhint: change what you do not want to allow; ",
        ),
        ("y\n", 0, "note: approved: `hello` in "),
    ] {
        let (ended, seen) = at_a_terminal(&[("NO_COLOR", "1")], &words, (QUESTION, answer));
        assert_eq!((ended, lock.exists()), (Some(status), status == 0), "{answer:?}: {seen}");
        assert!(seen.contains(told) && !seen.contains("--yes"), "{answer:?}: {seen}");
    }
}

#[test]
fn closed_stdout_is_an_error() {
    let hello = example("hello").display().to_string();
    for (redirection, fault) in [
        (">&-", "standard output is closed"),
        ("1</dev/null", "standard output is open for reading only"),
    ] {
        for words in [
            &["run", &hello, "name=Ada"][..],
            &["list", &hello, "--json"],
            &["--help"],
            &["--version"],
        ] {
            let mut call = command();
            call.args(words);
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &format!("exec \"$0\" \"$@\" {redirection}")])
                .arg(call.get_program())
                .args(call.get_args());
            let output =
                shell.stdin(Stdio::null()).stderr(Stdio::piped()).output().expect("a shell");
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{words:?} {redirection}: {told}");
            assert!(
                told.starts_with(&format!("error: {fault}\nhint: ")),
                "{words:?} {redirection}: {told}"
            );
        }
    }
    let null = command()
        .args(["run", &hello, "name=Ada"])
        .stdout(Stdio::null())
        .status()
        .expect("the binary runs");
    assert_eq!(null.code(), Some(0), "who wants no result has none");
}
