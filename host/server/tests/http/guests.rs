//! Components behind the server: a guest that loops is stopped, and what it used is charged.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use toolcell::{Component, Engine, Executor, Limits, ManualClock, Registry};
use toolcell_server::{Authenticator, HttpServer, ListenOptions, Quota, Served, ServedTenant, Service};
use toolcell_test_guests::{Hostile, Misdeed, Place};

use crate::client::{Reply, request, send};

/// Instructions a minute of the only tenant.
const FUEL: u64 = 1_000;
const LOOP: &str = r#"{"name": "hostile"}"#;
const JSON: &str = "Content-Type: application/json\r\n";

/// A server of a guest that loops until it is stopped.
async fn looping(quota: Quota) -> (std::net::SocketAddr, Service, ManualClock) {
    let engine = Engine::builder().cells(4).build().expect("a fixture");
    let component =
        Component::load(&engine, Hostile::new(Place::Execute, Misdeed::Spin).component()).await.expect("a fixture");
    let registry = Registry::new();
    registry.register_all(component.tools().iter().cloned()).expect("a fixture");
    let unlimited = Limits::default().with_fuel(u64::MAX).with_timeout(Duration::from_secs(3600));
    let clock = ManualClock::new();
    let served = Served::new(&registry)
        .with_executor(Executor::new().with_limits(unlimited))
        .with_untenanted(ServedTenant::default().with_quota(quota));
    let service = Service::builder(served).with_clock(clock.clone()).build().expect("a fixture");
    let server =
        HttpServer::bind(service.clone(), Authenticator::open(), ListenOptions::default()).await.expect("a fixture");
    let address = server.address();
    tokio::spawn(server.serve(std::future::pending()));
    (address, service, clock)
}

/// Ends when so many requests run.
async fn until(service: &Service, running: usize) {
    while service.running() != running {
        tokio::task::yield_now().await;
    }
}

async fn usage(address: std::net::SocketAddr) -> Reply {
    send(address, request("GET /v1/usage", "", "").as_bytes()).await.expect("a fixture")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_is_stopped_by_a_cancel_and_by_a_disconnect() {
    let (address, service, _) = looping(Quota::default()).await;
    let bytes = request("POST /v1/calls", &format!("{JSON}x-request-id: loop\r\n"), LOOP);
    let running = tokio::spawn(async move { send(address, bytes.as_bytes()).await });
    until(&service, 1).await;
    let cancel = request("DELETE /v1/calls/loop", "", "");
    assert_eq!(send(address, cancel.as_bytes()).await.unwrap().status, 202);
    let answer = running.await.unwrap().unwrap().json();
    assert_eq!(answer["outcome"]["tool_error"]["cause"]["status"], "cancelled", "{answer}");

    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request("POST /v1/calls", JSON, LOOP).as_bytes()).await.unwrap();
    until(&service, 1).await;
    drop(stream);
    until(&service, 0).await;
    let usage = usage(address).await.json();
    assert_eq!((&usage["endings"], &usage["running"]), (&json!({"cancelled": 2}), &json!(0)), "{usage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fuel_is_charged_and_a_tenant_in_debt_waits() {
    let (address, _, clock) = looping(Quota::default().with_fuel_per_minute(FUEL)).await;
    let body = r#"{"name": "hostile", "limits": {"fuel": 100000}}"#;
    let ended = send(address, request("POST /v1/calls", JSON, body).as_bytes()).await.unwrap().json();
    assert_eq!(ended["outcome"]["tool_error"]["cause"]["kind"], "fuel", "{ended}");
    let charged = usage(address).await.json();
    let debt = charged["fuel"].as_u64().unwrap() - FUEL;
    assert_eq!((&charged["fuel"], &charged["fuel_left"]), (&ended["usage"]["fuel"], &json!(0)));
    let refused = send(address, request("POST /v1/calls", JSON, LOOP).as_bytes()).await.unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (429, "quota"), "{refused:?}");
    clock.advance(Duration::from_millis(((debt + 1) * 60_000).div_ceil(FUEL)));
    assert_eq!(usage(address).await.json()["fuel_left"], 1);
}
