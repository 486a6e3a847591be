//! Keys that an issuer publishes: where they are found, what is refused, and when they are fetched
//! again.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use toolcell_server::Authenticator;
use toolcell_server::auth::{JwtIssuer, PublishedKeys, PublishedKeysError};
use toolcell_test_guests::rows;

use super::tokens::{AUDIENCE, ISSUER, claims, encoded, message};

const OPENID: &str = "/.well-known/openid-configuration";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const HOUR: Duration = Duration::from_secs(3600);

/// A server that answers with the pages that a test sets, by path.
#[derive(Clone, Default)]
struct Pages {
    pages: Arc<Mutex<HashMap<String, (u16, String)>>>,
    /// The requested paths.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Pages {
    async fn start(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().fallback(page).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    fn set(&self, path: &str, status: u16, body: impl ToString) {
        self.pages.lock().insert(path.to_owned(), (status, body.to_string()));
    }

    fn fetches(&self) -> usize {
        self.asked.lock().iter().filter(|path| *path == "/keys").count()
    }
}

async fn page(State(pages): State<Pages>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    pages.asked.lock().push(path.clone());
    let (status, body) = pages.pages.lock().get(&path).cloned().unwrap_or((404, String::new()));
    let status = StatusCode::from_u16(status).unwrap();
    if status.is_redirection() {
        return (status, [(LOCATION, body)]).into_response();
    }
    (status, body).into_response()
}

/// Returns the key of this number, and its published form.
fn key(number: u8) -> (Ed25519KeyPair, Value) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap();
    let x = encoded(pair.public_key());
    (pair, json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": format!("k{number}")}))
}

/// Returns the headers of a request with a valid token of this key.
fn headers(number: u8) -> HeaderMap {
    let header = json!({"alg": "EdDSA", "kid": format!("k{number}")});
    let message = message(&header, &claims("sub", json!("ada")));
    let token = format!("{message}.{}", encoded(key(number).0.sign(message.as_bytes())));
    HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").parse().unwrap())])
}

#[tokio::test]
async fn keys_are_found_only_by_their_issuers_metadata() {
    let keys = json!({"keys": [key(1).1]}).to_string();
    for (case, openid, oauth, answer, expected) in
        rows::<(&str, (_, &str, &str), (_, &str, &str), _, &str)>(
            "server/http/published",
            "metadata",
        )
    {
        let pages = Pages::default();
        let own = format!("http://{}", pages.start().await);
        for (place, (status, issuer, uri)) in [(OPENID, openid), (OAUTH, oauth)] {
            let uri = if uri.starts_with('/') { format!("{own}{uri}") } else { uri.to_owned() };
            let issuer = issuer.replace("SELF", &own);
            pages.set(place, status, json!({"issuer": issuer, "jwks_uri": uri}));
        }
        pages.set("/keys", answer, &keys);
        let fetched = PublishedKeys::of_issuer(&own).expect("of this machine").fetch().await;
        let told = match &fetched {
            Ok(text) if *text == keys => "keys",
            Err(PublishedKeysError::Metadata { .. }) => "metadata",
            Err(PublishedKeysError::Url { .. }) => "url",
            Err(PublishedKeysError::Status { .. }) => "status",
            _ => "something else",
        };
        assert_eq!(told, expected, "{case}: {fetched:?}");
    }
}

#[tokio::test]
async fn oversized_answer_and_absent_server_are_errors() {
    let pages = Pages::default();
    let address = pages.start().await;
    pages.set("/keys", 200, "x".repeat(1 << 20));
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    for url in [format!("http://{address}/keys"), format!("http://{free}/keys")] {
        let fetched = PublishedKeys::at(url).expect("of this machine").fetch().await;
        assert!(matches!(fetched, Err(PublishedKeysError::Unreachable { .. })), "{fetched:?}");
    }
}

/// Keeps the keys of these pages up to date in an authenticator.
async fn kept(pages: &Pages, pause: Duration) -> (Authenticator, PublishedKeys) {
    let url = format!("http://{}/keys", pages.start().await);
    let keys = PublishedKeys::at(url).expect("of this machine").with_times(HOUR, pause);
    let auth = Authenticator::jwt(JwtIssuer::without_keys(ISSUER, AUDIENCE));
    let (keeper, accepted) = (keys.clone(), auth.clone());
    tokio::spawn(async move {
        let keep = keeper.refresh(&accepted, |found| {
            let issuer =
                found.ok().and_then(|text| JwtIssuer::from_published(ISSUER, AUDIENCE, &text).ok());
            let is_good = issuer.is_some();
            issuer.into_iter().for_each(|issuer| accepted.replace_jwt(Some(issuer)));
            is_good
        });
        keep.await;
    });
    (auth, keys)
}

/// Waits until a token of this key is accepted.
async fn accepted(auth: &Authenticator, number: u8) {
    let waited = async {
        while auth.authenticate(&headers(number)).is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.expect("the key is fetched");
}

#[tokio::test]
async fn new_key_is_fetched_when_a_token_names_it() {
    let unknown = json!({"kty": "AKP", "alg": "ML-DSA-44", "kid": "later", "pub": "AAAA"});
    let pages = Pages::default();
    pages.set("/keys", 503, "");
    let (auth, _) = kept(&pages, Duration::from_millis(1)).await;
    assert!(auth.authenticate(&headers(1)).is_err(), "no keys yet");
    pages.set("/keys", 200, json!({"keys": [unknown, key(1).1]}));
    accepted(&auth, 1).await;
    pages.set("/keys", 200, json!({"keys": [key(2).1]}));
    assert!(auth.authenticate(&headers(1)).is_ok(), "known keys are not asked for again");
    accepted(&auth, 2).await;
    assert!(auth.authenticate(&headers(1)).is_err(), "a key that is withdrawn");
}

#[tokio::test]
async fn unknown_keys_cause_no_fetch_during_the_pause() {
    let pages = Pages::default();
    pages.set("/keys", 200, json!({"keys": [key(1).1]}));
    let (auth, keys) = kept(&pages, HOUR).await;
    accepted(&auth, 1).await;
    for _ in 0..100 {
        assert!(auth.authenticate(&headers(2)).is_err());
        tokio::task::yield_now().await;
    }
    // Answered after any fetch that began before.
    keys.fetch().await.expect("keys");
    assert_eq!(pages.fetches(), 2);
}
