//! `#[tool]`: one function becomes one tool.
//!
//! In: the options and the function as tokens. Out: the function as it was (but for what is said on
//! its parameters), a type of the same name that `tools!` finds, and the glue between the two.
//! Invariants: all that is wrong with a function is reported at once; each message says what to
//! write instead. After an error the type is still there, so that `tools!` does not complain as
//! well. Documentation for authors is in `toolcell-guest`, which re-exports the attribute.

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
