//! The data that an operator sees of a server and that others do not.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::json;
use toolcell::Tenant;
use toolcell::tenant::Quota;
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::listener::{MetricsError, MetricsServer};
use toolcell_server::{
    Authenticator, HttpOptions, ListenOptions, ServedTools, Service, ServiceLimits,
};

use super::client::{JSON, get, request, send};
use super::fixture::{BODY, Fixture, served, tools};
use crate::setup::{keys, serving, start};

const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Serves the metrics of a service.
async fn metrics(service: &Service) -> SocketAddr {
    let server = MetricsServer::bind(service.clone(), LOCAL).await.unwrap();
    let address = server.address();
    tokio::spawn(server.serve());
    address
}

#[track_caller]
fn has_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|told| told == *line), "{line}: {text}");
    }
}

/// Returns true if a line is a comment, or a name with labels and a number.
fn is_metric(line: &str) -> bool {
    let is_sample = || {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_name && labels.ends_with('}') && value.parse::<f64>().is_ok()).then_some(())
    };
    ["# HELP ", "# TYPE ", "# UNIT "].iter().any(|begin| line.starts_with(begin))
        || is_sample().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_by_tool_tenant_and_ending() {
    let fixture = Fixture::start().await;
    let address = metrics(&fixture.service).await;
    let canary = r#"{"name": "echo", "arguments": {"n": 471147114711, "canary": "canary-1"}}"#;
    for _ in 0..3 {
        assert_ne!(fixture.call(&fixture.small, "", canary).await.status, 500);
    }
    let invented = r#"{"calls": [{"id": "a", "name": "canary-2", "arguments": {}}], "unknown_tools": "answer"}"#;
    let told = fixture.post("/v1/batch", "", invented).await;
    assert_eq!(told.status, 200, "{told:?}");
    let reply = get(address, "/metrics").await;
    assert_eq!(reply.status, 200);
    let text = reply.body;
    let lines = [
        r#"toolcell_calls_total{tenant="small",tool="echo",outcome="ok"} 2"#,
        r#"toolcell_call_duration_seconds_count{tenant="small",tool="echo"} 2"#,
        r#"toolcell_refused_requests_total{tenant="small",code="quota_exceeded"} 1"#,
        "toolcell_call_queue_seconds_count 3",
        "toolcell_requests_running 0",
        "toolcell_mcp_sessions_open 0",
    ];
    has_lines(&text, &lines);
    let (lines, end) = text.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(end, "# EOF");
    assert!(lines.lines().all(is_metric), "{text}");
    for secret in ["canary", "471147114711", &fixture.small] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_ending_and_early_refusals_are_counted() {
    let body_idle = Duration::from_millis(100);
    let http = HttpOptions { body: BODY, requests: 2, body_idle, ..HttpOptions::default() };
    let mut fixture = Fixture::with_http(ListenOptions::default(), http).await;
    let address = metrics(&fixture.service).await;
    let running = fixture.waiting("mine").await;
    // With a limit of two requests each tenant leaves as many free as it holds, so one is its
    // share.
    assert_eq!(fixture.call(&fixture.acme, "", r#"{"name": "echo"}"#).await.code(), "overloaded");
    assert_eq!(fixture.cancel(&fixture.acme, "mine").await.status, 202);
    assert_eq!(running.await.expect("no panic").expect("an answer").status, 200);
    assert_eq!(
        fixture.call(&fixture.acme, "", &" ".repeat(BODY + 1)).await.code(),
        "body_too_large"
    );
    let packed = fixture.call(&fixture.acme, "Content-Encoding: gzip\r\n", "{}").await;
    assert_eq!(packed.code(), "unsupported_encoding");
    let text = get(address, "/metrics").await.body;
    let lines = [
        r#"toolcell_calls_total{tenant="acme",tool="wait",outcome="cancelled"} 1"#,
        r#"toolcell_refused_requests_total{tenant="acme",code="overloaded"} 1"#,
        r#"toolcell_refused_requests_total{tenant="acme",code="body_too_large"} 1"#,
        r#"toolcell_refused_requests_total{tenant="acme",code="unsupported_encoding"} 1"#,
    ];
    has_lines(&text, &lines);
    assert_eq!(fixture.usage().await["outcomes"], json!({"cancelled": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_local_only_and_closed_to_tenants() {
    let fixture = Fixture::start().await;
    let address = metrics(&fixture.service).await;
    for path in ["/metrics", "/health"] {
        let sent =
            format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
        assert_eq!(send(address, sent.as_bytes()).await.unwrap().status, 403, "{path}");
    }
    assert_eq!(fixture.get("/metrics").await.status, 404);
    let public: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let bound = MetricsServer::bind(fixture.service.clone(), public).await;
    assert!(matches!(bound, Err(MetricsError::Public(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_operator_sees_names_in_readiness_reasons() {
    let (registry, mut waits) = tools();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("artifacts");
    let artifacts = Artifacts::open(&root, ArtifactOptions::default()).unwrap();
    let limits = ServiceLimits { in_flight: 1, ..ServiceLimits::default() };
    let service = Service::builder(ServedTools::new(&registry));
    let service = service.limits(limits).artifacts(artifacts);
    let service = service.state_directory(dir.path().join("gone")).build().unwrap();
    let operator = metrics(&service).await;
    let address = start(service.clone(), Authenticator::open(), ListenOptions::default()).await;
    // A store whose directory is gone. It is checked at the first request for readiness.
    std::fs::remove_dir_all(&root).unwrap();
    let told = get(address, "/ready").await;
    assert_eq!(told.status, 503);
    for lost in ["artifacts", "state_directory"] {
        assert!(told.json()["problems"][lost].is_string(), "{lost}: {told:?}");
    }

    let gone = vec!["[components.globex_crm]: gone".into()];
    service.report_degraded("components", "1 component has a problem", gone);
    service.report_with("configuration", "toolcell.toml:3:1 cannot be used", vec!["globex".into()]);
    let (public, operators) = (get(address, "/ready").await, get(operator, "/health").await);
    for told in [&public, &operators] {
        assert_eq!(told.status, 503);
        assert_eq!(told.json()["degraded"]["components"], "1 component has a problem");
        assert_eq!(told.json()["problems"]["configuration"], "toolcell.toml:3:1 cannot be used");
        assert!(told.json()["since"]["configuration"].is_u64(), "{told:?}");
    }
    assert!(!public.body.contains("globex"), "{public:?}");
    assert_eq!(operators.json()["details"]["components"], json!(["[components.globex_crm]: gone"]));
    service.report("configuration", None);
    service.report_degraded("components", "", Vec::new());
    let after = get(address, "/ready").await.json();
    assert_eq!(after.get("degraded"), None, "{after}");
    assert_eq!(after["problems"].get("configuration"), None, "{after}");

    let call = request("POST /v1/calls", JSON, r#"{"name": "wait"}"#);
    let running = tokio::spawn(async move { send(address, call.as_bytes()).await });
    assert_eq!(waits.recv().await, Some("started"));
    let full = get(address, "/ready").await.json();
    assert!(full["problems"]["queue"].is_string(), "{full}");
    running.abort();
    assert_eq!(waits.recv().await, Some("stopped"));
    service.drain(Duration::ZERO).await;
    assert!(get(address, "/ready").await.json()["problems"]["server"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_keys_are_reported_as_degraded() {
    let (keys, _, dir) = keys(["acme"]);
    let path = dir.path().join("keys.json");
    let service = Service::builder(served(&tools().0)).build().unwrap();
    let auth = Authenticator::api_keys(keys);
    let address = start(service, auth, ListenOptions::default()).await;
    assert_eq!(get(address, "/ready").await.status, 200);
    std::fs::write(&path, "{").unwrap();
    // The keys that were read before stay valid, and the server stays ready. It reports the fault
    // as long as it lasts.
    for _ in 0..2 {
        let told = get(address, "/ready").await;
        assert_eq!(told.status, 200, "{told:?}");
        assert!(told.json()["degraded"]["api_keys"].is_string(), "{told:?}");
    }
}

/// A file that cannot be read may contain keys. It makes no difference which request read it first.
#[tokio::test(flavor = "multi_thread")]
async fn open_server_requires_keys_if_file_is_unreadable() {
    let (keys, [], dir) = keys([]);
    let path = dir.path().join("keys.json");
    let auth = Authenticator::open_until_keys(keys.clone());
    let address = start(serving(&tools().0), auth, ListenOptions::default()).await;
    assert_eq!(get(address, "/v1/tools").await.status, 200);
    std::fs::write(&path, "{").unwrap();
    assert!(keys.list().is_err() && keys.list().is_ok(), "it is judged once");
    assert_eq!(get(address, "/v1/tools").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_quota_is_per_tenant_and_replaceable() {
    let (registry, _waits) = tools();
    let artifacts =
        Artifacts::temporary(ArtifactOptions { quota: 100, ..ArtifactOptions::default() }).unwrap();
    let with = |bytes| {
        let quota = Quota { artifact_bytes: Some(bytes), ..Quota::default() };
        ServedTools::new(&registry)
            .with_tenant("acme", Tenant { quota, ..Tenant::default() })
            .with_tenant("globex", Tenant::default())
    };
    let service = Service::builder(with(10)).artifacts(artifacts.clone()).build().unwrap();
    let fits = |tenant, bytes: usize| {
        artifacts.put(Some(tenant), &vec![b'x'; bytes], None, "text/plain").is_ok()
    };
    assert!(fits("acme", 10) && !fits("acme", 11) && fits("globex", 100) && !fits("globex", 101));
    service.replace(with(50));
    assert!(fits("acme", 40) && !fits("acme", 41));
}
