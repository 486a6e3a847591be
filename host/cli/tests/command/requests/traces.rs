//! The spans of a server's calls that an OpenTelemetry collector receives.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use parking_lot::Mutex;
use prost::Message as _;
use rustix::process::Signal;
use serde_json::json;

use crate::place::Place;
use crate::server::Server;
use crate::serving::serve::{Served, mcp_call, mcp_headers};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A collector that stores the bodies that it receives.
struct Collector {
    url: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let bodies = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                take(stream, &kept);
            }
        });
        Self { url, bodies }
    }

    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock();
        let requests =
            bodies.iter().map(|body| ExportTraceServiceRequest::decode(&body[..]).expect("spans"));
        let resources = requests.flat_map(|request| request.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

fn take(stream: TcpStream, kept: &Mutex<Vec<Vec<u8>>>) {
    let mut stream = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    let mut first = String::new();
    while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if first.is_empty() {
            first.clone_from(&line);
        }
        line.clear();
    }
    assert!(first.starts_with("POST /v1/traces "), "{first}");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    // Stored before the answer: a server may end once it has the answer.
    kept.lock().push(body);
    let _ = stream
        .get_mut()
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the value of an attribute, as text.
fn attribute(span: &Span, key: &str) -> Option<String> {
    let value =
        span.attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value?;
    if let any_value::Value::IntValue(number) = value {
        return Some(number.to_string());
    }
    let any_value::Value::StringValue(text) = value else { panic!("{value:?}") };
    Some(text)
}

/// Returns the only child of this span.
fn below<'a>(spans: &'a [Span], parent: &str) -> &'a Span {
    let found: Vec<_> = spans.iter().filter(|span| hex(&span.parent_span_id) == parent).collect();
    assert_eq!(found.len(), 1, "below {parent}: {spans:#?}");
    found[0]
}

#[track_caller]
fn says(span: &Span, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(attribute(span, key).as_deref(), Some(*value), "{key}: {span:#?}");
    }
}

#[test]
fn mcp_call_with_one_request_has_three_nested_spans() {
    let site = Server::answering("canary-body");
    let place = Place::new(&format!(
        "[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\n\
         http = [{{ rule = \"GET {}\", private_networks = [\"127.0.0.0/8\"] }}]\n",
        site.url("/")
    ))
    .approved();
    for from_headers in [false, true] {
        let collector = Collector::start();
        let server = Served::start(&place, &["--otlp", &collector.url]);
        let parent = format!("00-{TRACE}-{CALLER}-01");
        let mut call = mcp_call("fetch", &json!({"url": site.url("/canary-path")}));
        let mut headers = mcp_headers("fetch");
        if from_headers {
            headers.push_str(&format!("traceparent: {parent}\r\n"));
        } else {
            call["params"]["_meta"]["traceparent"] = json!(parent);
        }
        let answer = server.answer("POST", "/mcp", &headers, Some(&call));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("canary-body"), "{answer}");
        // Waiting spans are sent before the server ends.
        assert_eq!(server.end(Signal::TERM), Some(0));

        let spans = collector.spans();
        assert_eq!(spans.len(), 3, "{spans:#?}");
        assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:#?}");
        let request = below(&spans, CALLER);
        assert_eq!((request.name.as_str(), request.kind()), ("tools/call fetch", SpanKind::Server));
        says(
            request,
            &[
                ("mcp.method.name", "tools/call"),
                ("gen_ai.tool.name", "fetch"),
                ("gen_ai.operation.name", "execute_tool"),
                ("http.request.method", "POST"),
                ("http.response.status_code", "200"),
            ],
        );
        let call = below(&spans, &hex(&request.span_id));
        assert_eq!((call.name.as_str(), call.kind()), ("execute_tool fetch", SpanKind::Internal));
        says(call, &[("gen_ai.tool.name", "fetch"), ("toolcell.outcome", "ok")]);
        let sent = below(&spans, &hex(&call.span_id));
        assert_eq!((sent.name.as_str(), sent.kind()), ("GET", SpanKind::Client));
        says(sent, &[("server.address", "127.0.0.1"), ("http.response.status_code", "200")]);
        // No span has an argument, a path or a result.
        let told = format!("{spans:?}");
        assert!(!told.contains("canary"), "{told}");
    }
}

/// A host call that is not a request is named by its interface and function, and no span has its
/// keys.
#[test]
fn store_access_is_a_child_span_of_its_call() {
    let place = Place::new(
        "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\nkv = [\"write notes/*\"]\n",
    )
    .approved();
    let collector = Collector::start();
    let server = Served::start(&place, &["--otlp", &collector.url]);
    let call = json!({"name": "notes", "arguments": {"action": "get", "title": "canary"}});
    let parent = format!("traceparent: 00-{TRACE}-{CALLER}-01\r\n");
    let answer = server.answer("POST", "/v1/calls", &parent, Some(&call));
    assert!(answer.contains("there is no note `canary`"), "{answer}");
    assert_eq!(server.end(Signal::TERM), Some(0));
    let spans = collector.spans();
    let request = below(&spans, CALLER);
    let call = below(&spans, &hex(&request.span_id));
    let look = below(&spans, &hex(&call.span_id));
    assert_eq!((look.name.as_str(), look.kind()), ("kv get", SpanKind::Internal));
    says(look, &[("toolcell.import", "kv"), ("toolcell.function", "get")]);
    assert_eq!(attribute(look, "error.type"), None, "the store has no such key: that is an answer");
    let told = format!("{spans:?}");
    assert!(!told.contains("canary"), "{told}");
}

/// Each call has a trace of its own. An error status of a page is a result for the tool, and a
/// failed request for its span.
#[test]
fn failed_request_span_has_error_type() {
    let (good, bad) =
        (Server::answering("canary-body"), Server::answering_with("503 Busy", "canary-body"));
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let gone_url = format!("http://{}/canary", gone.local_addr().expect("bound"));
    let rule =
        |url: &str| format!("{{ rule = \"GET {url}\", private_networks = [\"127.0.0.0/8\"] }}");
    let rules = [rule(&good.url("/canary")), rule(&bad.url("/canary")), rule(&gone_url)].join(", ");
    let place = Place::new(&format!(
        "[components.fetch]\npath = \"fetch.wasm\"\n[components.fetch.grants]\nhttp = [{rules}]\n"
    ))
    .approved();
    let collector = Collector::start();
    let server = Served::start(&place, &["--otlp", &collector.url]);
    // The port stays taken, and a connection is closed before an answer.
    std::thread::spawn(move || gone.incoming().for_each(drop));
    // The span of the request, and of the call.
    let cases = [
        (good.url("/canary"), (Some("GET"), None), ("ok", None)),
        (bad.url("/canary"), (Some("GET"), Some("503")), ("ok", None)),
        (gone_url, (Some("GET"), Some("broken")), ("error", Some("tool_error"))),
        (good.url("/other"), (None, Some("denied")), ("error", Some("tool_error"))),
    ];
    for (at, (url, ..)) in (1..).zip(&cases) {
        let trace = format!("traceparent: 00-{at:032x}-{CALLER}-01\r\n");
        let call = json!({"name": "fetch", "arguments": {"url": url}});
        let answer = server.answer("POST", "/v1/calls", &trace, Some(&call));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!(server.end(Signal::TERM), Some(0));
    let all = collector.spans();
    for (at, (url, (method, error), (outcome, call_error))) in (1..).zip(cases) {
        let spans: Vec<Span> = all
            .iter()
            .filter(|span| hex(&span.trace_id) == format!("{at:032x}"))
            .cloned()
            .collect();
        let request = below(&spans, CALLER);
        let call = below(&spans, &hex(&request.span_id));
        let sent = below(&spans, &hex(&call.span_id));
        says(call, &[("toolcell.outcome", outcome)]);
        // The server did not fail, whatever error the tool got.
        for (span, error) in [(request, None), (call, call_error), (sent, error)] {
            assert_eq!(attribute(span, "error.type").as_deref(), error, "{url}: {span:#?}");
            let is_failed =
                span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
            assert_eq!(is_failed, error.is_some(), "{url}: {span:#?}");
        }
        assert_eq!(attribute(sent, "http.request.method").as_deref(), method, "{sent:#?}");
    }
    let told = format!("{all:?}");
    assert!(!told.contains("canary"), "{told}");
}

#[test]
fn collector_without_tls_must_be_local() {
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\n").approved();
    for url in ["http://collector.example", "collector", "http://user@127.0.0.1:1"] {
        let shown = place.typed(&["serve", "--check", "--otlp", url]);
        assert!(shown.status == 2 && shown.stderr.contains("hint: "), "{url}: {shown}");
    }
    // `--check` sends nothing.
    let shown = place.typed(&["serve", "--check", "--otlp", "http://127.0.0.1:1"]);
    assert_eq!(shown.status, 0, "{shown}");
}
