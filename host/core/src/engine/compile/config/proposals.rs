//! Names the WebAssembly proposals that are off, and finds those that a refused component needs.
//!
//! A proposal is an extension of WebAssembly, such as threads. The configuration of the compiler
//! turns off all in [`DISABLED`]. If a component cannot be compiled, [`missing`] validates it again
//! with more proposals on, and returns the names of those without which it has a fault, for the
//! error. It works where the component was to be compiled, which is a worker process if there is
//! one, and on at most 256 MiB in all.

use std::cell::Cell;

use wasmparser::{Validator, WasmFeatures};

/// Proposals that tools do not need, with their names. They are compiled in (builds without some of
/// them can be aborted by guests), and turned off.
///
/// Tail calls are on: language runtimes are built with them. wasmtime compiles every function for
/// its own calling convention for tail calls, whether they are on or not, so code without them is
/// the same to the byte. A tail call spends fuel, and a function checks fuel and epoch at its
/// start, so an endless chain of tail calls ends by either. It takes no stack.
pub(super) const DISABLED: [(WasmFeatures, &str); 24] = [
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
    (WasmFeatures::CM_FIXED_LENGTH_LISTS, "WIT lists of fixed length"),
    (WasmFeatures::CM_MAP, "WIT maps"),
    (WasmFeatures::CM_IMPLEMENTS, "`implements` of WIT"),
    (WasmFeatures::CM64, "64-bit memory of components"),
    (WasmFeatures::CM_GC, "garbage collection of components"),
];

/// Bytes that may be validated to name proposals: a large component is validated fewer times than a
/// small one.
const VALIDATED: usize = 256 << 20;

/// Returns the names of the proposals that a component needs. `None` if it is malformed with all of
/// them on, or if [`VALIDATED`] bytes were not enough to find out.
///
/// A proposal is needed if turning it on removes a fault. The validator names the missing proposal
/// for most faults; for the others, a proposal is taken with which it gets further.
pub(in crate::engine) fn missing(component: &[u8]) -> Option<String> {
    missing_within(component, VALIDATED)
}

fn missing_within(component: &[u8], bytes: usize) -> Option<String> {
    let left = Cell::new(bytes / component.len().max(1));
    let fault = |on| Validator::new_with_features(on).validate_all(component).err();
    let off = DISABLED.iter().fold(WasmFeatures::empty(), |off, (proposal, _)| off | *proposal);
    let mut on = WasmFeatures::all().difference(off);
    while let Some(found) = fault(on) {
        left.set(left.get().checked_sub(1)?);
        let missing_feature = found.missing_wasm_feature().unwrap_or(WasmFeatures::empty());
        let helps = |proposal| {
            let is_left = left.get() > 0;
            left.set(left.get().saturating_sub(1));
            is_left && fault(on | proposal).is_none_or(|next| next.offset() > found.offset())
        };
        let mut still_off = DISABLED
            .iter()
            .map(|(proposal, _)| *proposal)
            .filter(|proposal| !on.contains(*proposal));
        let next = still_off.clone().find(|proposal| missing_feature.intersects(*proposal));
        on |= next.or_else(|| still_off.find(|proposal| helps(*proposal)))?;
    }
    let mut names: Vec<_> =
        DISABLED.iter().filter(|(off, _)| on.contains(*off)).map(|(_, name)| *name).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails without: the check of the budget.
    #[test]
    fn missing_proposals_are_named_within_a_budget() {
        // A type with an `exnref`, and a memory with 64-bit addresses.
        let module =
            [b"\0asm\x01\0\0\0".as_slice(), b"\x01\x05\x01\x60\x01\x69\0", b"\x05\x03\x01\x04\x01"]
                .concat();
        assert_eq!(missing(&module).as_deref(), Some("64-bit memory, exceptions"));
        for (ty, name) in
            [([0x67, 0x7d, 4], "WIT lists of fixed length"), ([0x63, 0x73, 0x7d], "WIT maps")]
        {
            let component = [b"\0asm\x0d\0\x01\0".as_slice(), &[7, 4, 1], &ty].concat();
            assert_eq!(missing(&component).as_deref(), Some(name));
        }
        assert_eq!(missing_within(&module, module.len()), None);
        assert_eq!(missing_within(&module, 0), None);
    }
}
