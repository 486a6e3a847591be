//! Tokens of an issuer: each row of the table in `docs/http.md` has the status and the code that
//! the page gives, and streams and sessions of a token end with it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use toolcell_server::auth::JwtIssuer;
use toolcell_server::mcp::{McpOptions, routes};
use toolcell_server::{Authenticator, HttpOptions, ListenOptions, Service};
use toolcell_test_guests::rows;

use crate::http::client::{Reply, ask, bearer, connect, get, request};
use crate::http::fixture::{served, tools};
use crate::mcp::client::opening;
use crate::setup::{start, table};

const PAGE: &str = include_str!("../../../../../../docs/http.md");
pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const AUDIENCE: &str = "https://tools.example";
/// Seconds by which the issuer's clock can differ.
const LEEWAY: u64 = 30;
/// Far longer than any wait takes.
const PATIENCE: Duration = Duration::from_secs(20);
const JSON: &str =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// An issuer with one key, and a server that accepts its tokens.
struct Issued {
    pair: Ed25519KeyPair,
    auth: Authenticator,
    address: SocketAddr,
}

impl Issued {
    async fn start() -> Self {
        Self::start_at(AUDIENCE).await
    }

    /// Starts a server whose clients know it by this URL.
    async fn start_at(audience: &str) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let (service, auth) = (
            Service::builder(served(&tools().0)).build().unwrap(),
            Authenticator::jwt(issuer(&pair, audience)),
        );
        let mcp = routes(service.clone(), McpOptions { sessions: 1, ..McpOptions::default() });
        let http = HttpOptions { recheck: Duration::from_millis(10), ..HttpOptions::default() };
        let options = ListenOptions { http, protected: mcp, ..ListenOptions::default() };
        let address = start(service, auth.clone(), options).await;
        Self { pair, auth, address }
    }

    /// Returns a token signed by this issuer.
    fn token(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        format!("{message}.{}", encoded(self.pair.sign(message.as_bytes())))
    }

    /// Returns a valid token of this user, which expires at `exp`.
    fn of_user(&self, user: &str, exp: u64) -> String {
        let mut claims = claims("exp", json!(exp));
        claims["sub"] = json!(user);
        self.token(&header("EdDSA"), &claims)
    }

    async fn ask(&self, token: &str, line: &str, headers: &str, body: &str) -> Reply {
        ask(self.address, line, &format!("{}{headers}", bearer(token)), body).await
    }
}

fn issuer(pair: &Ed25519KeyPair, audience: &str) -> JwtIssuer {
    let key = json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key()), "kid": "k"});
    let jwks = json!({"keys": [key]}).to_string();
    let issuer = JwtIssuer::from_jwks(ISSUER, audience, &jwks).unwrap().with_scope("tools");
    issuer.with_algorithms(["EdDSA"]).unwrap()
}

fn header(algorithm: &str) -> Value {
    json!({"alg": algorithm, "kid": "k"})
}

/// Valid claims with one changed.
pub(crate) fn claims(name: &str, value: Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "tenant": "acme", "scope": "tools", "exp": now() + 600});
    claims[name] = value;
    claims
}

pub(crate) fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn token_answers_match_the_documented_table() {
    let issued = Issued::start().await;
    let good = claims("sub", json!("ada"));
    let with = |name: &str, value: Value| issued.token(&header("EdDSA"), &claims(name, value));
    let shared = message(&header("HS256"), &good);
    // The public key, used as a shared secret.
    let secret = hmac::Key::new(hmac::HMAC_SHA256, issued.pair.public_key().as_ref());
    let cases = [
        ("a good one", with("sub", json!("ada"))),
        ("another audience", with("aud", json!("https://other.example"))),
        ("no audience", with("aud", Value::Null)),
        ("another issuer", with("iss", json!("https://other.example"))),
        ("a list of issuers", with("iss", json!([ISSUER, "https://other.example"]))),
        ("expired for more than 30 s", with("exp", json!(now() - LEEWAY - 5))),
        ("not valid yet", with("nbf", json!(now() + 600))),
        ("the algorithm `none`", format!("{}.", message(&header("none"), &good))),
        (
            "`HS256` with the public key",
            format!("{shared}.{}", encoded(hmac::sign(&secret, shared.as_bytes()))),
        ),
        ("an unknown `kid`", issued.token(&json!({"alg": "EdDSA", "kid": "other"}), &good)),
        ("another signature", format!("{}.{}", message(&header("EdDSA"), &good), encoded([0; 64]))),
        (
            "a header that must be understood (`crit`)",
            issued.token(&json!({"alg": "EdDSA", "kid": "k", "crit": ["x"], "x": 1}), &good),
        ),
        ("no claim of the tenant", with("tenant", Value::Null)),
        ("a tenant that is not served", with("tenant", json!("unknown"))),
        ("without the scope", with("scope", json!("other"))),
    ];
    let documented = table(PAGE, "| token |");
    let tried: Vec<_> = cases.iter().map(|(case, _)| *case).collect();
    assert_eq!(documented.iter().map(|row| row[0]).collect::<Vec<_>>(), tried);
    for ((case, token), row) in cases.iter().zip(&documented) {
        let reply = issued.ask(token, "GET /v1/tools", "", "").await;
        let code = reply.code();
        let code = if code.is_empty() { "–".to_owned() } else { format!("`{code}`") };
        assert_eq!([reply.status.to_string(), code], [row[1], row[2]], "{case}: {reply:?}");
        let is_challenged = reply.status == 401 || reply.code() == "insufficient_scope";
        let challenge = reply.header("www-authenticate").unwrap_or_default();
        let metadata =
            format!("resource_metadata=\"{AUDIENCE}/.well-known/oauth-protected-resource\"");
        assert_eq!(challenge.contains(&metadata), is_challenged, "{case}: {reply:?}");
    }
}

/// Source: RFC 9728, sections 3.1 and 5.1.
#[tokio::test(flavor = "multi_thread")]
async fn resource_metadata_is_at_the_challenged_url() {
    const ROOT: &str = "/.well-known/oauth-protected-resource";
    for (audience, named, other) in rows::<(&str, &str, &str)>("server/http/tokens", "audiences") {
        let issued = Issued::start_at(audience).await;
        let challenge = issued.ask("x.y.z", "POST /mcp", JSON, "{}").await;
        let challenge = challenge.header("www-authenticate").expect("a challenge").to_owned();
        let query = audience.find('?').map_or("", |at| &audience[at..]);
        let expected = format!("resource_metadata=\"https://tools.example{ROOT}{named}{query}\"");
        assert!(challenge.contains(&expected), "{audience}: {challenge}");
        for (path, status) in
            [(named, 200), (named.trim_end_matches('/'), 200), ("", 200), (other, 404)]
        {
            let reply = get(issued.address, &format!("{ROOT}{path}")).await;
            assert_eq!(reply.status, status, "{audience} {path}: {reply:?}");
            let is_named = status == 404 || reply.json()["resource"] == audience;
            assert!(is_named, "{audience} {path}: {reply:?}");
        }
    }
}

/// Opens a stream of events, and returns it once it has begun.
async fn stream(issued: &Issued, token: &str) -> TcpStream {
    let body = r#"{"calls": [{"id": "a", "name": "wait", "arguments": {}}]}"#;
    let sent = request("POST /v1/runs", &format!("{}{JSON}", bearer(token)), body);
    let mut stream = connect(issued.address, sent.as_bytes()).await;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    stream
}

async fn ends(mut stream: TcpStream) {
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
    ended.expect("the stream ends").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn token_expiry_ends_its_streams_and_sessions() {
    let issued = Issued::start().await;
    let opening = opening(json!({})).to_string();
    let open = async |token: &str| issued.ask(token, "POST /mcp", JSON, &opening).await.status;
    // The leeway for clocks leaves it valid for seconds.
    let short = issued.of_user("ada", now() + 2 - LEEWAY);
    let other = issued.of_user("bob", now() + 600);
    let streaming = stream(&issued, &short).await;
    assert_eq!((open(&short).await, open(&other).await), (200, 429), "the tenant has one session");
    ends(streaming).await;
    let opened = async { while open(&other).await != 200 {} };
    tokio::time::timeout(PATIENCE, opened).await.expect("the session has ended with its token");
    assert_eq!(issued.ask(&short, "GET /v1/tools", "", "").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_an_issuer_ends_streams_of_its_tokens() {
    let issued = Issued::start().await;
    let token = issued.of_user("ada", now() + 600);
    let streaming = stream(&issued, &token).await;
    issued.auth.replace_jwt(None);
    ends(streaming).await;
    assert_eq!(issued.ask(&token, "GET /v1/tools", "", "").await.status, 401);
    issued.auth.replace_jwt(Some(issuer(&issued.pair, AUDIENCE)));
    assert_eq!(issued.ask(&token, "GET /v1/tools", "", "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn valid_token_is_a_principal_invalid_is_challenged() {
    let issued = Issued::start().await;
    let token = |tenant: &str, scope: &str| {
        let mut claims = claims("exp", json!(9_999_999_999_u64));
        (claims["tenant"], claims["scope"]) = (tenant.into(), scope.into());
        issued.token(&header("EdDSA"), &claims)
    };
    let metadata = "https://tools.example/.well-known/oauth-protected-resource";
    for (token, status, challenge) in [
        (token("globex", "tools"), 200, None),
        (token("unknown", "tools"), 403, None),
        (token("globex", "other"), 403, Some("insufficient_scope")),
        (format!("{}x", token("globex", "tools")), 401, Some(metadata)),
        ("tck_key".into(), 401, Some(metadata)),
    ] {
        let reply = issued.ask(&token, "GET /v1/tools", "", "").await;
        assert_eq!(reply.status, status, "{reply:?}");
        let told = reply.header("www-authenticate");
        assert_eq!(told.is_some(), challenge.is_some(), "{reply:?}");
        assert!(challenge.is_none_or(|challenge| told.unwrap().contains(challenge)), "{reply:?}");
    }
    let told = get(issued.address, metadata.strip_prefix(AUDIENCE).unwrap()).await.json();
    assert_eq!(told["authorization_servers"], json!([ISSUER]), "{told}");
    assert_eq!(told["resource"], AUDIENCE);
}
