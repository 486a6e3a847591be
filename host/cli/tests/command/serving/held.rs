//! Memory and descriptors of a server whose clients send far too much or far too slowly, and after
//! they have disconnected.
//!
//! Source: docs/threat-model.md, rows 72 and 78.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::place::{Place, eventually};
use crate::serving::serve::Served;

const CONFIG: &str = "[components.hello]\npath = \"hello.wasm\"\n";
/// Bytes that a client sends, and bytes of one piece.
const SENT: usize = 1 << 30;
const PIECE: usize = 1 << 20;
/// Bytes by which the process may grow: a line or a body of 4 MiB, and the buffers to read one.
const MORE: u64 = 32 << 20;
/// Descriptors that the server may open for its own use in the meantime, for example for optimised
/// code.
const OWN: usize = 8;
/// Slow clients of each kind.
const SLOW: usize = 40;

/// Returns the peak resident memory of a process, in bytes.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count()
}

#[test]
fn gibibyte_line_is_answered_without_buffering() {
    let place = Place::new(CONFIG).approved();
    let mut command = place.command();
    command
        .args(["serve", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    let (mut input, output) =
        (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let mut lines = BufReader::new(output).lines();
    let mut heard = || -> Value {
        serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON")
    };
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    writeln!(input, "{initialize}").expect("it reads");
    assert!(heard()["result"].is_object());
    let (before, piece) = (peak(child.id()), vec![b'x'; PIECE]);
    for _ in 0..SENT / PIECE {
        input.write_all(&piece).expect("it reads");
    }
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "greet", "arguments": {"name": "Ada"}}});
    writeln!(input, "\n{call}").expect("it reads");
    let refused = heard();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    let called = heard();
    assert_eq!(called["result"]["content"][0]["text"], "Hello, Ada!", "{called}");
    let more = peak(child.id()) - before;
    assert!(more < MORE, "{more} bytes more");
    drop(input);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn gibibyte_body_is_refused_without_buffering() {
    let place = Place::new(CONFIG).approved();
    let server = Served::start(&place, &[]);
    assert_eq!(server.greets(None).0, 200);
    let (before, piece) = (peak(server.pid()), vec![b' '; PIECE]);
    let head = "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    for path in ["/v1/calls", "/mcp"] {
        let head = head.replace("/v1/calls", path);
        for is_chunked in [false, true] {
            let framing = if is_chunked {
                "Transfer-Encoding: chunked".into()
            } else {
                format!("Content-Length: {SENT}")
            };
            let mut stream = TcpStream::connect(server.address()).expect("it listens");
            write!(stream, "{head}{framing}\r\n\r\n").expect("it reads");
            let mut taken = 0;
            // The server answers and closes the connection long before the end.
            while taken < SENT {
                let sent = if is_chunked {
                    write!(stream, "{PIECE:x}\r\n")
                        .and_then(|()| stream.write_all(&piece))
                        .and_then(|()| stream.write_all(b"\r\n"))
                } else {
                    stream.write_all(&piece)
                };
                if sent.is_err() {
                    break;
                }
                taken += PIECE;
            }
            assert!(taken < SENT, "{path}: all of it was taken");
            // The answer can be lost: the connection is closed with unread bytes.
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(
                answer.is_empty() || answer.starts_with(b"HTTP/1.1 413 "),
                "{}",
                String::from_utf8_lossy(&answer)
            );
        }
    }
    assert_eq!(server.greets(None).0, 200);
    let more = peak(server.pid()) - before;
    assert!(more < MORE, "{more} bytes more");
}

#[test]
fn slow_client_descriptors_are_released() {
    let place = Place::new(CONFIG).approved();
    let server = Served::start(&place, &[]);
    for _ in 0..2 {
        assert_eq!(server.greets(None).0, 200);
    }
    let before = descriptors(server.pid());
    let head = "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let body = format!("{head}Content-Length: 100\r\n\r\n{{\"name\":");
    let unread = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(50);
    let slow: Vec<_> = [head, &body, &unread, ""]
        .into_iter()
        .cycle()
        .take(4 * SLOW)
        .map(|text| {
            let mut stream = TcpStream::connect(server.address()).expect("it listens");
            stream.write_all(text.as_bytes()).expect("it reads");
            stream
        })
        .collect();
    // Connections are accepted in order: once this one is, the slow ones were. The server may have
    // closed some by then.
    assert_eq!(server.greets(None).0, 200, "others are served");
    drop(slow);
    eventually(|| (descriptors(server.pid()) <= before + OWN).then_some(()));
    assert_eq!(server.greets(None).0, 200);
}
