//! Tests of sessions and streams: their limits, their ends, and the changes that they tell.

mod cancels;
mod changes;
pub(crate) mod streams;
