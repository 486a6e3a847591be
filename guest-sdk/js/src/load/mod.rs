//! Exports that the builder calls before it takes the snapshot: it writes the modules into a
//! buffer, has them evaluated, and reads the answer.
//!
//! Invariants: no function here calls an import.

#![allow(unsafe_code, reason = "exports of a core module")]

mod modules;
mod unused;

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::{Ctx, Function, Module, Object};
use serde_json::json;

use self::modules::{Known, Modules};
use crate::{host, sdk, state};

/// The global variable through which the prelude receives the native functions.
const HOST: &str = "__toolcell";

thread_local! {
    /// Holds the modules at first, and the answer after the evaluation.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Allocates a buffer of this many bytes and returns its address.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_buffer(bytes: u32) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = vec![0; bytes as usize];
        buffer.as_mut_ptr()
    })
}

/// Evaluates the modules in the buffer. Writes the answer into the buffer and returns its length:
/// `{"definitions": [...], "warnings": [...]}` or `{"error": TEXT}`.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_evaluate() -> u32 {
    let modules = BUFFER.take();
    let answer = match evaluate(&modules) {
        Ok((definitions, warnings)) => json!({ "definitions": definitions, "warnings": warnings }),
        Err(error) => json!({ "error": error }),
    };
    let answer = answer.to_string().into_bytes();
    let bytes = answer.len();
    BUFFER.set(answer);
    bytes as u32
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_answer() -> *const u8 {
    BUFFER.with_borrow(|buffer| buffer.as_ptr())
}

/// Frees the buffer, overwrites free memory with zeros and ends the loading: from now on the
/// imports can be called. The builder prevents further growth of the memory.
#[unsafe(no_mangle)]
extern "C" fn toolcell_js_seal() {
    BUFFER.set(Vec::new());
    state::runtime(rquickjs::Runtime::run_gc);
    unused::clear();
    state::enter_cell();
}

fn evaluate(modules: &[u8]) -> Result<(serde_json::Value, serde_json::Value), String> {
    let modules: Modules = serde_json::from_slice(modules).map_err(|error| error.to_string())?;
    let sdk = sdk::compiled().map_err(|error| error.to_string())?;
    state::create()?;
    let known = Known(Rc::new(modules));
    state::runtime(|runtime| runtime.set_loader(known.clone(), known.clone()));
    state::with(|ctx| {
        let done = evaluated(ctx, &sdk, &known.0);
        state::settled(ctx, done).map_err(state::Thrown::text)
    })
    .ok_or_else(|| "the JavaScript context was not created".to_owned())?
    .and_then(|(definitions, warnings)| {
        let read = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
        Ok((read(&definitions)?, read(&warnings)?))
    })
}

fn evaluated<'js>(
    ctx: &Ctx<'js>,
    sdk: &[u8],
    modules: &Modules,
) -> rquickjs::Result<(String, String)> {
    let object = host::object(ctx)?;
    object.set("lines", modules.lines.clone())?;
    state::keep_host(ctx, object.clone());
    // The prelude reads the global; the author's modules are evaluated later and cannot see it.
    ctx.globals().set(HOST, object)?;
    sdk::declare(ctx, sdk)?.eval()?.1.finish::<()>()?;
    ctx.globals().remove(HOST)?;
    let source = modules.take(&modules.entry).unwrap_or_default();
    Module::evaluate(ctx.clone(), modules.entry.as_str(), source)?.finish::<()>()?;
    while ctx.execute_pending_job() {}
    // Modules that only `import()` loads are compiled now and evaluated by the call that imports
    // them.
    while let Some((name, source)) = modules.take_any() {
        Module::declare(ctx.clone(), name, source)?;
    }
    let answers: Object<'js> = state::host(ctx)?.get("answers")?;
    state::keep_answers(ctx, answers.clone());
    answers.get::<_, Function<'js>>("loaded")?.call::<_, ()>(())?;
    let called = |name| answers.get::<_, Function<'js>>(name)?.call::<_, String>(());
    Ok((called("describe")?, called("warnings")?))
}
