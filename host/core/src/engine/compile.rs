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

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use wasmtime::Engine;

use super::config::{self, Allocation};
use super::scan;
use crate::error::Error;

/// Processor time of one compilation: a language runtime of 18 MB takes about 15 s.
pub const DEFAULT_COMPILE_TIME: Duration = Duration::from_secs(60);
/// Address space of a worker in bytes.
const WORKER_MEMORY: u64 = 4 << 30;
/// Bytes of native code that are taken from a worker: ten times what a language runtime compiles to.
const MAX_CODE: u64 = 512 << 20;
/// A worker's exit code for a component that the compiler refuses, with the reason on standard error.
const REFUSED: i32 = 3;
/// A worker's exit code when it could not do its work at all, likewise.
const FAILED: i32 = 4;
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
            Some(REFUSED) => Err(Error::malformed(complaint(&output))),
            Some(FAILED) => Err(Error::engine(format!("the compiler process failed: {}", complaint(&output)))),
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
        let mut code = Vec::new();
        if let Some(output) = child.stdout.take() {
            output.take(MAX_CODE + 1).read_to_end(&mut code)?;
        }
        if code.len() as u64 > MAX_CODE {
            // It is not read any further, and ends by that.
            child.kill()?;
        }
        let output = child.wait_with_output()?;
        Ok(Output { stdout: code, ..output })
    }
}

fn complaint(output: &Output) -> String {
    let text = output.stderr.get(..COMPLAINT).unwrap_or(&output.stderr);
    String::from_utf8_lossy(text).trim().to_owned()
}

/// The worker's side: compiles the component on `input` and writes the code to `output`. Meant to be a process's only
/// work: it bounds the whole process to `seconds` of processor time and a few gigabytes, and ties it to its parent's life.
/// Returns the exit code.
pub fn compile_worker(seconds: u64, input: impl Read, mut output: impl Write, mut complaints: impl Write) -> u8 {
    match bounded_compile(seconds, input, &mut output) {
        Ok(()) => 0,
        Err((code, problem)) => {
            // Nobody left to tell: the code has to do.
            let _ = writeln!(complaints, "{problem}");
            code as u8
        }
    }
}

fn bounded_compile(seconds: u64, input: impl Read, output: &mut impl Write) -> Result<(), (i32, String)> {
    let failed = |error: std::io::Error| (FAILED, error.to_string());
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| failed(error.into()))?;
    for (resource, ours) in [(Resource::Cpu, seconds), (Resource::As, WORKER_MEMORY), (Resource::Core, 0)] {
        // A machine may have set a lower one, which cannot be raised and need not be.
        let limit = getrlimit(resource).maximum.map_or(ours, |theirs| theirs.min(ours));
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
            .map_err(|error| failed(error.into()))?;
    }
    let mut component = Vec::new();
    input.take(scan::MAX_BYTES).read_to_end(&mut component).map_err(failed)?;
    let engine = config::engine(Allocation::OnDemand).map_err(|error| (FAILED, error.to_string()))?;
    let code = engine.precompile_component(&component).map_err(|error| (REFUSED, format!("{error:#}")))?;
    output.write_all(&code).map_err(failed)
}
