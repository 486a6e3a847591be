//! Finds the source lines of a trap in a process of its own: this command starts itself again, as
//! the child.
//!
//! After a trap, `run` calls [`find`] with the component's bytes and the positions on the stack. It
//! sends them to the child, which runs [`work`], and returns the places in the author's files that
//! the child answers; the list is empty if that fails.
//!
//! A child is needed because debug information of an untrusted component can be made so that
//! reading it takes any amount of time and memory. The child has limits for both, and an empty
//! environment. Lines that it does not find in three seconds are not shown.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use toolcell::outcome::Frame;
use toolcell_author::SourceLine;

use super::env;

/// Name of the hidden command that looks up source lines in a process of its own.
pub(crate) const WORKER: &str = "lines-worker";
/// Address space of the child in bytes: the program itself takes some 200 MiB.
const MEMORY: u64 = 1 << 30;
/// Seconds of processor time of the child.
const SECONDS: u64 = 2;
/// Time that the parent waits for the child.
const WAIT: Duration = Duration::from_secs(3);
/// Bytes of a component that the child reads.
const COMPONENT: u64 = 64 << 20;
/// Bytes of the child's answer that are read: 24 places with their names.
const ANSWER: u64 = 16 << 10;

/// Returns the source places of these positions, innermost first. Empty if the component has no
/// debug information, or if the lookup fails: the rest of the error is printed anyway.
pub(crate) fn find(component: Vec<u8>, frames: &[Frame]) -> Vec<SourceLine> {
    if frames.is_empty() {
        return Vec::new();
    }
    answer(component, frames)
        .ok()
        .and_then(|answer| serde_json::from_slice(&answer).ok())
        .unwrap_or_default()
}

fn answer(component: Vec<u8>, frames: &[Frame]) -> io::Result<Vec<u8>> {
    let mut command = Command::new(env::own_program()?);
    command.env_clear().process_group(0).arg(WORKER);
    command
        .args(frames.iter().map(|Frame { function, offset, .. }| format!("{function}:{offset}")));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(Vec::new());
    };
    let (send, receive) = mpsc::channel();
    // Both threads end with the child.
    std::thread::spawn(move || input.write_all(&component));
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        send.send(output.take(ANSWER).read_to_end(&mut answer).map(|_| answer))
    });
    let answer = receive.recv_timeout(WAIT).unwrap_or_else(|_| Ok(Vec::new()));
    child.kill()?;
    child.wait()?;
    answer
}

/// Runs in the child: reads the component from standard input, and writes the answer as JSON to
/// standard output.
pub(crate) fn work(frames: &[String]) -> io::Result<()> {
    for (resource, most) in [(Resource::As, MEMORY), (Resource::Cpu, SECONDS)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    let frames: Vec<_> = frames.iter().filter_map(|frame| position(frame)).collect();
    let mut component = Vec::new();
    io::stdin().lock().take(COMPONENT).read_to_end(&mut component)?;
    let lines = toolcell_author::source_lines(&component, &frames);
    serde_json::to_writer(io::stdout().lock(), &lines)?;
    Ok(())
}

fn position(frame: &str) -> Option<Frame> {
    let (function, offset) = frame.split_once(':')?;
    Some(Frame::new(function.parse().ok()?, offset.parse().ok()?))
}
