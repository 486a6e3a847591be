//! Tests that no tool gets a socket, although language runtimes import them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};

use serde_json::json;
use toolcell::component::{ImportStatus, Inspection};
use toolcell::grants::Layer;
use toolcell::{CallOptions, Grants};
use toolcell_tests::{PLACEMENTS, engine, load, own_process};

use crate::{complete, denial, observed};

/// Returns the sockets of this process.
fn sockets() -> BTreeSet<String> {
    let open = fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let targets = targets.map(|target| target.display().to_string());
    targets.filter(|target| target.starts_with("socket:")).collect()
}

/// A tool tries each way to a listener on this machine: it gets a permission error, observers get
/// each denial, and nothing arrives. No descriptor of the host becomes a socket meanwhile.
#[test]
fn socket_use_is_denied_and_opens_no_socket() {
    // All sockets of the process are counted.
    own_process::run(module_path!(), "socket_use_is_denied_and_opens_no_socket", || {
        let (tcp, udp) =
            (TcpListener::bind("127.0.0.1:0").expect("a listener"), UdpSocket::bind("127.0.0.1:0"));
        let udp = udp.expect("a socket");
        tcp.set_nonblocking(true).expect("a socket");
        udp.set_nonblocking(true).expect("a socket");
        let prober = toolcell_test_guests::bytes("prober");
        let examination = Inspection::of(&prober).expect("a component");
        let ungranted = examination.ungranted(&Grants::default()).count();
        assert_eq!(ungranted, 0, "{:?}", examination.imports);
        for name in ["wasi:sockets/tcp@0.2.6", "wasi:sockets/udp@0.2.6"] {
            let inert = (name.to_owned(), ImportStatus::Inert);
            assert!(examination.imports.contains(&inert), "{:?}", examination.imports);
        }
        for placement in PLACEMENTS {
            let component = load(&engine(placement, env!("CARGO_TARGET_TMPDIR")), prober.clone())
                .expect("it loads");
            for address in [tcp.local_addr(), udp.local_addr()]
                .map(|address| address.expect("an address").to_string())
            {
                let before = sockets();
                let before_each = before.clone();
                let (executor, denied) = observed(move |event| {
                    let denial = denial(event)?;
                    assert_eq!(denial.layer, Layer::Host);
                    let said = denial.to_string();
                    assert!(said.ends_with("is denied: no tool gets a socket"), "{said}");
                    let opened: Vec<_> = sockets().difference(&before_each).cloned().collect();
                    Some((denial.request, opened))
                });
                let arguments = json!({ "address": address });
                let completion =
                    complete(&executor, &component.tools()[0], &arguments, CallOptions::default());
                let value = completion.result.value().unwrap_or_else(|| panic!("{completion:?}"));
                let answers: Vec<String> =
                    serde_json::from_str(value.as_str()).expect("a list of texts");
                let (resolve, others) = answers.split_last().expect("five answers");
                let ways = ["connect", "listen", "bind", "send"];
                assert_eq!(others, ways.map(|way| format!("{way}: PermissionDenied")));
                // The guest's C library has no error number for it.
                let is_denied = resolve.starts_with("resolve: ") && !resolve.ends_with("done");
                assert!(is_denied, "{resolve}");
                let denied = std::mem::take(&mut *denied.lock().expect("no panic"));
                let (denied, opened): (Vec<_>, Vec<_>) = denied.into_iter().unzip();
                let expected =
                    ["tcp socket", "tcp socket", "udp socket", "udp socket", "resolve localhost"];
                assert_eq!(denied, expected, "{placement:?}, {address}");
                assert_eq!(opened.concat(), [""; 0]);
                assert_eq!(sockets(), before);
            }
        }
        let nothing = |error: io::Error| assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        nothing(tcp.accept().expect_err("a connection has come"));
        nothing(udp.recv(&mut [0; 8]).expect_err("a datagram has come"));
        // Shows that a connection would have been seen.
        let client =
            TcpStream::connect(tcp.local_addr().expect("an address")).expect("a connection");
        assert_eq!(tcp.accept().expect("it is seen").1, client.local_addr().expect("an address"));
    });
}
