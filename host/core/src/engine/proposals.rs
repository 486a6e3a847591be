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

/// Which of them a component needs, in words; none where it is malformed whatever is on.
///
/// Each is found by the fault that ends where it is turned on: a validator tells what it misses of most, and of the rest it
/// gets further.
pub(super) fn missing(component: &[u8]) -> Option<String> {
    let fault = |on| Validator::new_with_features(on).validate_all(component).err();
    let off = OFF.iter().fold(WasmFeatures::empty(), |off, (proposal, _)| off | *proposal);
    let mut on = WasmFeatures::all().difference(off);
    while let Some(found) = fault(on) {
        let told = found.missing_wasm_feature().unwrap_or(WasmFeatures::empty());
        let helps = |proposal| fault(on | proposal).is_none_or(|next| next.offset() > found.offset());
        let mut still_off = OFF.iter().map(|(proposal, _)| *proposal).filter(|proposal| !on.contains(*proposal));
        let next = still_off.clone().find(|proposal| told.intersects(*proposal));
        on |= next.or_else(|| still_off.find(|proposal| helps(*proposal)))?;
    }
    let mut names: Vec<_> = OFF.iter().filter(|(off, _)| on.contains(*off)).map(|(_, name)| *name).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}
