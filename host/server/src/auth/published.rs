//! Fetches the public keys that an issuer of tokens publishes, and fetches them again when they may
//! have changed.
//!
//! [`PublishedKeys::fetch`] returns the text of a JWK set. It uses a given URL of the keys, or
//! reads that URL from the issuer's metadata (OpenID Connect Discovery, else OAuth).
//! [`PublishedKeys::refresh`] runs as long as the server: it fetches every 15 minutes, and earlier
//! if a token names an unknown key. After a successful fetch it waits at least a minute, however
//! many such tokens arrive. A failed fetch is repeated after a second, and the wait doubles up to a
//! minute.
//!
//! Metadata are used only if they name the issuer that was asked for. The keys of an issuer with
//! TLS are fetched with TLS. Redirects are not followed; time and bytes are bounded.
//!
//! Source: OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3.

use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Request, StatusCode};
use serde::Deserialize;
use tokio::time::sleep;

use super::Authenticator;
use super::outbound::{Outbound, UrlError, checked};

/// The most bytes of metadata or of a JWK set.
const MAX_BYTES: usize = 256 << 10;
/// The time limit of one request.
const TIME: Duration = Duration::from_secs(10);
/// The age at which keys are fetched again.
const REFRESH: Duration = Duration::from_secs(15 * 60);
/// The least time between two fetches.
const PAUSE: Duration = Duration::from_secs(60);
/// The wait after the first failed fetch. It doubles with each further failure, up to the pause.
const RETRY: Duration = Duration::from_secs(1);

/// The keys that an issuer publishes, as a JWK set.
///
/// Their URL is read from the issuer's metadata (OpenID Connect Discovery, else RFC 8414), unless
/// it is given.
///
/// # Defaults
/// Fetched every 15 minutes, and after a token with an unknown key, but not within a minute of the
/// last fetch. A failed fetch is repeated after a second, which doubles up to a minute.
#[derive(Debug, Clone)]
pub struct PublishedKeys {
    outbound: Outbound,
    issuer: String,
    url: Option<String>,
    refresh: Duration,
    pause: Duration,
}

/// The reason why there are no keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishedKeysError {
    /// The URL cannot be used.
    #[error("`{url}` cannot be used: {problem}")]
    Url {
        /// The URL.
        url: String,
        /// The reason.
        problem: UrlError,
    },
    /// No response arrived.
    #[error("`{url}` cannot be fetched: {problem}")]
    Unreachable {
        /// The URL.
        url: String,
        /// The reason.
        problem: String,
    },
    /// The response has an unexpected status.
    #[error("`{url}` answered with the status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status.
        status: u16,
    },
    /// The metadata of the issuer cannot be used.
    #[error("the metadata at `{url}` cannot be used: {problem}")]
    Metadata {
        /// The URL.
        url: String,
        /// The reason.
        problem: String,
    },
}

impl PublishedKeysError {
    /// Returns advice for the user: one line without a period.
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

/// The members of an issuer's metadata that are read.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl PublishedKeys {
    /// Creates a source of the keys that the metadata of an issuer name.
    ///
    /// # Errors
    /// [`PublishedKeysError::Url`] if the URL has no TLS and does not name this machine.
    pub fn of_issuer(issuer: impl Into<String>) -> Result<Self, PublishedKeysError> {
        let issuer = issuer.into();
        check_url(&issuer)?;
        let outbound = Outbound::new(TIME, MAX_BYTES);
        Ok(Self { outbound, issuer, url: None, refresh: REFRESH, pause: PAUSE })
    }

    /// Creates a source of the keys at this URL.
    ///
    /// # Errors
    /// [`PublishedKeysError::Url`] if the URL has no TLS and does not name this machine.
    pub fn at(url: impl Into<String>) -> Result<Self, PublishedKeysError> {
        let url = url.into();
        Ok(Self { url: Some(url.clone()), ..Self::of_issuer(url)? })
    }

    /// Sets the age at which keys are fetched again, and the least time between two fetches.
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

    /// Fetches keys repeatedly, and passes each result to `found`, which returns true if the keys
    /// can be used. Never returns.
    pub async fn refresh(
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
                    () = auth.new_key.notified() => {}
                }
            } else {
                sleep(retry).await;
                retry = (retry * 2).min(self.pause);
            }
        }
    }

    /// Returns the URL of the keys, from the first metadata that the issuer has.
    async fn named_by_metadata(&self) -> Result<String, PublishedKeysError> {
        let [first, second] = places(&self.issuer);
        let (url, text) = match self.get(&first).await {
            Ok(text) => (first, text),
            // The issuer does not support OpenID Connect.
            Err(PublishedKeysError::Status { .. }) => (second.clone(), self.get(&second).await?),
            Err(error) => return Err(error),
        };
        let bad = |problem: String| PublishedKeysError::Metadata { url: url.clone(), problem };
        let Metadata { issuer, jwks_uri } =
            serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        if issuer != self.issuer {
            return Err(bad(format!("they are of the issuer `{}`", issuer.escape_debug())));
        }
        check_url(&jwks_uri)?;
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

/// Returns an error for a URL to which no request may be sent.
fn check_url(url: &str) -> Result<(), PublishedKeysError> {
    checked(url)
        .map(drop)
        .map_err(|problem| PublishedKeysError::Url { url: url.escape_debug().to_string(), problem })
}

/// Returns the URLs of an issuer's metadata: of OpenID Connect, and of OAuth.
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
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn metadata_urls_follow_the_standards() {
        for (issuer, openid, oauth) in rows::<(&str, &str, &str)>("auth/published", "urls") {
            assert_eq!(places(issuer), [openid, oauth]);
        }
    }

    #[test]
    fn issuer_without_tls_must_be_local() {
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
