//! Tests of messages that are malformed or hostile.

pub(crate) mod bad_input;
mod hostile_messages;
mod malformed;
