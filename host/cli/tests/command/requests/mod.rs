//! The requests of tools: proxies, secrets, spans and metrics.

mod measured;
mod network;
mod own_secrets;
mod traces;
