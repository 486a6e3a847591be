//! Notifies the supervisor that started the server when it is ready and when it stops: the protocol
//! `sd_notify` of systemd.
//!
//! `serve` calls [`notify`] once the server listens, and again when a signal ends it. If the
//! variable `NOTIFY_SOCKET` has a path, or an abstract name after `@`, one datagram is sent to that
//! socket. A socket that cannot be used causes a warning only. A supervisor that does not read
//! delays the server by [`SEND_TIMEOUT`] at most. No child of the server gets the variable, because
//! children start with an empty environment.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use super::env;
use crate::print::Printer;

/// Time for the supervisor to take a datagram.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The message that the server listens.
pub(crate) const READY: &str = "READY=1";
/// The message that a signal ends the server.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Sends a message to the supervisor, if `NOTIFY_SOCKET` is set.
pub(crate) fn notify(printer: &Printer, message: &str) {
    let Some(socket) = env::notify_socket() else { return };
    if let Err(error) = send(&socket, message) {
        let socket = socket.to_string_lossy();
        printer.warning(format!(
            "the supervisor at NOTIFY_SOCKET={socket} was not told {message}: {error}"
        ));
    }
}

fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(socket)?,
        _ => {
            let message = "it begins neither with `/` nor with `@`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    };
    let own = UnixDatagram::unbound()?;
    own.set_write_timeout(Some(SEND_TIMEOUT))?;
    own.send_to_addr(message.as_bytes(), &address)?;
    Ok(())
}
