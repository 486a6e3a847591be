//! The proposals of WebAssembly that are off, by name.
//!
//! In: a component that was refused. Out: which of them it needs.
//! Invariants: the compiler takes what is off from this list alone; a component is looked at where it was to be compiled, which
//! is a process of its own where the program lends itself as one.

use wasmparser::{Validator, WasmFeatures};

/// What tools do not need, and what each is called. Compiled in (builds without some of them can be aborted by guests), and
/// turned off.
///
/// Tail calls are on: language runtimes are built with them. The engine compiles every function for its own calling convention
/// for tail calls, whether they are on or not, so code without them is the same to the byte. A tail call spends fuel, and a
/// function looks at fuel and epoch where it begins: an endless chain of them ends by either. It takes no stack.
pub(super) const OFF: [(WasmFeatures, &str); 19] = [
    (WasmFeatures::THREADS, "threads"),
    (WasmFeatures::SHARED_EVERYTHING_THREADS, "shared-everything threads"),
    (WasmFeatures::MEMORY64, "64-bit memory"),
    (WasmFeatures::MEMORY_CONTROL, "memory control"),
    (WasmFeatures::GC, "garbage collection"),
    (WasmFeatures::GC_TYPES, "garbage collection"),
    (WasmFeatures::FUNCTION_REFERENCES, "typed function references"),
    (WasmFeatures::EXCEPTIONS, "exceptions"),
    (WasmFeatures::LEGACY_EXCEPTIONS, "legacy exceptions"),
    (WasmFeatures::RELAXED_SIMD, "relaxed vectors"),
    (WasmFeatures::CUSTOM_PAGE_SIZES, "custom page sizes"),
    (WasmFeatures::WIDE_ARITHMETIC, "wide arithmetic"),
    (WasmFeatures::STACK_SWITCHING, "stack switching"),
    (WasmFeatures::CM_VALUES, "component values"),
    (WasmFeatures::CM_ASYNC, "component async"),
    (WasmFeatures::CM_ASYNC_STACKFUL, "stackful component async"),
    (WasmFeatures::CM_MORE_ASYNC_BUILTINS, "more built-ins of component async"),
    (WasmFeatures::CM_THREADING, "component threads"),
    (WasmFeatures::CM_ERROR_CONTEXT, "component error contexts"),
];

/// Which of them a component needs, one after the other, in words; none where it is malformed whatever is on.
pub(super) fn missing(component: &[u8]) -> Option<String> {
    let is_valid = |on| Validator::new_with_features(on).validate_all(component).is_ok();
    if !is_valid(WasmFeatures::all()) {
        return None;
    }
    let needed = |(off, _): &&(WasmFeatures, _)| !is_valid(WasmFeatures::all().difference(*off));
    let mut names: Vec<_> = OFF.iter().filter(needed).map(|(_, name)| *name).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use wasmtime::Engine;
    use wasmtime::component::Component;

    use super::*;
    use crate::engine::config;

    /// What tail calls cost a component that has none.
    #[test]
    fn code_without_tail_calls_is_the_same_whether_they_are_on() {
        let component = toolcell_test_guests::bytes("hello");
        let code = |is_on| {
            let engine = Engine::new(config::base().wasm_tail_call(is_on)).unwrap();
            Component::from_binary(&engine, &component).unwrap().text().to_vec()
        };
        let (on, off) = (code(true), code(false));
        assert!(on.len() > 10_000 && on == off, "{} and {} bytes", on.len(), off.len());
    }
}
