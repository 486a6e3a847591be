//! Tests of several tenants in one process: their shares, and what they learn of each other.

mod apart;
mod fairness;
#[path = "../sandbox/watched_store.rs"]
mod watched_store;
