//! Names and positions of the guest functions on the backtrace of a trap.
//!
//! A guest is the WebAssembly code of a tool. When a call ends with a trap, `classify` calls
//! [`names`] and [`positions`] with wasmtime's backtrace and puts the results into the error. Both
//! lists begin with the innermost function. The names are demangled, without the functions of the
//! Rust standard library and of the guest SDK, so that an author sees only functions of their own.
//! The positions are those of all functions except adapters between core modules.
//! A name is untrusted text: it is cut to 120 characters, and unusual characters become `?`.

use std::fmt::{self, Write};

use toolcell_contract::{controls::enforced, outcome::tool_error::Frame};
use wasmtime::{FrameInfo, WasmBacktrace};

/// Characters of a guest function's name that are kept.
const NAME_CHARS: usize = 120;
/// Bytes of a name that is demangled. A longer one is not demangled, since an untrusted component
/// could make that costly.
const MANGLED_BYTES: usize = 4096;
/// Crates whose functions are not the author's.
const LIBRARIES: &str = "__rustc alloc compiler_builtins core dlmalloc panic_abort panic_unwind \
                         std toolcell_guest wasip2 wit_bindgen";
/// The module of a runtime without function names: none of its functions is the author's.
const NAMELESS: &str = "toolcell_guest";
/// Prefix of the names of modules that adapt a core module to the component model.
const ADAPTERS: &str = "wit-component:";
/// Functions without a crate that are not the author's.
const RUNTIME: [&str; 7] =
    ["_Exit", "__main_void", "abort", "cabi_realloc", "exit", "rust_begin_unwind", "rust_panic"];

/// Returns the names of the author's functions on this backtrace, innermost first. Empty if the
/// compiler has inlined them all.
pub(super) fn names(trace: &WasmBacktrace) -> Vec<String> {
    let name = |frame: &FrameInfo| match (frame.func_name(), frame.module().name()) {
        (None, Some(NAMELESS)) => None,
        (None, _) => Some(format!("func[{}]", frame.func_index())),
        (Some(name), _) => Some(readable(name)).filter(|name| !is_library(name)),
    };
    trace.frames().iter().filter_map(name).collect()
}

/// Returns the positions of the functions on this backtrace, without those of adapters, whose
/// indices count in other modules.
pub(super) fn positions(trace: &WasmBacktrace) -> Vec<Frame> {
    let is_adapter =
        |frame: &&FrameInfo| frame.module().name().is_some_and(|name| name.starts_with(ADAPTERS));
    let position = |frame: &FrameInfo| {
        Some(Frame::new(frame.func_index(), u64::try_from(frame.func_offset()?).ok()?))
    };
    trace.frames().iter().filter(|frame| !is_adapter(frame)).filter_map(position).collect()
}

/// Returns true if a function is of the standard library, of the guest SDK or of the code that
/// `#[tool]` and `tools!` generate.
fn is_library(name: &str) -> bool {
    // `<alloc::vec::Vec<u8> as core::ops::Drop>::drop` belongs to the crate of its type.
    let mut of_type = name;
    while let Some(inner) = ["<", "&", "*", "[", "(", "mut ", "const ", "dyn "]
        .iter()
        .find_map(|p| of_type.strip_prefix(p))
    {
        of_type = inner;
    }
    let root = of_type.split([':', '<', '>', ' ', '[']).next().unwrap_or_default();
    LIBRARIES.split(' ').any(|library| library == root)
        || RUNTIME.contains(&name)
        || name.starts_with("toolcell:tool")
        || name.contains(" as toolcell_guest::")
}

/// Returns a name as its author wrote it, without the hash that the compiler adds.
fn readable(name: &str) -> String {
    if name.len() > MANGLED_BYTES {
        return plain(name);
    }
    let mut text = Bounded(String::new());
    // An error means that the text is full.
    let _ = write!(text, "{:#}", rustc_demangle::demangle(name));
    plain(&text.0)
}

/// A text with a bound on its length: a short mangled name can stand for a very long one.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() > NAME_CHARS * char::MAX.len_utf8() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Replaces each character that is not plain by `?`, so that a name cannot control a terminal or a
/// log.
fn plain(name: &str) -> String {
    let allowed = |c: char| {
        !enforced!(PlainSymbols) || c.is_ascii_alphanumeric() || "_$.:<>()&[], *{}#-".contains(c)
    };
    name.chars().take(NAME_CHARS).map(|c| if allowed(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn guest_names_are_printable_and_bounded() {
        assert_eq!(readable("<Vec<T>>::from\u{1b}[2J\n\u{202e}x"), "<Vec<T>>::from?[2J??x");
        assert_eq!(readable(&"x".repeat(1000)).len(), NAME_CHARS);
        assert_eq!(readable(&"x".repeat(100_000)).len(), NAME_CHARS);
    }

    #[test]
    fn names_are_demangled_without_their_hash() {
        for (mangled, name) in rows::<(&str, &str)>("engine/cell/classify/frames", "mangled") {
            assert_eq!(readable(mangled), name);
        }
    }

    /// Each level of these names doubles the length of the demangled name.
    #[test]
    fn exponential_demangled_name_is_cut() {
        let levels = ["T", "u", "E"].map(|letter| letter.repeat(500)).concat();
        assert!(readable(&format!("_RINvC1a1f{levels}")).len() <= NAME_CHARS);
    }

    #[test]
    fn only_author_functions_are_kept() {
        for (all, kept) in rows::<(Vec<&str>, Vec<&str>)>("engine/cell/classify/frames", "stacks") {
            let own: Vec<_> = all.iter().copied().filter(|name| !is_library(name)).collect();
            assert_eq!(own, kept, "{all:?}");
        }
    }
}
