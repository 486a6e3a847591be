//! Calls over HTTP that are cancelled at any moment, or whose clients disconnect, leave no state.
//!
//! Source: docs/threat-model.md, row 74. `scale` does the same at the service itself.

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::task::yield_now;

use super::client::{connect, request};
use super::fixture::{Fixture, IN_FLIGHT};
use crate::setup::is_over;

/// The seed of the random generator.
const SEED: u64 = 74;
const CANCELS: usize = 1_000;
const WAIT: &str = r#"{"name": "wait"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn calls_cancelled_at_any_moment_leak_nothing() {
    let mut fixture = Fixture::start().await;
    let random = Mutex::new(fastrand::Rng::with_seed(SEED));
    let cancel = async |key: &str, id: &str| fixture.cancel(key, id).await.status;
    let one = async |number: usize| {
        let roll = |sides: u8| random.lock().u8(..sides);
        let (id, key) = (format!("call-{number}"), &*fixture.acme);
        // There is nothing to cancel before it begins.
        assert_eq!(cancel(key, &id).await, 404);
        let (leaves, pause, again) = (roll(4) == 0, roll(16), roll(2) == 0);
        let named = format!("x-request-id: {id}\r\n");
        if leaves {
            let begun = request("POST /v1/calls", &format!("{}{named}", fixture.headers()), WAIT);
            let stream = connect(fixture.address, begun.as_bytes()).await;
            for _ in 0..pause {
                yield_now().await;
            }
            drop(stream);
            return;
        }
        let running = fixture.begin(key, &named, WAIT);
        for _ in 0..pause {
            yield_now().await;
        }
        assert_eq!(cancel(&fixture.acme_too, &id).await, 404, "another key");
        while cancel(key, &id).await != 202 {
            assert!(!running.is_finished(), "{:?}", running.await);
        }
        if again {
            assert!([202, 404].contains(&cancel(key, &id).await), "a second time");
        }
        let answer = running.await.expect("no panic").expect("an answer").json();
        assert_eq!(answer["outcome"]["tool_error"]["cause"]["status"], "cancelled", "{answer}");
        assert_eq!(cancel(key, &id).await, 404, "it has ended");
    };
    // One less than a tenant's limit: a call whose client has disconnected may still be running.
    let calls = stream::iter(0..CANCELS).map(|number| one(number)).buffer_unordered(IN_FLIGHT - 1);
    calls.for_each(async |()| {}).await;
    let service = fixture.service.clone();
    is_over(&service, &mut fixture.waits).await;
    let usage = fixture.usage().await;
    assert_eq!(usage["running"], 0, "{usage}");
    for _ in 0..=IN_FLIGHT {
        let reply = fixture.call(&fixture.acme, "", r#"{"name": "echo"}"#).await;
        assert_eq!(reply.status, 200, "its places are free");
    }
}
