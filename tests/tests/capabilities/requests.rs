//! Requests of tools as they arrive at a server: with their own secrets, and as they were checked.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcell::grants::{HttpRule, Injection, SecretGrant};
use toolcell::http::{Egress, ResolveFuture, Resolver};
use toolcell::secrets::{Secret, StoredSecrets};
use toolcell::{CallOptions, Engine, Executor, Grants, Tool};
use toolcell_test_guests::rows;
use toolcell_tests::server::Server;

use crate::{load, message, of, outcome};

/// Headers that no request may have: names and values. The tests of the host's own HTTP import use
/// the same list.
const SMUGGLED: &str =
    include_str!("../../../host/core/src/capability/http/tests/cases/smuggled.json");
const HOSTS: [&str; 3] = ["one.example", "two.example", "three.example"];
const TENANTS: [&str; 2] = ["a", "b"];

/// Resolves every name to this machine.
struct Loopback;

impl Resolver for Loopback {
    fn resolve(&self, _host: &str, _port: u16) -> ResolveFuture {
        Box::pin(async { Ok(vec!["127.0.0.1".parse().expect("an address")]) })
    }
}

fn engine(secrets: StoredSecrets) -> Engine {
    let egress = Egress::new().with_resolver(Loopback);
    let builder = Engine::builder().cells(4).egress(egress).secrets(secrets);
    builder.cache(concat!(env!("CARGO_TARGET_TMPDIR"), "/requests")).build().expect("an engine")
}

fn tool(engine: &Engine, component: &str, tool: &str, grants: Grants) -> Tool {
    load(engine, component, grants).expect("it loads").tool(tool).expect("the tool").clone()
}

fn said(tool: &Tool, arguments: &Value, options: CallOptions) -> Value {
    outcome(&Executor::new(), tool, arguments, options)
}

/// There are two tenants with a value each, two tools and three hosts: the secret of each tool is
/// bound to one host, and none to the third.
#[test]
fn secret_is_bound_to_tenant_tool_and_host() {
    let server = Server::echo();
    let value = |tenant: &str| format!("canary-of-tenant-{tenant}-4711");
    let secrets = TENANTS.iter().fold(StoredSecrets::default(), |secrets, tenant| {
        secrets.with_tenant(*tenant, "fetch_token", Secret::new(value(tenant)).expect("a secret"))
    });
    let engine = engine(secrets);
    let authority = |host: &str| format!("{host}:{}", server.address.port());
    let rule = |host: &str| -> HttpRule {
        let rule: HttpRule = format!("http://{}", authority(host)).parse().expect("a rule");
        rule.with_private(["127.0.0.0/8".parse().expect("a network")])
    };
    let tools = [0, 1].map(|bound| {
        let mut grants = Grants::default();
        grants.http = HOSTS.map(rule).into();
        let secret = SecretGrant::new(rule(HOSTS[bound]), Injection::Bearer);
        grants.secrets.insert("fetch_token".into(), secret);
        tool(&engine, "fetch", "fetch", grants)
    });
    let mut injected = BTreeMap::new();
    for tenant in TENANTS {
        for (number, tool) in tools.iter().enumerate() {
            for host in HOSTS {
                for with_token in [true, false] {
                    let case = format!(
                        "tenant {tenant}, tool {number}, {host}, with a token: {with_token}"
                    );
                    let arguments = json!({"url": format!("http://{}/", authority(host)), "with_token": with_token});
                    let end = said(tool, &arguments, of(tenant));
                    let (arrived, is_bound) = (server.taken(), host == HOSTS[number]);
                    assert_eq!(end["ok"].is_object(), is_bound || !with_token, "{case}: {end}");
                    assert_eq!(arrived.len(), usize::from(is_bound || !with_token), "{case}");
                    for request in arrived {
                        let header = format!("\r\nhost: {}\r\n", authority(host));
                        assert!(request.contains(&header), "{case}: {request}");
                        for whose in TENANTS {
                            *injected.entry((whose, tenant, number, host)).or_insert(0) +=
                                request.matches(&value(whose)).count();
                        }
                        let header = format!("\r\nauthorization: Bearer {}\r\n", value(tenant));
                        assert_eq!(request.contains(&header), with_token, "{case}: {request}");
                    }
                }
            }
        }
    }
    let bound: Vec<_> = injected.into_iter().filter(|(_, count)| *count > 0).collect();
    let expected = [
        ("a", "a", 0, HOSTS[0]),
        ("a", "a", 1, HOSTS[1]),
        ("b", "b", 0, HOSTS[0]),
        ("b", "b", 1, HOSTS[1]),
    ];
    assert_eq!(bound, expected.map(|place| (place, 1)));
}

/// A guest that uses `wasi:http` without a library, and a server that records requests.
struct Scene {
    server: Server,
    sender: Tool,
}

impl Scene {
    fn new() -> Self {
        let (server, mut grants) = (Server::echo(), Grants::default());
        grants.http.push(server.rule("GET,HEAD,OPTIONS,POST,PUT,PATCH,DELETE", "/"));
        let sender = tool(&engine(StoredSecrets::default()), "caller", "sender", grants);
        Self { server, sender }
    }

    /// Sends a request. Returns the outcome, and the requests that arrived at the server.
    fn send(
        &self,
        method: &str,
        headers: &[[&str; 2]],
        trailers: &[[&str; 2]],
    ) -> (Value, Vec<String>) {
        let arguments = json!({
            "authority": self.server.address.to_string(), "method": method, "headers": headers, "body": "some",
            "trailers": trailers,
        });
        let end = said(&self.sender, &arguments, CallOptions::default());
        assert!(end["ok"].is_object() || end["error"]["message"].is_string(), "{end}");
        (end, self.server.taken())
    }

    /// Returns the only form of the request that may arrive.
    fn plain(&self, method: &str, own: &str) -> String {
        let host = self.server.address;
        format!(
            "{method} / HTTP/1.1\r\nhost: {host}\r\n{own}connection: close\r\ncontent-length: 4\r\n\r\nsome"
        )
    }
}

#[test]
fn smuggling_headers_are_refused_by_wasi_http() {
    let scene = Scene::new();
    let refused: Vec<[String; 2]> = serde_json::from_str(SMUGGLED).expect("names and values");
    for [name, value] in &refused {
        let (end, arrived) = scene.send("POST", &[[name, value]], &[]);
        assert!(end["error"].is_object(), "{name:?}: {value:?}: {end}");
        assert!(arrived.is_empty(), "{name:?}: {value:?}: {arrived:?}");
    }
    assert_eq!(refused.len(), 60);
    // A library may state the length if it is right; the host writes it.
    let (end, arrived) = scene.send("POST", &[["X-Own", "1"], ["Content-Length", "4"]], &[]);
    assert_eq!(arrived, [scene.plain("POST", "x-own: 1\r\n")], "{end}");
}

#[test]
fn methods_and_trailers_are_sent_as_checked() {
    let scene = Scene::new();
    for method in ["GET", "POST", "other GET", "other HEAD", "other PATCH", "other DELETE"] {
        let (end, arrived) = scene.send(method, &[], &[]);
        let plain = scene.plain(method.trim_start_matches("other "), "");
        assert_eq!(arrived, [plain], "{method}: {end}");
    }
    for method in rows::<&str>("capabilities/requests", "methods_and_trailers_are_sent_as_checked")
    {
        let (end, arrived) = scene.send(method, &[], &[]);
        assert!(end["error"].is_object() && arrived.is_empty(), "{method:?}: {end} {arrived:?}");
    }
    // Trailers are not sent.
    for name in ["x-own", "content-length", "authorization", "forwarded"] {
        let (end, arrived) = scene.send("POST", &[], &[[name, "7"]]);
        assert_eq!(arrived, [scene.plain("POST", "")], "{name}: {end}");
    }
    for name in ["host", "transfer-encoding", "connection", "proxy-authorization", "x\r\nhost"] {
        let (end, arrived) = scene.send("POST", &[], &[[name, "7"]]);
        assert!(end["error"].is_object() && arrived.is_empty(), "{name:?}: {end} {arrived:?}");
    }
}

/// A library first writes the body, then sends the request.
#[test]
fn body_is_written_before_its_request_is_sent() {
    let (server, mut grants) = (Server::echo(), Grants::default());
    grants.http.push(server.rule("POST", "/"));
    let uploader = tool(&engine(StoredSecrets::default()), "caller", "uploader", grants);
    let upload = |bytes: usize| {
        let arguments = json!({ "authority": server.address.to_string(), "bytes": bytes });
        said(&uploader, &arguments, CallOptions::default())
    };
    for bytes in [0, 1, 10_000, 65_536, 300_000] {
        let end = upload(bytes);
        assert!(end["ok"].is_object(), "{bytes}: {end}");
        let arrived = server.taken().concat();
        let body = format!("\r\n\r\n{}", "x".repeat(bytes));
        assert!(arrived.ends_with(&body), "{bytes}: {} bytes", arrived.len());
    }
    let end = upload(9 << 20);
    assert!(message(&end).contains("HttpRequestBodySize(Some(8390000))"), "{end}");
}
