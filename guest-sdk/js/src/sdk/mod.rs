//! Compiles the module `toolcell` to bytecode.
//!
//! Invariants: a component contains neither the text of the module nor the sources of its
//! functions, which are not used; lines and names stay, for stack traces.

use std::sync::{Mutex, PoisonError};

use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Context, Ctx, Module, Result, Runtime};

use crate::state::STACK;

/// The name under which authors import the module.
pub(crate) const NAME: &str = "toolcell";
const LENGTH: usize = include_bytes!(concat!(env!("OUT_DIR"), "/toolcell.js")).len();

/// The text of the module, overwritten with zeros after compilation.
static TEXT: Mutex<[u8; LENGTH]> =
    Mutex::new(*include_bytes!(concat!(env!("OUT_DIR"), "/toolcell.js")));

/// Compiles the module, once, in a runtime of its own before the component's runtime exists, which
/// can then use the memory that this one frees.
pub(crate) fn compiled() -> Result<Vec<u8>> {
    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(STACK);
    let mut text = TEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
    let bytecode = Context::full(&runtime)?.with(|ctx| {
        Module::declare(ctx.clone(), NAME, text.as_slice()).and_then(|module| module.write(options))
    });
    text.fill(0);
    bytecode
}

/// Declares the compiled module, so that imports find it by its name.
#[allow(unsafe_code, reason = "reads bytecode, which is trusted")]
pub(crate) fn declare<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Result<Module<'js, Declared>> {
    // SAFETY: the bytecode comes from `compiled`.
    unsafe { Module::load(ctx.clone(), bytecode) }
}
