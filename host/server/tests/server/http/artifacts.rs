//! Artifacts over HTTP: uploads, references in arguments, links in results, tenants, quota,
//! lifetime.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcell::clock::ManualClock;
use toolcell::outcome::{Media, Output, Part, Resource, ResourceContent};
use toolcell::tool::{Handler, HandlerFuture, Invocation};
use toolcell::{CallResult, Definition, Outcome, Registry, Tenant, Tool};
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::{Authenticator, HttpServer, ListenOptions, ServedTools, Service};

use super::client::{Reply, request, send};

const PAGE: &str = include_str!("../../../../../docs/artifacts.md");
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
fn rows() -> Vec<(String, u16, String)> {
    let table = PAGE.lines().skip_while(|line| *line != "| request | status | code |").skip(2);
    let rows = table.take_while(|line| line.starts_with('|')).map(|row| {
        let cells: Vec<_> =
            row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        (cells[0].to_owned(), cells[1].parse().expect("a status"), cells[2].to_owned())
    });
    rows.collect()
}

async fn place() -> Place {
    let file = json!({"type": "string", "format": "toolcell-file"});
    let file = json!({"type": "object", "properties": {"data": file, "more": file, "note": {"type": "string"}}});
    let mirror = Definition::new("mirror", "Repeats.").unwrap().with_parameters(file);
    let draw = Definition::new("draw", "Draws.").unwrap();
    let drawn = |bytes| Part::Image(Media { mime_type: "image/png".into(), data: bytes });
    let registry = Registry::new();
    registry.register(Tool::with_handler(mirror, Mirror).unwrap()).unwrap();
    let draw = Tool::native(draw, async move |_: Value| {
        let content = ResourceContent::Text { text: "x".repeat(10) };
        let resource = Resource { uri: "file:///x".into(), mime_type: None, content };
        let images = [8, 9, 65].map(|length| drawn(vec![3; length]));
        let parts = images.into_iter().chain([Part::Resource(resource)]);
        parts.fold(Output::from_message("drawn"), Output::with_part)
    });
    registry.register(draw.unwrap()).unwrap();
    let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
    let artifacts =
        Artifacts::open_with(&dir.path().join("artifacts"), options(), clock.clone()).unwrap();
    let served = ServedTools::new(&registry)
        .with_tenant("acme", Tenant::default())
        .with_tenant("globex", Tenant::default());
    let service = Service::builder(served).artifacts(artifacts).build().unwrap();
    let keys = ApiKeyStore::open(dir.path().join("keys.json")).unwrap();
    let [acme, globex] =
        ["acme", "globex"].map(|name| keys.add(name).unwrap().key.expose().to_owned());
    let server =
        HttpServer::bind(service, Authenticator::api_keys(keys), ListenOptions::default()).await;
    let server = server.unwrap();
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
        self.ask(key, &format!("POST /v1/artifacts{query}"), "Content-Type: text/csv\r\n", body)
            .await
    }

    async fn call(&self, key: &str, body: Value) -> Value {
        let reply = self
            .ask(key, "POST /v1/calls", "Content-Type: application/json\r\n", &body.to_string())
            .await;
        reply.json()["outcome"].clone()
    }
}

#[tokio::test]
async fn artifact_errors_match_the_documented_table() {
    let place = place().await;
    let info = place.upload(&place.acme, "", "1234567").await.json();
    let path = format!("/v1/artifacts/{}", info["id"].as_str().unwrap());
    let get = |path: &str| format!("GET {path}");
    let (range, long) = ("Range: bytes=7-\r\n", "z".repeat(65));
    let unknown = "an artifact that is unknown, expired or another tenant's";
    let mut replies = vec![
        (
            unknown,
            place
                .ask(&place.acme, &get(&format!("/v1/artifacts/{}", "0".repeat(64))), "", "")
                .await,
        ),
        (unknown, place.ask(&place.acme, &get("/v1/artifacts/x"), "", "").await),
        (unknown, place.ask(&place.globex, &get(&path), "", "").await),
        (unknown, place.ask(&place.globex, &get(&path), range, "").await),
        (unknown, place.ask(&place.globex, &format!("DELETE {path}"), "", "").await),
        (
            "a range that begins after the end of an artifact",
            place.ask(&place.acme, &get(&path), range, "").await,
        ),
        (
            "an upload whose name is not one of a file",
            place.upload(&place.acme, "?name=../x", "x").await,
        ),
        (
            "an upload whose `Content-Type` has more than 128 characters, or others than visible ASCII",
            place
                .ask(
                    &place.acme,
                    "POST /v1/artifacts",
                    &format!("Content-Type: {}\r\n", "x".repeat(129)),
                    "x",
                )
                .await,
        ),
        (
            "an upload that is longer than an artifact can be",
            place.upload(&place.acme, "", &long).await,
        ),
    ];
    let full = "an upload for which the tenant has no room";
    assert_eq!(place.upload(&place.acme, "", &long[1..]).await.status, 201, "71 bytes of 100");
    replies.push((full, place.upload(&place.acme, "", &"y".repeat(64)).await));
    for text in ["1", "2", "3"] {
        assert_eq!(place.upload(&place.globex, "", text).await.status, 201);
    }
    replies.push((full, place.upload(&place.globex, "", "4").await));
    place.clock.advance(LIFETIME);
    replies.push((unknown, place.ask(&place.acme, &get(&path), "", "").await));
    let service = Service::builder(ServedTools::new(&Registry::new())).build().unwrap();
    let server =
        HttpServer::bind(service, Authenticator::open(), ListenOptions::default()).await.unwrap();
    let bare = server.address();
    tokio::spawn(server.serve(std::future::pending()));
    for line in ["GET /v1/artifacts", "POST /v1/artifacts", &get(&path)] {
        let reply = send(bare, request(line, "", "x").as_bytes()).await.unwrap();
        replies.push(("artifacts of a server that keeps none", reply));
    }
    let rows = rows();
    for (case, reply) in &replies {
        let (_, status, code) =
            rows.iter().find(|(row, ..)| row == case).unwrap_or_else(|| panic!("no row: {case}"));
        assert_eq!((reply.status, &reply.code()), (*status, code), "{case}: {reply:?}");
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
    let [get, head] = ["GET", "HEAD"]
        .map(|method| format!("{method} /v1/artifacts/{}", info["id"].as_str().unwrap()));
    let tag = place.ask(&place.acme, &get, "", "").await.header("etag").expect("a tag").to_owned();
    for (line, headers, status, body) in [
        (&head, String::new(), 200, ""),
        (&head, "Range: bytes=1-2\r\n".into(), 206, ""),
        (&get, format!("If-None-Match: \"other\", {tag}\r\n"), 304, ""),
        (&get, "If-None-Match: *\r\n".into(), 304, ""),
        (&get, "If-None-Match: \"other\"\r\n".into(), 200, "1234567"),
        (&get, format!("Range: bytes=1-2\r\nIf-Range: {tag}\r\n"), 206, "23"),
        (&get, "Range: bytes=1-2\r\nIf-Range: \"other\"\r\n".into(), 200, "1234567"),
        (&get, "Range: bytes=-2\r\n".into(), 206, "67"),
        (&get, "Range: bytes=0-1,3-4\r\n".into(), 200, "1234567"),
    ] {
        let reply = place.ask(&place.acme, line, &headers, "").await;
        assert_eq!((reply.status, reply.body.as_str()), (status, body), "{line} {headers}");
        assert_eq!(reply.header("etag"), Some(&*tag), "{line} {headers}");
        let length = if line.starts_with("HEAD") && status == 200 {
            Some("7")
        } else {
            reply.header("content-length")
        };
        assert_eq!(reply.header("content-length"), length, "{line} {headers}");
    }
    // Another tenant learns nothing of it, even with its id and tag.
    let foreign = place.ask(&place.globex, &get, &format!("If-None-Match: {tag}\r\n"), "").await;
    assert_eq!(foreign.status, 404);
}

#[tokio::test]
async fn artifact_uri_is_valid_for_its_tenant_until_expiry() {
    let place = place().await;
    let info = place.upload(&place.acme, "?name=a.csv", "1,2").await.json();
    let call = || json!({"name": "mirror", "arguments": {"data": info["uri"]}});
    for _ in 0..2 {
        assert_eq!(
            place.call(&place.acme, call()).await["ok"]["value"],
            json!({"data": "/input/a.csv"})
        );
    }
    assert_eq!(place.call(&place.globex, call()).await["refusal"]["kind"], "invalid_arguments");
    place.clock.advance(LIFETIME);
    assert_eq!(place.call(&place.acme, call()).await["refusal"]["kind"], "invalid_arguments");
}

#[tokio::test]
async fn upload_is_read_whole_and_in_ranges_then_deleted() {
    let place = place().await;
    let stored = place.upload(&place.acme, "?name=input.csv", "1,2,3,4").await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let info = stored.json();
    assert_eq!(
        (&info["name"], &info["mime_type"], &info["size"]),
        (&json!("input.csv"), &json!("text/csv"), &json!(7))
    );
    // The bytes would be stored as they are, under a type that they do not have.
    let packed =
        place.ask(&place.acme, "POST /v1/artifacts", "Content-Encoding: br\r\n", "1").await;
    assert_eq!((packed.status, packed.code().as_str()), (415, "unsupported_encoding"));
    let line = format!("GET /v1/artifacts/{}", info["id"].as_str().unwrap());
    let whole = place.ask(&place.acme, &line, "", "").await;
    assert_eq!((whole.status, whole.body.as_str()), (200, "1,2,3,4"));
    assert_eq!(whole.header("content-disposition"), Some("attachment; filename=\"input.csv\""));
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
    let part = place.ask(&place.acme, &line, "Range: bytes=2-4\r\n", "").await;
    assert_eq!(
        (part.status, part.body.as_str(), part.header("content-range")),
        (206, "2,3", Some("bytes 2-4/7"))
    );
    let beyond = place.ask(&place.acme, &line, "Range: bytes=7-\r\n", "").await;
    assert_eq!(
        (beyond.status, beyond.code().as_str(), beyond.header("content-range")),
        (416, "invalid_range", Some("bytes */7"))
    );
    let tag = format!("If-None-Match: {}\r\n", whole.header("etag").unwrap());
    assert_eq!(place.ask(&place.acme, &line, &tag, "").await.status, 304);
    let listed = place.ask(&place.acme, "GET /v1/artifacts", "", "").await.json();
    assert_eq!(listed["artifacts"].as_array().map(Vec::len), Some(1));
    let delete = line.replace("GET", "DELETE");
    assert_eq!(place.ask(&place.acme, &delete, "", "").await.status, 204);
    assert_eq!(place.ask(&place.acme, &line, "", "").await.code(), "unknown_artifact");
}

#[tokio::test]
async fn artifact_is_visible_to_its_tenant_only() {
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
    let unknown =
        place.ask(&place.globex, &format!("GET /v1/artifacts/{}", "0".repeat(64)), "", "").await;
    assert_eq!(foreign.status, 404);
    assert_eq!(without_request_id(foreign), without_request_id(unknown));
    let call = json!({"name": "mirror", "arguments": {"data": info["uri"]}});
    let refused = place.call(&place.globex, call).await;
    assert_eq!(refused["refusal"]["kind"], "invalid_arguments", "{refused}");
}

#[tokio::test]
async fn uri_becomes_input_file_long_content_becomes_link() {
    let place = place().await;
    let info = place.upload(&place.acme, "?name=input.csv", "1,2").await.json();
    let given = place
        .call(&place.acme, json!({"name": "mirror", "arguments": {"data": info["uri"]}}))
        .await;
    assert_eq!(given["ok"]["value"], json!({"data": "/input/input.csv"}), "{given}");
    for wrong in ["toolcell://artifacts/../x", "/etc/passwd", ""] {
        let refused =
            place.call(&place.acme, json!({"name": "mirror", "arguments": {"data": wrong}})).await;
        assert_eq!(refused["refusal"]["faults"][0]["path"], "/data", "{refused}");
    }
    let drawn = place.call(&place.acme, json!({"name": "draw"})).await.to_string();
    for told in ["toolcell://artifacts/", "\"size\":9", "\"size\":10", "text/plain; charset=utf-8"]
    {
        assert!(drawn.contains(told), "{told}: {drawn}");
    }
    // A part that is longer than an artifact can be stays in the result.
    assert!(drawn.contains(&"AwMD".repeat(21)), "{drawn}");
    let listed = place.ask(&place.acme, "GET /v1/artifacts", "", "").await.json();
    assert_eq!(listed["artifacts"].as_array().map(Vec::len), Some(3), "{listed}");
    // Two artifacts of one name are two files, an artifact that is named twice is one.
    let one = place.upload(&place.globex, "?name=a.csv", "1").await.json();
    let other = place.upload(&place.globex, "?name=a.csv", "2").await.json();
    let other_path = format!("/input/1-{}", other["id"].as_str().unwrap());
    for (more, path) in [(&one, "/input/a.csv"), (&other, &*other_path)] {
        let arguments = json!({"data": one["uri"], "more": more["uri"], "note": "n"});
        let call = json!({"name": "mirror", "arguments": arguments});
        let given = place.call(&place.globex, call).await;
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
    assert_eq!((over.status, over.code().as_str()), (507, "artifact_quota_exceeded"));
    // The same content again takes no more room, and another tenant has a quota of its own.
    assert_eq!(place.upload(&place.acme, "", &long).await.status, 201);
    assert_eq!(place.upload(&place.globex, "", &"y".repeat(64)).await.status, 201);
    let too_large = place.upload(&place.acme, "", &"z".repeat(65)).await;
    assert_eq!((too_large.status, too_large.code().as_str()), (413, "body_too_large"));
    for (query, code) in
        [("?name=../x", "invalid_name"), ("?name=.x", "invalid_name"), ("?size=1", "invalid_query")]
    {
        let refused = place.upload(&place.acme, query, "x").await;
        assert_eq!((refused.status, refused.code().as_str()), (400, code));
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
