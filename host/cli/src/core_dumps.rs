//! That nothing of this process is written to a disk when it dies: its memory holds the values of
//! secrets.
//!
//! Not here: `PR_SET_DUMPABLE`, which would also keep the process from seeing which of its own
//! pages were written to, and with that the pool of cells from being quick.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Turns core dumps off, for good. Where that cannot be, they are the system's to allow.
pub(crate) fn off() {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

#[cfg(test)]
mod tests {
    use rustix::process::getrlimit;

    use super::*;

    #[test]
    fn no_core_is_dumped() {
        off();
        assert_eq!(getrlimit(Resource::Core), Rlimit { current: Some(0), maximum: Some(0) });
    }
}
