//! Runs a Rust closure that may block as the handler of a tool, on a thread of a bounded pool.
//!
//! [`Tool::native_blocking`] takes a definition and the closure and returns a tool; a handler is
//! the code that answers a tool's calls. A call waits for a free thread until its deadline, and is
//! then refused as overloaded. At the deadline, a running closure cannot be stopped: the call ends
//! as a timeout, and the closure keeps its thread until it returns. So a pool never runs more
//! closures at once than it has threads, those that outlive their calls included. Tenants share the
//! threads as they share cells, so none takes them all. A tool that may hang can get a
//! [`BlockingPool`] of its own.

use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use serde_json::Value;
use tokio::runtime::Handle as RuntimeHandle;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use toolcell_contract::call::CallResult;
use toolcell_contract::definition::Definition;
use toolcell_contract::error::Error;
use toolcell_contract::outcome::tool_error::{Exit, ToolError};
use toolcell_contract::outcome::{Outcome, refusal::Refusal};
use toolcell_contract::panic_guard::resume_panic;

use super::handler::{Handler, HandlerFuture, Invocation};
use super::handler_wait;
use crate::os::{clock::before, threads::BlockingThreads};
use crate::tenant::queue::{Queue, Slot};
use crate::tool::Tool;

/// A closure that can answer calls and may block: `f(arguments)` or `f(arguments, invocation)`,
/// returning anything that becomes an [`Outcome`]: the outcome itself, an
/// [`Output`](crate::outcome::Output), a [`Value`], or a `Result` of one of these with a
/// [`HandlerError`](crate::outcome::HandlerError) or any error that implements `Display`, whose
/// text is the message.
#[diagnostic::on_unimplemented(
    message = "this closure is not a blocking tool handler",
    label = "expected `|arguments: serde_json::Value| …` or `|arguments: serde_json::Value, invocation: Arc<toolcell::tool::Invocation>| …`",
    note = "it must return an `Outcome`, an `Output`, a `serde_json::Value`, or `Result<T, E>` with `T` one of them and `E` a `HandlerError` or `Display`",
    note = "an `async` closure is a handler for `Tool::native`"
)]
pub trait BlockingFn<Shape>: Send + Sync + 'static {
    /// Answers one call. It runs on a thread that may block.
    fn answer(&self, invocation: Arc<Invocation>) -> Outcome;
}

impl<F, Said> BlockingFn<fn(Value) -> Said> for F
where
    F: Fn(Value) -> Said + Send + Sync + 'static,
    Said: Into<Outcome>,
{
    fn answer(&self, invocation: Arc<Invocation>) -> Outcome {
        self(invocation.take_arguments()).into()
    }
}

impl<F, Said> BlockingFn<fn(Value, Arc<Invocation>) -> Said> for F
where
    F: Fn(Value, Arc<Invocation>) -> Said + Send + Sync + 'static,
    Said: Into<Outcome>,
{
    fn answer(&self, invocation: Arc<Invocation>) -> Outcome {
        self(invocation.take_arguments(), invocation).into()
    }
}

/// The threads on which blocking closures run. Clones share the threads, which are started when
/// they are first needed.
///
/// A closure that never returns keeps its thread, because a thread cannot be killed. Give a tool
/// that may hang its own pool with [`Tool::native_blocking_on`], so that it blocks no other tool.
#[derive(Debug, Clone)]
pub struct BlockingPool(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    threads: usize,
    free: Arc<Queue>,
    running: BlockingThreads,
}

impl BlockingPool {
    /// Threads of the pool that [`Tool::native_blocking`] uses. At most this many blocking calls
    /// run at once.
    pub const DEFAULT_THREADS: usize = 64;

    /// Creates a pool of this many threads, at least one.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Pool {
            threads,
            free: Queue::new(threads),
            running: BlockingThreads::default(),
        }))
    }

    /// Returns the pool that tools without a pool of their own share. It has
    /// [`BlockingPool::DEFAULT_THREADS`].
    fn shared() -> &'static Self {
        static SHARED: LazyLock<BlockingPool> =
            LazyLock::new(|| BlockingPool::new(BlockingPool::DEFAULT_THREADS));
        &SHARED
    }

    /// Runs `work` on a thread of the pool. The result is the outcome and the time at which it was
    /// ready. If the handle is dropped before the work starts, it never starts.
    fn start(
        &self,
        place: Slot,
        work: impl FnOnce() -> Outcome + Send + 'static,
    ) -> Option<AbortOnDropHandle<(Outcome, Instant)>> {
        // The closure runs in the caller's runtime and span, so code that uses them works as in the
        // call.
        let (caller, span) = (RuntimeHandle::try_current().ok(), tracing::Span::current());
        let threads = self.0.running.handle("toolcell-native", self.0.threads)?;
        let task = threads.spawn_blocking(move || {
            let _place = place;
            let _caller = caller.as_ref().map(RuntimeHandle::enter);
            let said = span.in_scope(work);
            (said, Instant::now())
        });
        Some(AbortOnDropHandle::new(task))
    }
}

impl Tool {
    /// Creates a tool whose handler is a plain closure that may block: `|arguments| …` or
    /// `|arguments, invocation| …`. It runs on a thread of a pool that all such tools share
    /// ([`BlockingPool::DEFAULT_THREADS`]), so that blocking delays neither other calls nor
    /// deadlines.
    ///
    /// ```
    /// # use std::path::PathBuf;
    /// # use serde_json::{Value, json};
    /// # use toolcell::{Definition, Tool};
    /// # fn example(root: PathBuf) -> Result<Tool, toolcell::Error> {
    /// let definition = Definition::new("size", "The size of the log, in bytes.")?;
    /// Tool::native_blocking(definition, move |_: Value| {
    ///     let found = std::fs::metadata(root.join("log"))?;
    ///     Ok::<_, std::io::Error>(json!(found.len()))
    /// })
    /// # }
    /// ```
    ///
    /// # Time
    /// A call waits for a thread until its deadline and is then refused as `overloaded`. A tenant
    /// leaves as many threads to the others as it holds. The `started` event of a call is emitted
    /// when it has a thread. If the closure has not returned at the deadline, the call ends as
    /// `timeout`; a cancelled call ends at once. The closure itself cannot be stopped: it runs on,
    /// and keeps its thread until it returns. A long closure should check [`Invocation::abort`] and
    /// [`Invocation::remaining`].
    ///
    /// # Errors
    /// [`Error::is_definition`] if a schema is not usable.
    pub fn native_blocking<S: 'static>(
        definition: Definition,
        function: impl BlockingFn<S>,
    ) -> Result<Self, Error> {
        Self::native_blocking_on(BlockingPool::shared(), definition, function)
    }

    /// Does the same as [`native_blocking`](Self::native_blocking), on the threads of this pool.
    ///
    /// # Errors
    /// As [`native_blocking`](Self::native_blocking).
    pub fn native_blocking_on<S: 'static>(
        pool: &BlockingPool,
        definition: Definition,
        function: impl BlockingFn<S>,
    ) -> Result<Self, Error> {
        let blocking =
            Blocking { pool: pool.clone(), function: Arc::new(function), shape: PhantomData };
        Self::with_handler(definition, blocking)
    }
}

/// A blocking closure as a handler.
struct Blocking<F, Shape> {
    pool: BlockingPool,
    function: Arc<F>,
    shape: PhantomData<fn() -> Shape>,
}

impl<F: BlockingFn<Shape>, Shape: 'static> Handler for Blocking<F, Shape> {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        Box::pin(async move {
            let deadline = invocation.deadline();
            let overloaded = CallResult::Refusal(Refusal::overloaded());
            let (free, text) = (&self.pool.0.free, invocation.text_bytes());
            let place = free.take(&invocation.tenant, invocation.is_shared, deadline, text).await;
            let Some(place) = place else { return overloaded };
            // A thread can come free just at the deadline. The handler has not run, so this is no
            // timeout.
            if invocation.remaining().is_zero() {
                return overloaded;
            }
            invocation.open();
            let (function, call) = (Arc::clone(&self.function), Arc::clone(&invocation));
            let Some(started) = self.pool.start(place, move || function.answer(call)) else {
                return CallResult::ToolError(ToolError::HandlerExit(Exit::ProcessEnded));
            };
            match before(deadline, started).await.map(resume_panic) {
                Some(Some((said, at))) if deadline.is_none_or(|deadline| at < deadline) => {
                    CallResult::Outcome(said)
                }
                Some(None) => CallResult::ToolError(ToolError::HandlerExit(Exit::ProcessEnded)),
                Some(Some(_)) | None => {
                    CallResult::ToolError(ToolError::Timeout(handler_wait::running(&invocation)))
                }
            }
        })
    }

    fn always_visible(&self) -> bool {
        true
    }

    fn enforces_deadline(&self) -> bool {
        true
    }
}
