//! The notifications of a server to the supervisor that started it (`sd_notify`), as for a systemd
//! unit of `Type=notify`.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::process::Signal;

use crate::place::Place;
use crate::serving::serve::Served;

const CONFIG: &str = "[components.hello]\npath = \"hello.wasm\"\n";
/// Time limit of a wait, far longer than needed.
const PATIENCE: Duration = Duration::from_secs(20);

fn heard(socket: &UnixDatagram) -> String {
    let mut message = [0; 100];
    let length = socket.recv(&mut message).expect("a datagram");
    String::from_utf8_lossy(&message[..length]).into_owned()
}

#[test]
fn server_notifies_supervisor_of_ready_and_stopping() {
    let place = Place::new(CONFIG).approved();
    let path = place.path().join("notify");
    let name = format!("toolcell-test-{}", std::process::id());
    let by_name = SocketAddr::from_abstract_name(&name).expect("a name");
    for (socket, variable) in [
        (UnixDatagram::bind(&path).expect("a socket"), path.display().to_string()),
        (UnixDatagram::bind_addr(&by_name).expect("a socket"), format!("@{name}")),
    ] {
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let server = || {
            let mut command = place.command();
            command.env("NOTIFY_SOCKET", &variable);
            command
        };
        // A command that does not listen sends no message: the first message is the server's.
        assert_eq!(place.shown(server().args(["serve", "--check"])).status, 0);
        let server = Served::started(server(), &[]);
        assert_eq!(heard(&socket), "READY=1");
        assert_eq!(server.greets(None).0, 200);
        server.signal(Signal::TERM);
        assert_eq!(heard(&socket), "STOPPING=1");
        assert_eq!(server.wait().code(), Some(0));
        socket.set_nonblocking(true).expect("a socket");
        let more = socket.recv(&mut [0; 100]).expect_err("each is told once");
        assert_eq!(more.kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn unusable_notify_socket_is_a_warning() {
    let place = Place::new(CONFIG).approved();
    let absent = place.path().join("absent").display().to_string();
    for variable in [absent.as_str(), "@toolcell-test-absent", "notify"] {
        let mut command = place.command();
        command.env("NOTIFY_SOCKET", variable);
        let server = Served::started(command, &[]);
        server.wait_for_stderr(&format!(
            "warning: the supervisor at NOTIFY_SOCKET={variable} was not told READY=1: "
        ));
        assert_eq!(server.greets(None).0, 200);
        server.signal(Signal::TERM);
        server.wait_for_stderr("was not told STOPPING=1: ");
        assert_eq!(server.wait().code(), Some(0));
    }
}
