//! The metrics of a server while a tool waits for another host, and afterwards.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, in_time};
use crate::serving::serve::Served;

/// Returns the value of this series.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// Reads the head of a request.
fn asked(stream: &mut TcpStream) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
}

#[test]
fn call_waiting_for_a_host_shows_in_metrics() {
    let site = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let url = format!("http://{}/", site.local_addr().expect("bound"));
    let place = Place::new(&format!(
        "[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\n\
         http = [{{ rule = \"GET {url}\", private_networks = [\"127.0.0.0/8\"] }}]\n"
    ))
    .approved();
    let server = Served::start(&place, &["--metrics", "127.0.0.1:0"]);
    let (cells, open, total) = (
        "toolcell_cells_in_use{isolation=\"pooled\"}",
        "toolcell_connections_open{isolation=\"pooled\"}",
        "toolcell_connections_total{isolation=\"pooled\"}",
    );
    let (running, host_calls) =
        ("toolcell_requests_running", "toolcell_host_calls_total{tenant=\"\",tool=\"fetch\"}");
    let before = server.metrics();
    let of = |metrics: &str| [running, cells, open, total].map(|series| value(metrics, series));
    assert_eq!(of(&before), [0.0, 0.0, 0.0, 0.0].map(Some), "{before}");
    assert_eq!(value(&before, host_calls), None, "{before}");

    std::thread::scope(|scope| {
        let call = json!({"name": "fetch", "arguments": {"url": url}});
        let answer = scope.spawn({
            let server = &server;
            move || server.asked("POST", "/v1/calls", None, Some(&call))
        });
        let (mut stream, _) = site.accept().expect("a connection");
        asked(&mut stream);
        let waiting = server.metrics();
        assert_eq!(of(&waiting), [1.0, 1.0, 1.0, 1.0].map(Some), "{waiting}");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").expect("it reads");
        let (status, answer) = answer.join().expect("no panic");
        assert!(status == 200 && answer["outcome"]["ok"].is_object(), "{answer}");
    });
    // The resources of a call are released right after its answer.
    let after = in_time(|| {
        let now = server.metrics();
        (of(&now) == [0.0, 0.0, 0.0, 1.0].map(Some)).then_some(now)
    });
    let after = after.unwrap_or_else(|| panic!("it is not given back: {}", server.metrics()));
    assert!(value(&after, host_calls).is_some_and(|calls| calls > 0.0), "{after}");
    assert_eq!(server.end(Signal::TERM), Some(0));
}
