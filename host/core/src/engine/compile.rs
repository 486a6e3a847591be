//! Turns the bytes of a component into code that can be called: scans, compiles, caches, optimises.

pub(super) mod cache;
pub(super) mod config;
pub(super) mod describe;
pub(super) mod inspection;
pub(super) mod load;
pub(super) mod on_compile;
pub(super) mod on_demand;
pub(super) mod scan;
pub(super) mod single_flight;
pub(super) mod tier;
pub(super) mod worker;
