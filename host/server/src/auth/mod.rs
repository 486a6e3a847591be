//! Authentication of requests: from headers to a principal.
//!
//! The HTTP API gives the headers of each request to an [`Authenticator`]. It returns a
//! [`Principal`], which is a tenant together with the key or the user that acts for it, or an
//! [`AuthError`]. The credential is an API key or a token of a configured issuer, as
//! `Authorization: Bearer …`. An open authenticator accepts every request as the local principal; a
//! server with it listens on loopback only.
//!
//! Every refused credential has the same text and the same challenge (the header
//! `WWW-Authenticate`), so the answer does not say what was wrong with it. Only a missing scope
//! has an error of its own. While a stream or session is open, the authenticator is asked again at
//! intervals if its principal is still accepted.

mod jwt;
mod keys;
pub(crate) mod outbound;
mod published;
mod ring_provider;
pub(crate) mod same_url;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use http::HeaderMap;
use http::header::{AUTHORIZATION, AsHeaderName};
use serde::Serialize;
use tokio::sync::Notify;
use toolcell::controls::enforced;

use jwt::SUBJECT_PREFIX;
pub use jwt::{JwtError, JwtIssuer};
use keys::KEY_PREFIX;
pub use keys::{ApiKeyStore, KeyInfo, KeyStoreError, NewKey};
pub use outbound::UrlError;
pub use published::{PublishedKeys, PublishedKeysError};

use crate::tenants::principal::Principal;

/// The path of the server's metadata for OAuth clients. The path of the server's URL follows, if it
/// has one. Source: RFC 9728, section 3.
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Determines from a request's headers which principal sent it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Authenticator {
    /// True if every request is accepted. Shared by clones. Changes from true to false only.
    is_open: Arc<AtomicBool>,
    keys: Option<ApiKeyStore>,
    /// The issuer whose tokens are accepted. Shared by clones.
    jwt: Arc<ArcSwapOption<JwtIssuer>>,
    /// Notified of a token that names a key which the issuer does not have yet.
    new_key: Arc<Notify>,
}

/// The reason why a request has no principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The request has no valid credentials.
    #[error("the request has no valid credentials")]
    Unauthenticated,
    /// The token does not have the scope that the server needs.
    #[error("the token does not have the scope that this server needs")]
    InsufficientScope,
}

/// The metadata with which OAuth clients get a token for this server. Source: RFC 9728, section 2.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct ResourceMetadata {
    /// This server.
    resource: String,
    /// The issuers whose tokens it accepts.
    authorization_servers: Vec<String>,
    /// Always `header`.
    bearer_methods_supported: [&'static str; 1],
    /// The scopes that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
}

impl Authenticator {
    /// Accepts every request as [`Principal::local`]. An [`HttpServer`](crate::HttpServer) with it
    /// listens on loopback only.
    #[must_use]
    pub fn open() -> Self {
        Self::with(true, None)
    }

    /// Accepts requests with a key of this store: `Authorization: Bearer tck_…`. A key that is
    /// added or revoked, also by another process, counts from the next request on.
    #[must_use]
    pub fn api_keys(store: ApiKeyStore) -> Self {
        Self::with(false, Some(store))
    }

    /// Accepts every request until this store has a key, or [`require_keys`](Self::require_keys) is
    /// called. From then on a request needs a key, as with [`api_keys`](Self::api_keys), even if
    /// the last key is revoked.
    #[must_use]
    pub fn open_until_keys(store: ApiKeyStore) -> Self {
        Self::with(true, Some(store))
    }

    fn with(is_open: bool, keys: Option<ApiKeyStore>) -> Self {
        let is_open = Arc::new(is_open.into());
        Self { is_open, keys, jwt: Arc::default(), new_key: Arc::default() }
    }

    /// Requires credentials from now on, in all clones.
    pub fn require_keys(&self) {
        if enforced!(KeyedServer) {
            self.is_open.store(false, Ordering::Release);
        }
    }

    /// Accepts requests with a token of this issuer: `Authorization: Bearer TOKEN`.
    #[must_use]
    pub fn jwt(issuer: JwtIssuer) -> Self {
        let auth = Self::with(false, None);
        auth.replace_jwt(Some(issuer));
        auth
    }

    /// Replaces the issuer whose tokens are accepted, from now on and in all clones. With `None` no
    /// tokens are accepted, and what was opened with tokens ends. With an issuer, credentials are
    /// required from then on.
    pub fn replace_jwt(&self, issuer: Option<JwtIssuer>) {
        if issuer.is_some() {
            self.require_keys();
        }
        self.jwt.store(issuer.map(Arc::new));
    }

    /// Returns true if there is an issuer whose keys are known, so that tokens can be accepted.
    #[cfg(feature = "config")]
    pub(crate) fn has_issuer_keys(&self) -> bool {
        self.jwt.load().as_ref().is_some_and(|issuer| issuer.has_keys())
    }

    /// Returns true if every request is accepted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        if !self.is_open.load(Ordering::Acquire) {
            return false;
        }
        if self.keys.as_ref().is_some_and(ApiKeyStore::may_have_keys) {
            self.require_keys();
        }
        self.is_open.load(Ordering::Acquire)
    }

    /// Returns true if the store of keys cannot be read.
    pub(crate) fn has_unreadable_keys(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| !keys.is_readable())
    }

    /// Returns true if a principal that was accepted before would still be accepted: its key is not
    /// revoked, and its token has not expired and is of the issuer that is configured now.
    pub(crate) fn knows(&self, principal: &Principal) -> bool {
        if principal.is_expired() && enforced!(ExpiredStreams) {
            return false;
        }
        if principal.id().starts_with(SUBJECT_PREFIX) {
            return self.jwt.load().as_ref().is_some_and(|issuer| issuer.is_issuer_of(principal));
        }
        match principal.id().strip_prefix(KEY_PREFIX) {
            Some(id) => self.keys.as_ref().is_some_and(|keys| keys.has(id)),
            None => *principal != Principal::local() || self.is_open(),
        }
    }

    /// Returns the principal that sent a request with these headers.
    ///
    /// # Errors
    /// [`AuthError`].
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, AuthError> {
        if self.is_open() {
            return Ok(Principal::local());
        }
        let shown = bearer(headers).ok_or(AuthError::Unauthenticated)?;
        match (self.jwt.load().as_ref(), &self.keys) {
            // A key has no dots, and a token has two.
            (Some(issuer), _) if shown.contains('.') => {
                issuer.principal_of(shown).inspect_err(|_| {
                    if !issuer.has_key_of(shown) {
                        self.new_key.notify_one();
                    }
                })
            }
            (_, Some(store)) => store.principal_of(shown).ok_or(AuthError::Unauthenticated),
            (_, None) => Err(AuthError::Unauthenticated),
        }
    }

    /// Returns the value of `WWW-Authenticate` for this error. Source: RFC 6750, section 3; RFC
    /// 9728, section 5.1.
    #[must_use]
    pub fn challenge(&self, error: AuthError) -> String {
        let mut challenge = String::from("Bearer realm=\"toolcell\"");
        let loaded = self.jwt.load();
        let Some(issuer) = loaded.as_ref() else { return challenge };
        if error == AuthError::InsufficientScope {
            challenge.push_str(", error=\"insufficient_scope\"");
        }
        if let Some(scope) = issuer.scope() {
            challenge.push_str(&format!(", scope=\"{scope}\""));
        }
        if let Some(metadata) = issuer.metadata_url() {
            challenge.push_str(&format!(", resource_metadata=\"{metadata}\""));
        }
        challenge
    }

    /// Returns the metadata for OAuth clients if `path`, the part after the metadata path, is empty
    /// or the audience's path. `None` for another path, and without an issuer.
    pub(crate) fn metadata(&self, path: &str) -> Option<ResourceMetadata> {
        let issuer = self.jwt.load_full()?;
        let is_here =
            path.is_empty() || issuer.metadata_url().is_some_and(|url| same_path(url.path(), path));
        if !is_here {
            return None;
        }
        Some(ResourceMetadata {
            resource: issuer.audience().to_owned(),
            authorization_servers: vec![issuer.issuer().to_owned()],
            bearer_methods_supported: ["header"],
            scopes_supported: issuer.scope().map(str::to_owned).into_iter().collect(),
        })
    }
}

/// Returns true if `whole` is the metadata path followed by `end`. A final slash does not count.
fn same_path(whole: &str, end: &str) -> bool {
    let end = end.strip_suffix('/').unwrap_or(end);
    whole
        .strip_prefix(METADATA_PATH)
        .is_some_and(|path| path.strip_suffix('/').unwrap_or(path) == end)
}

/// Returns the value of a header, if it has one.
///
/// # Errors
/// It is repeated, or is not text.
pub(crate) fn single_header(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(drop),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Returns the bearer token of a request. `None` if it has several `Authorization` headers.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = single_header(headers, AUTHORIZATION).ok()??.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
