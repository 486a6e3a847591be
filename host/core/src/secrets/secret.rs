//! Secret values, and the sources that embedders supply them from.
//!
//! An embedder (the program that uses this library) gives the engine a [`SecretSource`]: a vault of
//! its own, or [`StoredSecrets`], which keeps values in memory. The engine asks it for a value by
//! tenant and name at the start of a call whose tool is granted the secret, and when a request uses
//! it. A tool sees only the name, unless its grants show the value to it. `known` returns the
//! values that the engine searches each request of a tenant's tools for, so that none leaves the
//! host unnoticed.
//! A [`Secret`] has 8 to 16,384 bytes and no control character. Its memory is cleared when the last
//! clone is dropped. `Debug` does not show it, and there is no `Serialize`.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use toolcell_contract::controls::enforced;
use zeroize::Zeroizing;

/// The value of a secret. Cheap to clone; its memory is cleared when the last clone is dropped.
/// `Debug` does not show it.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<String>>);

impl Secret {
    /// 8 bytes: the shortest value. A shorter one would match ordinary text when responses are
    /// redacted.
    pub const MIN_BYTES: usize = 8;
    /// 16 KiB, in bytes: the longest value. Most servers accept no longer header. A search for a
    /// longer value in all its encodings would slow down each call that can use it.
    pub const MAX_BYTES: usize = 16 << 10;

    /// Creates a secret with this value.
    ///
    /// # Errors
    /// [`SecretError`] if it is shorter than [`Secret::MIN_BYTES`] or longer than
    /// [`Secret::MAX_BYTES`] bytes, or contains a control character, which a header cannot hold.
    pub fn new(value: impl Into<String>) -> Result<Self, SecretError> {
        let value = Zeroizing::new(value.into());
        let (least, most) = (Self::MIN_BYTES, Self::MAX_BYTES);
        let problem = if value.len() < least && enforced!(SecretLength) {
            format!("its value is shorter than {least} bytes")
        } else if value.len() > most {
            format!("its value is longer than {most} bytes")
        } else if value.chars().any(char::is_control) {
            "its value contains a control character, perhaps a line break".to_owned()
        } else {
            return Ok(Self(Arc::new(value)));
        };
        Err(SecretError(problem))
    }

    /// Returns the value. The caller must keep it secret.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The reason why a secret has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SecretError(String);

impl SecretError {
    /// Creates an error with this text: one sentence, which must not contain the value.
    pub fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}

/// The future that [`SecretSource::secret`] returns.
pub type SecretFuture<'a> = Pin<Box<dyn Future<Output = Result<Secret, SecretError>> + Send + 'a>>;

/// The future that [`SecretSource::known`] returns.
pub type KnownFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Secret>, SecretError>> + Send + 'a>>;

/// A source of the values of secrets: a vault, the environment, files.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use toolcell::secrets::{Secret, SecretError, SecretFuture, SecretSource};
///
/// /// A vault in which each tenant has its own values.
/// struct Vault;
///
/// impl SecretSource for Vault {
///     fn secret<'a>(&'a self, tenant: Option<&'a str>, name: &'a str) -> SecretFuture<'a> {
///         Box::pin(async move {
///             match (tenant, name) {
///                 (Some("acme"), "api_token") => Secret::new("the token of acme"),
///                 _ => Err(SecretError::new(format!("the vault has no `{name}` for this tenant"))),
///             }
///         })
///     }
/// }
///
/// assert_eq!(Vault.secret(Some("acme"), "api_token").await?.expose(), "the token of acme");
/// assert!(Vault.secret(None, "api_token").await.is_err());
/// // An engine asks it when a tool uses a secret.
/// let engine = toolcell::Engine::builder().secrets(Vault).build()?;
/// # drop(engine);
/// # Ok(()) }
/// ```
pub trait SecretSource: Send + Sync + 'static {
    /// Returns the value of this name for this tenant. Called at each use, and at the start of each
    /// call of a tool that is granted the secret. Its time counts as the call's.
    ///
    /// # Errors
    /// [`SecretError`] if the value is not available now.
    fn secret<'a>(&'a self, tenant: Option<&'a str>, name: &'a str) -> SecretFuture<'a>;

    /// Returns all values that must not be sent in a request of a tool for this tenant: the host
    /// searches each request for them. The values that a tool is granted are always included.
    /// Called at each request. Its time counts as the call's.
    ///
    /// # Defaults
    /// None.
    ///
    /// # Errors
    /// [`SecretError`] if the values are not available now: the request is not sent.
    fn known<'a>(&'a self, _tenant: Option<&'a str>) -> KnownFuture<'a> {
        Box::pin(ready(Ok(Vec::new())))
    }
}

/// Secrets in memory: the same values for every tenant, except where a tenant has its own.
///
/// # Defaults
/// No secrets.
#[derive(Debug, Clone, Default)]
pub struct StoredSecrets(BTreeMap<(Option<String>, String), Secret>);

impl StoredSecrets {
    /// Adds a value for every tenant.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.0.insert((None, name.into()), value);
        self
    }

    /// Adds a value for one tenant.
    #[must_use]
    pub fn with_tenant(
        mut self,
        tenant: impl Into<String>,
        name: impl Into<String>,
        value: Secret,
    ) -> Self {
        self.0.insert((Some(tenant.into()), name.into()), value);
        self
    }
}

impl SecretSource for StoredSecrets {
    fn secret<'a>(&'a self, tenant: Option<&'a str>, name: &'a str) -> SecretFuture<'a> {
        let of = |tenant: Option<&str>| self.0.get(&(tenant.map(str::to_owned), name.to_owned()));
        let found = tenant.and_then(|tenant| of(Some(tenant))).or_else(|| of(None)).cloned();
        Box::pin(ready(
            found.ok_or_else(|| SecretError::new(format!("there is no value for `{name}`"))),
        ))
    }

    /// Returns the values of all tenants: no tenant may send another tenant's value.
    fn known<'a>(&'a self, _tenant: Option<&'a str>) -> KnownFuture<'a> {
        Box::pin(ready(Ok(self.0.values().cloned().collect())))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn secrets_are_per_tenant_and_not_in_debug_text() {
        let secret = |value: &str| Secret::new(value).unwrap();
        let stored = StoredSecrets::default().with("token", secret("for-everyone"));
        let stored = stored.with_tenant("acme", "token", secret("for-acme-only"));
        assert!(!format!("{stored:?}").contains("for-"));
        let value = |tenant, name| {
            stored.secret(tenant, name).now_or_never().unwrap().map(|s| s.expose().to_owned())
        };
        assert_eq!(value(None, "token").unwrap(), "for-everyone");
        assert_eq!(value(Some("other"), "token").unwrap(), "for-everyone");
        assert_eq!(value(Some("acme"), "token").unwrap(), "for-acme-only");
        let missing = value(Some("acme"), "key").unwrap_err();
        assert_eq!(missing.to_string(), "there is no value for `key`");
        assert_eq!(stored.known(Some("other")).now_or_never().unwrap().unwrap().len(), 2);
    }

    #[test]
    fn unhideable_or_unsendable_secret_is_refused() {
        for value in
            ["", "short", "with a line\n", "a\u{1b}[31mred", &"x".repeat(Secret::MAX_BYTES + 1)]
        {
            assert!(Secret::new(value).is_err(), "{value:?}");
        }
        assert!(Secret::new("x".repeat(Secret::MAX_BYTES)).is_ok());
    }
}
