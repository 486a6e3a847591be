//! The proposals of WebAssembly that are off, by name.
//!
//! In: a component that was refused. Out: which of them it needs.
//! Invariants: the compiler takes what is off from this list alone; a component is looked at where
//! it was to be compiled, which is a process of its own where the program lends itself as one.

use std::cell::Cell;

use wasmparser::{Validator, WasmFeatures};

/// What tools do not need, and what each is called. Compiled in (builds without some of them can be
/// aborted by guests), and turned off.
///
/// Tail calls are on: language runtimes are built with them. The engine compiles every function for
/// its own calling convention for tail calls, whether they are on or not, so code without them is
/// the same to the byte. A tail call spends fuel, and a function looks at fuel and epoch where it
/// begins: an endless chain of them ends by either. It takes no stack.
pub(super) const OFF: [(WasmFeatures, &str); 24] = [
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

/// Which of them a component needs, in words. `None` where it is malformed whatever is on, and
/// where that is not found out within [`VALIDATED`] bytes.
///
/// Each is found by the fault that ends where it is turned on: a validator tells what it misses of
/// most, and of the rest it gets further.
pub(super) fn missing(component: &[u8]) -> Option<String> {
    missing_within(component, VALIDATED)
}

fn missing_within(component: &[u8], bytes: usize) -> Option<String> {
    let left = Cell::new(bytes / component.len().max(1));
    let fault = |on| Validator::new_with_features(on).validate_all(component).err();
    let off = OFF.iter().fold(WasmFeatures::empty(), |off, (proposal, _)| off | *proposal);
    let mut on = WasmFeatures::all().difference(off);
    while let Some(found) = fault(on) {
        left.set(left.get().checked_sub(1)?);
        let told = found.missing_wasm_feature().unwrap_or(WasmFeatures::empty());
        let helps = |proposal| {
            let is_left = left.get() > 0;
            left.set(left.get().saturating_sub(1));
            is_left && fault(on | proposal).is_none_or(|next| next.offset() > found.offset())
        };
        let mut still_off =
            OFF.iter().map(|(proposal, _)| *proposal).filter(|proposal| !on.contains(*proposal));
        let next = still_off.clone().find(|proposal| told.intersects(*proposal));
        on |= next.or_else(|| still_off.find(|proposal| helps(*proposal)))?;
    }
    let mut names: Vec<_> =
        OFF.iter().filter(|(off, _)| on.contains(*off)).map(|(_, name)| *name).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen to validate further with a budget that is not looked at.
    #[test]
    fn proposals_are_named_within_a_budget() {
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
