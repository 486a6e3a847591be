//! A client over lines.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use toolcell_server::mcp::{McpOptions, StdioError, serve_lines};
use toolcell_server::{Principal, Service};

/// A client connected to a server by lines.
pub(crate) struct Client {
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    pub(crate) serving: JoinHandle<Result<(), StdioError>>,
}

impl Client {
    /// Opens a session with default options, whose client declares these capabilities.
    pub(crate) async fn open(service: Service, capabilities: Value) -> Self {
        let mut client = Self::stateless(service);
        client.initialize(capabilities).await;
        client
    }

    /// Starts without a session, with default options.
    pub(crate) fn stateless(service: Service) -> Self {
        Self::start(service, McpOptions::default())
    }

    pub(crate) fn start(service: Service, options: McpOptions) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let serving = tokio::spawn(serve_lines(service, Principal::local(), options, read, write));
        let (read, write) = tokio::io::split(ours);
        Self { read: BufReader::new(read).lines(), write, serving }
    }

    pub(crate) async fn send_text(&mut self, line: &[u8]) {
        self.write.write_all(line).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    /// Sends a line without its end, and closes its side.
    pub(crate) async fn send_last(&mut self, line: &[u8]) {
        self.write.write_all(line).await.unwrap();
        self.write.shutdown().await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_text(message.to_string().as_bytes()).await;
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let line = self.read.next_line().await.unwrap();
        serde_json::from_str(&line.expect("a line")).expect("a message")
    }

    /// Sends a request and returns its answer.
    pub(crate) async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(message(id, method, params)).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool without arguments.
    pub(crate) async fn call(&mut self, id: u64, name: &str) -> Value {
        self.ask(id, "tools/call", json!({"name": name})).await
    }

    /// Receives a question, and answers it. Returns the question.
    pub(crate) async fn answer(&mut self, result: Value) -> Value {
        let asked = self.receive().await;
        self.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
        asked
    }

    /// Opens a session that declares these capabilities.
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let answer = self.ask(0, "initialize", initialize(capabilities)).await;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        answer
    }

    /// Closes the client's side, and returns the server's result.
    pub(crate) async fn end(mut self) -> Result<(), StdioError> {
        self.write.shutdown().await.unwrap();
        drop((self.read, self.write));
        self.serving.await.unwrap()
    }
}

/// Returns a client of each era, with the metadata of its requests.
pub(crate) async fn eras(service: &Service, options: &McpOptions) -> [(Client, Value); 2] {
    let client = || Client::start(service.clone(), options.clone());
    let mut session = client();
    session.initialize(json!({})).await;
    [(session, json!({})), (client(), stateless(json!({})))]
}

pub(crate) fn message(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn ping(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

/// Returns a call of a tool without arguments.
pub(crate) fn call(id: u64, name: &str) -> Value {
    message(id, "tools/call", json!({"name": name}))
}

pub(crate) fn cancel(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

/// Returns the request that opens a session of a client with these capabilities.
pub(crate) fn opening(capabilities: Value) -> Value {
    message(0, "initialize", initialize(capabilities))
}

pub(crate) fn initialize(capabilities: Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    })
}

/// The metadata of a request of the stateless era.
pub(crate) fn stateless(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The metadata of a request of the stateless era, whose client supports forms.
pub(crate) fn forms() -> Value {
    stateless(json!({"elicitation": {"form": {}}}))
}

/// Returns the result of a form that was filled in with this answer.
pub(crate) fn accepted(answer: impl Into<Value>) -> Value {
    let answer: Value = answer.into();
    json!({"action": "accept", "content": {"answer": answer}})
}

/// Returns the params of a call of `ask` that answers its question, without a session.
pub(crate) fn retry(state: &Value, answer: impl Into<Value>) -> Value {
    let responses = json!({"answer": accepted(answer)});
    json!({"name": "ask", "requestState": state, "inputResponses": responses, "_meta": forms()})
}

/// Returns the params of a call of `ask` that answers its question in the metadata.
pub(crate) fn resume(state: &Value, answer: impl Into<Value>) -> Value {
    let answer: Value = answer.into();
    json!({"name": "ask", "_meta": {"toolcell/resume": {"answer": answer, "state": state}}})
}

/// Compares the two codes of an error.
#[track_caller]
pub(crate) fn is_refused(told: &Value, code: i64, word: &str) {
    let error = &told["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(code), &json!(word)), "{told}");
}
