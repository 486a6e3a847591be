//! Checks that standard output can be written to, so that no result is lost silently.
//!
//! `main` calls [`fault`] before it runs a command. It returns a failure if standard output is
//! closed or open for reading only.
//!
//! Rust's runtime opens `/dev/null` in place of a closed standard output before `main`, and its
//! library ignores that a descriptor cannot be written to. So whether it was closed is recorded by
//! a function that the loader calls before the runtime starts.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use rustix::fs::OFlags;

use crate::print::Failure;

/// True if standard output was closed when the process began.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// The descriptor of standard output.
const NUMBER: i32 = 1;

#[used]
#[expect(
    unsafe_code,
    reason = "functions of this section run before Rust's runtime, and nothing else does"
)]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = check_stdout;

extern "C" fn check_stdout() {
    #[expect(unsafe_code, reason = "the descriptor is only asked whether it is open")]
    let output = unsafe { BorrowedFd::borrow_raw(NUMBER) };
    CLOSED.store(rustix::io::fcntl_getfd(output).is_err(), Ordering::Relaxed);
}

/// Returns the failure of an unusable standard output: a command whose result would be lost does
/// not run.
pub(crate) fn fault() -> Option<Failure> {
    let flags = rustix::fs::fcntl_getfl(std::io::stdout().as_fd());
    let fault = if CLOSED.load(Ordering::Relaxed) {
        "standard output is closed"
    } else if flags.is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDONLY) {
        "standard output is open for reading only"
    } else {
        return None;
    };
    let hint =
        "open standard output for writing, or send it to `/dev/null` if you do not want the result";
    Some(Failure::file(anyhow!(fault), hint))
}
