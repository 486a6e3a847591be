//! Compiles components to native code, in this process or in a worker process with limits.
//!
//! Loads and the background optimiser call [`compile`] with the bytes, the tier and a function that
//! says for how long the code is wanted. It returns native code, or a [`NoCode`]: refused, if the
//! component is the cause and another attempt would end in the same way, or interrupted by an
//! outside cause.
//! Compiling untrusted bytes can take hours on purpose (a few hundred kilobytes of nested blocks
//! are enough), and the compiler contains the largest parser of the project. So a program may start
//! itself as a worker: the child process runs [`compile_worker`] with bounds on its CPU time and
//! memory, and can hang or crash alone. It is killed when its wall time is over, or when its code
//! is not wanted any more.
//! Not here: which bytes reach the compiler (`scan`), where the code is kept (`cache`), when it is
//! optimised (`tier`).

use std::error::Error as _;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use toolcell_contract::controls::bound;
use toolcell_contract::error::Error;

use super::config::{self, Priority, Tier, proposals};
use crate::engine::Engine;
use crate::os::spawn;

/// Bytes of a component up to which a worker has the CPU time that was set. A larger component has
/// more in proportion, because a language runtime takes more than a second for each MiB.
const LIMIT_BYTES: u64 = 8 << 20;
/// Multiplier of the CPU time of a background compilation. If it is ended, only faster code is
/// lost.
const BACKGROUND_FACTOR: u32 = 2;
/// Bytes of address space of a worker.
const WORKER_MEMORY: u64 = 4 << 30;
/// Bytes of native code that are read from a worker: ten times the compiled size of a language
/// runtime.
const MAX_CODE: u64 = 512 << 20;
/// A worker is killed after this many times its CPU time, plus [`WALL_SLACK`], of wall time. Beside
/// processes of ordinary priority on every core it gets a tenth of the machine, and must not be
/// killed because it gave way.
const WALL_FACTOR: u32 = 10;
const WALL_SLACK: Duration = Duration::from_secs(5);
/// Wall time of a background compilation. It has a lower priority than everything else on a machine
/// that may be busy for long.
const BACKGROUND_WALL: Duration = Duration::from_hours(1);
/// Gap in seconds between the soft and the hard CPU limit of a worker, so that SIGXCPU (ours)
/// differs from SIGKILL.
const LAST_SECOND: u64 = 1;
/// The `nice` value that a worker adds to its own, so that a component made to stall the compiler
/// slows no calls.
const NICENESS: i32 = 10;
/// Signals that end a worker that is over its CPU time, and one that gets no more memory.
const SIGXCPU: i32 = Signal::XCPU.as_raw();
const SIGABRT: i32 = Signal::ABORT.as_raw();
/// The signal that ends a worker over its wall time, or one that the machine had no memory for.
const SIGKILL: i32 = Signal::KILL.as_raw();
/// Signals by which a process is asked to end, with its parent or before it.
const ASKED: [i32; 4] =
    [Signal::HUP.as_raw(), Signal::INT.as_raw(), Signal::QUIT.as_raw(), Signal::TERM.as_raw()];
/// A worker's exit code for a component that the compiler refuses; standard error has the reason.
const REFUSED: i32 = 3;
/// A worker's exit code for a component that needs proposals which are off; standard error has
/// their names.
const UNSUPPORTED: i32 = 5;
/// A worker's exit code if it could not do its work at all; standard error has the reason.
const FAILED: i32 = 4;
/// The first bytes of compiled code, which is an ELF file.
const MAGIC: &[u8] = b"\x7fELF";
/// Bytes of a worker's standard error that are kept.
const COMPLAINT: u64 = 2048;
/// The longest interval between two looks at a running worker: little of the time of any
/// compilation.
const PAUSE: Duration = Duration::from_millis(2);

/// A program that compiles in a process of its own.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Worker {
    pub(in crate::engine) program: PathBuf,
    pub(in crate::engine) arguments: Vec<OsString>,
    pub(crate) limit: Duration,
}

/// The reason for which there is no code.
#[derive(Debug)]
pub(in crate::engine) enum NoCode {
    /// The component's fault: another attempt would end the same way.
    Refused(Error),
    /// An outside cause: another attempt may succeed.
    Interrupted(Error),
}

impl From<NoCode> for Error {
    fn from(none: NoCode) -> Self {
        match none {
            NoCode::Refused(error) | NoCode::Interrupted(error) => error,
        }
    }
}

/// Compiles a component, in the worker if there is one. The worker is killed when `is_wanted`
/// returns false. In this process nothing ends it early.
///
/// # Errors
/// [`Error::is_component`] if the component is refused or costs too much.
pub(in crate::engine) fn compile(
    worker: Option<&Worker>,
    tier: Tier,
    haste: Priority,
    component: &[u8],
    is_wanted: impl Fn() -> bool,
) -> Result<Vec<u8>, NoCode> {
    match worker {
        Some(worker) => worker.compile(tier, haste, component, is_wanted),
        None => {
            let compiler = config::compiler(tier, haste).map_err(NoCode::Interrupted)?;
            // The compiler also validates.
            compiler.precompile_component(component).map_err(|error| {
                NoCode::Refused(match proposals::missing(component) {
                    Some(names) => Error::proposals(names),
                    None => Error::malformed(format!("{error:#}")),
                })
            })
        }
    }
}

impl Worker {
    /// Returns the CPU time for a component of this many bytes, in whole seconds.
    pub(super) fn seconds(&self, haste: Priority, bytes: usize) -> u64 {
        let seconds = self.limit.as_secs().max(1);
        let seconds = seconds.max(seconds.saturating_mul(bytes as u64) / LIMIT_BYTES);
        match haste {
            Priority::Foreground => seconds,
            Priority::Background => seconds.saturating_mul(u64::from(BACKGROUND_FACTOR)),
        }
    }

    pub(in crate::engine) fn wall(&self, haste: Priority, bytes: usize) -> Duration {
        let cpu_time = Duration::from_secs(self.seconds(haste, bytes));
        match haste {
            Priority::Foreground => cpu_time.saturating_mul(WALL_FACTOR).saturating_add(WALL_SLACK),
            Priority::Background => BACKGROUND_WALL,
        }
    }

    fn compile(
        &self,
        tier: Tier,
        haste: Priority,
        component: &[u8],
        is_wanted: impl Fn() -> bool,
    ) -> Result<Vec<u8>, NoCode> {
        let seconds = self.seconds(haste, component.len());
        let (order, wall) = (order(tier, seconds), self.wall(haste, component.len()));
        let ended = self.run(&order, component, wall, is_wanted).map_err(|error| {
            NoCode::Interrupted(Error::engine("no compiler process").with_source(error))
        })?;
        let WorkerExit { status, code, complaint } = ended;
        if status.success() {
            return Ok(code);
        }
        let too_costly = Error::too_costly(Duration::from_secs(seconds));
        let interrupted = |problem: String| NoCode::Interrupted(Error::engine(problem));
        Err(match (status.code(), status.signal()) {
            (Some(REFUSED), _) => NoCode::Refused(Error::malformed(complaint)),
            (Some(UNSUPPORTED), _) => NoCode::Refused(Error::proposals(complaint)),
            (Some(FAILED), _) => interrupted(format!("the compiler process failed: {complaint}")),
            // The bounds on CPU time and memory.
            (None, Some(SIGXCPU | SIGABRT)) => NoCode::Refused(too_costly),
            // The bound on wall time, which can be short on a busy machine.
            (None, Some(SIGKILL)) => NoCode::Interrupted(too_costly),
            (None, Some(signal)) if ASKED.contains(&signal) => {
                interrupted(format!("the compiler process was ended ({status})"))
            }
            _ => {
                NoCode::Refused(Error::malformed(format!("the compiler crashed on it ({status})")))
            }
        })
    }

    /// Runs the program until it ends, its wall time is over, or its code is not wanted.
    fn run(
        &self,
        order: &str,
        component: &[u8],
        wall: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> io::Result<WorkerExit> {
        let (started, wall) = (Instant::now(), bound!(CompileWall, wall));
        let mut child = spawn::worker(&self.program)
            .args(&self.arguments)
            .arg(order)
            .stderr(Stdio::piped())
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(output), Some(complaints)) = pipes else {
            unreachable!("all three were asked for");
        };
        thread::scope(|scope| {
            // A worker that died early has closed its end; its status has the reason.
            scope.spawn(move || input.write_all(component));
            let waiting = thread::current();
            let code = scope.spawn(move || {
                let code = bounded(output, MAX_CODE);
                // A worker closes its output when it ends.
                waiting.unpark();
                code
            });
            let complaint = scope.spawn(move || bounded(complaints, COMPLAINT));
            let status = loop {
                if let Some(status) = child.try_wait()? {
                    break status;
                }
                if started.elapsed() >= wall || !is_wanted() {
                    child.kill()?;
                }
                thread::park_timeout(PAUSE);
            };
            let (code, complaint) = (bytes_of(code)?, bytes_of(complaint)?);
            Ok(WorkerExit {
                status,
                code,
                complaint: String::from_utf8_lossy(&complaint).trim().to_owned(),
            })
        })
    }
}

/// Returns the bytes that a thread has read.
fn bytes_of(thread: ScopedJoinHandle<'_, io::Result<Vec<u8>>>) -> io::Result<Vec<u8>> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of a pipe has panicked")))
}

/// The end of a worker: its status and its output.
struct WorkerExit {
    status: ExitStatus,
    code: Vec<u8>,
    complaint: String,
}

/// Reads a pipe up to a bound, then closes it; a process that writes on ends by that.
fn bounded(pipe: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(bound!(CompileOutput, most)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the order to a worker, which is its last argument: the tier and the CPU time.
fn order(tier: Tier, seconds: u64) -> String {
    format!("{}/{seconds}", tier.word())
}

fn parse_order(text: &str) -> Option<(Tier, u64)> {
    let (tier, seconds) = text.split_once('/')?;
    Some((Tier::of(tier)?, seconds.parse().ok()?))
}

/// The worker process of [`EngineBuilder::compile_in`](crate::runtime::EngineBuilder::compile_in):
/// compiles the component on `input` and writes the code to `output`. The process must do nothing
/// else: it is limited to a few gigabytes of memory and to the CPU time that `order` names, and
/// ends with its parent. Returns the exit code of the process. The meaning of the code and of
/// `order` is private to this library.
///
/// The steps: `main` finds the argument that was chosen for `compile_in`. It calls this function
/// with the next argument as `order`, and with standard input, output and error. It ends with the
/// code that is returned. It must write nothing else to the output, and need not start an async
/// runtime.
pub fn compile_worker(
    order: &str,
    input: impl Read,
    mut output: impl Write,
    mut complaints: impl Write,
) -> u8 {
    let done = match parse_order(order) {
        Some((tier, seconds)) => bounded_compile(tier, seconds, input, &mut output),
        None => Err((FAILED, "the compile worker was started without a valid order".to_owned())),
    };
    match done {
        Ok(()) => 0,
        Err((code, problem)) => {
            // If this write fails, only the exit code remains.
            let _ = writeln!(complaints, "{problem}");
            code as u8
        }
    }
}

fn bounded_compile(
    tier: Tier,
    seconds: u64,
    input: impl Read,
    output: &mut impl Write,
) -> Result<(), (i32, String)> {
    fn failed(error: impl fmt::Display) -> (i32, String) {
        (FAILED, error.to_string())
    }
    spawn::become_worker().map_err(|error| {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        failed(format!("{error}{cause}"))
    })?;
    let _ = rustix::process::nice(NICENESS);
    let seconds = bound!(CompileTime, seconds);
    let memory = bound!(CompileMemory, WORKER_MEMORY);
    for (resource, soft, hard) in [
        (Resource::Cpu, seconds, seconds.saturating_add(LAST_SECOND)),
        (Resource::As, memory, memory),
    ] {
        // A machine may have set a lower limit, which cannot be raised and need not be.
        let within =
            |ours: u64| Some(getrlimit(resource).maximum.map_or(ours, |theirs| theirs.min(ours)));
        let limit = Rlimit { current: within(soft), maximum: within(hard) };
        setrlimit(resource, limit).map_err(failed)?;
    }
    let mut component = Vec::new();
    input.take(Engine::MAX_COMPONENT).read_to_end(&mut component).map_err(failed)?;
    // If the parent died before the death signal was set, this write fails. So the magic bytes are
    // written before the work.
    output.write_all(MAGIC).and_then(|()| output.flush()).map_err(failed)?;
    let compiler = config::compiler(tier, Priority::Foreground).map_err(failed)?;
    let refused = |error: wasmtime::Error| match proposals::missing(&component) {
        Some(names) => (UNSUPPORTED, names),
        None => (REFUSED, format!("{error:#}")),
    };
    let code = compiler.precompile_component(&component).map_err(refused)?;
    let rest = code
        .strip_prefix(MAGIC)
        .ok_or_else(|| failed("the compiled code has an unknown format"))?;
    output.write_all(rest).and_then(|()| output.flush()).map_err(failed)
}

#[cfg(test)]
mod tests;
