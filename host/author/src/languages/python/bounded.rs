//! Runs a compiler with a time limit, and leaves none of its processes behind.
//!
//! The Python build needs this because its compiler runs the author's source, which may never end.
//! The caller gets a [`Command`] from [`command`], adds arguments, and passes it to [`output`] with
//! a limit. It returns the program's output, or `None` if the program took longer; then the program
//! is killed with all processes of its group.
//!
//! They are also killed when this process ends for any reason. The program has its own process
//! group, in which a shell reads from a pipe whose only writer is this process. This process never
//! writes. When the pipe is closed, which the system does at a process's end, the shell kills the
//! group.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::languages::native;

/// Starts the shell that waits for the end of the pipe, and then executes the program.
const START: &str = r#"exec 3<&0
{ read -r line; kill -KILL 0; } <&3 >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-"#;
/// Maximum wait for the end of a killed program.
const GRACE: Duration = Duration::from_secs(5);

/// Returns a command for [`output`]. The caller adds arguments and environment.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = native::command("/bin/sh");
    command.args(["-c", START, "sh"]).arg(program).process_group(0);
    command
}

/// Returns the output of a [`command`]. Returns `None` if it did not end in time; then it is
/// killed, with all processes that it started.
pub(super) fn output(command: &mut Command, most: Duration) -> io::Result<Option<Output>> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let lifeline = child.stdin.take();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let done = receive.recv_timeout(most);
    drop(lifeline);
    let Ok(done) = done else {
        // Waits, so that the program no longer runs when the caller removes its files.
        let _ = receive.recv_timeout(GRACE);
        return Ok(None);
    };
    done.map(Some)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::Receiver;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);
    /// A process that holds the pipe `$PIPE` open, and that starts another one that does.
    const HOLDS: &str = r#"exec 4>"$PIPE"; echo >&4; sleep 60 & while :; do :; done"#;
    /// Set in the process whose end the test observes.
    const ENDED: &str = "TOOLCELL_TEST_ENDED";

    fn shell(script: &str) -> Command {
        let mut command = command("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn pipe(folder: &Path) -> PathBuf {
        let path = folder.join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo is installed").success());
        path
    }

    /// Sends a message when the first process holds the pipe, and another when the last holder has
    /// ended.
    fn holders(pipe: PathBuf) -> Receiver<()> {
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let mut pipe = File::open(pipe).expect("a pipe");
            pipe.read_exact(&mut [0]).expect("a byte");
            let _ = send.send(());
            let _ = pipe.read(&mut [0]);
            send.send(())
        });
        receive
    }

    #[test]
    fn program_gets_no_input_and_returns_its_output() {
        let script = r#"cat; echo "$0 $1"; echo problem >&2; exit 3"#;
        let done =
            output(shell(script).args(["a b", "$c"]), LONG).expect("a shell").expect("it ends");
        assert_eq!(
            (done.stdout.as_slice(), done.stderr.as_slice()),
            (&b"a b $c\n"[..], &b"problem\n"[..])
        );
        assert_eq!(done.status.code(), Some(3));
    }

    #[test]
    fn missing_program_fails() {
        let done =
            output(&mut command("/no such program"), LONG).expect("a shell").expect("it ends");
        assert!(!done.status.success());
    }

    #[test]
    fn endless_program_is_killed_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = pipe(folder.path());
        let held = holders(pipe.clone());
        let done = output(shell(HOLDS).env("PIPE", pipe), Duration::from_secs(1)).expect("a shell");
        assert!(done.is_none(), "it ended");
        for what in ["started", "was killed"] {
            held.recv_timeout(LONG).unwrap_or_else(|_| panic!("no program {what}"));
        }
    }

    #[test]
    fn program_ends_with_its_parent_process() {
        if let Some(pipe) = std::env::var_os(ENDED) {
            let done = output(shell(HOLDS).env("PIPE", pipe), LONG * 10).expect("a shell");
            panic!("it ended: {done:?}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = pipe(folder.path());
        let held = holders(pipe.clone());
        let mut this = Command::new(std::env::current_exe().expect("a path"));
        this.args([
            "--exact",
            "languages::python::bounded::tests::program_ends_with_its_parent_process",
        ]);
        let mut this = this.env(ENDED, pipe).stdout(Stdio::null()).spawn().expect("it starts");
        let has_started = held.recv_timeout(LONG).is_ok();
        this.kill().expect("it can be killed");
        this.wait().expect("it ended");
        assert!(has_started, "no program started");
        held.recv_timeout(LONG).expect("the program has ended");
    }
}
