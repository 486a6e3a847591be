//! Keeps the authenticator's token issuer in step with the section `[issuer]` of a configuration.
//!
//! `ConfigServer` calls [`Accepted::replace`] at the start and after each reload of the file. It
//! builds a `JwtIssuer` from the section and gives it to the authenticator. If the keys are not in
//! a file, [`Accepted::refresh`] fetches them from the issuer's URL and repeats that as long as the
//! server runs.
//!
//! Keys that cannot be used or fetched change nothing; `/ready` reports them, and the embedder (the
//! program that uses this library) gets a [`Notice`] once. Without earlier keys the server is then
//! not ready; with earlier keys it is, because it accepts tokens as before. Fetched keys stay in
//! use through a reload that does not change the issuer. An issuer that the embedder set stays
//! while the configuration names none.

use tokio::sync::watch;
use toolcell_config::Issuer;
use toolcell_config::tenants::IssuerKeys;

use super::Notice;
use crate::auth::{Authenticator, JwtError, JwtIssuer, PublishedKeys, PublishedKeysError};
use crate::service::Service;

/// The source under which unusable keys of an issuer are reported.
const ISSUER: &str = "issuer";

/// The reason why the tokens of a configuration's issuer cannot be accepted.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// Its keys cannot be used.
    #[error("the keys of the issuer in `{place}` cannot be used")]
    Keys {
        /// The file or the URL of the keys.
        place: String,
        /// The reason.
        source: JwtError,
    },
    /// Its keys cannot be fetched.
    #[error("the keys of the issuer cannot be fetched")]
    Fetch(#[source] PublishedKeysError),
}

impl IssuerError {
    /// Returns advice for the user: one line without a period.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Keys { source, .. } => source.hint(),
            Self::Fetch(error) => error.hint(),
        }
    }
}

/// The issuer whose tokens an authenticator accepts now.
#[derive(Debug)]
pub(super) struct Accepted<'a, F> {
    auth: &'a Authenticator,
    service: &'a Service,
    current: watch::Sender<Option<Issuer>>,
    on_notice: &'a F,
}

impl<'a, F: Fn(Notice)> Accepted<'a, F> {
    /// Starts without an issuer.
    pub(super) fn new(auth: &'a Authenticator, service: &'a Service, on_notice: &'a F) -> Self {
        Self { auth, service, current: watch::Sender::default(), on_notice }
    }

    /// Accepts tokens of the issuer that the configuration names now.
    pub(super) fn replace(&self, said: Option<&Issuer>) {
        let is_same = self.current.borrow().as_ref() == said;
        if !is_same {
            match said.map(issuer_of).transpose() {
                Ok(issuer) => self.auth.replace_jwt(issuer),
                Err(error) => return self.report_key_failure(error),
            }
            self.current.send_replace(said.cloned());
        }
        // Published keys are reported after they are fetched.
        if !said.is_some_and(is_published) {
            self.service.report(ISSUER, None);
        }
    }

    /// Fetches published keys. Never returns.
    pub(super) async fn refresh(&self) {
        let mut changes = self.current.subscribe();
        loop {
            let said = changes.borrow_and_update().clone();
            tokio::select! {
                // The change first: keys that were fetched meanwhile are of the issuer before it,
                // and would be accepted again.
                biased;
                Ok(()) = changes.changed() => {}
                () = self.refresh_keys(said) => {}
            }
        }
    }

    async fn refresh_keys(&self, said: Option<Issuer>) {
        let published = said.and_then(|said| Some((published(&said).ok().flatten()?, said)));
        let Some((keys, said)) = published else { return std::future::pending().await };
        if !self.auth.has_issuer_keys() {
            self.service.report(ISSUER, Some("the keys of the issuer are not fetched yet".into()));
        }
        let mut was_good = true;
        keys.refresh(self.auth, |found| {
            let issuer =
                found.map_err(IssuerError::Fetch).and_then(|text| with_keys(&said, Some(&text)));
            let is_good = issuer.is_ok();
            match issuer {
                Ok(issuer) => {
                    self.auth.replace_jwt(Some(issuer));
                    self.service.report(ISSUER, None);
                    if !was_good {
                        (self.on_notice)(Notice::IssuerKeysFound);
                    }
                }
                // Reported once, not for each attempt.
                Err(error) if was_good => self.report_key_failure(error),
                Err(_) => {}
            }
            was_good = is_good;
            is_good
        })
        .await;
    }

    /// Reports keys that cannot be used. With earlier keys the server stays ready: it accepts
    /// tokens as before.
    fn report_key_failure(&self, error: IssuerError) {
        let (message, details) = ("the keys of the issuer cannot be used", vec![error.to_string()]);
        let has_earlier = self.auth.has_issuer_keys();
        if has_earlier {
            self.service.report_degraded(ISSUER, message, details);
        } else {
            self.service.report_with(ISSUER, message, details);
        }
        (self.on_notice)(Notice::IssuerKeysLost { error, has_earlier });
    }
}

/// Creates the issuer with the keys that are known before any fetch.
pub(super) fn issuer_of(said: &Issuer) -> Result<JwtIssuer, IssuerError> {
    match &said.keys {
        IssuerKeys::File { text, .. } => with_keys(said, Some(text)),
        IssuerKeys::Url(_) | IssuerKeys::Metadata => {
            // Checks the URL.
            published(said)?;
            with_keys(said, None)
        }
    }
}

/// Checks that published keys can be fetched and used now.
pub(super) async fn check(said: &Issuer) -> Result<(), IssuerError> {
    if let Some(keys) = published(said)? {
        with_keys(said, Some(&keys.fetch().await.map_err(IssuerError::Fetch)?))?;
    }
    Ok(())
}

fn is_published(said: &Issuer) -> bool {
    !matches!(said.keys, IssuerKeys::File { .. })
}

/// Returns the source of published keys. `None` if the keys are in a file.
fn published(said: &Issuer) -> Result<Option<PublishedKeys>, IssuerError> {
    let keys = match &said.keys {
        IssuerKeys::File { .. } => return Ok(None),
        IssuerKeys::Url(url) => PublishedKeys::at(url),
        IssuerKeys::Metadata => PublishedKeys::of_issuer(&said.url),
    };
    keys.map(Some).map_err(IssuerError::Fetch)
}

/// Creates the issuer with these keys, or with none for now, and the settings of the configuration.
fn with_keys(said: &Issuer, jwks: Option<&str>) -> Result<JwtIssuer, IssuerError> {
    let (url, audience) = (&said.url, &said.audience);
    let issuer = match (jwks, is_published(said)) {
        (None, _) => Ok(JwtIssuer::without_keys(url, audience)),
        (Some(jwks), true) => JwtIssuer::from_published(url, audience, jwks),
        (Some(jwks), false) => JwtIssuer::from_jwks(url, audience, jwks),
    };
    let issuer = issuer.and_then(|issuer| match &said.algorithms {
        Some(algorithms) => issuer.with_algorithms(algorithms),
        None => Ok(issuer),
    });
    let mut issuer = issuer.map_err(|source| {
        let place = match &said.keys {
            IssuerKeys::File { path, .. } => path.display().to_string(),
            IssuerKeys::Url(url) => url.clone(),
            IssuerKeys::Metadata => said.url.clone(),
        };
        IssuerError::Keys { place, source }
    })?;
    if let Some(claim) = &said.tenant_claim {
        issuer = issuer.with_tenant_claim(claim);
    }
    if let Some(scope) = &said.scope {
        issuer = issuer.with_scope(scope);
    }
    Ok(issuer)
}
