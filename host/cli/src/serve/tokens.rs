//! The issuer whose tokens the server accepts, and its keys.
//!
//! In: `[issuer]` of a configuration, again after each reload. Out: an issuer for the authenticator.
//! Invariants: keys that cannot be used or fetched change nothing, and are told on standard error and by `/ready`; keys that
//! were fetched stay through a reload that leaves the issuer as it was.

use tokio::sync::watch;
use toolcell_config::{Issuer, IssuerKeys};
use toolcell_server::{Authenticator, JwtError, JwtIssuer, PublishedKeys, PublishedKeysError, Service};

use crate::failure::Failure;
use crate::printer::Printer;

/// What keys of an issuer that cannot be used are reported as, by `/ready`.
const ISSUER: &str = "issuer";

/// The issuer of the configuration that is served.
pub(super) struct Tokens {
    auth: Authenticator,
    current: watch::Sender<Option<Issuer>>,
}

impl Tokens {
    /// Accepts tokens of this issuer.
    pub(super) fn start(auth: Authenticator, said: Option<&Issuer>) -> Result<Self, Failure> {
        let tokens = Self { auth, current: watch::Sender::default() };
        tokens.accept(said)?;
        Ok(tokens)
    }

    /// Whether published keys can be fetched now and used.
    pub(super) async fn check(&self) -> Result<(), Failure> {
        let Some(said) = self.current.borrow().clone() else { return Ok(()) };
        match published(&said)? {
            Some(keys) => with_keys(&said, &keys.fetch().await.map_err(not_fetched)?).map(drop),
            None => Ok(()),
        }
    }

    /// Accepts tokens of the issuer of a configuration that was loaded again.
    pub(super) fn replace(&self, printer: &Printer, service: &Service, said: Option<&Issuer>) {
        match self.accept(said) {
            // Published keys are reported when they were fetched.
            Ok(()) if said.is_some_and(is_published) => {}
            Ok(()) => service.report(ISSUER, None),
            Err(failure) => self.refused(printer, service, &failure),
        }
    }

    fn accept(&self, said: Option<&Issuer>) -> Result<(), Failure> {
        let is_same = self.current.borrow().as_ref() == said;
        if is_same && said.is_some_and(is_published) {
            return Ok(());
        }
        let issuer = match said {
            None => None,
            Some(said) => match &said.keys {
                IssuerKeys::File { text, .. } => Some(with_keys(said, text)?),
                IssuerKeys::Url(_) | IssuerKeys::Metadata => {
                    // An error for a URL that is not used.
                    published(said)?;
                    Some(
                        dressed(said, JwtIssuer::without_keys(&said.url, &said.audience))
                            .map_err(|e| bad_keys(said, e))?,
                    )
                }
            },
        };
        self.auth.replace_jwt(issuer);
        self.current.send_replace(said.cloned());
        Ok(())
    }

    /// Fetches published keys as long as the server runs. Does not end.
    pub(super) async fn keep(&self, printer: &Printer, service: &Service) {
        let mut changes = self.current.subscribe();
        loop {
            let said = changes.borrow_and_update().clone();
            tokio::select! {
                () = self.fetched(printer, service, said) => {}
                changed = changes.changed() => if changed.is_err() { return std::future::pending().await },
            }
        }
    }

    async fn fetched(&self, printer: &Printer, service: &Service, said: Option<Issuer>) {
        let published = said.and_then(|said| Some((published(&said).ok().flatten()?, said)));
        let Some((keys, said)) = published else { return std::future::pending().await };
        if !self.auth.has_issuer_keys() {
            service.report(ISSUER, Some("the keys of the issuer are not fetched yet".into()));
        }
        let mut was_good = true;
        keys.keep(&self.auth, |found| {
            let issuer = found.map_err(not_fetched).and_then(|text| with_keys(&said, &text));
            let is_good = issuer.is_ok();
            match issuer {
                Ok(issuer) => {
                    self.auth.replace_jwt(Some(issuer));
                    service.report(ISSUER, None);
                    if !was_good {
                        printer.note("note", "the keys of the issuer can be fetched and used again");
                    }
                }
                // Told once, not with each try.
                Err(failure) if was_good => self.refused(printer, service, &failure),
                Err(_) => {}
            }
            was_good = is_good;
            is_good
        })
        .await;
    }

    /// Tells of keys that cannot be used. With earlier ones the server stays ready: it accepts tokens as before.
    fn refused(&self, printer: &Printer, service: &Service, failure: &Failure) {
        let (message, details) = ("the keys of the issuer cannot be used", vec![failure.message()]);
        let until = if self.auth.has_issuer_keys() {
            service.report_degraded(ISSUER, message, details);
            "the earlier ones stay in use"
        } else {
            service.report_with(ISSUER, message, details);
            "every token is refused"
        };
        printer.note("warning", &format!("{message}: {until}"));
        failure.tell(printer);
    }
}

fn is_published(said: &Issuer) -> bool {
    !matches!(said.keys, IssuerKeys::File { .. })
}

/// The keys that are fetched, if they are.
fn published(said: &Issuer) -> Result<Option<PublishedKeys>, Failure> {
    let keys = match &said.keys {
        IssuerKeys::File { .. } => return Ok(None),
        IssuerKeys::Url(url) => PublishedKeys::at(url),
        IssuerKeys::Metadata => PublishedKeys::of_issuer(&said.url),
    };
    keys.map(Some).map_err(not_fetched)
}

/// The issuer with these keys.
fn with_keys(said: &Issuer, jwks: &str) -> Result<JwtIssuer, Failure> {
    let issuer = if is_published(said) {
        JwtIssuer::from_published(&said.url, &said.audience, jwks)
    } else {
        JwtIssuer::from_jwks(&said.url, &said.audience, jwks)
    };
    issuer.and_then(|issuer| dressed(said, issuer)).map_err(|error| bad_keys(said, error))
}

/// The issuer with what else the configuration says.
fn dressed(said: &Issuer, mut issuer: JwtIssuer) -> Result<JwtIssuer, JwtError> {
    if let Some(algorithms) = &said.algorithms {
        issuer = issuer.with_algorithms(algorithms)?;
    }
    if let Some(claim) = &said.tenant_claim {
        issuer = issuer.with_tenant_claim(claim);
    }
    Ok(match &said.scope {
        Some(scope) => issuer.with_scope(scope),
        None => issuer,
    })
}

fn bad_keys(said: &Issuer, error: JwtError) -> Failure {
    let hint = error.hint();
    let place = match &said.keys {
        IssuerKeys::File { path, .. } => path.display().to_string(),
        IssuerKeys::Url(url) => url.clone(),
        IssuerKeys::Metadata => said.url.clone(),
    };
    let message = format!("the keys of the issuer in `{place}` cannot be used");
    Failure::file(anyhow::Error::new(error).context(message), hint)
}

fn not_fetched(error: PublishedKeysError) -> Failure {
    let hint = error.hint();
    Failure::environment(anyhow::Error::new(error).context("the keys of the issuer cannot be fetched"), hint)
}
