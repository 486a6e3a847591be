//! Tests of the grants of a tool, and of the resources behind them.

mod copies;
mod file_size;
mod files;
mod grants;
mod invoke;
mod requests;
mod same;
mod secrets;
mod sockets;
