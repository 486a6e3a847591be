//! The components that tests and benchmarks run: the example tools, a mischievous Rust guest, and
//! guests assembled to misbehave in one exact place. Also a process of its own for a test, which
//! each package's tests can need.

/// Defines an enum and the list of all its variants.
macro_rules! listed {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$meaning:meta])* $variant:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$meaning])* $variant,)* }

        impl $name {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
        }
    };
}

mod answer;
mod assemble;
mod functions;
mod herald;
mod hostile;
mod memory;
mod misdeed;
pub mod own_process;
mod plain;
mod session;

use std::path::PathBuf;

pub use answer::Answer;
pub use functions::{Function, functions};
pub use herald::herald;
pub use hostile::{
    Hostile, Place, asker, asking_guest, compile_bomb, importing, with_record, with_text,
};
pub use misdeed::{CallsOut, Misdeed};
pub use plain::{
    ECHO_PADDING, command_component, command_module, echoing, functions_component, module,
};
pub use session::fits;

include!(concat!(env!("OUT_DIR"), "/components.rs"));

/// Returns the rows of a table in `cases/FILE.yaml` of the package that is tested.
///
/// # Panics
/// If there is no such table, it has no rows, or its rows are not of this type, or if a table
/// occurs twice.
#[must_use]
pub fn rows<T: serde::Deserialize<'static>>(file: &str, table: &str) -> Vec<T> {
    let text = std::fs::read_to_string(format!("cases/{file}.yaml")).expect(file);
    // This type refuses a table that occurs twice.
    serde_norway::from_str::<serde_norway::Mapping>(&text).expect(file);
    let tables: serde_json::Value = serde_norway::from_str(&text).expect(file);
    let rows: Vec<T> =
        serde::Deserialize::deserialize(&Box::leak(Box::new(tables))[table]).expect(table);
    assert!(!rows.is_empty(), "`{table}` of `cases/{file}.yaml` has no rows");
    rows
}

/// Returns the path of a component.
pub fn example(name: &str) -> PathBuf {
    let found = COMPONENTS.iter().find(|(known, _)| *known == name);
    PathBuf::from(found.unwrap_or_else(|| panic!("there is no component `{name}`")).1)
}

/// Returns the bytes of a component.
pub fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(example(name)).expect("a built component")
}

/// Returns the smallest example tool, built without WASI and wrapped as a component: the same
/// source without any import.
pub fn bare_hello() -> Vec<u8> {
    assemble::wrap(&std::fs::read(BARE_HELLO).expect("a built module"))
}
