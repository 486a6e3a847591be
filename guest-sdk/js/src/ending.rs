//! Ends a call that has no outcome: writes the author's error to standard error and traps.

#![allow(unsafe_code, reason = "the C library of QuickJS asks for the time")]

use crate::state;
use crate::wasi::wasi::cli::stderr::get_stderr;
use crate::wasi::wasi::clocks::wall_clock;

/// Bytes of one `blocking_write_and_flush`. Every host accepts this many.
const WRITE: usize = 4096;

/// Ends the call with a trap. The host reports this text as the message of `handler_raised`.
pub(crate) fn raise(text: &str) -> ! {
    let stream = get_stderr();
    for piece in text.as_bytes().chunks(WRITE) {
        if stream.blocking_write_and_flush(piece).is_err() {
            break;
        }
    }
    core::arch::wasm32::unreachable()
}

/// Returns microseconds since 1970, for `Date`. Returns 0 while the modules are loaded, before
/// [`state::enter_cell`].
#[unsafe(no_mangle)]
extern "C" fn __rquickjs_host_now_us() -> f64 {
    if !state::is_in_cell() {
        return 0.0;
    }
    let now = wall_clock::now();
    now.seconds as f64 * 1e6 + f64::from(now.nanoseconds / 1000)
}
