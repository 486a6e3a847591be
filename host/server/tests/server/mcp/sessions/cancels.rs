//! Calls over MCP that are cancelled at any moment, or whose clients disconnect, have no answer and
//! leave no state.
//!
//! Source: docs/threat-model.md, row 74.

use serde_json::json;
use tokio::task::yield_now;

use crate::mcp::client::{Client, call, cancel, ping};
use crate::mcp::fixture::{abrupt, service};
use crate::mcp::web::{modern, serve};
use crate::setup::is_over;

/// The seed of the random generator.
const SEED: u64 = 74;
const LINES: u64 = 2_000;
const POSTS: u64 = 300;

async fn pause(random: &mut fastrand::Rng) {
    for _ in 0..random.u8(..16) {
        yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_stdio_calls_get_no_answer_leak_nothing() {
    let (service, _, mut waits) = service();
    let mut client = Client::start(service.clone(), abrupt());
    client.initialize(json!({})).await;
    let mut random = fastrand::Rng::with_seed(SEED);
    for id in 1..=LINES {
        // Cancels before the request begins and of another id, once or twice.
        for other in [id, id + LINES] {
            if random.u8(..4) == 0 {
                client.send(cancel(other)).await;
            }
        }
        client.send(call(id, "wait")).await;
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
    let (web, mut waits) = serve(abrupt()).await;
    let session = web.open().await;
    let mut random = fastrand::Rng::with_seed(SEED);
    for id in 1..=POSTS {
        // In a session: the notification, once or twice, or for a request that has not begun.
        let (running, head) = web.begin_post(&session, &call(id, "wait")).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        pause(&mut random).await;
        for cancelled in [id + POSTS, id, id].into_iter().take(random.usize(2..4)) {
            let told = web.post(0, &session, &cancel(cancelled)).await;
            assert_eq!(told.status, 202, "{told:?}");
        }
        drop(running);
        // Without a session: the client closes its connection.
        let (headers, message) = modern(id, "tools/call", Some("wait"));
        let stream = web.posting(&headers, &message).await;
        pause(&mut random).await;
        drop(stream);
    }
    is_over(&web.service, &mut waits).await;
    assert_eq!(web.post(0, &session, &ping(1)).await.status, 200);
}
