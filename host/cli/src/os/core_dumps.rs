//! Disables core dumps, because the memory of this process holds the values of secrets.
//!
//! `main` calls [`disable`] first. It sets the limit on the size of core files to zero for this
//! process and its children, permanently. If the system refuses, its setting stays and the command
//! runs.
//!
//! Not here: `PR_SET_DUMPABLE`. It would also keep the process from seeing which of its own pages
//! were written to, which makes the pool of cells (fresh WebAssembly instances, one for each call)
//! fast.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Disables core dumps permanently. If that fails, the system's setting stays.
pub(crate) fn disable() {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

#[cfg(test)]
mod tests {
    use rustix::process::getrlimit;

    use super::*;

    #[test]
    fn core_dumps_are_disabled() {
        disable();
        assert_eq!(getrlimit(Resource::Core), Rlimit { current: Some(0), maximum: Some(0) });
    }
}
