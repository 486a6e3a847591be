//! Tests of the clients that are let in: addresses, TLS, origins of browser pages, and tokens.

mod cors;
mod listening;
mod published;
mod tls;
mod tokens;
