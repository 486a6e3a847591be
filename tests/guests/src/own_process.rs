//! Runs a test again in a process of its own: for tests that measure or change a whole process,
//! such as its memory, its limits or its environment.

use std::env;
use std::io::{self, Write as _};
use std::process::{Command, Output};

/// The environment variable that marks the process of its own.
const MARK: &str = "TOOLCELL_TEST_OWN_PROCESS";

/// Runs the body of a test in a process of its own.
///
/// `module` is the `module_path!()` of the test, `test` its name.
///
/// # Panics
/// If the test fails, or the module has no such test.
pub fn run(module: &str, test: &str, body: impl FnOnce()) {
    if enter(module, test) {
        body();
    }
}

/// Returns true in a process of the test's own. Elsewhere it runs the test in such a process, and
/// returns false after the test has passed there. For async tests; others call [`run`].
#[must_use]
pub fn enter(module: &str, test: &str) -> bool {
    if is_entered() {
        return true;
    }
    assert_passed(&command(module, test).output().expect("this program starts"));
    false
}

/// Returns true in the process of its own.
pub fn is_entered() -> bool {
    env::var_os(MARK).is_some()
}

/// Returns the command that runs this test alone, in a process of its own.
pub fn command(module: &str, test: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("the path of this program"));
    // The first segment is the name of the binary, which names of tests do not have.
    let name = match module.split_once("::") {
        Some((_, module)) => format!("{module}::{test}"),
        None => test.to_owned(),
    };
    command.args([&name, "--exact", "--nocapture"]).env(MARK, "1");
    command
}

/// Asserts that a test ran and passed, and writes its standard error to that of this process.
pub fn assert_passed(output: &Output) {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let status = output.status;
    assert!(status.success() && stdout.contains("1 passed"), "{status}: {stdout}{stderr}");
    io::stderr().write_all(&output.stderr).expect("standard error is open");
}
