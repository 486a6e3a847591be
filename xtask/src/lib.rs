//! What tests, benches and the demo share: building guests.

pub mod guests;
