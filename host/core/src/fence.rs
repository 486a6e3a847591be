//! A panic in somebody else's code costs that code's answer, and nothing more.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`. None when it panics.
pub(crate) fn fenced<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(dispose).ok()
}

/// Gets rid of what a panic left behind. It is never dropped: that could panic again, outside of any fence.
pub(crate) fn dispose(panic: Box<dyn Any + Send>) {
    std::mem::forget(panic);
}
