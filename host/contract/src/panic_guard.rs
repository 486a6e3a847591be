//! Catches panics of foreign code, so that only the answer of that code is lost and the host goes
//! on.
//!
//! The host wraps calls of code of the embedder, which is the program that uses this library
//! (handlers, encoders, event sinks, policies), and checks of untrusted input. [`guarded`] returns
//! `None` after a panic, [`catch_panic`] its payload, and [`GuardedFuture`] does so for a future:
//! its creation, each poll and its drop. The payload is foreign too: [`text`] reads only text, and
//! [`dispose`] drops it even if that panics. [`resume_panic`] does the opposite: it continues, on
//! this thread, the panic of work on another thread.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::JoinError;

use super::controls::enforced;

/// The payload of a panic.
pub type Panic = Box<dyn Any + Send>;

/// Runs `work`. Returns `None` if it panics.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_panic(work).map_err(dispose).ok()
}

/// Runs `work`. Returns the payload if it panics.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    if enforced!(Fence) { catch_unwind(AssertUnwindSafe(work)) } else { Ok(work()) }
}

/// Drops the payload of a panic. If that panics too, the second payload is leaked and never
/// dropped.
pub fn dispose(panic: Panic) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

/// Returns the text of a panic's payload, cut after `MAX_WORDS` characters, and disposes of the
/// payload.
pub fn into_text(panic: Panic) -> String {
    let words = text(&*panic);
    dispose(panic);
    words
}

/// Characters of a panic's message that are kept.
const MAX_WORDS: usize = 2048;

/// Returns the payload of a panic as text, cut after `MAX_WORDS` characters. A payload that
/// `panic!` did not make has no text.
pub fn text(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words.unwrap_or("a payload without text").chars().take(MAX_WORDS).collect()
}

/// Returns the result of work on another thread. If the work panicked, the panic continues here.
/// Returns `None` if the work was cancelled, because no thread was left to do it.
pub fn resume_panic<T>(done: Result<T, JoinError>) -> Option<T> {
    match done.map_err(JoinError::try_into_panic) {
        Ok(done) => Some(done),
        Err(Ok(panic)) => resume_unwind(panic),
        Err(Err(_cancelled)) => None,
    }
}

type Foreign<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A future with a panic guard around its creation, each poll and its drop.
pub struct GuardedFuture<'a, T>(Option<Result<Foreign<'a, T>, Panic>>);

impl<'a, T> GuardedFuture<'a, T> {
    pub fn new(make: impl FnOnce() -> Foreign<'a, T>) -> Self {
        Self(Some(catch_panic(make)))
    }
}

impl<T> Future for GuardedFuture<'_, T> {
    type Output = Result<T, Panic>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut future = match self.0.take() {
            Some(Ok(future)) => future,
            Some(Err(panic)) => return Poll::Ready(Err(panic)),
            None => return Poll::Pending,
        };
        let poll = catch_panic(|| future.as_mut().poll(context));
        if let Ok(Poll::Pending) = poll {
            self.0 = Some(Ok(future));
            return Poll::Pending;
        }
        guarded(|| drop(future));
        match poll {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl<T> Drop for GuardedFuture<'_, T> {
    fn drop(&mut self) {
        if let Some(Ok(future)) = self.0.take() {
            guarded(|| drop(future));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn panic_guard_catches_every_panic() {
        let poll = |mut fenced: GuardedFuture<'_, ()>| {
            Pin::new(&mut fenced)
                .poll(&mut Context::from_waker(Waker::noop()))
                .map(|end| end.map_err(dispose))
        };
        let bomb = || async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        };
        assert_eq!(poll(GuardedFuture::new(|| panic!("made"))), Poll::Ready(Err(())));
        let polled = poll(GuardedFuture::new(|| Box::pin(async { panic!("polled") })));
        assert_eq!(polled, Poll::Ready(Err(())));
        let dropped = poll(GuardedFuture::new(|| Box::pin(bomb())));
        assert_eq!(dropped, Poll::Pending, "and then it is dropped");
        assert_eq!(poll(GuardedFuture::new(|| Box::pin(async {}))), Poll::Ready(Ok(())));
    }
}
