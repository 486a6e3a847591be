//! Tracks rejected promises without a handler.
//!
//! Invariants: tracking never fails. If no memory is left for an entry, the promise is not tracked.

#![allow(
    unsafe_code,
    reason = "whether a job is pending, which rquickjs tells outside of a call only"
)]

use std::cell::RefCell;
use std::collections::VecDeque;

use rquickjs::{Ctx, Persistent, Result, Runtime, Value, qjs};

/// A rejected promise and its reason. Holds the promise, so that no other one gets its address.
struct Rejected {
    /// The raw value of the promise in QuickJS: its kind and its address.
    address: u64,
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

thread_local! {
    /// In the order of rejection.
    static UNHANDLED: RefCell<VecDeque<Rejected>> = const { RefCell::new(VecDeque::new()) };
}

/// Starts the tracking.
pub(crate) fn track(runtime: &Runtime) {
    runtime.set_host_promise_rejection_tracker(Some(Box::new(
        |ctx, promise, reason, is_handled| {
            if is_handled {
                // Dropped only after the borrow has ended.
                drop(removed(promise.as_raw()));
            } else {
                add_rejected(&ctx, promise, reason);
            }
        },
    )));
}

fn add_rejected<'js>(ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>) {
    UNHANDLED.with_borrow_mut(|unhandled| {
        if unhandled.try_reserve(1).is_ok() {
            let address = promise.as_raw();
            let (promise, reason) = (Persistent::save(ctx, promise), Persistent::save(ctx, reason));
            unhandled.push_back(Rejected { address, promise, reason });
        }
    });
}

/// Removes the entry of a promise that got a handler. It is usually the last entry, of a promise
/// that is awaited at once, or the first of many.
fn removed(address: u64) -> Option<Rejected> {
    UNHANDLED.with_borrow_mut(|unhandled| {
        if unhandled.back()?.address == address {
            return unhandled.pop_back();
        }
        let place = unhandled.iter().position(|rejected| rejected.address == address)?;
        unhandled.remove(place)
    })
}

/// Removes all entries and returns their reasons in order.
pub(crate) fn take<'js>(ctx: Ctx<'js>) -> Result<Vec<Value<'js>>> {
    let taken = UNHANDLED.with_borrow_mut(std::mem::take);
    let restored = |rejected: Rejected| {
        rejected.promise.restore(&ctx)?;
        rejected.reason.restore(&ctx)
    };
    taken.into_iter().map(restored).collect()
}

/// Returns true if there is an entry, or a pending job that may add one.
pub(crate) fn is_busy(ctx: Ctx<'_>) -> bool {
    // SAFETY: the context is alive, and its runtime with it.
    let is_job_pending = unsafe { qjs::JS_IsJobPending(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) };
    is_job_pending || UNHANDLED.with_borrow(|unhandled| !unhandled.is_empty())
}
