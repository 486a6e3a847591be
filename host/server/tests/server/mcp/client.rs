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
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
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
