//! The command under resource limits of its environment.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::Place;

const CONFIG: &str = "[components.clerk]\npath = \"clerk.wasm\"\ngrants = { scratch = true }\n";
/// Two calls at once; one of them writes more than a file may have.
const CALLS: &str = "{\"id\": \"large\", \"name\": \"clerk\", \"arguments\": {\"steps\": [[\"write\", \"/scratch/a\", \"20000000\"]]}}\n\
     {\"id\": \"small\", \"name\": \"clerk\", \"arguments\": {\"steps\": [[\"write\", \"/scratch/a\", \"10\"]]}}\n";

/// `ulimit -f`, in this process and in a worker process.
#[test]
fn file_size_limit_does_not_kill_command() {
    for config in [CONFIG.to_owned(), format!("[host]\nisolation = \"process\"\n{CONFIG}")] {
        let place = Place::new(&config);
        fs::write(place.path().join("calls.jsonl"), CALLS).expect("a place");
        let place = place.approved();
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        let mut shell = Command::new("sh");
        shell.current_dir(place.path()).env("XDG_STATE_HOME", place.state());
        shell.args([
            "-c",
            "ulimit -f 8192; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_toolcell"),
            "--cache-dir",
        ]);
        shell.arg(cache).args(["batch", "clerk", "--calls", "calls.jsonl"]);
        let output = shell.stdin(Stdio::null()).output().expect("a shell");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let contents: Vec<_> = told["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|said| &said["content"])
            .collect();
        assert!(
            contents.len() == 2 && contents[1] == "[\"done\"]" && contents[0] != contents[1],
            "{told}"
        );
    }
}
