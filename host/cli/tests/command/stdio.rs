//! An MCP client that starts the server by itself, as desktop clients do: one line in, one line out.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The version that it speaks.
pub(crate) const REVISION: &str = "2025-11-25";

/// A server with a client that has not said anything yet.
pub(crate) struct Client {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Client {
    /// Starts the server.
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary runs");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, input, lines: BufReader::new(output).lines() }
    }

    /// Sends a request, and returns its result.
    pub(crate) fn asks(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{request}").expect("it reads");
        let mut answer: Value = serde_json::from_str(&self.lines.next().expect("a line").expect("text")).expect("JSON");
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].take()
    }

    /// What a client sends first. Returns the result of `initialize`.
    pub(crate) fn opens(&mut self) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let opening = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
        let opened = self.asks("initialize", &opening);
        let opens = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(self.input, "{opens}").expect("it reads");
        opened
    }

    /// Closes standard input, and returns the exit status.
    pub(crate) fn ends(mut self) -> Option<i32> {
        drop(self.input);
        self.child.wait().expect("it ends").code()
    }
}
