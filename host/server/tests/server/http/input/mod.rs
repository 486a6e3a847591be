//! Tests of requests that are malformed or hostile.

mod bad_input;
mod hostile_bytes;
