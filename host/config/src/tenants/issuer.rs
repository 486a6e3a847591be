//! The issuer whose tokens a server accepts: the section `[issuer]`.
//!
//! An issuer is a login service whose signed tokens (JWT) name a tenant, so that clients need no
//! API key. Reading a configuration calls [`issuer`] with the section, which returns an [`Issuer`]:
//! its URL, the expected audience, the source of its public keys, and the accepted algorithms. Only
//! asymmetric algorithms can be listed. The file of keys is read only if no other user can write to
//! it, because its writer decides who is authenticated.
//!
//! Not here: validating the keys, and fetching those that the issuer publishes, which the server
//! does.

use std::path::{Path, PathBuf};

use toolcell::names;

use crate::paths::files;
use crate::problem::Problems;
use crate::schema::{self, At};

/// The algorithms that can be listed.
const ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

/// An issuer whose tokens (JWT) a server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issuer {
    /// The expected value of the claim `iss`.
    pub url: String,
    /// The URL of the server: the expected value of the claim `aud`.
    pub audience: String,
    /// The source of its keys.
    pub keys: IssuerKeys,
    /// The accepted algorithms. `None`: each that a key is for.
    pub algorithms: Option<Vec<String>>,
    /// The claim that names the tenant. `None`: `tenant`.
    pub tenant_claim: Option<String>,
    /// A scope that each token must have.
    pub scope: Option<String>,
}

/// The source of an issuer's public keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerKeys {
    /// A file.
    File {
        /// The file.
        path: PathBuf,
        /// Its text: a JWK set, not checked yet.
        text: String,
    },
    /// A URL of the JWK set. Not checked yet.
    Url(String),
    /// The URL in the issuer's metadata.
    Metadata,
}

/// Returns the issuer of a section, unless it has problems.
pub(crate) fn issuer(
    problems: &mut Problems<'_>,
    base: &Path,
    said: &schema::Issuer,
) -> Option<Issuer> {
    let schema::Issuer { url, audience, keys, algorithms, tenant_claim, scope } = said;
    for text in [url, audience] {
        if !is_url(&text.value) {
            let message =
                format!("`{}` is not a URL of an issuer or a server", text.value.escape_debug());
            problems.error(&text.span, message, "write for instance `https://login.example.com`");
        }
    }
    for algorithm in algorithms.iter().flatten() {
        check_algorithm(problems, algorithm);
    }
    if algorithms.as_ref().is_some_and(Vec::is_empty) {
        let hint = "list one, for instance `algorithms = [\"ES256\"]`, or leave `algorithms` out";
        problems.error(
            &url.span,
            "the issuer has no algorithm: every token would be refused",
            hint,
        );
    }
    for text in tenant_claim.iter().chain(scope) {
        if text.value.is_empty()
            || text.value.contains(|c: char| c.is_control() || c == ' ' || c == '"' || c == '\\')
        {
            let message =
                format!("`{}` is not the name of a claim or a scope", text.value.escape_debug());
            problems.error(&text.span, message, "write one word, for instance `tenant`");
        }
    }
    let keys = match keys {
        None => IssuerKeys::Metadata,
        Some(keys) if keys.value.starts_with("https://") || keys.value.starts_with("http://") => {
            IssuerKeys::Url(keys.value.clone())
        }
        Some(keys) => {
            let path = base.join(&keys.value);
            match files::issuer_keys(&path) {
                Ok(text) => IssuerKeys::File { path, text },
                Err(error) => {
                    problems.error(&keys.span, error.to_string(), error.hint());
                    return None;
                }
            }
        }
    };
    let value = |said: &Option<At<String>>| said.as_ref().map(|said| said.value.clone());
    Some(Issuer {
        url: url.value.clone(),
        audience: audience.value.clone(),
        keys,
        algorithms: algorithms
            .as_ref()
            .map(|all| all.iter().map(|one| one.value.clone()).collect()),
        tenant_claim: value(tenant_claim),
        scope: value(scope),
    })
}

fn check_algorithm(problems: &mut Problems<'_>, algorithm: &At<String>) {
    if ALGORITHMS.contains(&algorithm.value.as_str()) {
        return;
    }
    let shown = algorithm.value.escape_debug();
    let (message, hint) = if algorithm.value.starts_with("HS") {
        let message = format!(
            "`{shown}` signs with a shared secret: each server that checks tokens could also make them"
        );
        (message, "use an asymmetric algorithm of the issuer, for instance `ES256`".to_owned())
    } else {
        let listed = || format!("one of {}", ALGORITHMS.join(", "));
        (
            format!("there is no algorithm `{shown}`"),
            names::did_you_mean(&algorithm.value, ALGORITHMS, listed),
        )
    };
    problems.error(&algorithm.span, message, hint);
}

/// Returns true for `http://` or `https://`, followed by a host and only characters that may occur
/// in a header.
fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    is_plain
        && rest
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['))
}
