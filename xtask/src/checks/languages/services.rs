//! Checks the services of each language's SDK during a call: log lines, progress, and the abort
//! signal.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::shell::print;

/// The needs that the common tool declares, as grants.
pub(super) const GRANTS: [&str; 6] = [
    "http=GET https://api.example.com/v1",
    "secret=api_key={ destination = 'https://api.example.com/v1', source = { env = 'API_KEY' } }",
    "secret=password={ source = { env = 'API_KEY' } }",
    "reveal=password",
    "kv=write counters/*",
    "invoke=endings",
];
const LOGGED: &str = "tool log warn: waiting\n";
const REPORTED: &str = "tool progress: 1 of 2, half\n";

/// Runs a call that logs, reports progress and waits for the abort signal. Returns true if both
/// lines are printed in order, and the call ends with its own result after SIGTERM.
pub(super) fn work(command: &mut Command) -> Result<bool> {
    command.env("API_KEY", "a-placeholder-of-a-secret");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("the command does not start")?;
    let (mut told, id) = (String::new(), child.id().to_string());
    for line in BufReader::new(child.stderr.take().context("standard error is not piped")?).lines()
    {
        told += &(line? + "\n");
        if told.ends_with(REPORTED) {
            let signal = Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .context("`kill` does not start")?;
            ensure!(signal.success(), "the command has ended: {told}");
        }
    }
    let answered = child.wait_with_output().context("the command does not end")?.stdout;
    let is_good = told.contains(&format!("{LOGGED}{REPORTED}")) && answered == b"stopped\n";
    if !is_good {
        print(&format!("log, progress and abort: {}{told}", String::from_utf8_lossy(&answered)));
    }
    Ok(is_good)
}
