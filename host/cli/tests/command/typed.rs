//! A command line and its result.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, fs};

/// Returns the binary in an otherwise empty environment, with a cache and a key that all tests
/// share.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcell"));
    command
        .env_clear()
        .envs(toolcell::controls::inherited())
        .current_dir(env!("CARGO_TARGET_TMPDIR"));
    command.env("XDG_STATE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("state"));
    command.arg("--cache-dir").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    command
}

/// Returns the path of an example's component.
pub(crate) fn example(name: &str) -> PathBuf {
    toolcell_test_guests::example(name)
}

/// The result of a command line.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandResult {
    /// Checks the exit status, and that standard error has this text.
    #[track_caller]
    pub(crate) fn tells(&self, status: i32, told: &str) {
        assert!(self.status == status && self.stderr.contains(told), "{told:?}: {self}");
    }

    /// Returns standard output as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl fmt::Display for CommandResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "exit status {}\n--- stdout\n{}--- stderr\n{}",
            self.status, self.stdout, self.stderr
        )
    }
}

/// Runs the command with these words. A word `NAME.wasm` stands for the path of an example.
pub(crate) fn typed(words: &[&str]) -> CommandResult {
    fed(words, b"")
}

/// Runs the command with these words and this standard input.
pub(crate) fn fed(words: &[&str], input: &[u8]) -> CommandResult {
    let mut command = command();
    for word in words {
        match word.strip_suffix(".wasm") {
            Some(name) if !name.contains(['/', '.']) => command.arg(example(name)),
            _ => command.arg(word),
        };
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // The process may end before it has read everything.
    let _ = child.stdin.take().expect("piped").write_all(input);
    let output = child.wait_with_output().expect("the binary ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    CommandResult {
        status: output.status.code().expect("no signal"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Starts a child process of the command, which waits for its input, and reads from the kernel
/// until it has these limits. Returns its line of `/proc/PID/stat`.
#[track_caller]
pub(crate) fn limited(words: &[&str], limits: &[&str]) -> String {
    let mut child = command();
    child.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().expect("the binary runs");
    let read =
        |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).expect("it runs");
    let patience = Instant::now() + Duration::from_secs(10);
    let mut seen = String::new();
    while !limits.iter().all(|limit| seen.contains(limit)) && Instant::now() < patience {
        seen = read("limits").split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let stat = read("stat");
    drop(child.stdin.take());
    child.wait().expect("it ends");
    assert!(limits.iter().all(|limit| seen.contains(limit)), "{seen}");
    stat
}

/// Parts of an output that differ between machines and runs, and what is shown in place of them.
pub(crate) const VARYING: [(&str, &str); 16] = [
    (r"sha256:[0-9a-f]{64}", "sha256:DIGEST"),
    (r#""(fuel|wall_us|peak_memory|used_ms|requested)":\d+"#, r#""$1":N"#),
    (r"used_ms \d+", "used_ms N"),
    (r"\d+ fuel, [\d.]+ ms, [\d.]+ MiB", "N fuel, N ms, N MiB"),
    (r"p50 [\d.]+ ms, p99 [\d.]+ ms, \d+[kMG]? fuel", "p50 N ms, p99 N ms, N fuel"),
    (r"(asked for|needs) \d+ bytes", "$1 N bytes"),
    (r"(size +)[\d.]+ ([KM]i)?B.*: .*", "${1}…"),
    (r"(made with  +).*", "${1}…"),
    (r#""size":\d+"#, r#""size":N"#),
    (r"(compiled   +).*", "${1}…"),
    (r"tc2\.[\w-]+", "tc2.SEALED"),
    (r"\d+ WASI interfaces", "N WASI interfaces"),
    (r#""(seconds|memory)":[\d.]+"#, r#""$1":N"#),
    (r"\(\d+ fuel\)", "(N fuel)"),
    (r"at offset 0x[0-9a-f]+", "at offset 0xN"),
    (r"toolcell \d+\.\d+\.\d+", "toolcell N.N.N"),
];

/// Compares the result with a snapshot, without the parts that differ between machines and runs.
pub(crate) fn check(name: &str, shown: &CommandResult) {
    let dir = example("hello").parent().expect("a directory").display().to_string();
    let text = shown
        .to_string()
        .replace(&format!("{dir}/"), "")
        .replace(env!("CARGO_BIN_EXE_toolcell"), "toolcell")
        .replace(env!("CARGO_TARGET_TMPDIR"), "TMP");
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (varies, shown) in VARYING {
        settings.add_filter(varies, shown);
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}
