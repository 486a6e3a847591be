//! Tests of the server: its HTTP API, MCP, and the search among many tools.

mod http;
mod many;
mod mcp;
mod recall;
mod trees;

use std::env;
use std::process::Command;

/// The environment variable that marks a process that runs one test alone.
const OWN_PROCESS: &str = "TOOLCELL_TEST_OWN_PROCESS";

/// Returns true in a process of the test's own. Elsewhere it runs the test in such a process, and
/// returns false after the test has passed there. For tests that observe their whole process.
///
/// `module` is the `module_path!()` of the test, `test` its name.
fn is_in_own_process(module: &str, test: &str) -> bool {
    if env::var_os(OWN_PROCESS).is_some() {
        return true;
    }
    // The first segment is the name of this binary, which names of tests do not have.
    let (_, module) = module.split_once("::").expect("a module of this binary");
    let mut own = Command::new(env::current_exe().expect("the path of this program"));
    own.args([&format!("{module}::{test}"), "--exact", "--nocapture"]).env(OWN_PROCESS, "1");
    let output = own.output().expect("this program starts");
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{}: {stdout}{stderr}",
        output.status
    );
    false
}
