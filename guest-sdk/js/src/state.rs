//! The one QuickJS context of the component, and its phase: loading modules, or in a cell.

use std::cell::{Cell, OnceCell, RefCell};

use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Function, Object, Persistent, Runtime, Value,
    promise::MaybePromise,
};

use crate::rejections;

/// Bytes of the C stack that JavaScript may use. The stack of a cell has 512 KiB and fills at least
/// twice as fast: with this limit a deep recursion is a JavaScript error and does not end the cell.
pub(crate) const STACK: usize = 160 << 10;

thread_local! {
    static CONTEXT: OnceCell<(Runtime, Context)> = const { OnceCell::new() };
    static IN_CELL: Cell<bool> = const { Cell::new(false) };
    static HOST: RefCell<Option<Persistent<Object<'static>>>> = const { RefCell::new(None) };
    static ANSWERS: RefCell<Option<Persistent<Object<'static>>>> = const { RefCell::new(None) };
}

/// Creates the context. Fails if it exists.
pub(crate) fn create() -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.set_max_stack_size(STACK);
    rejections::track(&runtime);
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    let again = |_| "the modules can be loaded only once, and were loaded before".to_owned();
    CONTEXT.with(|cell| cell.set((runtime, context)).map_err(again))
}

/// Passes the runtime to `use_it`. Returns `None` before [`create`].
pub(crate) fn runtime<T>(use_it: impl FnOnce(&Runtime) -> T) -> Option<T> {
    CONTEXT.with(|cell| cell.get().map(|(runtime, _)| use_it(runtime)))
}

/// Runs code in the context. `None` before [`create`].
pub(crate) fn with<T>(run: impl FnOnce(&Ctx<'_>) -> T) -> Option<T> {
    CONTEXT.with(|cell| cell.get().map(|(_, context)| context.with(|ctx| run(&ctx))))
}

/// Ends the loading: from now on the imports can be called.
pub(crate) fn enter_cell() {
    IN_CELL.set(true);
}

/// Returns true in a cell, false while the modules are loaded.
pub(crate) fn is_in_cell() -> bool {
    IN_CELL.get()
}

/// Stores the object of native functions, to which the prelude adds its `answers`. It is not a
/// global, so that only the prelude can use it.
pub(crate) fn keep_host<'js>(ctx: &Ctx<'js>, host: Object<'js>) {
    HOST.set(Some(Persistent::save(ctx, host)));
}

/// Returns the object of native functions.
pub(crate) fn host<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    HOST.with_borrow(Clone::clone).ok_or(rquickjs::Error::Unknown)?.restore(ctx)
}

/// Stores the prelude's `answers`.
pub(crate) fn keep_answers<'js>(ctx: &Ctx<'js>, answers: Object<'js>) {
    ANSWERS.set(Some(Persistent::save(ctx, answers)));
}

/// Returns the prelude's `answers`: the functions that implement the exports.
pub(crate) fn answers<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    ANSWERS.with_borrow(Clone::clone).ok_or(rquickjs::Error::Unknown)?.restore(ctx)
}

/// Calls a function of the prelude's `answers`. If it returns a promise, runs jobs until that
/// settles.
pub(crate) fn answer<'js>(
    ctx: &Ctx<'js>,
    function: &str,
    call: impl FnOnce(&Object<'js>, Function<'js>) -> rquickjs::Result<MaybePromise<'js>>,
) -> Result<Value<'js>, Thrown> {
    let called = || {
        let answers = answers(ctx)?;
        let mut answer = call(&answers, answers.get(function)?)?;
        if answer.as_value().is_string() && rejections::is_busy(ctx.clone()) {
            answer = answers.get::<_, Function<'js>>("rest")?.call((answer,))?;
        }
        loop {
            match answer.finish() {
                // A pending job failed, for instance because memory is exhausted. Without an
                // exception, `WouldBlock` means that no job is left.
                Err(rquickjs::Error::WouldBlock) if ctx.has_exception() => {
                    return Err(rquickjs::Error::Exception);
                }
                // `idle` waits for a timer or a response, which adds work, and rejects what a
                // handler awaits in `settled()`.
                Err(rquickjs::Error::WouldBlock)
                    if answers.get::<_, Function<'js>>("idle")?.call(())? => {}
                finished => return finished,
            }
        }
    };
    settled(ctx, called())
}

/// Converts an error of QuickJS to [`Thrown`].
pub(crate) fn settled<'js, T>(ctx: &Ctx<'js>, result: rquickjs::Result<T>) -> Result<T, Thrown> {
    if let Err(rquickjs::Error::WouldBlock) = result {
        return Err(Thrown::Unsettled);
    }
    result.catch(ctx).map_err(|caught| Thrown::Text(text(ctx, caught)))
}

/// The reason why a piece of JavaScript ended without a value.
pub(crate) enum Thrown {
    /// Its promise is pending, and no work is left that could settle it.
    Unsettled,
    /// An error, with its text and the place where it was thrown.
    Text(String),
}

impl Thrown {
    /// Describes the reason in words.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Unsettled => {
                "the promise never settles: no work is left that could resolve it".to_owned()
            }
            Self::Text(text) => text,
        }
    }
}

/// Returns an error's name and message, and the lines of its stack that belong to the author.
fn text<'js>(ctx: &Ctx<'js>, caught: CaughtError<'js>) -> String {
    let value: Value<'js> = match caught {
        CaughtError::Exception(exception) => exception.into_object().into_value(),
        CaughtError::Value(value) => value,
        CaughtError::Error(error) => return error.to_string(),
    };
    let described = || -> rquickjs::Result<String> {
        host(ctx)?.get::<_, Function<'js>>("described")?.call((value,))
    };
    described().unwrap_or_else(|_| {
        "an error that has no text, for instance because memory is exhausted".to_owned()
    })
}
