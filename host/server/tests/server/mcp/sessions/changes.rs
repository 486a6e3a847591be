//! Notifications of a changed list of tools, on a tenant's open streams over HTTP.

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use toolcell::Tenant;
use toolcell_server::ServedTools;
use toolcell_server::mcp::McpOptions;

use super::streams::{listen, until};
use crate::mcp::client::ping;
use crate::mcp::fixture::service;
use crate::mcp::web::{request, start};
use crate::setup::PATIENCE;

const CHANGED: &str = "notifications/tools/list_changed";

async fn is_told(stream: &mut TcpStream) {
    until(stream, |told| told.contains(CHANGED).then_some(())).await;
}

/// Both kinds of streams of one tenant, beside one of another tenant: each is notified of its own
/// change, once.
#[tokio::test]
async fn list_change_is_sent_to_its_tenants_streams_only() {
    let (service, registry, _) = service();
    let web = start(service.clone(), &registry, McpOptions::default()).await;
    let session = web.open().await;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(web.post(0, &session, &initialized).await.status, 202);
    assert_eq!(web.post(0, &session, &ping(1)).await.status, 200, "the session is open");
    let (headers, body) = listen();
    let acknowledged =
        |told: &str| told.contains("notifications/subscriptions/acknowledged").then_some(());
    let (mut get, _) = web.begin(&web.request(0, "GET", &session, "")).await;
    let (mut listening, _) = web.begin(&web.request(0, "POST", &headers, &body)).await;
    let (mut other, _) = web.begin(&request(&web.globex, "POST", &headers, &body)).await;
    for stream in [&mut listening, &mut other] {
        until(stream, acknowledged).await;
    }
    let tools = |names: &[&'static str]| Tenant {
        tools: Some(names.iter().map(|name| name.parse().unwrap()).collect()),
        ..Tenant::default()
    };
    let all = Tenant::default;
    let serve = |acme: Tenant, globex: Tenant| {
        service.replace(
            ServedTools::new(&registry).with_tenant("acme", acme).with_tenant("globex", globex),
        );
    };
    // A change of the other tenant's tools only, then one of this tenant's.
    serve(all(), tools(&["echo"]));
    is_told(&mut other).await;
    serve(tools(&["echo", "text"]), tools(&["echo"]));
    for stream in [&mut get, &mut listening] {
        is_told(stream).await;
    }
    // Further notifications would be in the rest of the streams.
    assert!(web.store.revoke(&web.ids[0]).unwrap());
    for mut stream in [get, listening] {
        let mut rest = String::new();
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut rest)).await;
        ended.expect("the stream ends").unwrap();
        assert!(!rest.contains(CHANGED), "it is told once: {rest}");
    }
}
