//! The keys that an issuer publishes.
//!
//! In: the issuer's URL, or the URL of its keys. Out: the text of a JWK set.
//! Invariants: metadata count only if they name the issuer that was asked for; an issuer with TLS
//! names keys with TLS; a redirect is not followed; time and bytes are bounded; keys are fetched
//! once in a minute at most, however many tokens with unknown keys arrive.
//! Source: OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3.

use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Request, StatusCode};
use serde::Deserialize;
use tokio::time::sleep;

use super::Authenticator;
use crate::outbound::{Cleartext, Outbound, UrlError, checked};

/// Bytes of metadata or of a JWK set.
const MAX_BYTES: usize = 256 << 10;
/// Time for one request.
const TIME: Duration = Duration::from_secs(10);
/// How old keys get.
const REFRESH: Duration = Duration::from_secs(15 * 60);
/// Time between two fetches, at least.
const PAUSE: Duration = Duration::from_secs(60);
/// Time after the first fetch that failed. It doubles with each further one, up to the pause.
const RETRY: Duration = Duration::from_secs(1);

/// The keys that an issuer publishes, as a JWK set.
///
/// Keys are found by the issuer's metadata (OpenID Connect Discovery, else RFC 8414), unless their
/// URL is given.
///
/// # Defaults
/// They are fetched every 15 minutes; after a token with an unknown key, but not within a minute of
/// the last fetch; and, where a fetch fails, after a second, which doubles up to a minute.
#[derive(Debug, Clone)]
pub struct PublishedKeys {
    outbound: Outbound,
    issuer: String,
    url: Option<String>,
    refresh: Duration,
    pause: Duration,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishedKeysError {
    /// A URL that is not used.
    #[error("`{url}` cannot be used: {problem}")]
    Url {
        /// The URL.
        url: String,
        /// Why.
        problem: UrlError,
    },
    /// There was no response.
    #[error("`{url}` cannot be fetched: {problem}")]
    Unreachable {
        /// The URL.
        url: String,
        /// Why.
        problem: String,
    },
    /// The response is not the one that was asked for.
    #[error("`{url}` answered with the status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
    },
    /// The metadata of an issuer do not fit.
    #[error("the metadata at `{url}` cannot be used: {problem}")]
    Metadata {
        /// The URL.
        url: String,
        /// Why.
        problem: String,
    },
}

impl PublishedKeysError {
    /// What to do about it: one line without a period.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Url { .. } => {
                "write a URL with `https://`; `http://` is for this machine only".into()
            }
            Self::Unreachable { .. } => {
                "check the URL, and whether this machine can reach it".into()
            }
            Self::Status { .. } | Self::Metadata { .. } => {
                "check `url`, or write the URL of the issuer's JWK set as `keys`".into()
            }
        }
    }
}

/// What is read of an issuer's metadata.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl PublishedKeys {
    /// The keys of an issuer that its metadata name.
    ///
    /// # Errors
    /// [`PublishedKeysError::Url`] if the URL has no TLS and is not of this machine.
    pub fn of_issuer(issuer: impl Into<String>) -> Result<Self, PublishedKeysError> {
        let issuer = issuer.into();
        usable(&issuer)?;
        let outbound = Outbound::new(Cleartext::Loopback, TIME, MAX_BYTES);
        Ok(Self { outbound, issuer, url: None, refresh: REFRESH, pause: PAUSE })
    }

    /// The keys at this URL.
    ///
    /// # Errors
    /// [`PublishedKeysError::Url`] if the URL has no TLS and is not of this machine.
    pub fn at(url: impl Into<String>) -> Result<Self, PublishedKeysError> {
        let url = url.into();
        Ok(Self { url: Some(url.clone()), ..Self::of_issuer(url)? })
    }

    /// How old keys get, and the least time between two fetches.
    #[must_use]
    pub fn with_times(mut self, refresh: Duration, pause: Duration) -> Self {
        (self.refresh, self.pause) = (refresh, pause);
        self
    }

    /// Fetches the JWK set.
    ///
    /// # Errors
    /// [`PublishedKeysError`].
    ///
    /// # Cancel safety
    /// When dropped, the connection is closed.
    pub async fn fetch(&self) -> Result<String, PublishedKeysError> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => self.named_by_metadata().await?,
        };
        self.get(&url).await
    }

    /// Fetches keys again and again, and hands each result to `found`, which returns whether the
    /// keys can be used. Does not end.
    pub async fn keep(
        &self,
        auth: &Authenticator,
        mut found: impl FnMut(Result<String, PublishedKeysError>) -> bool,
    ) {
        let mut retry = RETRY.min(self.pause);
        loop {
            if found(self.fetch().await) {
                retry = RETRY.min(self.pause);
                sleep(self.pause).await;
                tokio::select! {
                    () = sleep(self.refresh.saturating_sub(self.pause)) => {}
                    () = auth.new_key() => {}
                }
            } else {
                sleep(retry).await;
                retry = (retry * 2).min(self.pause);
            }
        }
    }

    /// The URL of the keys, from the first metadata that the issuer has.
    async fn named_by_metadata(&self) -> Result<String, PublishedKeysError> {
        let [first, second] = places(&self.issuer);
        let (url, text) = match self.get(&first).await {
            Ok(text) => (first, text),
            // An issuer that is not of OpenID Connect.
            Err(PublishedKeysError::Status { .. }) => (second.clone(), self.get(&second).await?),
            Err(error) => return Err(error),
        };
        let bad = |problem: String| PublishedKeysError::Metadata { url: url.clone(), problem };
        let Metadata { issuer, jwks_uri } =
            serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        if issuer != self.issuer {
            return Err(bad(format!("they are of the issuer `{}`", issuer.escape_debug())));
        }
        usable(&jwks_uri)?;
        if self.issuer.starts_with("https:") && !jwks_uri.starts_with("https:") {
            return Err(bad("their `jwks_uri` does not use `https://`".into()));
        }
        Ok(jwks_uri)
    }

    async fn get(&self, url: &str) -> Result<String, PublishedKeysError> {
        let unreachable =
            |problem: String| PublishedKeysError::Unreachable { url: url.to_owned(), problem };
        let request = Request::get(url).header(ACCEPT, "application/json").body(Bytes::new());
        let request = request.map_err(|error| unreachable(error.to_string()))?;
        let response =
            self.outbound.send(request).await.map_err(|error| unreachable(error.to_string()))?;
        match response.status() {
            StatusCode::OK => Ok(String::from_utf8_lossy(response.body()).into_owned()),
            status => {
                Err(PublishedKeysError::Status { url: url.to_owned(), status: status.as_u16() })
            }
        }
    }
}

/// An error for a URL that no request goes to.
fn usable(url: &str) -> Result<(), PublishedKeysError> {
    let checked = checked(url, Cleartext::Loopback);
    checked
        .map(drop)
        .map_err(|problem| PublishedKeysError::Url { url: url.escape_debug().to_string(), problem })
}

/// Where an issuer has its metadata: of OpenID Connect, and of OAuth.
fn places(issuer: &str) -> [String; 2] {
    let issuer = issuer.trim_end_matches('/');
    let host = issuer.find("://").map_or(0, |at| at + 3);
    let path = issuer[host..].find('/').map_or(issuer.len(), |at| host + at);
    let (origin, path) = issuer.split_at(path);
    [
        format!("{issuer}/.well-known/openid-configuration"),
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_where_the_standards_say() {
        for (issuer, openid, oauth) in [
            (
                "https://a.example",
                "https://a.example/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server",
            ),
            (
                "https://a.example/",
                "https://a.example/.well-known/openid-configuration",
                "https://a.example/.well-known/oauth-authorization-server",
            ),
            (
                "https://a.example:8443/realms/one",
                "https://a.example:8443/realms/one/.well-known/openid-configuration",
                "https://a.example:8443/.well-known/oauth-authorization-server/realms/one",
            ),
        ] {
            assert_eq!(places(issuer), [openid, oauth]);
        }
    }

    #[test]
    fn an_issuer_without_tls_is_of_this_machine() {
        assert!(PublishedKeys::of_issuer("http://127.0.0.1:1/x").is_ok());
        for url in ["http://issuer.example", "ftp://issuer.example", "issuer.example"] {
            assert!(
                matches!(PublishedKeys::of_issuer(url), Err(PublishedKeysError::Url { .. })),
                "{url}"
            );
            assert!(matches!(PublishedKeys::at(url), Err(PublishedKeysError::Url { .. })), "{url}");
        }
    }
}
