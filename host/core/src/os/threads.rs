//! A tokio runtime that can be dropped anywhere, and the priority of threads.
//!
//! Tokio panics if a runtime is dropped inside of async code. [`Threads`] wraps one and shuts it
//! down in the background instead, so that an engine can be dropped in any context.
//! [`BlockingThreads`] are such a runtime for work that blocks, which starts at its first use.
//! [`less_urgent`] lowers the priority of the current thread, and [`shorten_slices`] its time
//! slices, so that guests (the WebAssembly code of tools) do not take processors from the host; if
//! the system refuses it, nothing happens.

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use toolcell_contract::error::Error;

/// A runtime that can be dropped in any context.
#[derive(Debug)]
pub(crate) struct Threads(Option<Runtime>);

impl Threads {
    pub(crate) fn build(mut builder: Builder) -> Result<Self, Error> {
        let runtime =
            builder.build().map_err(|error| Error::engine("no threads").with_source(error))?;
        Ok(Self(Some(runtime)))
    }

    /// Returns the handle of these threads.
    pub(crate) fn handle(&self) -> &Handle {
        match &self.0 {
            Some(runtime) => runtime.handle(),
            None => unreachable!("the runtime is taken only on drop"),
        }
    }
}

/// Threads for work that blocks. They start when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct BlockingThreads(OnceLock<Option<Threads>>);

impl BlockingThreads {
    /// Returns the handle of at most this many threads, or `None` if the process cannot start them.
    pub(crate) fn handle(&self, name: &str, threads: usize) -> Option<&Handle> {
        let made = self.0.get_or_init(|| {
            let mut builder = Builder::new_current_thread();
            builder.max_blocking_threads(threads).thread_name(name);
            Threads::build(builder)
                .inspect_err(|error| {
                    let error: &(dyn std::error::Error + 'static) = error;
                    tracing::error!(error, name, "no threads");
                })
                .ok()
        });
        made.as_ref().map(Threads::handle)
    }
}

/// Lowers the priority of the current thread. Some containers refuse it: then guests compete as
/// equals, and their deadlines still hold.
pub(crate) fn less_urgent(niceness: i32) {
    let _ = rustix::process::nice(niceness);
}

/// The shortest time slice that Linux grants. Its default is some milliseconds.
const SLICE: Duration = Duration::from_micros(100);

/// Shortens the time slices of the current thread. It then gives its processor sooner to a thread
/// that wakes, and when it wakes itself, it takes one at once from a thread of longer slices. Linux
/// before 6.12 ignores it.
pub(crate) fn shorten_slices() {
    if let Some(mut attributes) = scheduling() {
        attributes.sched_runtime = u64::try_from(SLICE.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the call reads the attributes, which state their size, and changes the current
        // thread alone.
        #[expect(unsafe_code, reason = "no crate in use has this system call")]
        unsafe {
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0)
        };
    }
}

/// Returns the scheduling attributes of the current thread.
fn scheduling() -> Option<libc::sched_attr> {
    let mut attributes = MaybeUninit::<libc::sched_attr>::zeroed();
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the call writes at most `size` bytes, and every value of them is valid.
    #[expect(unsafe_code, reason = "no crate in use has this system call")]
    unsafe {
        let read = libc::syscall(libc::SYS_sched_getattr, 0, attributes.as_mut_ptr(), size, 0);
        (read == 0).then(|| attributes.assume_init())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_slices_become_short() {
        let slice = |setup: fn()| {
            let read = move || {
                setup();
                scheduling().map_or(0, |attributes| attributes.sched_runtime)
            };
            Duration::from_nanos(std::thread::spawn(read).join().expect("no panic"))
        };
        // Linux before 6.12, and a sandbox without the system call, tell no slices.
        if slice(|| ()) > Duration::ZERO {
            assert_eq!(slice(shorten_slices), SLICE);
        }
    }
}
