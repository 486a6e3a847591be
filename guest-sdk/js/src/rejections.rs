//! The promises that were rejected and that nothing handles.
//!
//! Invariant: it never fails. Where no memory is left for an entry, the promise is not kept.

use std::cell::RefCell;
use std::collections::HashMap;

use rquickjs::{Ctx, Persistent, Result, Runtime, Value};

/// What a promise was rejected with. The promise is kept, so that no other one gets its address.
struct Rejected {
    order: u64,
    promise: Persistent<Value<'static>>,
    reason: Persistent<Value<'static>>,
}

#[derive(Default)]
struct Rejections {
    next: u64,
    /// By address.
    unhandled: HashMap<u64, Rejected>,
}

thread_local! {
    static REJECTIONS: RefCell<Rejections> = RefCell::default();
}

/// Keeps them from now on.
pub(crate) fn track(runtime: &Runtime) {
    runtime.set_host_promise_rejection_tracker(Some(Box::new(|ctx, promise, reason, is_handled| {
        if is_handled {
            forget(&promise);
        } else {
            keep(&ctx, promise, reason);
        }
    })));
}

fn address(promise: &Value<'_>) -> u64 {
    // A value of a 32-bit machine is its tag and its address in one number.
    promise.as_raw()
}

fn keep<'js>(ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>) {
    REJECTIONS.with_borrow_mut(|Rejections { next, unhandled }| {
        if unhandled.try_reserve(1).is_ok() {
            let key = address(&promise);
            let (promise, reason) = (Persistent::save(ctx, promise), Persistent::save(ctx, reason));
            unhandled.insert(key, Rejected { order: *next, promise, reason });
            *next += 1;
        }
    });
}

fn forget(promise: &Value<'_>) {
    // It is dropped after the borrow has ended: that may run code of JavaScript.
    drop(REJECTIONS.with_borrow_mut(|rejections| rejections.unhandled.remove(&address(promise))));
}

/// Takes what they were rejected with, in order.
pub(crate) fn take<'js>(ctx: Ctx<'js>) -> Result<Vec<Value<'js>>> {
    let taken = REJECTIONS.with_borrow_mut(|rejections| std::mem::take(&mut rejections.unhandled));
    let mut taken: Vec<_> = taken.into_values().collect();
    taken.sort_unstable_by_key(|rejected| rejected.order);
    let restored = |rejected: Rejected| {
        rejected.promise.restore(&ctx)?;
        rejected.reason.restore(&ctx)
    };
    taken.into_iter().map(restored).collect()
}
