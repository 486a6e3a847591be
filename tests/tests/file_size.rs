//! Under a file-size limit of the process (`ulimit -f`), a write beyond it fails alone with an
//! error.

use std::process::Command;
use std::time::Duration;

use serde_json::json;
use toolcell::component::LoadOptions;
use toolcell::grants::{Access, Directory, DirectoryQuota};
use toolcell::runtime::Placement;
use toolcell::{CallOptions, Completion, Component, Executor, Grants, Limits, ToolCall};
use toolcell_tests::{ending, engine, wait};

/// The environment variable that marks the process with the limit.
const LIMITED: &str = "TOOLCELL_TEST_LIMITED";
/// Blocks of a file at most: four or eight MiB, depending on the shell's block size.
const BLOCKS: &str = "8192";
/// Bytes of a file that is too large.
const TOO_MUCH: &str = "20000000";

fn call(component: &Component, steps: &[&[&str]]) -> Completion {
    let tool = component.tool("clerk").expect("the tool").clone();
    let call = ToolCall::with_value("call-1", "clerk", &json!({ "steps": steps }));
    let limits = Limits { timeout: Duration::from_secs(30), ..Limits::default() };
    wait(async move {
        Executor::new().with_limits(limits).call(&tool, call, CallOptions::default()).await
    })
}

#[test]
fn write_past_file_size_limit_fails_alone() {
    if std::env::var_os(LIMITED).is_none() {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -f {BLOCKS}; exec \"$@\""), "sh"]);
        shell.arg(std::env::current_exe().expect("this program"));
        shell.args(["--exact", "write_past_file_size_limit_fails_alone"]).env(LIMITED, "1");
        let output = shell.output().expect("a shell");
        assert!(
            output.status.success(),
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stdout)
        );
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let room = DirectoryQuota { bytes: 64 << 20, files: 100 };
    let mut grants = Grants::default();
    grants
        .directories
        .push(Directory::new("/data", dir.path(), Access::Write).expect("a name").with_quota(room));
    let engine = engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    let bytes = toolcell_test_guests::bytes("clerk");
    let component = wait(async move {
        Component::load_with(&engine, bytes, LoadOptions { grants, ..LoadOptions::default() }).await
    });
    let component = component.expect("it loads");
    let ended =
        call(&component, &[&["write", "/data/large", TOO_MUCH], &["write", "/data/small", "10"]]);
    let told = ended.result.value().unwrap_or_else(|| panic!("{ended:?}")).to_value();
    assert!(told[0] != "done" && told[1] == "done", "{told}");
    assert_eq!(ending(&call(&component, &[&["resize", "/data/small", TOO_MUCH]]).result), "ok");
}
