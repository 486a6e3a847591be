//! Prepares the command that starts a worker process, which inherits nothing but its standard
//! streams, and the worker itself.
//!
//! The compiler and the process layer call [`worker`] with a program, and add arguments and
//! environment variables to the [`Command`] that it returns, whose input and output are pipes. The
//! worker begins with an empty environment and in a process group of its own, so that Ctrl-C in a
//! terminal reaches only the parent. All descriptors but the three standard ones are closed when
//! the program starts. The signals that report a worker's end, or that end it at a limit, have
//! their default disposition in it, whatever this process does with them. The worker begins with
//! [`become_worker`], so that it ends with its parent.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use toolcell_contract::controls::{self, enforced};
use toolcell_contract::error::Error;

use super::signals::ignore_file_size_signal;

/// The first descriptor after the standard streams.
const FIRST: libc::c_int = libc::STDERR_FILENO + 1;
/// The kernel's default limit of open descriptors (`fs.nr_open`).
const MOST_DESCRIPTORS: u64 = 1 << 20;
/// Signals that report a worker's end, or that end it at a limit.
const RESET: [libc::c_int; 3] = [libc::SIGCHLD, libc::SIGXCPU, libc::SIGXFSZ];

/// Returns a command that starts this program as a worker, with pipes for its input and output, in
/// a process group of its own, so that Ctrl-C in a terminal reaches only the parent.
pub(crate) fn worker(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(controls::inherited()).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let keeps_descriptors = !enforced!(WorkerDescriptors);
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

/// Makes this process end with its parent, and turns core dumps and the signal of the file-size
/// limit off.
///
/// # Errors
/// [`Error::is_environment`] if the operating system refuses one of the first two.
pub(crate) fn become_worker() -> Result<(), Error> {
    let failed = |problem: &'static str| {
        move |error: Errno| Error::engine(problem).with_source(io::Error::from(error))
    };
    ignore_file_size_signal();
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("the worker process cannot be made to end with its parent"))?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
        .map_err(failed("the worker process cannot turn core dumps off"))
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

/// Marks every descriptor except the standard streams to be closed on exec. They are not closed at
/// once, because the standard library uses one to report a failed exec.
fn close_on_exec() -> io::Result<()> {
    // SAFETY: the system call takes three numbers, and changes the descriptors of this process
    // alone, which is about to exec.
    #[expect(unsafe_code, reason = "no crate in use has this system call")]
    let marked = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if marked == 0 { Ok(()) } else { each_close_on_exec() }
}

/// Does the same one by one, for Linux before 5.11.
fn each_close_on_exec() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the call, which writes to it.
    #[expect(unsafe_code, reason = "see `worker`")]
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for descriptor in
        FIRST..libc::c_int::try_from(limit.rlim_cur.min(MOST_DESCRIPTORS)).unwrap_or(FIRST)
    {
        // SAFETY: a number that is not an open descriptor gives an error and changes nothing.
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

    /// The shell sees its streams and the directory that it lists, but no other descriptor of this
    /// process.
    #[test]
    fn worker_inherits_only_standard_streams() {
        let file = tempfile::tempfile().unwrap();
        // Opened without the close-on-exec flag, as a C library may open files.
        let _inherited = rustix::io::dup(&file).unwrap();
        let listed = |command: &mut Command| {
            let output = command.args(["-c", "echo /proc/self/fd/*"]).output().unwrap();
            let listed = String::from_utf8(output.stdout).unwrap();
            listed.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let found = listed(&mut worker(Path::new("/bin/sh")));
        // The fourth descriptor is the listed directory.
        let expected = ["0", "1", "2", "3"].map(|fd| format!("/proc/self/fd/{fd}"));
        assert_eq!(found, expected, "of a worker");
        assert!(listed(&mut Command::new("/bin/sh")).len() > found.len(), "of another program");
    }

    #[test]
    fn fallback_marks_each_descriptor_close_on_exec() {
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
    fn missing_program_is_reported() {
        let error = worker(Path::new("/no such program")).spawn().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
