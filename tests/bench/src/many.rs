//! Measures a process with many configured tools.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::runtime::Runtime;
use toolcell::{CallOptions, ToolCall};
use toolcell_config::{Configuration, Lock, ReadOptions};
use toolcell_test_guests::bytes;

use crate::program::program;

/// Time that a started server gets to become idle.
const IDLE: Duration = Duration::from_secs(1);

/// Returns the resident bytes of this process.
///
/// # Errors
/// Fails if `/proc` does not tell.
pub fn resident() -> Result<u64> {
    resident_of("self")
}

fn resident_of(process: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

/// Approves `count` components of the size of an ordinary tool, and measures how long they take to
/// load from the cache, and to be served.
///
/// # Errors
/// Fails if a component does not load, or its call fails.
pub fn configured(runtime: &Runtime, count: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("toolcell.toml");
    let (component, name) = (bytes("hello"), b"greet");
    let at = component
        .windows(name.len() + 5)
        .position(|part| part == b"Errorgreet")
        .context("no name")?
        + 5;
    let mut sections = String::new();
    for number in 0..count {
        let mut renamed = component.clone();
        renamed[at..at + name.len()].copy_from_slice(format!("g{number:04}").as_bytes());
        fs::write(folder.path().join(format!("t{number:04}.wasm")), renamed)?;
        sections += &format!("[components.t{number:04}]\npath = \"t{number:04}.wasm\"\n");
    }
    fs::write(&file, sections)?;
    let options = ReadOptions::default().with_state_dir(folder.path().join("state"));
    let options = options.with_cache_dir(folder.path().join("cache"));
    let read = || Configuration::read_with(&file, options.clone());
    // Compiles each component once.
    let configuration = read()?;
    let engines = configuration.engines().build()?;
    let mut shown = Vec::with_capacity(count);
    for number in 0..count {
        let name = format!("t{number:04}");
        shown.push((name.clone(), runtime.block_on(configuration.review(&engines, &name))?));
    }
    configuration.approve(&Lock::beside(&configuration)?, &shown, &[])?;
    drop((shown, engines, configuration));
    let (before, began) = (resident()?, Instant::now());
    let configuration = read()?;
    let engines = configuration.engines().build()?;
    let loaded = runtime.block_on(configuration.load(&engines))?;
    let (took, more) = (began.elapsed(), resident()?.saturating_sub(before));
    ensure!(loaded.components().count() == count, "{:?}", loaded.problems().first());
    let call = ToolCall::new("1", "g0007", r#"{"name": "Ada"}"#);
    let began = Instant::now();
    let calling = loaded.registry().call(loaded.executor(), call, CallOptions::default());
    let first = runtime.block_on(calling)?;
    ensure!(first.result.value().is_some(), "{first:?}");
    let (first, mib) = (began.elapsed(), more as f64 / f64::from(1 << 20));
    writeln!(
        std::io::stdout(),
        "\n{count} configured tools: loaded from the cache in {took:.0?}, {mib:.1} MiB more; first call {first:.1?}"
    )?;
    drop((loaded, engines));
    served(folder.path(), count)
}

/// Starts `toolcell serve` with the tools of this folder, and measures the time until it listens
/// and its resident memory when idle.
fn served(folder: &Path, count: usize) -> Result<()> {
    let mut command = Command::new(program()?);
    for (option, name) in
        [("--config", "toolcell.toml"), ("--state-dir", "state"), ("--cache-dir", "cache")]
    {
        command.arg(option).arg(folder.join(name));
    }
    command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped());
    let began = Instant::now();
    let mut server = Started(command.spawn()?);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().context("no output")?).read_line(&mut line)?;
    let took = began.elapsed();
    let listening: Value = serde_json::from_str(&line)?;
    ensure!(listening["tools"] == count, "{listening}");
    std::thread::sleep(IDLE);
    let mib = resident_of(&server.0.id().to_string())? as f64 / f64::from(1 << 20);
    let (most_ms, most_mib) = if count > 100 { (1000, 150) } else { (300, 60) };
    writeln!(
        std::io::stdout(),
        "  `toolcell serve` with them: listens after {took:.0?} (target {most_ms} ms), {mib:.1} MiB resident (target {most_mib})"
    )?;
    Ok(())
}

/// A process that is killed when it is dropped.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
