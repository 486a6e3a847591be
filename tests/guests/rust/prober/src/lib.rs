//! A tool that wants what no cell has: sockets. It must not even load.

use toolcell_guest::{tool, tools};

/// Whether anybody listens at an address.
#[tool]
fn probe(address: String) -> bool {
    std::net::TcpStream::connect(address).is_ok()
}

tools![probe];
