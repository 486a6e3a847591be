//! What an operator's traces show of calls.

use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};

use futures_executor::block_on;
use serde_json::Value;
use toolcell::{CallOptions, Definition, Executor, Tool, ToolCall};
use tracing_subscriber::fmt::format::FmtSpan;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_span_per_call_says_how_it_ended() {
    let lines = Lines::default();
    let sink = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || sink.clone())
        .finish();
    let handler = async |arguments: Value| match arguments["end"].as_str() {
        Some("panic") => panic!("ouch \u{1b}[31m"),
        Some("never") => pending().await,
        _ => {
            tracing::info!("at work");
            Ok::<_, String>(Value::Null)
        }
    };
    let tool = Tool::native(Definition::new("t", "").expect("a name"), handler).expect("a tool");
    let call = |id: &str, end: &str| {
        let (executor, call) = (Executor::new(), ToolCall::new(id, "t", format!(r#"{{"end": "{end}"}}"#)));
        let tool = tool.clone();
        async move { executor.call(&tool, call, CallOptions::default()).await }
    };
    tracing::subscriber::with_default(subscriber, || {
        block_on(call("good", "ok"));
        block_on(call("bad", "panic"));
        // Killed: its future is dropped after it has started.
        let mut killed = Box::pin(call("killed", "never"));
        let waker = std::task::Waker::noop();
        assert!(killed.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    });
    let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
    let line = |id: &str| {
        let closed = |line: &&str| line.contains(&format!("id={id} ")) && line.contains("close");
        text.lines().find(closed).unwrap_or_else(|| panic!("no span of `{id}`:\n{text}"))
    };
    assert!(line("good").contains(r#"outcome="ok""#) && line("good").contains("duration_us="), "{text}");
    assert!(!line("good").contains("exception"), "{text}");
    assert!(line("bad").contains(r#"outcome="tool_error""#) && line("bad").contains("ouch"), "{text}");
    assert!(line("killed").contains("the call was cancelled"), "{text}");
    assert!(
        text.contains("tool_call{id=good tool=t}: spans: at work"),
        "what runs for a call runs in its span:\n{text}"
    );
    assert!(!text.contains('\u{1b}'), "no escape of a stranger's:\n{text}");
}
