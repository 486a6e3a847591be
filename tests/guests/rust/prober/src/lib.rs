//! A tool that tries every way to open a socket, which no tool is allowed to.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};

use toolcell_guest::{tool, tools};

/// What comes of each way to a network: whether it worked, or the kind of its error.
#[tool]
fn probe(address: String) -> Vec<String> {
    let to: SocketAddr = address.parse().expect("an address");
    let any = SocketAddr::new(to.ip(), 0);
    let resolved = || "localhost:80".to_socket_addrs().map(drop);
    let tries: [(&str, &dyn Fn() -> io::Result<()>); 5] = [
        ("connect", &|| TcpStream::connect(to).map(drop)),
        ("listen", &|| TcpListener::bind(any).map(drop)),
        ("bind", &|| UdpSocket::bind(any).map(drop)),
        ("send", &|| UdpSocket::bind(any)?.send_to(b"out", to).map(drop)),
        ("resolve", &resolved),
    ];
    let told = |result: io::Result<()>| {
        result.map_or_else(|error| format!("{:?}", error.kind()), |()| "done".to_owned())
    };
    tries.iter().map(|(name, attempt)| format!("{name}: {}", told(attempt()))).collect()
}

tools![probe];
