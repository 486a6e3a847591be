//! Measures whole processes: `toolcell run` of a small cached tool, beside `toolcell --version`.
//!
//! `cargo bench --workspace --bench command`. It starts `toolcell`: build that first, with the same
//! profile.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use toolcell_benches::program::program;
use toolcell_benches::timing::{micros, percentile};
use toolcell_test_guests::bytes;
use wait4::Wait4 as _;

const ROUNDS: usize = 60;
/// Bounds of `run`: milliseconds, and MiB at the peak.
const TARGET: (f64, f64) = (8.0, 20.0);

/// The commands: a name, and the arguments.
const COMMANDS: [(&str, &[&str]); 2] =
    [("--version", &["--version"]), ("run", &["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#])];

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("hello.wasm"), bytes("hello"))?;
    let program = program()?;
    // `check` waits until the component is compiled, optimised and in the cache.
    fs::write(folder.path().join("toolcell.toml"), "[components.hello]\npath = \"hello.wasm\"\n")?;
    started(&program, folder.path(), &["--config", "toolcell.toml", "check"])?;
    fs::remove_file(folder.path().join("toolcell.toml"))?;

    let (mut times, mut peaks) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
    for round in 0..=ROUNDS {
        for (index, (_, words)) in COMMANDS.iter().enumerate() {
            let (took, peak) = started(&program, folder.path(), words)?;
            // The first round warms up.
            if round > 0 {
                times[index].push(took);
                peaks[index].push(peak as f64 / f64::from(1 << 20));
            }
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nmedians of {ROUNDS} processes, in turn")?;
    for (index, (name, _)) in COMMANDS.iter().enumerate() {
        let took = percentile(&mut micros(std::mem::take(&mut times[index])), 50.0) / 1000.0;
        let peak = percentile(&mut peaks[index], 50.0);
        writeln!(out, "  toolcell {name:10} {took:6.1} ms  {peak:6.1} MiB at most")?;
    }
    let (most_ms, most_mib) = TARGET;
    writeln!(out, "  target of `run`: {most_ms} ms and {most_mib} MiB, in a release build")?;
    Ok(())
}

/// Runs the program to its end. Returns its time and its peak memory in bytes.
fn started(program: &Path, folder: &Path, words: &[&str]) -> Result<(Duration, u64)> {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.env_clear().env("HOME", folder);
    let began = Instant::now();
    let ended = command.spawn()?.wait4()?;
    let took = began.elapsed();
    ensure!(ended.status.success(), "{words:?}: {}", ended.status);
    Ok((took, ended.rusage.maxrss))
}
