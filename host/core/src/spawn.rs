//! How a worker process is started: with its standard streams, an empty environment and nothing
//! else of this process.
//!
//! In: a program. Out: a [`Command`], to which the caller adds arguments, environment and streams.
//! Invariants: of the descriptors of this process a worker gets the three standard ones, which the
//! caller chooses; the signals that tell how a worker ended have their default disposition in it,
//! whatever this process does with them.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::defence::{Defence, stands};

/// The first descriptor that is none of the standard streams.
const FIRST: libc::c_int = libc::STDERR_FILENO + 1;
/// The kernel's own default for what a process may have open (`fs.nr_open`).
const MOST_DESCRIPTORS: u64 = 1 << 20;
/// Signals by which a worker's end is told, or that end it for a limit.
const RESET: [libc::c_int; 3] = [libc::SIGCHLD, libc::SIGXCPU, libc::SIGXFSZ];

/// A command that starts this program as a worker, in a process group of its own: a terminal's
/// Ctrl-C is its parent's to hear.
pub(crate) fn worker(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().process_group(0);
    let keeps_descriptors = !stands(Defence::WorkerDescriptors);
    let prepare = move || {
        reset_signals();
        if keeps_descriptors { Ok(()) } else { close_on_exec() }
    };
    // SAFETY: between fork and exec only functions are called that are safe there: `signal`,
    // `close_range`, `getrlimit` and `fcntl`. Nothing is allocated, and no lock is taken.
    #[expect(
        unsafe_code,
        reason = "descriptors are to be closed after the fork, where no other thread can open one"
    )]
    unsafe {
        command.pre_exec(prepare)
    };
    command
}

fn reset_signals() {
    for signal in RESET {
        // SAFETY: the default disposition calls nothing.
        #[expect(unsafe_code, reason = "a disposition is set by a foreign function")]
        unsafe {
            libc::signal(signal, libc::SIG_DFL)
        };
    }
}

/// Marks every descriptor but the standard streams to be closed when the program is executed.
/// Marked and not closed: the standard library has one of its own, by which it tells why a program
/// could not be executed.
fn close_on_exec() -> io::Result<()> {
    // SAFETY: the system call takes three numbers, and changes the descriptors of this process
    // alone, which is about to exec.
    #[expect(unsafe_code, reason = "no crate in use has this system call")]
    let marked = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if marked == 0 { Ok(()) } else { each_close_on_exec() }
}

/// The same, one by one, for Linux before 5.11.
fn each_close_on_exec() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is there to be written to.
    #[expect(unsafe_code, reason = "see `worker`")]
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for descriptor in
        FIRST..libc::c_int::try_from(limit.rlim_cur.min(MOST_DESCRIPTORS)).unwrap_or(FIRST)
    {
        // SAFETY: a number that is no descriptor is an error that changes nothing.
        #[expect(unsafe_code, reason = "see `worker`")]
        unsafe {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC)
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the shell finds: its streams, the directory that it lists, and nothing that this
    /// process has open.
    #[test]
    fn a_worker_inherits_the_standard_streams_and_nothing_else() {
        let file = tempfile::tempfile().unwrap();
        // Without the flag that would close it: as a library of C opens files.
        let _inherited = rustix::io::dup(&file).unwrap();
        let listed = |command: &mut Command| {
            let output = command.args(["-c", "echo /proc/self/fd/*"]).output().unwrap();
            String::from_utf8(output.stdout)
                .unwrap()
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let found = listed(&mut worker(Path::new("/bin/sh")));
        // The one more is the directory.
        assert_eq!(
            found,
            ["0", "1", "2", "3"].map(|fd| format!("/proc/self/fd/{fd}")),
            "of a worker"
        );
        assert!(listed(&mut Command::new("/bin/sh")).len() > found.len(), "of another program");
    }

    #[test]
    fn without_the_system_call_each_is_marked() {
        let mut command = Command::new("/bin/sh");
        let file = tempfile::tempfile().unwrap();
        let _inherited = rustix::io::dup(&file).unwrap();
        // SAFETY: as in `worker`.
        #[expect(unsafe_code, reason = "as in `worker`")]
        unsafe {
            command.pre_exec(each_close_on_exec)
        };
        let output = command.args(["-c", "echo /proc/self/fd/*"]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().split_whitespace().count(), 4);
    }

    #[test]
    fn a_program_that_is_not_there_is_told() {
        let error = worker(Path::new("/no such program")).spawn().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
