//! The answers in `tests/platform`, compared with Node's. A test compares them with those of a cell.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::registries::Packages;
use crate::shell::root;

/// Each line has an expression, and the next one `= ` and its answer.
const EXPRESSIONS: [&str; 2] = ["tests/platform/web.txt", "tests/platform/intl.txt"];
/// Prints the expressions for which Node has another answer, and fails if there is one.
const PROGRAM: &str = r#"
const AsyncFunction = (async () => {}).constructor;
const value = async (line) => {
  try { return String(await new AsyncFunction(`return (${line})`)()); } catch (error) { return `throws ${error?.name}`; }
};
(async () => {
  const lines = require("fs").readFileSync(process.argv[1], "utf8").trimEnd().split("\n");
  for (let at = 0; at < lines.length; at += 2) {
    const answer = `= ${await value(lines[at])}`;
    if (answer === lines[at + 1]) continue;
    console.log(`${lines[at]}\n${answer}\n  the file has: ${lines[at + 1]}`);
    process.exitCode = 1;
  }
  console.log(`${lines.length / 2} expressions were compared with Node ${process.version}`);
})();
"#;

/// Installs Node and compares.
pub(crate) fn run() -> Result<()> {
    compare(&Packages::install()?.node)
}

/// Compares with this Node.
pub(crate) fn compare(node: &Path) -> Result<()> {
    for expressions in EXPRESSIONS {
        let mut command = Command::new(node);
        command.arg("-e").arg(PROGRAM).arg(root().join(expressions));
        let status = command.env_clear().env("TZ", "UTC").env("LANG", "C.UTF-8").status();
        ensure!(status.context("Node does not start")?.success(), "answers in {expressions} are not Node's");
    }
    Ok(())
}
