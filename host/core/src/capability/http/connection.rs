//! Connections to the network: addresses, proxy, certificates, threads.

pub(super) mod connect;
pub(super) mod meter;
pub(super) mod proxy;
pub(super) mod resolve;
pub(super) mod roots;
pub(super) mod threads;
pub(super) mod transport;
