//! From a component to native code.
//!
//! Compiling a stranger's bytes can take hours on purpose (a few hundred kilobytes of nested blocks are enough) and is the
//! largest parser in the house. So a program may lend itself as a worker: a child process with a bound on its processor
//! time and memory, which can run away, or crash, alone.
//! Not here: which bytes are let through to the compiler (`scan`), where the code is kept (`cache`).

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use wasmtime::Engine;

use super::config::{self, Allocation};
use super::scan;
use crate::defence::{self, Defence, stands};
use crate::error::Error;

/// Processor time of one compilation: a language runtime of 18 MB takes about 15 s.
pub const DEFAULT_COMPILE_TIME: Duration = Duration::from_secs(60);
/// Address space of a worker in bytes.
const WORKER_MEMORY: u64 = 4 << 30;
/// Bytes of native code that are taken from a worker: ten times what a language runtime compiles to.
const MAX_CODE: u64 = 512 << 20;
/// A worker that waits instead of working is killed after this many times its processor time, and a moment.
const WALL_FACTOR: u32 = 4;
const WALL_SLACK: Duration = Duration::from_secs(10);
/// How a process dies that is over its processor time, that was killed, and that finds no memory.
const SIGXCPU: i32 = Signal::XCPU.as_raw();
const SIGKILL: i32 = Signal::KILL.as_raw();
const SIGABRT: i32 = Signal::ABORT.as_raw();
/// A worker's exit code for a component that the compiler refuses, with the reason on standard error.
const REFUSED: i32 = 3;
/// A worker's exit code when it could not do its work at all, likewise.
const FAILED: i32 = 4;
/// Bytes of a worker's complaint that are kept.
const COMPLAINT: u64 = 2048;

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
        let wall = self.limit.saturating_mul(WALL_FACTOR).saturating_add(WALL_SLACK);
        let ended =
            self.run(component, wall).map_err(|error| Error::engine("no compiler process").with_source(error))?;
        match (ended.status.code(), ended.status.signal()) {
            (Some(0), _) => Ok(ended.code),
            (Some(REFUSED), _) => Err(Error::malformed(ended.complaint)),
            (Some(FAILED), _) => Err(Error::engine(format!("the compiler process failed: {}", ended.complaint))),
            // Its bounds: processor time, wall time or code (killed), memory (aborted).
            (None, Some(SIGXCPU | SIGKILL | SIGABRT)) => Err(Error::too_costly(self.limit)),
            _ => Err(Error::malformed(format!("the compiler crashed on it ({})", ended.status))),
        }
    }

    /// Runs the program to its end, or to the end of its wall time.
    fn run(&self, component: &[u8], wall: Duration) -> io::Result<Ended> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(self.limit.as_secs().max(1).to_string())
            .env_clear()
            .envs(defence::inherited())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(output), Some(complaints)) = pipes else {
            unreachable!("all three were asked for");
        };
        std::thread::scope(|scope| {
            let (finished, end) = mpsc::channel::<()>();
            let watch = scope.spawn(move || {
                if end.recv_timeout(wall) == Err(RecvTimeoutError::Timeout) && stands(Defence::CompileWall) {
                    child.kill()?;
                }
                child.wait()
            });
            // A worker that died early has closed its end; its status says why.
            scope.spawn(move || input.write_all(component));
            let complaint = scope.spawn(move || bounded(complaints, COMPLAINT));
            let code = bounded(output, MAX_CODE)?;
            let complaint = complaint.join().unwrap_or_else(|_| Ok(Vec::new()))?;
            drop(finished);
            let status = watch.join().unwrap_or_else(|_| Err(io::Error::other("the watch died")))?;
            Ok(Ended { status, code, complaint: String::from_utf8_lossy(&complaint).trim().to_owned() })
        })
    }
}

/// How a worker ended.
struct Ended {
    status: ExitStatus,
    code: Vec<u8>,
    complaint: String,
}

/// Everything from a pipe, up to a bound. Behind it the pipe is closed, and whoever writes on ends by that.
fn bounded(pipe: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(if stands(Defence::CompileOutput) { most } else { u64::MAX }).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The worker's side: compiles the component on `input` and writes the code to `output`. Meant to be a process's only
/// work: it bounds the whole process to `seconds` of processor time and a few gigabytes, and ties it to its parent's life.
/// Returns the exit code: what it means is between this and the parent's [`EngineBuilder`](crate::EngineBuilder).
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
    let failed = |error: io::Error| (FAILED, error.to_string());
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| failed(error.into()))?;
    for (resource, ours, is_up) in [
        (Resource::Cpu, seconds, stands(Defence::CompileTime)),
        (Resource::As, WORKER_MEMORY, stands(Defence::CompileMemory)),
        (Resource::Core, 0, true),
    ] {
        if !is_up {
            continue;
        }
        // A machine may have set a lower one, which cannot be raised and need not be.
        let limit = getrlimit(resource).maximum.map_or(ours, |theirs| theirs.min(ours));
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
            .map_err(|error| failed(error.into()))?;
    }
    let mut component = Vec::new();
    input.take(scan::MAX_COMPONENT).read_to_end(&mut component).map_err(failed)?;
    let engine = config::engine(Allocation::OnDemand).map_err(|error| (FAILED, error.to_string()))?;
    let code = engine.precompile_component(&component).map_err(|error| (REFUSED, format!("{error:#}")))?;
    output.write_all(&code).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(script: &str) -> Worker {
        let arguments = ["-c", script].map(OsString::from).to_vec();
        Worker { program: "/bin/sh".into(), arguments, limit: Duration::from_secs(60) }
    }

    #[test]
    fn each_way_a_worker_ends() {
        for (script, expected) in [
            ("cat", Ok("bytes")),
            ("echo no >&2; exit 3", Err("the component is malformed: no")),
            ("echo disk >&2; exit 4", Err("the engine cannot be set up: the compiler process failed: disk")),
            ("exit 101", Err("the component is malformed: the compiler crashed on it (exit status: 101)")),
            (
                "kill -XCPU $$",
                Err("the component cannot be compiled within 60s of processor time and the memory for it"),
            ),
            ("kill -SEGV $$", Err("the component is malformed: the compiler crashed on it (signal: 11 (SIGSEGV))")),
        ] {
            let ended = worker(script).compile(b"bytes").map_err(|error| error.to_string());
            let ended = ended.as_deref().map(|code| std::str::from_utf8(code).unwrap()).map_err(String::as_str);
            assert_eq!(ended.map_err(|error| error.trim_end_matches(" (core dumped)")), expected, "{script}");
        }
    }

    #[test]
    fn what_a_worker_says_is_read_to_a_bound() {
        assert_eq!(bounded(io::repeat(0).take(100), 10).unwrap().len(), 10);
    }

    /// One that neither works nor ends is killed.
    #[test]
    fn a_worker_that_only_waits_is_killed() {
        let ended = worker("exec sleep 5").run(&[0; 1 << 20], Duration::from_millis(10)).unwrap();
        assert_eq!(ended.status.signal(), Some(SIGKILL));
    }
}
