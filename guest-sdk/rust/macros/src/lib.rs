//! The attribute `#[tool]`: makes a tool of a function.
//!
//! In: the options and the function as tokens. Out: the function, without the attributes on its
//! parameters; a type of the same name that `tools!` finds; and the glue between the two.
//! Invariants: all errors of a function are reported at once, and each message says what to write
//! instead. After an error the type still exists, so that `tools!` does not report another one. The
//! documentation for authors is in `toolcell-guest`, which re-exports the attribute.

mod errors;
mod expand;
mod needs;
mod options;
mod parameters;
mod signature;
mod text;

use proc_macro::TokenStream;

/// Makes a tool of a function. See the crate `toolcell-guest`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), item.into()).into()
}
