//! Calls over MCP that are cancelled at any moment, or whose clients disconnect, have no answer and
//! leave no state.
//!
//! Source: docs/threat-model.md, row 74.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use toolcell_server::Service;
use toolcell_server::mcp::McpOptions;

use super::client::Client;
use super::fixture::service;
use super::web::{JSON, PATIENCE, modern, start};

/// The seed of the random generator.
const SEED: u64 = 74;
const LINES: u64 = 2_000;
const POSTS: u64 = 300;

fn options() -> McpOptions {
    McpOptions { stop_grace: Duration::ZERO, ..McpOptions::default() }
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "wait"}})
}

fn cancel(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

async fn pause(random: &mut fastrand::Rng) {
    for _ in 0..random.u8(..16) {
        yield_now().await;
    }
}

/// Returns when no request is running, and each tool that began has ended.
async fn is_over(service: &Service, waits: &mut mpsc::UnboundedReceiver<&'static str>) {
    let over = async {
        while service.running() != 0 {
            yield_now().await;
        }
        let mut more = 0;
        loop {
            match waits.try_recv() {
                Ok("started") => more += 1,
                Ok(_) => more -= 1,
                Err(_) if more == 0 => break,
                Err(_) => yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("nothing is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_stdio_calls_get_no_answer_leak_nothing() {
    let (service, _, mut waits) = service();
    let mut client = Client::start(service.clone(), options());
    client.initialize(json!({})).await;
    let mut random = fastrand::Rng::with_seed(SEED);
    for id in 1..=LINES {
        // Cancels before the request begins and of another id, once or twice.
        for other in [id, id + LINES] {
            if random.u8(..4) == 0 {
                client.send(cancel(other)).await;
            }
        }
        client.send(call(id)).await;
        pause(&mut random).await;
        for _ in 0..random.u8(1..3) {
            client.send(cancel(id)).await;
        }
        if random.u8(..8) == 0 {
            // The next line is this answer: no answer of a cancelled call precedes it.
            client.ask(3 * LINES + id, "ping", json!({})).await;
        }
    }
    client.ask(0, "ping", json!({})).await;
    is_over(&service, &mut waits).await;
    client.ask(0, "ping", json!({})).await;
    client.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_posts_and_closed_streams_leak_nothing() {
    let (service, registry, mut waits) = service();
    let web = start(service.clone(), &registry, options()).await;
    let session = format!("{JSON}{}", web.open().await);
    let mut random = fastrand::Rng::with_seed(SEED);
    for id in 1..=POSTS {
        // In a session: the notification, once or twice, or for a request that has not begun.
        let (running, head) = web.begin(0, "POST", &session, &call(id).to_string()).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        pause(&mut random).await;
        for cancelled in [id + POSTS, id, id].into_iter().take(random.usize(2..4)) {
            let told = web.send(0, "POST", &session, &cancel(cancelled).to_string()).await;
            assert_eq!(told.status, 202, "{told:?}");
        }
        drop(running);
        // Without a session: the client closes its connection.
        let (headers, message) = modern(id, "tools/call", Some("wait"));
        let request = web.request(0, "POST", &format!("{JSON}{headers}"), &message.to_string());
        let mut stream = TcpStream::connect(web.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        pause(&mut random).await;
        drop(stream);
    }
    is_over(&service, &mut waits).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(web.send(0, "POST", &session, &ping.to_string()).await.status, 200);
}
