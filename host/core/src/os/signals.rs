//! Keeps the process alive when a write exceeds the file-size limit of the operating system.
//!
//! By default such a write ends the process with SIGXFSZ. [`ignore_file_size_signal`] installs a
//! handler that does nothing, so that the write fails with `EFBIG` instead. It is called when an
//! engine is built and when a worker process begins, and acts once. It acts only if the signal has
//! its default disposition, so a program's own handler stays.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use rustix::process::Signal;
use signal_hook::flag;
use toolcell_contract::controls::enforced;

/// Keeps the process alive at a write past its file-size limit (`ulimit -f`, RLIMIT_FSIZE): the
/// write fails with `EFBIG` instead of ending the process by SIGXFSZ.
///
/// Called when an [`Engine`](crate::Engine) is built, and by both kinds of worker processes. A
/// program that writes files before that should call it itself. It acts once, and only if the
/// signal has its default disposition: the program's own handler or an ignored signal stays. It
/// installs a handler that does nothing. Unlike an ignored signal, a handler is not inherited by
/// the programs that this process starts.
pub fn ignore_file_size_signal() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let signal = Signal::XFSZ.as_raw();
        if !is_default(signal) || !enforced!(FileSizeLimit) {
            return;
        }
        if let Err(error) = flag::register(signal, Arc::<AtomicBool>::default()) {
            tracing::warn!(%error, "SIGXFSZ has no handler: a write past the file-size limit would end this process");
        }
    });
}

/// Returns true if a signal is neither ignored nor handled. Returns true if that is unknown: an
/// installed handler calls the previous one.
fn is_default(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_in = |field: &str| {
        let mask = status
            .lines()
            .find_map(|line| u64::from_str_radix(line.strip_prefix(field)?.trim(), 16).ok());
        mask.unwrap_or_default() >> (signal - 1) & 1 == 1
    };
    !is_in("SigIgn:") && !is_in("SigCgt:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_signal_handler_is_kept() {
        let signal = Signal::WINCH.as_raw();
        assert!(is_default(signal));
        flag::register(signal, Arc::<AtomicBool>::default()).unwrap();
        assert!(!is_default(signal));
        ignore_file_size_signal();
        assert!(!is_default(Signal::XFSZ.as_raw()));
    }
}
