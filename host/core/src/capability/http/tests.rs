//! Tests of the HTTP client: requests to servers that run on this machine. This file has the parts
//! that the submodules share, each of which tests one subject.

mod connection_limits;
mod credentials;
mod misbehaving;
mod outbound_scan;
mod private;
mod proxy;
mod redaction;
mod redirects;
mod rules;
mod server;
mod times;
mod tls;
mod wire;

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use toolcell_contract::definition::Definition;
use toolcell_contract::grants::{Grants, HttpRule, Injection, SecretGrant};
use toolcell_test_guests::rows;

use super::*;
use crate::secrets::secret::Secret;
use server::Server;

/// A complete response.
type Incoming = Response<Bytes>;

/// Much longer than any request here takes.
const AMPLE: Duration = Duration::from_secs(60);
/// Longer than any request takes that ends by its deadline or its limit.
const PATIENCE: Duration = Duration::from_secs(10);
/// Short enough for a test to wait for it.
const SHORT: Duration = Duration::from_millis(60);
/// Bytes that inflate to more than the limit of a search.
static BOMB: LazyLock<Vec<u8>> =
    LazyLock::new(|| miniz_oxide::deflate::compress_to_vec(&vec![0; 70 << 20], 1));

fn rights(rules: impl IntoIterator<Item = HttpRule>) -> Rights {
    let mut grants = Grants::default();
    grants.http.extend(rules);
    Rights::new(Arc::new(grants), &Definition::new("tool", "A tool.").unwrap()).unwrap()
}

/// Rights by this rule, on this machine too.
fn loopback(rule: &str) -> Rights {
    let rule: HttpRule = rule.parse().unwrap();
    rights([rule.with_private(["127.0.0.0/8".parse().unwrap()])])
}

/// Rights to a server on this machine.
fn local(server: &Server) -> Rights {
    loopback(&format!("GET,HEAD,POST,PUT,DELETE {}", server.url("/")))
}

/// A response with this body.
fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn get(url: &str) -> Outgoing {
    Outgoing {
        method: Method::Get,
        target: Target::parse(url).unwrap(),
        headers: Vec::new(),
        body: Bytes::new(),
        timeout: None,
        times: Times::default(),
    }
}

fn with_header(mut outgoing: Outgoing, name: &str, value: impl AsRef<[u8]>) -> Outgoing {
    outgoing.headers.push((name.into(), value.as_ref().into()));
    outgoing
}

impl Egress {
    /// Admits a request, sends it and reads the whole response.
    async fn send(
        &self,
        rights: &Rights,
        budget: &Budget,
        outgoing: Outgoing,
        secrets: Secrets,
        deadline: Instant,
    ) -> Result<Incoming, SendError> {
        let admitted = admit(rights, budget, outgoing.method, &outgoing.target)?;
        self.begin(admitted, budget, outgoing, secrets, deadline)?.collect().await
    }
}

/// Sends a request of a call with this budget.
async fn spend(
    egress: &Egress,
    rights: &Rights,
    budget: &Budget,
    outgoing: Outgoing,
) -> Result<Incoming, SendError> {
    egress.send(rights, budget, outgoing, Secrets::default(), Instant::now() + AMPLE).await
}

async fn send(egress: &Egress, rights: &Rights, outgoing: Outgoing) -> Result<Incoming, SendError> {
    spend(egress, rights, &Budget::default(), outgoing).await
}

/// Gets the root of a server.
async fn fetch(server: &Server) -> Result<Incoming, SendError> {
    send(&Egress::new(), &local(server), get(&server.url("/"))).await
}

/// Awaits a result with a time limit.
async fn in_time<T>(sent: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, sent).await.expect("an end")
}

/// Returns the kind of error, after a check that its text shows nothing confidential.
fn kind(result: &Result<Incoming, SendError>) -> &'static str {
    let Err(error) = result else { return "response" };
    let hint = if let SendError::Private(host) = error { host.hint.as_str() } else { "" };
    let text = format!("{error} {hint}");
    assert!(text.len() < 600 && !text.contains("canary"), "{text}");
    let is_own = matches!(error, SendError::Denied(_) | SendError::Private(_));
    assert!(is_own || !text.contains("127.0.0.1:"), "{text}");
    match error {
        SendError::Denied(_) => "denied",
        SendError::Invalid(_) => "invalid",
        SendError::Private(_) => "private",
        SendError::Unreachable(_) => "unreachable",
        SendError::Timeout(_) => "timeout",
        SendError::OverBudget(..) => "over budget",
        SendError::Broken(_) => "broken",
    }
}
