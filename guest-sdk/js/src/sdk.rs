//! The module `toolcell` as bytecode.
//!
//! Invariants: a component carries neither its text nor the sources of its functions, which nothing
//! reads; lines and names stay, for stacks.

use std::sync::{Mutex, PoisonError};

use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Context, Ctx, Module, Result, Runtime};

use crate::state::STACK;

/// The name by which authors import it.
pub(crate) const NAME: &str = "toolcell";
const LENGTH: usize = include_bytes!(concat!(env!("OUT_DIR"), "/toolcell.js")).len();

/// Its text, until it is compiled.
static TEXT: Mutex<[u8; LENGTH]> =
    Mutex::new(*include_bytes!(concat!(env!("OUT_DIR"), "/toolcell.js")));

/// The module, compiled. Once, and before the component's own runtime is there: what this one
/// leaves is room for that.
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

/// Declares what was compiled. Imports find it by its name.
#[allow(unsafe_code, reason = "reads bytecode, which is trusted")]
pub(crate) fn declare<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Result<Module<'js, Declared>> {
    // SAFETY: `compiled` made it.
    unsafe { Module::load(ctx.clone(), bytecode) }
}
