//! Thousands of cancels, of slow clients and of calls beyond a quota leave no state and do not
//! affect other tenants.
//!
//! Source: docs/threat-model.md, rows 74, 78 and 79.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use toolcell::{Engine, Executor, Limits, ToolCall};
use toolcell_server::service::RequestId;
use toolcell_server::{CallRequest, HttpOptions, ListenOptions, Principal, Service, ServiceLimits};
use toolcell_test_guests::{Hostile, Misdeed, Place};

use super::fixture::Fixture;
use crate::setup::{PATIENCE, loaded, registry, two_tenants, wait};

/// The seed of the random generator.
const SEED: u64 = 15;
const CANCELS: u64 = 10_000;
/// One in this many cancelled calls runs a component in a cell; the others run a native tool.
const IN_A_CELL: u64 = 20;
const AT_ONCE: usize = 64;
const SLOW: usize = 2_000;
const CONNECTIONS: usize = 400;
/// Far less than the server waits by default.
const SOON: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_cancelled_calls_leak_nothing() {
    let engine = Engine::builder().cells(8).build().unwrap();
    let spin = Hostile::new(Place::Execute, Misdeed::Spin).component();
    let (wait, _) = wait();
    let registry = registry(loaded(&engine, spin).await.into_iter().chain([wait]));
    let unlimited =
        Limits { fuel: u64::MAX, timeout: Duration::from_secs(3600), ..Limits::default() };
    let served = two_tenants(&registry).with_executor(Executor::new().with_limits(unlimited));
    let limits = ServiceLimits { in_flight: 4 * AT_ONCE, ..ServiceLimits::default() };
    let service = Service::builder(served).limits(limits).build().unwrap();
    let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(SEED)));
    let one = |number: u64| {
        let (service, random) = (service.clone(), Arc::clone(&random));
        async move {
            let roll = |sides: u8| random.lock().u8(..sides);
            let [owner, other] =
                ["acme", "globex"].map(|tenant| Principal::new(Some(tenant), "a key"));
            let id: RequestId = format!("call-{number}").parse().expect("an id");
            // Before it begins, and as another principal: there is nothing to cancel.
            assert!(service.cancel(&owner, &id).is_err());
            let name = if number.is_multiple_of(IN_A_CELL) { "hostile" } else { "wait" };
            let mut call = CallRequest::new(ToolCall::new("a", name, "{}"));
            call.request_id = Some(id.clone());
            call.options.stop_grace = Duration::ZERO;
            let (calling, caller) = (service.clone(), owner.clone());
            let running = tokio::spawn(async move {
                calling.call(&caller, call).await.map(|answer| answer.completion.result)
            });
            let pause = roll(8);
            for _ in 0..pause {
                yield_now().await;
            }
            assert!(service.cancel(&other, &id).is_err(), "of another principal");
            if roll(4) == 0 {
                // The client disconnects.
                running.abort();
                let _ = running.await;
            } else {
                while service.cancel(&owner, &id).is_err() {
                    yield_now().await;
                }
                // A second cancel has no effect, whether the call has ended or not.
                let _ = service.cancel(&owner, &id);
                let result = running.await.expect("no panic").expect("it was made");
                let told = serde_json::to_value(&result).expect("JSON");
                assert_eq!(told["tool_error"]["cause"]["status"], "cancelled", "{told}");
            }
            assert!(service.cancel(&owner, &id).is_err(), "it has ended");
        }
    };
    stream::iter((0..CANCELS).map(one)).buffer_unordered(AT_ONCE).for_each(async |()| {}).await;
    let over = async {
        while (service.running(), engine.in_use().cells, engine.in_use().calls_waiting) != (0, 0, 0)
        {
            yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("each request, cell and place is free");
    for tenant in ["acme", "globex"] {
        let usage = service.usage(&Principal::new(Some(tenant), "a key")).expect("it is served");
        assert_eq!(usage.running, 0);
    }
}

/// Clients that stop in a head, stop in a body, or read no answer.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_slow_clients_fail_no_other_request() {
    // Both ends of all connections are in this process.
    let most = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: most.maximum, maximum: most.maximum })
        .expect("it may be raised");
    let options = ListenOptions {
        connections: CONNECTIONS,
        head_time: SOON,
        write_time: SOON,
        ..ListenOptions::default()
    };
    let http = HttpOptions { body_idle: SOON, ..HttpOptions::default() };
    let fixture = Fixture::with_http(options, http).await;
    let key = fixture.headers();
    let head = "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nx-slow: ".to_owned();
    let body = format!(
        "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\n{key}Content-Length: 100\r\n\r\n{{\"name\":"
    );
    let unread = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200);
    let mut slow = Vec::new();
    for (number, text) in [&head, &body, &unread].into_iter().cycle().take(SLOW).enumerate() {
        let stream = TcpStream::connect(fixture.address).await.expect("it accepts connections");
        // The server may have closed it already.
        let _ = stream.try_write(text.as_bytes());
        if number % 10 == 0 {
            let reply = fixture.call(&fixture.globex, "", r#"{"name": "echo"}"#).await;
            assert_eq!(reply.status, 200, "after {number} slow clients: {reply:?}");
        }
        slow.push(stream);
    }
    // Connections with an incomplete request are closed: by the time limit, or to free their slot.
    // The others, with an unread answer, are not read here.
    for stream in
        slow.iter_mut().enumerate().filter(|(number, _)| number % 3 != 2).map(|(_, stream)| stream)
    {
        let closed = tokio::time::timeout(PATIENCE * 4, stream.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "it stays open");
    }
    assert_eq!(fixture.call(&fixture.acme, "", r#"{"name": "echo"}"#).await.status, 200);
}

/// A tenant that calls at ten times its quota: as many of its calls are refused as exceed the
/// quota.
#[tokio::test(flavor = "multi_thread")]
async fn only_calls_over_quota_are_refused_others_served() {
    const CALLS: u32 = 1_000;
    let fixture = Fixture::start().await;
    let echo = json!({"name": "echo"}).to_string();
    let mut refused = 0;
    for number in 0..CALLS {
        // The tenant has two calls a minute, and makes twenty.
        fixture.clock.advance(Duration::from_secs(3));
        let reply = fixture.call(&fixture.small, "", &echo).await;
        assert!([200, 429].contains(&reply.status), "{reply:?}");
        if reply.status == 429 {
            refused += 1;
            let after = reply.header("retry-after").expect("a time").parse::<u64>();
            assert!(after.is_ok_and(|after| after <= 30), "{reply:?}");
        }
        if number % 10 == 0 {
            let other = fixture.call(&fixture.globex, "", &echo).await;
            assert_eq!(other.status, 200, "another tenant: {other:?}");
        }
    }
    let share = f64::from(refused) / f64::from(CALLS);
    assert!((0.88..=0.92).contains(&share), "{share}");
    let told = fixture.ask(&fixture.small, "GET /v1/usage", "", "").await.json();
    assert_eq!(told["calls"], CALLS - refused, "{told}");
}
