//! The stand-ins of a tool's own tests: no host, no wish, no limit.

use std::io::Write as _;
use std::time::Duration;

use crate::budget::Remaining;
use crate::log::Level;

pub(crate) fn log(level: Level, message: &str) {
    // A test whose stderr is closed still passes.
    let _ = writeln!(std::io::stderr(), "{level:?}: {message}");
}

pub(crate) fn progress(_done: u64, _total: Option<u64>, _message: Option<&str>) {}

pub(crate) fn abort_requested() -> bool {
    false
}

pub(crate) fn remaining() -> Remaining {
    Remaining { fuel: None, time: Duration::MAX, memory: u64::MAX }
}

/// The wish that nobody utters.
#[derive(Debug)]
pub(crate) struct Wish;

impl Wish {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn ready(&self) -> bool {
        false
    }

    pub(crate) fn block(&self) {
        panic!("outside of a cell nobody asks a tool to stop: this wait would never end");
    }

    pub(crate) fn handle(self) -> Option<u32> {
        None
    }
}
