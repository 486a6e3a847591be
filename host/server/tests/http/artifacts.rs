//! Artifacts over HTTP: uploads, references in arguments, links in results, tenants, quota, lifetime.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcell::{
    CallResult, Definition, Handler, HandlerFuture, Invocation, ManualClock, Media, Outcome, Output, Part, Registry,
    Tool,
};
use toolcell_server::{
    ApiKeyStore, ArtifactOptions, Artifacts, Authenticator, HttpServer, ListenOptions, Served, ServedTenant, Service,
};

use crate::client::{Reply, request, send};

const LIFETIME: Duration = Duration::from_secs(60);

struct Place {
    address: std::net::SocketAddr,
    acme: String,
    globex: String,
    clock: ManualClock,
    _dir: TempDir,
}

/// Answers with its arguments, as a component's handler would get them.
struct Mirror;

impl Handler for Mirror {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        let arguments = invocation.arguments().clone();
        Box::pin(async { CallResult::Outcome(Outcome::ok(arguments)) })
    }

    fn digest(&self) -> Option<&str> {
        Some("mirror")
    }
}

fn options() -> ArtifactOptions {
    ArtifactOptions::default().with_above(8).with_artifact(64).with_quota(100).with_count(3).with_lifetime(LIFETIME)
}

async fn place() -> Place {
    let file = json!({"type": "object", "properties": {"data": {"type": "string", "format": "toolcell-file"}}});
    let mirror = Definition::new("mirror", "Repeats.").expect("a fixture").with_parameters(file);
    let draw = Definition::new("draw", "Draws.").expect("a fixture");
    let drawn = |bytes| Part::Image(Media { mime_type: "image/png".into(), data: bytes });
    let registry = Registry::new();
    registry.register(Tool::with_handler(mirror, Mirror).expect("a fixture")).expect("a fixture");
    let draw = Tool::native(draw, async move |_: Value| {
        Output::from_message("drawn").with_part(drawn(vec![1; 8])).with_part(drawn(vec![2; 9]))
    });
    registry.register(draw.expect("a fixture")).expect("a fixture");
    let (dir, clock) = (tempfile::tempdir().expect("a fixture"), ManualClock::new());
    let artifacts = Artifacts::open_with(&dir.path().join("artifacts"), options(), clock.clone()).expect("a fixture");
    let served = Served::new(&registry)
        .with_tenant("acme", ServedTenant::default())
        .with_tenant("globex", ServedTenant::default());
    let service = Service::builder(served).with_artifacts(artifacts).build().expect("a fixture");
    let keys = ApiKeyStore::open(dir.path().join("keys.json")).expect("a fixture");
    let [acme, globex] = ["acme", "globex"].map(|name| keys.add(name).expect("a fixture").key.expose().to_owned());
    let server = HttpServer::bind(service, Authenticator::api_keys(keys), ListenOptions::default()).await;
    let server = server.expect("a fixture");
    let address = server.address();
    tokio::spawn(server.serve(std::future::pending()));
    Place { address, acme, globex, clock, _dir: dir }
}

impl Place {
    async fn ask(&self, key: &str, line: &str, headers: &str, body: &str) -> Reply {
        let headers = format!("Authorization: Bearer {key}\r\n{headers}");
        send(self.address, request(line, &headers, body).as_bytes()).await.expect("a response")
    }

    async fn upload(&self, key: &str, query: &str, body: &str) -> Reply {
        self.ask(key, &format!("POST /v1/artifacts{query}"), "Content-Type: text/csv\r\n", body).await
    }

    async fn call(&self, key: &str, body: Value) -> Value {
        let reply = self.ask(key, "POST /v1/calls", "Content-Type: application/json\r\n", &body.to_string()).await;
        reply.json()["outcome"].clone()
    }
}

#[tokio::test]
async fn an_upload_is_read_whole_and_in_ranges_and_deleted() {
    let place = place().await;
    let stored = place.upload(&place.acme, "?name=input.csv", "1,2,3,4").await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let info = stored.json();
    assert_eq!(
        (&info["name"], &info["mime_type"], &info["size"]),
        (&json!("input.csv"), &json!("text/csv"), &json!(7))
    );
    // Its bytes would be kept as they are, under a type that they do not have.
    let packed = place.ask(&place.acme, "POST /v1/artifacts", "Content-Encoding: br\r\n", "1").await;
    assert_eq!((packed.status, packed.code().as_str()), (415, "unsupported_encoding"));
    let line = format!("GET /v1/artifacts/{}", info["id"].as_str().unwrap());
    let whole = place.ask(&place.acme, &line, "", "").await;
    assert_eq!((whole.status, whole.body.as_str()), (200, "1,2,3,4"));
    assert_eq!(whole.header("content-disposition"), Some("attachment; filename=\"input.csv\""));
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
    let part = place.ask(&place.acme, &line, "Range: bytes=2-4\r\n", "").await;
    assert_eq!((part.status, part.body.as_str(), part.header("content-range")), (206, "2,3", Some("bytes 2-4/7")));
    let beyond = place.ask(&place.acme, &line, "Range: bytes=7-\r\n", "").await;
    assert_eq!(
        (beyond.status, beyond.code().as_str(), beyond.header("content-range")),
        (416, "bad_range", Some("bytes */7"))
    );
    let tag = format!("If-None-Match: {}\r\n", whole.header("etag").unwrap());
    assert_eq!(place.ask(&place.acme, &line, &tag, "").await.status, 304);
    let listed = place.ask(&place.acme, "GET /v1/artifacts", "", "").await.json();
    assert_eq!(listed["artifacts"].as_array().map(Vec::len), Some(1));
    let delete = line.replace("GET", "DELETE");
    assert_eq!(place.ask(&place.acme, &delete, "", "").await.status, 204);
    assert_eq!(place.ask(&place.acme, &line, "", "").await.code(), "no_such_artifact");
}

#[tokio::test]
async fn an_artifact_is_its_own_tenants() {
    let place = place().await;
    let info = place.upload(&place.acme, "", "secret").await.json();
    let id = info["id"].as_str().unwrap();
    let without_request_id = |mut reply: Reply| {
        let mut body = reply.json();
        body["request_id"] = Value::Null;
        reply.body = body.to_string();
        (reply.status, reply.body)
    };
    let foreign = place.ask(&place.globex, &format!("GET /v1/artifacts/{id}"), "", "").await;
    let unknown = place.ask(&place.globex, &format!("GET /v1/artifacts/{}", "0".repeat(64)), "", "").await;
    assert_eq!(foreign.status, 404);
    assert_eq!(without_request_id(foreign), without_request_id(unknown));
    let call = json!({"name": "mirror", "arguments": {"data": info["uri"]}});
    let refused = place.call(&place.globex, call).await;
    assert_eq!(refused["refusal"]["kind"], "invalid_arguments", "{refused}");
}

#[tokio::test]
async fn a_reference_becomes_a_file_and_long_content_a_link() {
    let place = place().await;
    let info = place.upload(&place.acme, "?name=input.csv", "1,2").await.json();
    let given = place.call(&place.acme, json!({"name": "mirror", "arguments": {"data": info["uri"]}})).await;
    assert_eq!(given["ok"]["value"], json!({"data": "/input/input.csv"}), "{given}");
    for wrong in ["toolcell://artifacts/../x", "/etc/passwd", ""] {
        let refused = place.call(&place.acme, json!({"name": "mirror", "arguments": {"data": wrong}})).await;
        assert_eq!(refused["refusal"]["faults"][0]["path"], "/data", "{refused}");
    }
    let drawn = place.call(&place.acme, json!({"name": "draw"})).await.to_string();
    assert!(drawn.contains("toolcell://artifacts/") && drawn.contains("\"size\":9"), "{drawn}");
    let listed = place.ask(&place.acme, "GET /v1/artifacts", "", "").await.json();
    assert_eq!(listed["artifacts"].as_array().map(Vec::len), Some(2), "{listed}");
}

#[tokio::test]
async fn a_tenant_has_a_quota_and_what_expires_gives_room() {
    let place = place().await;
    let long = "x".repeat(64);
    assert_eq!(place.upload(&place.acme, "", &long).await.status, 201);
    let over = place.upload(&place.acme, "", &"y".repeat(64)).await;
    assert_eq!((over.status, over.code().as_str()), (507, "artifact_quota"));
    // The same content again takes no more room, and another tenant has its own.
    assert_eq!(place.upload(&place.acme, "", &long).await.status, 201);
    assert_eq!(place.upload(&place.globex, "", &"y".repeat(64)).await.status, 201);
    let too_large = place.upload(&place.acme, "", &"z".repeat(65)).await;
    assert_eq!((too_large.status, too_large.code().as_str()), (413, "body_too_large"));
    for (query, code) in [("?name=../x", "bad_name"), ("?name=.x", "bad_name"), ("?size=1", "bad_query")] {
        let refused = place.upload(&place.acme, query, "x").await;
        assert_eq!((refused.status, refused.code().as_str()), (400, code));
    }
    place.clock.advance(LIFETIME);
    assert_eq!(place.upload(&place.acme, "", &"y".repeat(64)).await.status, 201);
}

#[test]
fn what_a_killed_process_left_is_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let store = Artifacts::open(dir.path(), options()).unwrap();
    let kept = store.put(Some("acme"), b"kept", Some("a.txt"), "text/plain").unwrap();
    let taken = Artifacts::open(dir.path(), options()).unwrap_err().to_string();
    assert!(taken.ends_with("another process uses this directory"), "{taken}");
    drop(store);
    let tenants = std::fs::read_dir(dir.path()).unwrap().flatten().filter(|entry| entry.path().is_dir());
    let tenant = tenants.map(|entry| entry.path()).next().unwrap();
    std::fs::write(tenant.join(".new-0"), [0; 90]).unwrap();
    std::fs::write(tenant.join("f".repeat(64)), [0xff; 90]).unwrap();
    let store = Artifacts::open(dir.path(), options()).unwrap();
    assert!(!tenant.join(".new-0").exists());
    let ids: Vec<_> = store.list(Some("acme")).into_iter().map(|info| (info.id, info.name)).collect();
    assert_eq!(ids, [(kept.id.clone(), Some("a.txt".to_owned()))]);
    assert_eq!(store.read(Some("acme"), &kept.id).unwrap(), b"kept");
}
