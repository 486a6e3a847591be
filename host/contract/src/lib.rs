//! The meaning of a call: its words, its grants and their decision, schemas, messages.
//!
//! These modules define the types that every other package shares: a tool's definition, a call and
//! its result, limits, grants, events, errors. They also decide if a request is within a tool's
//! rights, and check values against JSON Schema. A grant is access that an operator gives to a
//! component; a message is the text that a model gets back.
//!
//! Nothing here runs WebAssembly, reads a clock, opens a file or uses the network.
//!
//! The crate `toolcell` re-exports the public types. Hidden items are for the other packages of
//! this repository, and may change at any time.

pub mod call;
#[doc(hidden)]
pub mod controls;
pub mod definition;
pub mod error;
pub mod event;
pub mod grants;
pub mod json;
pub mod limits;
pub mod message;
pub mod names;
pub mod outcome;
#[doc(hidden)]
pub mod panic_guard;
#[doc(hidden)]
pub mod schema;

#[cfg(test)]
mod cases {
    /// Returns the rows of a table in `cases/FILE.yaml`.
    pub(crate) fn rows<T: serde::Deserialize<'static>>(file: &str, table: &str) -> Vec<T> {
        let text = std::fs::read_to_string(format!("cases/{file}.yaml")).expect(file);
        // This type refuses a table that occurs twice.
        serde_norway::from_str::<serde_norway::Mapping>(&text).expect(file);
        let tables: serde_json::Value = serde_norway::from_str(&text).expect(file);
        let rows: Vec<T> =
            serde::Deserialize::deserialize(&Box::leak(Box::new(tables))[table]).expect(table);
        assert!(!rows.is_empty(), "`{table}` of `cases/{file}.yaml` has no rows");
        rows
    }
}
