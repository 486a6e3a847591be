//! Many configured tools in one process.

use std::fs;
use std::io::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::Runtime;
use toolcell::{CallOptions, ToolCall};
use toolcell_config::{Configuration, Lock, ReadOptions};
use toolcell_test_guests::bytes;

/// Resident bytes of this process.
///
/// # Errors
/// A system that does not say.
pub fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

/// Approves so many components of the size of an ordinary tool, and measures what it takes to load them from the cache.
///
/// # Errors
/// A component that is not served.
pub fn configured(runtime: &Runtime, count: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("toolcell.toml");
    let (component, name) = (bytes("hello"), b"greet");
    let at = component.windows(name.len() + 5).position(|part| part == b"Errorgreet").context("no name")? + 5;
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
    // Compiles each, once.
    let configuration = read()?;
    let engines = configuration.engines().build()?;
    let mut shown = Vec::with_capacity(count);
    for number in 0..count {
        let name = format!("t{number:04}");
        shown.push((name.clone(), runtime.block_on(configuration.shown(&engines, &name))?));
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
    let first = runtime.block_on(loaded.registry().call(loaded.executor(), call, CallOptions::default()))?;
    ensure!(first.result.value().is_some(), "{first:?}");
    let (first, mib) = (began.elapsed(), more as f64 / f64::from(1 << 20));
    writeln!(
        std::io::stdout(),
        "\n{count} configured tools: loaded from the cache in {took:.0?}, {mib:.1} MiB more; first call {first:.1?}"
    )?;
    Ok(())
}
