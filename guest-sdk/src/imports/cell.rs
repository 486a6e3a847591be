//! The imports of a component in its cell.

use std::time::Duration;

use crate::bindings::toolcell::tool as host;
use crate::bindings::wasi::io::poll::Pollable;
use crate::budget::Remaining;
use crate::log::Level;

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Trace => host::log::Level::Trace,
        Level::Debug => host::log::Level::Debug,
        Level::Info => host::log::Level::Info,
        Level::Warn => host::log::Level::Warn,
        Level::Error => host::log::Level::Error,
    };
    host::log::log(level, message);
}

pub(crate) fn progress(done: u64, total: Option<u64>, message: Option<&str>) {
    host::progress::report(done, total, message);
}

pub(crate) fn abort_requested() -> bool {
    host::abort::requested()
}

pub(crate) fn remaining() -> Remaining {
    let host::budget::Allowance { fuel, milliseconds, memory } = host::budget::remaining();
    Remaining { fuel, time: Duration::from_millis(milliseconds), memory }
}

/// A pollable that is ready once the call should end.
#[derive(Debug)]
pub(crate) struct Wish(Pollable);

impl Wish {
    pub(crate) fn new() -> Self {
        Self(host::abort::subscribe())
    }

    pub(crate) fn ready(&self) -> bool {
        self.0.ready()
    }

    pub(crate) fn block(&self) {
        self.0.block();
    }

    pub(crate) fn handle(self) -> Option<u32> {
        Some(self.0.take_handle())
    }
}
