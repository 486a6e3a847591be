//! The HTTP API over real connections of loopback.

mod artifacts;
mod bad_input;
mod calls;
mod client;
mod ending;
mod fixture;
mod guests;
mod listening;
mod shares;
mod tenants;
