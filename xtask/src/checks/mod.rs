//! Checks by external programs: prints a line for each, and a summary at the end.

pub(crate) mod clients;
pub(crate) mod conformance;
pub(crate) mod languages;
pub(crate) mod openapi;
pub(crate) mod packaging;
mod served;
pub(crate) mod suites;

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::shell::print;

/// A program that runs longer is killed.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(300);

/// The results of checks so far.
#[derive(Default)]
pub(crate) struct Checks {
    passed: usize,
    failed: Vec<String>,
}

impl Checks {
    /// Records a check; `why` is the reason for a failure.
    pub(crate) fn note(&mut self, name: &str, why: Option<&str>) {
        print(&format!("check {name} ... {}\n", if why.is_none() { "ok" } else { "FAILED" }));
        match why {
            None => self.passed += 1,
            Some(why) => self.failed.push(format!("{name}: {why}")),
        }
    }

    /// Runs a program that prints a line `ok: NAME` for each of its checks. Also records a failure
    /// if its exit status is not 0 or it makes no check.
    pub(crate) fn program(&mut self, title: &str, command: &mut Command) -> Result<()> {
        let ended = run(command).with_context(|| format!("{title} does not run"))?;
        let mut checked = 0;
        for name in ended.stdout.lines().filter_map(|line| line.strip_prefix("ok: ")) {
            self.note(&format!("{title}: {name}"), None);
            checked += 1;
        }
        if !ended.success || checked == 0 {
            let failed = ended.stdout.lines().find_map(|line| line.strip_prefix("FAILED: "));
            self.note(
                &format!("{title}: {}", failed.unwrap_or("ends well")),
                Some(&ended.all_output()),
            );
        }
        Ok(())
    }

    /// Prints the summary.
    pub(crate) fn finish(self) -> Result<()> {
        for failure in &self.failed {
            print(&format!("\nFAILED {failure}\n"));
        }
        let failed = self.failed.len();
        let word = if failed == 0 { "ok" } else { "FAILED" };
        print(&format!("\ntest result: {word}. {} passed; {failed} failed\n\n", self.passed));
        ensure!(failed == 0 && self.passed > 0, "{failed} checks failed");
        Ok(())
    }
}

/// The end of a program: success, and its output.
pub(crate) struct ProgramOutput {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    stderr: String,
}

impl ProgramOutput {
    pub(crate) fn all_output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs a program to its end, or kills it after `PROGRAM_TIMEOUT`.
pub(crate) fn run(command: &mut Command) -> Result<ProgramOutput> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let texts =
        [
            child.stdout.take().map(|pipe| {
                thread::spawn(move || std::io::read_to_string(pipe).unwrap_or_default())
            }),
            child.stderr.take().map(|pipe| {
                thread::spawn(move || std::io::read_to_string(pipe).unwrap_or_default())
            }),
        ];
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > PROGRAM_TIMEOUT {
            child.kill()?;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let [stdout, stderr] =
        texts.map(|text| text.and_then(|text| text.join().ok()).unwrap_or_default());
    Ok(ProgramOutput { success: status.success(), stdout, stderr: format!("{stderr}{status}") })
}
