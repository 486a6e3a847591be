//! Validates bearer tokens (JWT) of a configured issuer: the server as an OAuth resource server.
//!
//! A [`JwtIssuer`] is built from the URL of an issuer, an audience (the URL of this server) and the
//! issuer's public keys as a JWK set. The authenticator gives it each token that a request sends.
//! It returns a [`Principal`], which is the tenant and the user that the request acts for, or an
//! [`AuthError`]. Issuer, audience, expiry, subject and tenant are required; a scope can be
//! required too.
//!
//! The key decides the algorithm; the token only chooses between keys of one key id (`kid`).
//! Algorithms with a shared secret are not accepted. A token with critical headers is refused, and
//! so is one whose header or claims contain a member twice. A token is for this server only and is
//! never forwarded.
//!
//! Not here: fetching the keys, in `auth/published.rs`.
//!
//! Source: RFC 7519, RFC 8725, RFC 9068.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use toolcell::Json;
use toolcell::controls::enforced;
use url::Url;

use super::same_url::normal;
use super::{AuthError, METADATA_PATH, ring_provider};
use crate::tenants::principal::Principal;

/// The most bytes of a token.
const MAX_TOKEN: usize = 16 << 10;
/// Seconds by which the issuer's clock can differ.
const LEEWAY: u64 = 30;

/// The prefix of the id of a token's principal.
pub(super) const SUBJECT_PREFIX: &str = "sub:";

/// An issuer whose tokens are accepted. Cheap to clone.
///
/// # Defaults
/// The tenant is in the claim `tenant`; no scope is needed.
#[derive(Clone)]
pub struct JwtIssuer {
    keys: Arc<Vec<SigningKey>>,
    issuer: String,
    audience: String,
    tenant_claim: String,
    scope: Option<String>,
}

/// One key with its `kid`. If several have the same `kid` and algorithm, the first is used.
type SigningKey = (Option<String>, Algorithm, DecodingKey);

/// The reason why an issuer's keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// The text is not a JWK set.
    #[error("the keys are not a JWK set: {0}")]
    NotAKeySet(String),
    /// A key cannot be used, or its algorithm is unknown.
    #[error("the key `{id}` cannot be used: {problem}")]
    InvalidKey {
        /// The key's `kid`.
        id: String,
        /// The reason.
        problem: String,
    },
    /// The set has no signing key with an accepted algorithm.
    #[error("the JWK set has no key for signatures with an accepted algorithm")]
    NoKey,
    /// The algorithm cannot be accepted: it is unknown, `none`, or uses a shared secret.
    #[error("the algorithm `{0}` cannot be accepted")]
    InvalidAlgorithm(String),
}

impl JwtError {
    /// Returns advice for the user: one line without a period.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotAKeySet(_) => {
                "give the issuer's JWK set: the document that its `jwks_uri` names".into()
            }
            Self::InvalidKey { .. } => {
                "remove the key from the set, or use one of RSA, P-256, P-384 or Ed25519".into()
            }
            Self::NoKey => {
                "fetch the issuer's JWK set again, or add the algorithm of its keys to `algorithms`"
                    .into()
            }
            Self::InvalidAlgorithm(_) => {
                "write RS256 to RS512, PS256 to PS512, ES256, ES384 or EdDSA".into()
            }
        }
    }
}

impl JwtIssuer {
    /// Creates an issuer of tokens for this audience, which is the URL of the server as its clients
    /// know it. `jwks` is the issuer's JWK set as JSON. Keys of RSA (RS256), P-256 (ES256), P-384
    /// (ES384) and Ed25519 are used; `alg` of an RSA key can select RS384, RS512 or PS256 to PS512.
    ///
    /// # Errors
    /// [`JwtError`].
    pub fn from_jwks(
        issuer: impl Into<String>,
        audience: impl Into<String>,
        jwks: &str,
    ) -> Result<Self, JwtError> {
        ring_provider::install();
        let set: JwkSet = serde_json::from_str(jwks).map_err(|error| match key_list(jwks) {
            Err(problem) => problem,
            Ok(_) => JwtError::NotAKeySet(error.to_string()),
        })?;
        let mut keys = Vec::new();
        for jwk in &set.keys {
            let Some((id, algorithm, key)) = signing_key(jwk)? else { continue };
            if find(&keys, id.as_ref(), algorithm).is_some() {
                let problem = "another key has the same `kid` and the same algorithm".into();
                return Err(JwtError::InvalidKey { id: id.unwrap_or_default(), problem });
            }
            keys.push((id, algorithm, key));
        }
        Self::without_keys(issuer, audience).with_keys(keys)
    }

    /// Like [`from_jwks`](Self::from_jwks), for a JWK set as an issuer publishes it: keys of an
    /// unknown form are left out. Source: RFC 7517, section 5.
    ///
    /// # Errors
    /// [`JwtError::NotAKeySet`], and [`JwtError::NoKey`] if no key is left.
    pub fn from_published(
        issuer: impl Into<String>,
        audience: impl Into<String>,
        jwks: &str,
    ) -> Result<Self, JwtError> {
        ring_provider::install();
        let all = key_list(jwks)?;
        let known = all.iter().filter_map(|key| Jwk::deserialize(key).ok());
        let keys = known.filter_map(|jwk| signing_key(&jwk).ok().flatten()).collect();
        Self::without_keys(issuer, audience).with_keys(keys)
    }

    /// Creates an issuer whose keys are not known yet: none of its tokens is accepted.
    #[must_use]
    pub fn without_keys(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            keys: Arc::default(),
            issuer: issuer.into(),
            audience: audience.into(),
            tenant_claim: "tenant".into(),
            scope: None,
        }
    }

    fn with_keys(mut self, keys: Vec<SigningKey>) -> Result<Self, JwtError> {
        if keys.is_empty() {
            return Err(JwtError::NoKey);
        }
        self.keys = Arc::new(keys);
        Ok(self)
    }

    /// Sets the claim that holds the tenant. Default: `tenant`.
    #[must_use]
    pub fn with_tenant_claim(mut self, claim: impl Into<String>) -> Self {
        self.tenant_claim = claim.into();
        self
    }

    /// Accepts these algorithms only, for example `ES256`. Keys for other algorithms are removed.
    ///
    /// # Errors
    /// [`JwtError::InvalidAlgorithm`] for one that is not asymmetric or not known,
    /// [`JwtError::NoKey`] if no key is left of those that the issuer has.
    pub fn with_algorithms(
        self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, JwtError> {
        let mut allowed = Vec::new();
        for name in names {
            let bad = || JwtError::InvalidAlgorithm(name.as_ref().escape_debug().to_string());
            let algorithm: Algorithm = name.as_ref().parse().map_err(|_| bad())?;
            let is_symmetric =
                matches!(algorithm, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512);
            allowed.push((!is_symmetric).then_some(algorithm).ok_or_else(bad)?);
        }
        if self.keys.is_empty() {
            return Ok(self);
        }
        let mut keys = self.keys.to_vec();
        keys.retain(|(_, algorithm, _)| allowed.contains(algorithm));
        self.with_keys(keys)
    }

    /// Requires this scope in tokens.
    #[must_use]
    pub fn with_scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// The issuer.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The audience: the URL of this server.
    #[must_use]
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// Returns the URL of this server's metadata. `None` if the audience is not an HTTP or HTTPS
    /// URL. Source: RFC 9728, section 3.1.
    pub(super) fn metadata_url(&self) -> Option<Url> {
        let mut url = Url::parse(&self.audience)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http"))?;
        let path = if url.path() == "/" { "" } else { url.path() };
        let path = format!("{METADATA_PATH}{path}");
        url.set_path(&path);
        Some(url)
    }

    /// Returns true if the claim `aud`, one audience or a list, names this server.
    fn is_audience(&self, aud: Option<&Value>) -> bool {
        let is_own =
            |one: &Value| one.as_str().is_some_and(|one| normal(one) == normal(&self.audience));
        match aud {
            Some(Value::Array(all)) => all.iter().all(Value::is_string) && all.iter().any(is_own),
            Some(one) => is_own(one),
            None => false,
        }
    }

    /// Returns true if the issuer's keys are known.
    #[cfg(feature = "config")]
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The scope that tokens must have.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// Returns true if the principal was made from a token of this issuer.
    pub(super) fn is_issuer_of(&self, principal: &Principal) -> bool {
        let rest = principal
            .id()
            .strip_prefix(SUBJECT_PREFIX)
            .and_then(|rest| rest.strip_prefix(&self.issuer));
        rest.is_some_and(|rest| rest.starts_with('#'))
    }

    /// Returns the key with the header's `kid` for the header's algorithm.
    fn key_of(&self, header: &Header) -> Option<&SigningKey> {
        find(&self.keys, header.kid.as_ref(), header.alg)
    }

    /// Returns true if the issuer has the key that a token names, or if the text is not a token.
    pub(super) fn has_key_of(&self, token: &str) -> bool {
        token.len() > MAX_TOKEN
            || decode_header(token).map_or(true, |header| self.key_of(&header).is_some())
    }

    /// Returns the principal of a token.
    pub(super) fn principal_of(&self, token: &str) -> Result<Principal, AuthError> {
        let claims = self.claims_of(token).ok_or(AuthError::Unauthenticated)?;
        let claim = |name: &str| text(&claims, name).ok_or(AuthError::Unauthenticated);
        let (subject, tenant) = (claim("sub")?, claim(&self.tenant_claim)?);
        if let Some(scope) = &self.scope
            && !text(&claims, "scope").is_some_and(|all| all.split(' ').any(|one| one == scope))
        {
            return Err(AuthError::InsufficientScope);
        }
        let principal =
            Principal::new(Some(tenant), &format!("{SUBJECT_PREFIX}{}#{subject}", self.issuer));
        // An integer or a fraction, as the validation has checked.
        let expires = claims.get("exp").unwrap_or(&Value::Null);
        let expires = expires.as_u64().or_else(|| expires.as_f64().map(|expires| expires as u64));
        Ok(principal.with_expiry(expires.unwrap_or(0).saturating_add(LEEWAY)))
    }

    /// Returns the claims of a token that is of this issuer, for this server, and valid now.
    fn claims_of(&self, token: &str) -> Option<Map<String, Value>> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let header = decode_header(token).ok()?;
        // A critical header must be understood, and the server supports none. Source: RFC 7515,
        // section 4.1.11.
        if header.crit.is_some() {
            return None;
        }
        let (_, algorithm, key) = self.key_of(&header)?;
        let mut validation = Validation::new(*algorithm);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer]);
        // Compared below as URLs, not as text.
        validation.validate_aud = false;
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        let claims = decode::<Map<String, Value>>(token, key, &validation).ok()?.claims;
        let is_clear =
            !enforced!(TokenMeaning) || (text(&claims, "iss").is_some() && has_one_meaning(token));
        (self.is_audience(claims.get("aud")) && is_clear).then_some(claims)
    }
}

/// Returns a claim that is a text and not empty.
fn text<'a>(claims: &'a Map<String, Value>, claim: &str) -> Option<&'a str> {
    claims.get(claim)?.as_str().filter(|text| !text.is_empty())
}

impl fmt::Debug for JwtIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtIssuer")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

/// Returns the members of the list `keys`.
fn key_list(jwks: &str) -> Result<Vec<Value>, JwtError> {
    let set = serde_json::from_str::<Value>(jwks);
    match set.map(|mut set| set.get_mut("keys").map(Value::take)) {
        Ok(Some(Value::Array(keys))) => Ok(keys),
        Ok(_) => Err(JwtError::NotAKeySet("there is no list `keys`".into())),
        Err(error) => Err(JwtError::NotAKeySet(error.to_string())),
    }
}

/// Returns the first key with this `kid` for this algorithm.
fn find<'a>(
    keys: &'a [SigningKey],
    id: Option<&String>,
    algorithm: Algorithm,
) -> Option<&'a SigningKey> {
    keys.iter().find(|(known, other, _)| known.as_ref() == id && *other == algorithm)
}

/// Returns true if neither the header nor the claims of a token contain a member twice. With
/// duplicates one reader takes the first, another the last.
fn has_one_meaning(token: &str) -> bool {
    let mut parts = token.split('.').take(2).map(|part| URL_SAFE_NO_PAD.decode(part));
    parts.all(|part| {
        part.is_ok_and(|part| str::from_utf8(&part).is_ok_and(|text| Json::check(text).is_ok()))
    })
}

/// Returns a key with its `kid`, or `None` if it is for encryption.
fn signing_key(jwk: &Jwk) -> Result<Option<SigningKey>, JwtError> {
    if jwk.common.public_key_use == Some(PublicKeyUse::Encryption) {
        return Ok(None);
    }
    let id = jwk.common.key_id.clone();
    let bad =
        |problem: String| JwtError::InvalidKey { id: id.clone().unwrap_or_default(), problem };
    let algorithm = algorithm(jwk).ok_or_else(|| bad("its algorithm is not known here".into()))?;
    let key = DecodingKey::from_jwk(jwk).map_err(|error| bad(error.to_string()))?;
    Ok(Some((id, algorithm, key)))
}

/// Returns the algorithm of a key: its `alg` if that fits the key's type, else the type's usual
/// one.
fn algorithm(jwk: &Jwk) -> Option<Algorithm> {
    let said =
        jwk.common.key_algorithm.map(|algorithm| algorithm.to_string().parse::<Algorithm>().ok());
    let (usual, others): (Algorithm, &[Algorithm]) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, &ring_provider::RSA),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, &[])
        }
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => {
            (Algorithm::ES384, &[])
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, &[])
        }
        // Shared secrets among them: a party that can check such a token can also make one.
        AlgorithmParameters::EllipticCurve(_)
        | AlgorithmParameters::OctetKeyPair(_)
        | AlgorithmParameters::OctetKey(_)
        | AlgorithmParameters::Other(_) => return None,
        _ => return None,
    };
    match said {
        None => Some(usual),
        Some(said) => said.filter(|said| *said == usual || others.contains(said)),
    }
}

#[cfg(test)]
mod tests;
