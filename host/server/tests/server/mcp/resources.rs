//! Artifacts as MCP resources.

use serde_json::{Value, json};
use toolcell::outcome::{Halt, Media, Output, Part};
use toolcell::{Outcome, Registry, Tool};
use toolcell_server::artifacts::{ArtifactOptions, Artifacts};
use toolcell_server::mcp::McpOptions;
use toolcell_server::{HttpOptions, ListenOptions, Principal, ServedTools, Service};

use super::client::{Client, eras, is_refused};
use super::input::bad_input::is_as_the_page_says;
use super::web::{modern, start_with};
use crate::setup::{self, named, native};

/// Bytes above which a part of a result is stored as an artifact.
const ABOVE: usize = 16;
/// Bytes. One more than an answer can contain.
const LARGE: usize = (4 << 20) + 1;

/// Returns a service whose tool `draw` answers with texts and a picture, its artifacts, and their
/// directory.
fn service() -> (Service, Artifacts, tempfile::TempDir) {
    service_with(ArtifactOptions { threshold: ABOVE, ..ArtifactOptions::default() })
}

/// Like [`service`], with these options.
fn service_with(options: ArtifactOptions) -> (Service, Artifacts, tempfile::TempDir) {
    let draw = async |_: Value| {
        Output::from_message("drawn")
            .with_part(Part::Text { text: "a text of more than sixteen bytes".into() })
            .with_part(Part::Image(Media { mime_type: "image/png".into(), data: vec![0xff; 20] }))
            .with_part(Part::Text { text: "short".into() })
    };
    let stop = async |_: Value| Outcome::Halt(Halt::new("done", table()));
    let with_output = named("stop").with_output(json!({"type": "object"}));
    let registry = setup::registry([
        native("draw", draw),
        native("table", async |_: Value| table()),
        Tool::native(with_output, stop).unwrap(),
    ]);
    let dir = tempfile::tempdir().expect("a directory");
    let artifacts = Artifacts::open(&dir.path().join("artifacts"), options).expect("a store");
    let service =
        Service::builder(ServedTools::new(&registry)).artifacts(artifacts.clone()).build();
    (service.expect("a service"), artifacts, dir)
}

/// Returns a value whose text is longer than the text copy in an MCP result.
fn table() -> Value {
    json!({"rows": vec!["a row of the table"; 4000]})
}

/// Returns a client of each era, and a function that completes the params of its requests.
async fn clients(service: &Service) -> [(Client, impl Fn(Value) -> Value); 2] {
    eras(service, &McpOptions::default()).await.map(|(client, meta)| {
        let params = move |mut params: Value| {
            if meta != json!({}) {
                params["_meta"] = meta.clone();
            }
            params
        };
        (client, params)
    })
}

#[tokio::test]
async fn long_content_link_is_listed_and_read_in_both_eras() {
    let (service, _, _dir) = service();
    let opened = Client::stateless(service.clone()).initialize(json!({})).await;
    assert!(opened["result"]["capabilities"]["resources"].is_object(), "{opened}");
    for (mut client, params) in clients(&service).await {
        let drawn = client.ask(1, "tools/call", params(json!({"name": "draw"}))).await;
        let content = drawn["result"]["content"].as_array().expect("content").clone();
        let links: Vec<_> = content.iter().filter(|part| part["type"] == "resource_link").collect();
        assert_eq!((links.len(), links[0]["size"].as_u64()), (2, Some(33)), "{drawn}");
        assert!(content.iter().any(|part| part["text"] == "short"), "{drawn}");

        let listed = client.ask(2, "resources/list", params(json!({}))).await;
        let listed = listed["result"]["resources"].as_array().expect("resources");
        let mut uris: Vec<_> = listed.iter().map(|it| &it["uri"]).collect();
        let mut expected: Vec<_> = links.iter().map(|link| &link["uri"]).collect();
        uris.sort_by_key(ToString::to_string);
        expected.sort_by_key(ToString::to_string);
        assert_eq!(uris, expected, "{listed:?}");

        for (link, member, value) in [
            (links[0], "text", json!("a text of more than sixteen bytes")),
            (links[1], "blob", json!("//////////////////////////8=")),
        ] {
            let read = client.ask(3, "resources/read", params(json!({"uri": link["uri"]}))).await;
            let contents = &read["result"]["contents"][0];
            assert_eq!(contents[member], value, "{read}");
            assert_eq!(contents["uri"], link["uri"], "{read}");
            assert_eq!(contents["mimeType"], link["mimeType"], "{read}");
        }
        client.end().await.expect("an end");
    }
}

/// A client that sees `resources` among the capabilities calls each of their methods.
#[tokio::test]
async fn artifacts_are_one_page_without_templates() {
    let (service, _, _dir) = service();
    for (mut client, params) in clients(&service).await {
        let answer = client.ask(1, "resources/templates/list", params(json!({}))).await;
        assert_eq!(answer["result"]["resourceTemplates"], json!([]), "{answer}");
        for method in ["resources/list", "resources/templates/list"] {
            let answer = client.ask(2, method, params(json!({"cursor": "next"}))).await;
            let error = &answer["error"];
            let told = (&error["code"], &error["data"]["code"]);
            assert_eq!(told, (&json!(-32602), &json!("invalid_cursor")), "{method}");
        }
        client.end().await.expect("an end");
    }
}

#[tokio::test]
async fn large_value_text_is_truncated_with_a_link() {
    let whole = table().to_string();
    let said = format!(
        "\n… (the first 4096 of {} bytes; `structuredContent` has all of the value)",
        whole.len()
    );
    let full = ArtifactOptions { quota: 1000, ..ArtifactOptions::default() };
    for (options, has_room) in [(ArtifactOptions::default(), true), (full, false)] {
        let (service, artifacts, _dir) = service_with(options);
        for (mut client, params) in clients(&service).await {
            let told = client.ask(1, "tools/call", params(json!({"name": "table"}))).await;
            let result = &told["result"];
            assert_eq!(result["structuredContent"], table());
            let content = result["content"].as_array().expect("content");
            assert_eq!(content[0]["text"], format!("{}{said}", &whole[..4096]));
            let halted = client.ask(3, "tools/call", params(json!({"name": "stop"}))).await;
            let halted = &halted["result"];
            assert_eq!(halted["content"][0]["text"], whole);
            assert_eq!(halted.get("structuredContent"), None);
            assert_eq!(content.len(), 1 + usize::from(has_room), "{content:?}");
            if has_room {
                let link = &content[1];
                assert_eq!(link["type"], "resource_link", "{link}");
                assert_eq!(link["size"], json!(whole.len()), "{link}");
                let read =
                    client.ask(2, "resources/read", params(json!({"uri": link["uri"]}))).await;
                let contents = &read["result"]["contents"][0];
                assert_eq!(contents["text"], whole);
                assert_eq!(contents["mimeType"], "application/json");
            }
            client.end().await.expect("an end");
        }
        let kept = artifacts.list(Principal::local().tenant());
        assert_eq!(kept.len(), usize::from(has_room), "the tenant's own, once");
        assert!(artifacts.list(Some("globex")).is_empty());
    }
}

/// A resource takes room until it has been sent, so a tenant that reads without end leaves room for
/// others.
#[tokio::test]
async fn resource_reads_count_against_body_bytes() {
    let (service, artifacts, _dir) = service();
    let http = HttpOptions { bodies: 64 << 10, ..HttpOptions::default() };
    let listen = ListenOptions { http, ..ListenOptions::default() };
    let web = start_with(service.clone(), &Registry::new(), McpOptions::default(), listen).await;
    let put = |bytes: usize| {
        artifacts.put(Some("acme"), &vec![b'x'; bytes], None, "text/plain").expect("room")
    };
    for (info, status) in [(put(8 << 10), 200), (put(12 << 10), 503), (put(9 << 10), 200)] {
        let (headers, mut message) = modern(1, "resources/read", None);
        message["params"]["uri"] = info.uri.as_str().into();
        let reply = web.post(0, &format!("{headers}Mcp-Name: {}\r\n", info.uri), &message).await;
        assert_eq!(reply.status, status, "{} bytes: {reply:?}", info.size);
        if status == 503 {
            let case = "more bytes of bodies and of `resources/read` than the server holds";
            is_as_the_page_says(case, &reply);
        }
    }
    let counted = service.metrics_text();
    let line = r#"toolcell_refused_requests_total{tenant="acme",code="busy"} 1"#;
    assert!(counted.contains(line), "{counted}");
}

#[tokio::test]
async fn unreadable_resource_error_has_a_code() {
    let (service, artifacts, _dir) = service();
    let (local, large) = (Principal::local(), vec![b'x'; LARGE]);
    let large = artifacts.put(local.tenant(), &large, None, "text/plain").expect("room");
    let others =
        artifacts.put(Some("globex"), b"of another tenant", None, "text/plain").expect("room");
    let unknown = format!("toolcell://artifacts/{}", "0".repeat(64));
    let mut client = Client::open(service, json!({})).await;
    for (uri, code, text) in [
        (large.uri.as_str(), -32602, "artifact_too_large"),
        (&others.uri, -32002, "unknown_artifact"),
        (&unknown, -32002, "unknown_artifact"),
        ("file:///etc/passwd", -32002, "unknown_artifact"),
        ("", -32002, "unknown_artifact"),
    ] {
        is_refused(&client.ask(1, "resources/read", json!({"uri": uri})).await, code, text);
    }
    client.end().await.expect("an end");
}
