//! Artifacts over HTTP: uploads, references in arguments, links in results, tenants, quota,
//! lifetime.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcell::clock::ManualClock;
use toolcell::outcome::{Media, Output, Part, Resource, ResourceContent};
use toolcell::tool::{Handler, HandlerFuture, Invocation};
use toolcell::{CallResult, Outcome, Registry, Tool};
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::{Authenticator, ListenOptions, Service};
use toolcell_test_guests::rows;

use crate::http::client::{JSON, Reply, ask, bearer};
use crate::setup::{keys, named, native, registry, serving, start, table, two_tenants};

const PAGE: &str = include_str!("../../../../../../docs/artifacts.md");
const LIFETIME: Duration = Duration::from_secs(60);

struct Place {
    address: std::net::SocketAddr,
    acme: String,
    globex: String,
    clock: ManualClock,
    _dir: TempDir,
}

/// A handler that returns its arguments as a component's handler would get them.
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
    ArtifactOptions { threshold: 8, artifact: 64, quota: 100, count: 3, lifetime: LIFETIME }
}

/// The rows of the page's table: case, status, code.
fn documented() -> Vec<(&'static str, u16, &'static str)> {
    let rows = table(PAGE, "| request | status | code |").into_iter();
    rows.map(|cells| (cells[0], cells[1].parse().expect("a status"), cells[2].trim_matches('`')))
        .collect()
}

async fn place() -> Place {
    let file = json!({"type": "string", "format": "toolcell-file"});
    let file = json!({"type": "object", "properties": {"data": file, "more": file, "note": {"type": "string"}}});
    let mirror = Tool::with_handler(named("mirror").with_parameters(file), Mirror).unwrap();
    let drawn = |bytes| Part::Image(Media { mime_type: "image/png".into(), data: bytes });
    let draw = async move |_: Value| {
        let content = ResourceContent::Text { text: "x".repeat(10) };
        let resource = Resource { uri: "file:///x".into(), mime_type: None, content };
        let images = [8, 9, 65].map(|length| drawn(vec![3; length]));
        let parts = images.into_iter().chain([Part::Resource(resource)]);
        parts.fold(Output::from_message("drawn"), Output::with_part)
    };
    let (clock, (keys, [acme, globex], dir)) = (ManualClock::new(), keys(["acme", "globex"]));
    let artifacts =
        Artifacts::open_with(&dir.path().join("artifacts"), options(), clock.clone()).unwrap();
    let served = two_tenants(&registry([mirror, native("draw", draw)]));
    let service = Service::builder(served).artifacts(artifacts).build().unwrap();
    let address = start(service, Authenticator::api_keys(keys), ListenOptions::default()).await;
    Place { address, acme, globex, clock, _dir: dir }
}

impl Place {
    async fn ask(&self, key: &str, line: &str, headers: &str, body: &str) -> Reply {
        ask(self.address, line, &format!("{}{headers}", bearer(key)), body).await
    }

    async fn get(&self, path: &str, headers: &str) -> Reply {
        self.ask(&self.acme, &format!("GET {path}"), headers, "").await
    }

    async fn upload(&self, key: &str, query: &str, body: &str) -> Reply {
        self.ask(key, &format!("POST /v1/artifacts{query}"), "Content-Type: text/csv\r\n", body)
            .await
    }

    async fn call(&self, key: &str, body: Value) -> Value {
        self.ask(key, "POST /v1/calls", JSON, &body.to_string()).await.json()["outcome"].take()
    }

    /// Calls a tool that returns its arguments.
    async fn mirror(&self, key: &str, arguments: Value) -> Value {
        self.call(key, json!({"name": "mirror", "arguments": arguments})).await
    }
}

fn path(info: &Value) -> String {
    format!("/v1/artifacts/{}", info["id"].as_str().unwrap())
}

#[tokio::test]
async fn artifact_errors_match_the_documented_table() {
    let place = place().await;
    let info = place.upload(&place.acme, "", "1234567").await.json();
    let path = path(&info);
    let unknown_path = format!("/v1/artifacts/{}", "0".repeat(64));
    let range = "Range: bytes=7-\r\n";
    let unknown = "an artifact that is unknown, expired or another tenant's";
    let mut replies = vec![
        (unknown, place.get(&unknown_path, "").await),
        (unknown, place.get("/v1/artifacts/x", "").await),
        ("a range that begins after the end of an artifact", place.get(&path, range).await),
    ];
    for (method, headers) in [("GET", ""), ("GET", range), ("DELETE", "")] {
        let line = format!("{method} {path}");
        replies.push((unknown, place.ask(&place.globex, &line, headers, "").await));
    }
    let bad_name = place.upload(&place.acme, "?name=../x", "x").await;
    replies.push(("an upload whose name is not one of a file", bad_name));
    let kind = format!("Content-Type: {}\r\n", "x".repeat(129));
    let case =
        "an upload whose `Content-Type` has more than 128 characters, or others than visible ASCII";
    replies.push((case, place.ask(&place.acme, "POST /v1/artifacts", &kind, "x").await));
    let long = "z".repeat(65);
    let too_long = place.upload(&place.acme, "", &long).await;
    replies.push(("an upload that is longer than an artifact can be", too_long));
    let full = "an upload for which the tenant has no room";
    assert_eq!(place.upload(&place.acme, "", &long[1..]).await.status, 201, "71 bytes of 100");
    replies.push((full, place.upload(&place.acme, "", &"y".repeat(64)).await));
    for text in ["1", "2", "3"] {
        assert_eq!(place.upload(&place.globex, "", text).await.status, 201);
    }
    replies.push((full, place.upload(&place.globex, "", "4").await));
    place.clock.advance(LIFETIME);
    replies.push((unknown, place.get(&path, "").await));
    let service = serving(&Registry::new());
    let bare = start(service, Authenticator::open(), ListenOptions::default()).await;
    for line in ["GET /v1/artifacts", "POST /v1/artifacts", &format!("GET {path}")] {
        replies.push(("artifacts of a server that keeps none", ask(bare, line, "", "x").await));
    }
    let rows = documented();
    for (case, reply) in &replies {
        let (_, status, code) =
            rows.iter().find(|(row, ..)| row == case).unwrap_or_else(|| panic!("no row: {case}"));
        assert_eq!((reply.status, &*reply.code()), (*status, *code), "{case}: {reply:?}");
    }
    // A full disk is simulated inside the crate: `http::artifacts::tests` reads the row.
    let elsewhere = "an upload for which the disk of the server has no room";
    let is_tested = |row: &str| row == elsewhere || replies.iter().any(|(case, _)| *case == row);
    let untested = rows.iter().find(|(row, ..)| !is_tested(row));
    assert!(untested.is_none(), "{untested:?}");
}

#[tokio::test]
async fn cached_artifact_is_not_sent_again() {
    let place = place().await;
    let info = place.upload(&place.acme, "", "1234567").await.json();
    let [get, head] = ["GET", "HEAD"].map(|method| format!("{method} {}", path(&info)));
    let tag = place.ask(&place.acme, &get, "", "").await.header("etag").expect("a tag").to_owned();
    for (method, headers, status, body) in
        rows::<(&str, &str, u16, &str)>("server/http/artifacts", "cached")
    {
        let line = if method == "HEAD" { &head } else { &get };
        let headers = headers.replace("{tag}", &tag);
        let reply = place.ask(&place.acme, line, &headers, "").await;
        assert_eq!((reply.status, reply.body.as_str()), (status, body), "{line} {headers}");
        assert_eq!(reply.header("etag"), Some(&*tag), "{line} {headers}");
        if method == "HEAD" && status == 200 {
            assert_eq!(reply.header("content-length"), Some("7"), "{line} {headers}");
        }
    }
    // Another tenant learns nothing of it, even with its id and tag.
    let foreign = place.ask(&place.globex, &get, &format!("If-None-Match: {tag}\r\n"), "").await;
    assert_eq!(foreign.status, 404);
}

#[tokio::test]
async fn artifact_uri_is_valid_for_its_tenant_until_expiry() {
    let place = place().await;
    let info = place.upload(&place.acme, "?name=a.csv", "1,2").await.json();
    let call = async |key: &str| place.mirror(key, json!({"data": info["uri"]})).await;
    for _ in 0..2 {
        assert_eq!(call(&place.acme).await["ok"]["value"], json!({"data": "/input/a.csv"}));
    }
    assert_eq!(call(&place.globex).await["refusal"]["kind"], "invalid_arguments");
    place.clock.advance(LIFETIME);
    assert_eq!(call(&place.acme).await["refusal"]["kind"], "invalid_arguments");
}

#[tokio::test]
async fn upload_is_read_whole_and_in_ranges_then_deleted() {
    let place = place().await;
    let stored = place.upload(&place.acme, "?name=input.csv", "1,2,3,4").await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let info = stored.json();
    let told = json!([info["name"], info["mime_type"], info["size"]]);
    assert_eq!(told, json!(["input.csv", "text/csv", 7]));
    // The bytes would be stored as they are, under a type that they do not have.
    let packed =
        place.ask(&place.acme, "POST /v1/artifacts", "Content-Encoding: br\r\n", "1").await;
    packed.is_refused(415, "unsupported_encoding");
    let path = path(&info);
    let whole = place.get(&path, "").await;
    assert_eq!((whole.status, whole.body.as_str()), (200, "1,2,3,4"));
    assert_eq!(whole.header("content-disposition"), Some("attachment; filename=\"input.csv\""));
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
    let part = place.get(&path, "Range: bytes=2-4\r\n").await;
    assert_eq!((part.status, part.body.as_str()), (206, "2,3"));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/7"));
    let beyond = place.get(&path, "Range: bytes=7-\r\n").await;
    beyond.is_refused(416, "invalid_range");
    assert_eq!(beyond.header("content-range"), Some("bytes */7"));
    let tag = format!("If-None-Match: {}\r\n", whole.header("etag").unwrap());
    assert_eq!(place.get(&path, &tag).await.status, 304);
    let listed = place.get("/v1/artifacts", "").await.json();
    assert_eq!(listed["artifacts"].as_array().map(Vec::len), Some(1));
    let delete = format!("DELETE {path}");
    assert_eq!(place.ask(&place.acme, &delete, "", "").await.status, 204);
    assert_eq!(place.get(&path, "").await.code(), "unknown_artifact");
}

#[tokio::test]
async fn artifact_is_visible_to_its_tenant_only() {
    let place = place().await;
    let info = place.upload(&place.acme, "", "secret").await.json();
    let asked = async |path: &str| {
        let reply = place.ask(&place.globex, &format!("GET {path}"), "", "").await;
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
        let mut body = reply.json();
        body["request_id"].take();
        body
    };
    let unknown = format!("/v1/artifacts/{}", "0".repeat(64));
    assert_eq!(asked(&path(&info)).await, asked(&unknown).await);
    let refused = place.mirror(&place.globex, json!({"data": info["uri"]})).await;
    assert_eq!(refused["refusal"]["kind"], "invalid_arguments", "{refused}");
}

#[tokio::test]
async fn uri_becomes_input_file_long_content_becomes_link() {
    let place = place().await;
    let info = place.upload(&place.acme, "?name=input.csv", "1,2").await.json();
    let given = place.mirror(&place.acme, json!({"data": info["uri"]})).await;
    assert_eq!(given["ok"]["value"], json!({"data": "/input/input.csv"}), "{given}");
    for wrong in ["toolcell://artifacts/../x", "/etc/passwd", ""] {
        let refused = place.mirror(&place.acme, json!({"data": wrong})).await;
        assert_eq!(refused["refusal"]["faults"][0]["path"], "/data", "{refused}");
    }
    let drawn = place.call(&place.acme, json!({"name": "draw"})).await.to_string();
    for told in ["toolcell://artifacts/", "\"size\":9", "\"size\":10", "text/plain; charset=utf-8"]
    {
        assert!(drawn.contains(told), "{told}: {drawn}");
    }
    // A part that is longer than an artifact can be stays in the result.
    assert!(drawn.contains(&"AwMD".repeat(21)), "{drawn}");
    let listed = place.get("/v1/artifacts", "").await.json();
    assert_eq!(listed["artifacts"].as_array().map(Vec::len), Some(3), "{listed}");
    // Two artifacts of one name are two files, an artifact that is named twice is one.
    let one = place.upload(&place.globex, "?name=a.csv", "1").await.json();
    let other = place.upload(&place.globex, "?name=a.csv", "2").await.json();
    let other_path = format!("/input/1-{}", other["id"].as_str().unwrap());
    for (more, path) in [(&one, "/input/a.csv"), (&other, &*other_path)] {
        let arguments = json!({"data": one["uri"], "more": more["uri"], "note": "n"});
        let given = place.mirror(&place.globex, arguments).await;
        let expected = json!({"data": "/input/a.csv", "more": path, "note": "n"});
        assert_eq!(given["ok"]["value"], expected, "{given}");
    }
}

#[tokio::test]
async fn artifact_quota_is_per_tenant_and_freed_by_expiry() {
    let place = place().await;
    let long = "x".repeat(64);
    assert_eq!(place.upload(&place.acme, "", &long).await.status, 201);
    let over = place.upload(&place.acme, "", &"y".repeat(64)).await;
    over.is_refused(507, "artifact_quota_exceeded");
    // The same content again takes no more room, and another tenant has a quota of its own.
    assert_eq!(place.upload(&place.acme, "", &long).await.status, 201);
    assert_eq!(place.upload(&place.globex, "", &"y".repeat(64)).await.status, 201);
    place.upload(&place.acme, "", &"z".repeat(65)).await.is_refused(413, "body_too_large");
    for (query, code) in
        [("?name=../x", "invalid_name"), ("?name=.x", "invalid_name"), ("?size=1", "invalid_query")]
    {
        place.upload(&place.acme, query, "x").await.is_refused(400, code);
    }
    place.clock.advance(LIFETIME);
    assert_eq!(place.upload(&place.acme, "", &"y".repeat(64)).await.status, 201);
}

#[test]
fn leftovers_of_killed_process_are_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let store = Artifacts::open(dir.path(), options()).unwrap();
    let kept = store.put(Some("acme"), b"kept", Some("a.txt"), "text/plain").unwrap();
    let taken = Artifacts::open(dir.path(), options()).unwrap_err().to_string();
    assert!(taken.ends_with("another process uses this directory"), "{taken}");
    drop(store);
    let tenants =
        std::fs::read_dir(dir.path()).unwrap().flatten().filter(|entry| entry.path().is_dir());
    let tenant = tenants.map(|entry| entry.path()).next().unwrap();
    std::fs::write(tenant.join(".new-0"), [0; 90]).unwrap();
    std::fs::write(tenant.join("f".repeat(64)), [0xff; 90]).unwrap();
    let store = Artifacts::open(dir.path(), options()).unwrap();
    assert!(!tenant.join(".new-0").exists());
    let ids: Vec<_> =
        store.list(Some("acme")).into_iter().map(|info| (info.id, info.name)).collect();
    assert_eq!(ids, [(kept.id.clone(), Some("a.txt".to_owned()))]);
    assert_eq!(store.read(Some("acme"), &kept.id).unwrap(), b"kept");
}
