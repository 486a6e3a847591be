//! From a component to native code.
//!
//! Compiling a stranger's bytes can take hours on purpose (a few hundred kilobytes of nested blocks are enough) and is the
//! largest parser in the house. So a program may lend itself as a worker: a child process with a bound on its processor
//! time and memory, which can run away, or crash, alone.
//! Not here: which bytes are let through to the compiler (`scan`), where the code is kept (`cache`).

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use wasmtime::Engine;

use super::config::{self, Allocation};
use super::scan;
use crate::error::Error;

/// Processor time of one compilation: a language runtime of 18 MB takes about 15 s.
pub const DEFAULT_COMPILE_TIME: Duration = Duration::from_secs(60);
/// Address space of a worker in bytes.
const WORKER_MEMORY: u64 = 4 << 30;
/// A worker's exit code for a component that the compiler refuses, with the reason on standard error.
const REFUSED: i32 = 3;
/// Bytes of a worker's complaint that are kept.
const COMPLAINT: usize = 2048;

/// A program that compiles in a process of its own.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) limit: Duration,
}

/// Compiles, in the worker if there is one.
///
/// # Errors
/// [`Error::is_component`] when the component is refused or costs too much.
pub(super) fn compile(engine: &Engine, worker: Option<&Worker>, component: &[u8]) -> Result<Vec<u8>, Error> {
    match worker {
        Some(worker) => worker.compile(component),
        // The compiler is the validator too: what it refuses is malformed, or uses a proposal that is off.
        None => engine.precompile_component(component).map_err(|error| Error::malformed(format!("{error:#}"))),
    }
}

impl Worker {
    fn compile(&self, component: &[u8]) -> Result<Vec<u8>, Error> {
        let output = self.run(component).map_err(|error| Error::engine("no compiler process").with_source(error))?;
        match output.status.code() {
            Some(0) => Ok(output.stdout),
            Some(REFUSED) => {
                let complaint = output.stderr.get(..COMPLAINT).unwrap_or(&output.stderr);
                Err(Error::malformed(String::from_utf8_lossy(complaint).trim()))
            }
            // Killed by its limits, or crashed: either way not a component to be served.
            _ => Err(Error::too_costly(self.limit)),
        }
    }

    fn run(&self, component: &[u8]) -> std::io::Result<Output> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(self.limit.as_secs().max(1).to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // A worker that died early has closed its end; its status says why.
            let _ = input.write_all(component);
        }
        child.wait_with_output()
    }
}

/// The worker's side: compiles the component on `input` and writes the code to `output`. Meant to be a process's only
/// work: it bounds the whole process to `seconds` of processor time and a few gigabytes. Returns the exit code.
///
/// # Errors
/// When `input` or `output` fails, or the engine cannot be made.
pub fn compile_worker(
    seconds: u64,
    input: impl Read,
    mut output: impl Write,
    mut complaints: impl Write,
) -> Result<u8, Error> {
    let failed = |error: std::io::Error| Error::engine("the compiler process").with_source(error);
    for (resource, limit) in [(Resource::Cpu, seconds), (Resource::As, WORKER_MEMORY), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
            .map_err(|error| failed(error.into()))?;
    }
    let mut component = Vec::new();
    input.take(scan::MAX_BYTES).read_to_end(&mut component).map_err(failed)?;
    match config::engine(Allocation::OnDemand)?.precompile_component(&component) {
        Ok(code) => output.write_all(&code).map_err(failed).map(|()| 0),
        Err(error) => {
            writeln!(complaints, "{error:#}").map_err(failed)?;
            Ok(REFUSED as u8)
        }
    }
}
