//! A server that receives a signal while a call runs.
//!
//! Source: docs/operating.md, "Readiness, signals, exit statuses".

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::place::{Place, eventually};
use crate::processes::interrupt::signals_by_default;
use crate::serving::serve::{Served, mcp_call, tried};

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nlate";

/// A place with a tool that waits for the test's answer to its request.
struct Waiting {
    place: Place,
    listener: TcpListener,
}

impl Waiting {
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let rule = format!(
            "{{ rule = \"GET http://{}\", private_networks = [\"127.0.0.1/32\"] }}",
            listener.local_addr().expect("bound")
        );
        let config = format!(
            "[components.fetch]\npath = \"fetch.wasm\"\ngrants = {{ http = [{rule}] }}\nlimits = {{ timeout = \"10m\" }}\n"
        );
        Self { place: Place::new(&config).approved(), listener }
    }

    fn arguments(&self) -> Value {
        json!({ "url": format!("http://{}/", self.listener.local_addr().expect("bound")) })
    }

    /// Begins a call in a thread. Returns the call's thread once the tool runs, and the request
    /// that the tool waits for.
    fn called(&self, server: &Served) -> (JoinHandle<Option<(u16, Value)>>, TcpStream) {
        let body = json!({ "name": "fetch", "arguments": self.arguments() });
        let address = server.address().to_owned();
        (
            thread::spawn(move || tried(&address, "POST /v1/calls", "", &body.to_string())),
            self.waits(),
        )
    }

    /// Returns the request of the tool, once it has arrived.
    fn waits(&self) -> TcpStream {
        let (stream, _) = self.listener.accept().expect("a request");
        let mut lines = BufReader::new(&stream).lines().map(|line| line.expect("text"));
        assert!(lines.any(|line| line.is_empty()), "a whole head");
        stream
    }
}

#[test]
fn drain_answers_running_call_refuses_connections() {
    let waiting = Waiting::new();
    let server = Served::start(&waiting.place, &["--drain-timeout", "10m"]);
    let (client, mut request) = waiting.called(&server);
    server.signal(Signal::TERM);
    server.wait_for_stderr(
        "interrupted: running calls have 600 s to finish; a second signal stops now",
    );
    eventually(|| TcpStream::connect(server.address()).is_err().then_some(()));
    assert!(!client.is_finished(), "the call runs");
    request.write_all(ANSWER.as_bytes()).expect("it reads");
    let (status, answer) = client.join().expect("a client").expect("an answer");
    assert_eq!(
        (status, &answer["outcome"]["ok"]["value"]["text"]),
        (200, &json!("late")),
        "{answer}"
    );
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn second_signal_ends_server_at_once() {
    let waiting = Waiting::new();
    let server = Served::start(&waiting.place, &["--drain-timeout", "10m"]);
    let (client, _request) = waiting.called(&server);
    server.signal(Signal::TERM);
    server.wait_for_stderr("a second signal stops now");
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.signal(), Some(Signal::TERM.as_raw()), "{ended:?}");
    assert_eq!(client.join().expect("a client"), None, "its call has no answer");
}

#[test]
fn call_outlasting_drain_is_cancelled_and_answered() {
    let waiting = Waiting::new();
    let server = Served::start(&waiting.place, &["--drain-timeout", "10ms"]);
    let (client, _request) = waiting.called(&server);
    server.signal(Signal::TERM);
    let (status, answer) = client.join().expect("a client").expect("an answer");
    assert_eq!(
        (status, &answer["outcome"]["tool_error"]["cause"]["status"]),
        (200, &json!("cancelled")),
        "{answer}"
    );
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn stdio_drain_answers_running_call() {
    let waiting = Waiting::new();
    for (drain, expected) in [("10m", "late"), ("10ms", "cancelled")] {
        // The server's standard input stays open.
        let (mut child, _input, mut lines) = lines(&waiting, drain);
        let mut request = waiting.waits();
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        if drain == "10m" {
            request.write_all(ANSWER.as_bytes()).expect("it reads");
        }
        let answer = lines.next().map(|line| line.expect("text")).unwrap_or_default();
        let ended = child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0), "{drain}: {ended}: {answer}");
        assert!(answer.contains(expected), "{answer}");
    }
}

/// Starts a server on standard input and output, with one call.
fn lines(waiting: &Waiting, drain: &str) -> (Child, ChildStdin, Lines<BufReader<ChildStdout>>) {
    signals_by_default();
    let mut command = waiting.place.command();
    command.args(["serve", "--stdio", "--drain-timeout", drain]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    let call = mcp_call("fetch", &waiting.arguments());
    let (mut input, output) =
        (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    writeln!(input, "{call}").expect("it reads");
    (child, input, BufReader::new(output).lines())
}
