//! A server that the command runs, its keys, and its reaction to changed files.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolcell_test_guests::{Answer, Hostile};

use crate::place::{Place, in_time};
use crate::processes::interrupt::signals_by_default;
use crate::serving::stdio::{Client, REVISION};

/// The message to clients about a configuration that the operator has to approve.
const NOT_APPROVED: &str = "the operator has not approved it in its present form (`toolcell approve` shows it and asks for your approval)";
const CONFIG: &str = "[components.hello]\npath = \"hello.wasm\"\n";

/// A server, which is killed at the end unless it ended by itself.
pub(crate) struct Served {
    child: Child,
    /// Its standard error, without the part that [`wait_for_stderr`](Self::wait_for_stderr) has
    /// already searched.
    told: Arc<Mutex<String>>,
    address: String,
    metrics: Option<String>,
}

impl Served {
    pub(crate) fn start(place: &Place, words: &[&str]) -> Self {
        Self::started(place.command(), words)
    }

    /// Starts a server with these environment variables.
    pub(crate) fn start_with(place: &Place, variables: &[(&str, &str)], words: &[&str]) -> Self {
        let mut command = place.command();
        command.envs(variables.iter().copied());
        Self::started(command, words)
    }

    /// Starts a server by this command.
    pub(crate) fn started(mut command: Command, words: &[&str]) -> Self {
        signals_by_default();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--watch-interval", "5ms"])
            .args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut line).expect("a line");
        let started: Value = serde_json::from_str(&line).expect("JSON");
        let url = started["url"].as_str().unwrap_or_else(|| panic!("it does not listen: {line}"));
        let address = url.strip_prefix("http://").expect("a URL").to_owned();
        let (told, stderr) = (Arc::<Mutex<String>>::default(), child.stderr.take().expect("piped"));
        let telling = Arc::clone(&told);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                telling.lock().push_str(&format!("{line}\n"));
            }
        });
        let metrics = started["metrics_url"].as_str().and_then(|url| url.strip_prefix("http://"));
        let metrics = metrics.and_then(|url| url.strip_suffix("/metrics")).map(str::to_owned);
        Self { child, told, address, metrics }
    }

    /// Waits until standard error has this text, after the texts of earlier calls.
    pub(crate) fn wait_for_stderr(&self, expected: &str) {
        let is_told = in_time(|| {
            let mut told = self.told.lock();
            let end = told.find(expected)? + expected.len();
            told.drain(..end);
            Some(())
        });
        assert!(is_told.is_some(), "{expected:?} is not told: {}", self.told.lock());
    }

    /// Sends a request. Returns the status and the body of the answer.
    pub(crate) fn asked(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        self.sent(method, path, &key, body)
    }

    /// Sends a request with these headers. Returns the status and the body of the answer.
    pub(crate) fn sent(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let answer = self.answer(method, path, headers, body);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status =
            head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let body = if body.is_empty() { "null" } else { body };
        (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
    }

    /// Sends a request. Returns the text of the answer.
    pub(crate) fn answer(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&Value>,
    ) -> String {
        answer_of(&self.address, method, path, headers, body)
    }

    /// Returns the metrics, for a server with `--metrics`.
    pub(crate) fn metrics(&self) -> String {
        answer_of(self.metrics.as_deref().expect("metrics"), "GET", "/metrics", "", None)
    }

    /// See [`tried`].
    pub(crate) fn tried(&self, line: &str, key: &str, body: &str) -> Option<(u16, Value)> {
        tried(&self.address, line, key, body)
    }

    fn description(&self) -> Value {
        self.asked("GET", "/v1/tools", None, None).1["tools"][0]["description"].clone()
    }

    pub(crate) fn greets(&self, key: Option<&str>) -> (u16, Value) {
        self.asked(
            "POST",
            "/v1/calls",
            key,
            Some(&json!({"name": "greet", "arguments": {"name": "Ada"}})),
        )
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Returns the exit status of a server that ends by itself.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }

    /// Ends it by a signal. Returns its exit status.
    pub(crate) fn end(self, signal: Signal) -> Option<i32> {
        self.signal(signal);
        self.wait().code()
    }
}

/// Sends a request to this address. Returns the text of the answer.
fn answer_of(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: Option<&Value>,
) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Sends a request with this key. Returns the status and the body of the answer; `None` if the
/// server has gone.
pub(crate) fn tried(address: &str, line: &str, key: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
}

/// Returns a call of a tool in the form of MCP without sessions.
pub(crate) fn mcp_call(name: &str, arguments: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": name, "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

/// Returns the headers of a call by [`mcp_call`].
pub(crate) fn mcp_headers(name: &str) -> String {
    format!(
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {name}\r\n"
    )
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn approved_tools_are_served_until_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Place::new(CONFIG).approved();
        let server = Served::start(&place, &[]);
        let (status, answer) = server.greets(None);
        assert_eq!(
            (status, &answer["outcome"]["ok"]["value"]),
            (200, &json!("Hello, Ada!")),
            "{answer}"
        );
        assert_eq!(
            server.asked("GET", "/ready", None, None),
            (200, json!({"ready": true, "problems": {}, "authentication": "none"}))
        );
        assert_eq!(server.end(signal), Some(0), "{signal:?}");
    }
}

/// Like `run`, over HTTP and over MCP: the host refuses the call, and does not tell a client the
/// source of the value.
#[test]
fn tool_with_unset_secret_is_refused() {
    const ASKS: &str = "[components.asks]\npath = \"asks.wasm\"\n[components.asks.grants.secrets]\n\
                        token = { destination = \"https://a.example\", source = { env = \"NOT_SET\" } }\n\
                        [components.asks.grants]\nreveal = [\"token\"]\n";
    let place = Place::new(&format!("{CONFIG}{ASKS}")).approved();
    let server = Served::start(&place, &[]);
    let (status, answer) = server.asked("POST", "/v1/calls", None, Some(&json!({"name": "asks"})));
    let refusal = json!({
        "kind": "unset_secret", "secrets": ["token"],
        "message": "the secret `token` has no usable value; calls of this tool are refused",
    });
    assert_eq!((status, &answer["outcome"]["refusal"]), (200, &refusal), "{answer}");
    let call = mcp_call("asks", &json!({}));
    let (status, answer) = server.sent("POST", "/mcp", &mcp_headers("asks"), Some(&call));
    assert_eq!((status, &answer["result"]["isError"]), (200, &json!(true)), "{answer}");
    assert_eq!(
        answer["result"]["_meta"]["toolcell/error"]["refusal"]["kind"], "unset_secret",
        "{answer}"
    );
    assert!(!answer.to_string().contains("NOT_SET"), "{answer}");
    assert_eq!(server.greets(None).0, 200, "the other tools are called");
    assert_eq!(server.end(Signal::TERM), Some(0));
}

#[test]
fn change_is_served_once_approved() {
    let version = |description| {
        Hostile { name: "greet", description, ..Hostile::answering(Answer::Echo) }.component()
    };
    let place = Place::new("[components.mine]\npath = \"mine.wasm\"\n");
    let write = |description| place.replace("mine.wasm", version(description));
    write("Greets.");
    place.approve();
    let server = Served::start(&place, &[]);
    assert_eq!(server.description(), "Greets.");

    write("Sends your files.");
    server.wait_for_stderr("reloaded: the same components as before; not approved yet: mine\n");
    server.wait_for_stderr("is not the one that was approved");
    server.wait_for_stderr("approve mine`: it shows what changed and asks for your approval");
    assert_eq!(server.description(), "Greets.", "the approved version goes on");
    place.approve();
    server.wait_for_stderr("reloaded: ");
    assert_eq!(server.description(), "Sends your files.");

    assert_eq!(place.typed(&["rollback", "mine"]).status, 0);
    server.wait_for_stderr("reloaded: ");
    assert_eq!(server.description(), "Greets.");

    // This approval changes no file of the project.
    place.write("[components.mine]\npath = \"mine.wasm\"\n[components.mine.limits]\nfuel = 1\n");
    server.wait_for_stderr("not approved it in its present form");
    let (status, ready) = server.asked("GET", "/ready", None, None);
    let told = format!("the changed configuration is not served: {NOT_APPROVED}");
    assert_eq!((status, &ready["degraded"]["configuration"]), (200, &json!(told)), "{ready}");
    place.approve();
    server.wait_for_stderr("reloaded: ");

    place.write("[components.mine");
    server.wait_for_stderr("the server keeps the previous one");
    server.wait_for_stderr("hint: ");
    let (status, ready) = server.asked("GET", "/ready", None, None);
    assert_eq!((status, &ready["ready"]), (200, &json!(true)), "{ready}");
    assert!(
        ready["degraded"]["configuration"]
            .as_str()
            .is_some_and(|told| told.contains("toolcell.toml:1")),
        "{ready}"
    );
    assert_eq!(server.description(), "Greets.");
}

#[test]
fn key_gives_access_until_revoked() {
    let place = Place::new(CONFIG);
    let key = |words: &[&str]| {
        let shown = place.typed(words);
        assert_eq!(shown.status, 0, "{shown}");
        let made = shown.json();
        (
            made["id"].as_str().expect("an id").to_owned(),
            made["key"].as_str().expect("a key").to_owned(),
        )
    };
    let (_, acme) = key(&["tenant", "add", "acme", "--json"]);
    let (id, other) = key(&["tenant", "add-key", "acme", "--json"]);
    place.approve();
    let server = Served::start(&place, &[]);
    let statuses =
        || [None, Some("tck_wrong"), Some(&*acme), Some(&*other)].map(|key| server.greets(key).0);
    assert_eq!(statuses(), [401, 401, 200, 200]);
    let listed = place.typed(&["tenant", "list", "--json"]);
    assert!(!listed.stdout.contains(&acme) && listed.stdout.contains(&id), "{listed}");
    assert_eq!(place.typed(&["tenant", "revoke-key", &id]).status, 0);
    assert_eq!(statuses(), [401, 401, 200, 401]);
}

#[test]
fn key_is_valid_only_for_its_configuration() {
    let (mine, other) =
        (Place::new(CONFIG), Place::new(&format!("{CONFIG}[tenants.acme]\n")).approved());
    let made = mine.shown(
        mine.command()
            .env("XDG_STATE_HOME", other.state())
            .args(["tenant", "add", "acme", "--json"]),
    );
    let listed = other.typed(&["tenant", "list", "--json"]).json();
    assert_eq!((&listed["tenants"], &listed["keys"]), (&json!(["acme"]), &json!([])));
    let server = Served::start(&other, &[]);
    assert_eq!(server.greets(made.json()["key"].as_str()).0, 401);
}

#[test]
fn tenant_is_added_once_by_commands_at_the_same_time() {
    let place = Place::new(CONFIG);
    let add = || place.typed(&["tenant", "add", "acme", "--json"]).json()["added"] == true;
    let added = std::thread::scope(|scope| {
        [(); 4].map(|()| scope.spawn(add)).map(|adding| adding.join().expect("it ends"))
    });
    assert_eq!(added.into_iter().filter(|added| *added).count(), 1);
    assert_eq!(place.typed(&["tenant", "list", "--json"]).json()["tenants"], json!(["acme"]));
}

/// The system refuses to let the file grow beyond 4096 bytes, as a full disk does.
#[test]
fn tenant_without_room_leaves_the_configuration() {
    let place = Place::new("");
    let config = format!("{CONFIG}{}\n", "#".repeat(4089 - CONFIG.len()));
    place.write(&config);
    let script = "ulimit -f 8; exec \"$0\" \"$@\"";
    let add = ["tenant", "add", "acme", "--config", "toolcell.toml"];
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_toolcell")]).args(add);
    command.env_clear().envs(toolcell::controls::inherited()).current_dir(place.path());
    let shown = place.shown(command.env("XDG_STATE_HOME", place.state()));
    shown.tells(1, "add the line `[tenants.acme]` to the configuration");
    let text = std::fs::read_to_string(place.path().join("toolcell.toml")).expect("it is there");
    assert_eq!(text, config);
}

#[test]
fn open_server_requires_keys_once_a_tenant_exists() {
    let place = Place::new(CONFIG).approved();
    let server = Served::start(&place, &[]);
    assert_eq!(server.greets(None).0, 200);
    place.write(&format!("{CONFIG}[tenants.acme]\n"));
    place.approve();
    server.wait_for_stderr("from now on each request needs a key");
    server.wait_for_stderr("hint: ");
    assert_eq!(server.greets(None).0, 401);
    assert_eq!(server.asked("GET", "/ready", None, None).1["authentication"], "required");
    assert_eq!(server.greets(Some(&place.key("acme"))).0, 200);
}

#[test]
fn unapproved_config_names_approve_command() {
    let place = Place::new(&format!("{CONFIG}[components.asks]\npath = \"asks.wasm\"\n"));
    let server = Served::start(&place, &[]);
    server.wait_for_stderr("nothing of `./toolcell.toml` is served: you have not approved this configuration in its present form");
    server.wait_for_stderr("approve`: it shows the configuration and asks for your approval");
    let (_, ready) = server.asked("GET", "/ready", None, None);
    let told = format!("nothing of the configuration is served: {NOT_APPROVED}");
    assert_eq!(ready["degraded"]["components"], told, "{ready}");
    place.approve();
    server.wait_for_stderr("reloaded: added hello\n");
    assert_eq!(server.greets(None).0, 200);
    // A tenant is added, and the changed file waits for approval.
    let made = place.typed(&["tenant", "add", "acme", "--json"]).json();
    let (status, refused) = server.greets(made["key"].as_str());
    assert_eq!((status, &refused["code"]), (403, &json!("forbidden")), "{refused}");
    assert!(
        refused["hint"].as_str().is_some_and(|hint| hint.contains("`toolcell approve`")),
        "{refused}"
    );
    server.wait_for_stderr("not approved it in its present form");
    place.approve();
    server.wait_for_stderr("reloaded: ");
    assert_eq!(server.greets(made["key"].as_str()).0, 200);
}

#[test]
fn serve_stdio_speaks_mcp() {
    let place = Place::new(&format!("{CONFIG}[tenants.acme]\n")).approved();
    let refused = place.typed(&["serve", "--stdio"]);
    refused.tells(2, "--tenant NAME");
    let checked = place.typed(&["serve", "--check", "--stdio", "--tenant", "acme"]);
    assert_eq!(
        (checked.status, checked.stdout.as_str()),
        (0, "1 tool, 1 tenant, 0 problems\n"),
        "{checked}"
    );
    // Over HTTP the key of a request says its tenant.
    for (option, value) in [("--listen", "127.0.0.1:0"), ("--shutdown-delay", "1s")] {
        let typed = place.typed(&["serve", "--check", option, value, "--tenant", "acme"]);
        typed.tells(2, "--tenant");
    }
    let mut client = Client::start(place.command().args(["serve", "--stdio", "--tenant", "acme"]));
    assert_eq!(client.opens()["protocolVersion"], REVISION);
    let called = client.asks("tools/call", &json!({"name": "greet", "arguments": {"name": "Ada"}}));
    assert_eq!(called["content"][0]["text"], "Hello, Ada!", "{called}");
    assert_eq!(client.ends(), Some(0));
}
