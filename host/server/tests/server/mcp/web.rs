//! MCP over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use toolcell::tenant::Quota;
use toolcell::tool::Invocation;
use toolcell::{Registry, Tenant, Tool};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::mcp::{McpOptions, routes};
use toolcell_server::{Authenticator, HttpOptions, ListenOptions, ServedTools, Service};
use toolcell_test_guests::rows;

use super::client::{call, forms, message, opening, ping, stateless};
use super::fixture::{abrupt, polite, service};
use super::input::bad_input::is_as_the_page_says;
use crate::http::client::Reply;
use crate::setup::{self, PATIENCE, named, native, registry, serving};

pub(super) const JSON: &str = "Content-Type: application/json\r\n";

/// A server with a tenant that has two keys.
pub(super) struct Web {
    pub(super) address: SocketAddr,
    pub(super) service: Service,
    pub(super) keys: [String; 2],
    /// Their ids.
    pub(super) ids: [String; 2],
    /// The key of another tenant, and of one that is not served.
    pub(super) globex: String,
    pub(super) gone: String,
    pub(super) store: ApiKeyStore,
    _dir: tempfile::TempDir,
}

/// Starts a server of the fixture's tools. Returns it, and the messages of the tool `wait`.
pub(super) async fn serve(options: McpOptions) -> (Web, mpsc::UnboundedReceiver<&'static str>) {
    let (service, registry, waits) = service();
    (start(service, &registry, options).await, waits)
}

/// Starts a server of this tool.
async fn serve_tool(tool: Tool, options: McpOptions) -> Web {
    let registry = registry([tool]);
    start(serving(&registry), &registry, options).await
}

pub(super) async fn start(service: Service, registry: &Registry, options: McpOptions) -> Web {
    start_with(service, registry, options, ListenOptions::default()).await
}

pub(super) async fn start_with(
    service: Service,
    registry: &Registry,
    options: McpOptions,
    listen: ListenOptions,
) -> Web {
    let served = ServedTools::new(registry).with_tenant("acme", Tenant::default());
    let quota = Quota { calls_per_minute: Some(1), ..Quota::default() };
    service.replace(served.with_tenant("globex", Tenant { quota, ..Tenant::default() }));
    let dir = tempfile::tempdir().unwrap();
    let store = ApiKeyStore::open(dir.path().join("keys.json")).unwrap();
    let made = ["acme", "acme", "globex", "gone"].map(|tenant| store.add(tenant).unwrap());
    let [first, second, globex, gone] = made.map(|made| (made.id, made.key.expose().to_owned()));
    let (ids, keys) = ([first.0, second.0], [first.1, second.1]);
    let http = HttpOptions { recheck: Duration::from_millis(10), ..listen.http.clone() };
    let listen = ListenOptions { http, protected: routes(service.clone(), options), ..listen };
    let auth = Authenticator::api_keys(store.clone());
    let address = setup::start(service.clone(), auth, listen).await;
    Web { address, service, keys, ids, globex: globex.1, gone: gone.1, store, _dir: dir }
}

impl Web {
    pub(super) fn request(&self, key: usize, method: &str, headers: &str, body: &str) -> String {
        request(&self.keys[key], method, headers, body)
    }

    pub(super) async fn send(&self, key: usize, method: &str, headers: &str, body: &str) -> Reply {
        self.send_bytes(self.request(key, method, headers, body).as_bytes()).await
    }

    /// Sends a request, and reads the head of its answer.
    pub(super) async fn begin(&self, request: &str) -> (TcpStream, String) {
        let mut stream = self.connect(request.as_bytes()).await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (stream, String::from_utf8(head).unwrap())
    }

    /// Sends a message, and reads the head of its answer.
    pub(super) async fn begin_post(&self, headers: &str, message: &Value) -> (TcpStream, String) {
        let headers = format!("{JSON}{headers}");
        self.begin(&self.request(0, "POST", &headers, &message.to_string())).await
    }

    /// Sends a request, and reads nothing.
    pub(super) async fn connect(&self, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream
    }

    pub(super) async fn send_bytes(&self, request: &[u8]) -> Reply {
        Self::answer(self.connect(request).await).await
    }

    /// Sends a request, closes its side of the connection, and reads the answer.
    pub(super) async fn send_last(&self, request: &[u8]) -> Reply {
        let mut stream = self.connect(request).await;
        stream.shutdown().await.unwrap();
        Self::answer(stream).await
    }

    async fn answer(mut stream: TcpStream) -> Reply {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        Reply::read(&text).unwrap()
    }

    pub(super) async fn post(&self, key: usize, headers: &str, message: &Value) -> Reply {
        self.post_with(&self.keys[key], headers, message).await
    }

    pub(super) async fn post_with(&self, key: &str, headers: &str, message: &Value) -> Reply {
        let headers = format!("{JSON}{headers}");
        self.send_bytes(request(key, "POST", &headers, &message.to_string()).as_bytes()).await
    }

    /// Sends a message, and reads nothing.
    pub(super) async fn posting(&self, headers: &str, message: &Value) -> TcpStream {
        let headers = format!("{JSON}{headers}");
        self.connect(self.request(0, "POST", &headers, &message.to_string()).as_bytes()).await
    }

    /// Opens a session, and returns the header that names it.
    pub(super) async fn open(&self) -> String {
        let reply = self.post(0, "", &opening(json!({}))).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let id = reply.header("mcp-session-id").unwrap();
        assert_eq!(id.len(), 32);
        format!("Mcp-Session-Id: {id}\r\n")
    }
}

pub(super) fn request(key: &str, method: &str, headers: &str, body: &str) -> String {
    format!(
        "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len(),
    )
}

/// Returns a request of the stateless era, and its headers.
pub(super) fn modern(id: u64, method: &str, name: Option<&str>) -> (String, Value) {
    let mut params = json!({"_meta": stateless(json!({}))});
    let mut headers = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
    if let Some(name) = name {
        params["name"] = name.into();
        headers = format!("{headers}Mcp-Name: {name}\r\n");
    }
    (headers, message(id, method, params))
}

/// A tool with a parameter that is also sent as a header.
#[tokio::test]
async fn header_differing_from_its_argument_is_refused() {
    let city = json!({"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}});
    let weather = named("weather").with_parameters(city);
    let weather = Tool::native(weather, async |_: Value| json!("sun")).unwrap();
    let web = serve_tool(weather, McpOptions::default()).await;
    let (headers, mut call) = modern(1, "tools/call", Some("weather"));
    call["params"]["arguments"] = json!({"city": "Oslo"});
    for (header, status) in
        [("Mcp-Param-City: Oslo\r\n", 200), ("Mcp-Param-City: Rome\r\n", 400), ("", 400)]
    {
        let reply = web.post(0, &format!("{headers}{header}"), &call).await;
        assert_eq!(reply.status, status, "{header}: {reply:?}");
        assert_eq!(reply.message()["error"]["code"] == -32020, status == 400, "{reply:?}");
    }
}

#[tokio::test]
async fn both_eras_are_served_at_one_endpoint() {
    let (web, _) = serve(McpOptions::default()).await;
    let session = web.open().await;
    let reply = web.post(0, &session, &call(1, "text")).await;
    assert_eq!(reply.message()["result"]["content"][0]["text"], "plain", "{reply:?}");
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    let (headers, call) = modern(2, "tools/call", Some("text"));
    let reply = web.post(0, &headers, &call).await;
    assert_eq!(reply.message()["result"]["content"][0]["text"], "plain", "{reply:?}");
    let kind = reply.header("content-type");
    assert_eq!(kind, Some("application/json"), "nothing is told before the result");
    let (headers, discover) = modern(3, "server/discover", None);
    let versions =
        web.post(0, &headers, &discover).await.message()["result"]["supportedVersions"].take();
    assert_eq!(versions, json!(["2025-06-18", "2025-11-25", "2026-07-28"]));
}

#[tokio::test]
async fn every_accept_of_json_gets_the_same_answer() {
    let (web, _) = serve(McpOptions::default()).await;
    let same = "application/json, text/event-stream";
    for (name, arguments, capabilities) in rows::<(&str, Value, Value)>("server/mcp/web", "calls") {
        let (headers, mut call) = modern(1, "tools/call", Some(name));
        call["params"]["_meta"] = stateless(capabilities);
        call["params"]["arguments"] = arguments;
        let body = call.to_string();
        let request = web.request(0, "POST", &format!("{JSON}{headers}"), &body);
        let mut answers = Vec::new();
        for accepted in [same, "application/json;q=1, text/event-stream", "application/json", "*/*"]
        {
            let request = request.replace(same, accepted);
            let reply = web.send_bytes(request.as_bytes()).await;
            let mut message = reply.message();
            // Members that differ from call to call.
            for member in ["toolcell/usage", "toolcell/question"] {
                message["result"]["_meta"][member].take();
            }
            message["result"]["requestState"].take();
            answers.push((reply.status, reply.header("content-type").map(str::to_owned), message));
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{name}: {answers:?}");
    }
    // In a session the answer is a stream, if the client accepts one.
    let session = format!("{JSON}{}", web.open().await);
    let request = web.request(0, "POST", &session, &call(1, "text").to_string());
    for (accepted, kind) in [(same, "text/event-stream"), ("application/json", "application/json")]
    {
        let reply = web.send_bytes(request.replace(same, accepted).as_bytes()).await;
        let text = reply.message()["result"]["content"][0]["text"].clone();
        assert_eq!((reply.header("content-type"), text), (Some(kind), json!("plain")), "{reply:?}");
    }
}

#[tokio::test]
async fn tool_has_grace_period_after_client_disconnects() {
    let (polite, mut waits) = polite();
    let options = McpOptions { stop_grace: PATIENCE, ..McpOptions::default() };
    let web = serve_tool(polite, options).await;
    for accept in ["application/json, text/event-stream", "application/json;q=1, text/event-stream"]
    {
        let (headers, call) = modern(1, "tools/call", Some("polite"));
        let request = web.request(0, "POST", &format!("{JSON}{headers}"), &call.to_string());
        let request = request.replace("application/json, text/event-stream", accept);
        let stream = web.connect(request.as_bytes()).await;
        assert_eq!(waits.recv().await, Some("started"), "{accept}");
        drop(stream);
        assert_eq!(waits.recv().await, Some("ended by itself"), "{accept}");
    }
}

#[tokio::test]
async fn progress_is_streamed_before_the_result() {
    let steps = async |_: Value, call: Arc<Invocation>| {
        call.progress(1, None, None);
        json!("done")
    };
    let web = serve_tool(native("steps", steps), McpOptions::default()).await;
    let (headers, mut call) = modern(1, "tools/call", Some("steps"));
    call["params"]["_meta"]["progressToken"] = json!("t");
    let reply = web.post(0, &headers, &call).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert!(reply.body.contains("notifications/progress"), "{reply:?}");
    assert_eq!(reply.message()["result"]["content"][0]["text"], "done", "{reply:?}");
}

#[tokio::test]
async fn session_belongs_to_its_principal_until_deleted() {
    let (web, _) = serve(McpOptions { sessions: 1, ..McpOptions::default() }).await;
    let session = web.open().await;
    let ping = ping(1);
    assert_eq!(web.post(0, &session, &ping).await.status, 200);
    assert_eq!(web.post(1, &session, &ping).await.status, 404);
    assert_eq!(web.send(1, "GET", &session, "").await.status, 404);
    assert_eq!(web.send(1, "DELETE", &session, "").await.status, 404);
    let full = web.post(1, "", &opening(json!({}))).await;
    is_as_the_page_says("more sessions than a tenant may have", &full);
    let long = format!("{JSON}{session}");
    let long = web
        .request(0, "POST", &long, "")
        .replace("Content-Length: 0", "Content-Length: 99999999999");
    assert_eq!(web.send_bytes(long.as_bytes()).await.status, 413);
    let counted = web.service.metrics_text();
    for code in ["too_many_sessions", "body_too_large"] {
        let line = format!("toolcell_refused_requests_total{{tenant=\"acme\",code=\"{code}\"}} 1");
        assert!(counted.lines().any(|told| told == line), "{line}: {counted}");
    }
    assert_eq!(web.send(0, "DELETE", &session, "").await.status, 204);
    assert_eq!(web.post(0, &session, &ping).await.status, 404);
    web.open().await;
}

#[tokio::test]
async fn closing_a_stateless_stream_stops_the_tool() {
    let (web, mut waits) = serve(abrupt()).await;
    let (headers, call) = modern(1, "tools/call", Some("wait"));
    let stream = web.posting(&headers, &call).await;
    assert_eq!(waits.recv().await, Some("started"));
    drop(stream);
    assert_eq!(waits.recv().await, Some("stopped"));
}

#[tokio::test]
async fn request_state_is_bound_to_its_principal() {
    let (web, _) = serve(McpOptions::default()).await;
    let (headers, mut call) = modern(1, "tools/call", Some("ask"));
    call["params"]["_meta"] = forms();
    call["params"]["requestState"] =
        web.post(0, &headers, &call).await.message()["result"]["requestState"].take();
    let again = web.post(0, &headers, &call).await.message();
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    // Another key of the same tenant, without an answer.
    let foreign = web.post(1, &headers, &call).await.message();
    assert_eq!(foreign["error"]["data"]["code"], "resume_foreign", "{foreign}");
}
