//! API keys: generates keys, and finds the tenant that a key belongs to.
//!
//! A server fills [`ApiKeys`] with the digests of keys, each with its tenant, and calls
//! [`ApiKeys::tenant_of`] with the key that a client sent; `None` means an unknown key. An operator
//! creates a key with [`ApiKey::generate`] and stores its [`KeyDigest`]. Only the SHA-256 of a key
//! is kept, never the key. The time of a lookup depends neither on how similar a wrong key is to a
//! right one, nor on the number of keys, so that it reveals nothing to an attacker.
//!
//! Not here: the way of a key to the host, and the number of attempts that a client has; the server
//! does both.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use toolcell_contract::controls::enforced;
use toolcell_contract::error::Error;
use zeroize::Zeroizing;

/// Bytes of a key that are hashed. Several times the length of a key that [`ApiKey::generate`]
/// returns.
const MAX_KEY: usize = 256;
/// Bytes of randomness in a key. They cannot be guessed, so one round of a fast hash is enough.
const KEY_BYTES: usize = 32;
/// The prefix of a key: people and secret scanners recognise it.
const PREFIX: &str = "tck_";
/// The prefix of a digest.
const ALGORITHM: &str = "sha256:";

/// A new random key, to be given to a client. It is shown only by [`expose`](Self::expose), never
/// by `Debug`.
///
/// # Shape
/// `tck_` and 43 characters of base64url: 256 bits of the system's randomness.
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// Generates a key.
    ///
    /// # Errors
    /// [`Error::is_environment`] if the system has no randomness.
    pub fn generate() -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(bytes.as_mut_slice()).map_err(|error| {
            Error::engine("the system has no randomness for a key").with_source(error)
        })?;
        let mut key = Zeroizing::new(PREFIX.to_owned());
        URL_SAFE_NO_PAD.encode_string(bytes.as_slice(), &mut key);
        Ok(Self(key))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the digest that the host stores.
    #[must_use]
    pub fn digest(&self) -> KeyDigest {
        KeyDigest::of(&self.0)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The SHA-256 digest of a key. A host stores this, not the key.
///
/// # Shape
/// As text, `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// Computes the digest of a key. The key must have at least 128 random bits: a key that a
    /// person makes up can be guessed from its digest.
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key).into())
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // blake3's type is used for its hexadecimal form alone: the digest is a SHA-256.
        write!(f, "{ALGORITHM}{}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// The error for a text that is not a digest of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key's digest is `sha256:` and 64 hexadecimal digits")]
pub struct InvalidDigest;

impl FromStr for KeyDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix(ALGORITHM).ok_or(InvalidDigest)?;
        // As for `Display`: 64 hexadecimal digits of either case, and nothing else.
        let digest = blake3::Hash::from_hex(digits).map_err(|_| InvalidDigest)?;
        Ok(Self(*digest.as_bytes()))
    }
}

/// The error for a key that was added twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this API key was added already: a key can be added once, for one tenant")]
pub struct KnownKey;

/// The keys that a host accepts, each with its tenant. A tenant can have several keys, so that one
/// can be replaced without an interruption.
///
/// # Units
/// [`tenant_of`](Self::tenant_of) takes about a microsecond, for any number of keys.
#[derive(Clone)]
pub struct ApiKeys {
    /// Maps a keyed hash of each digest to the digest and its tenant. The hash's key is random and
    /// known to this process only, so the place where a lookup ends reveals nothing about the
    /// digest.
    known: HashMap<[u8; 32], (KeyDigest, String)>,
    blind: [u8; 32],
}

impl ApiKeys {
    /// Creates an empty set of keys.
    ///
    /// # Errors
    /// [`Error::is_environment`] if the system has no randomness.
    pub fn new() -> Result<Self, Error> {
        let mut blind = [0; 32];
        getrandom::fill(&mut blind)
            .map_err(|error| Error::engine("the system has no randomness").with_source(error))?;
        Ok(Self { known: HashMap::new(), blind })
    }

    /// Adds a key of a tenant.
    ///
    /// # Errors
    /// [`KnownKey`] if the key was added before, for this tenant or another one.
    pub fn with(mut self, tenant: impl Into<String>, digest: KeyDigest) -> Result<Self, KnownKey> {
        match self.known.entry(*blake3::keyed_hash(&self.blind, &digest.0).as_bytes()) {
            Entry::Occupied(_) => Err(KnownKey),
            Entry::Vacant(place) => {
                place.insert((digest, tenant.into()));
                Ok(self)
            }
        }
    }

    /// Returns the tenant that a key belongs to, or `None` for an unknown key. All unknown keys
    /// take the same time. Source: docs/threat-model.md, row 49.
    #[must_use]
    pub fn tenant_of(&self, shown: &str) -> Option<&str> {
        self.find_tenant(shown, |_| {})
    }

    /// Does the work of [`tenant_of`](Self::tenant_of); calls `did` before each step.
    fn find_tenant(&self, shown: &str, mut did: impl FnMut(Step)) -> Option<&str> {
        let shown = shown.get(..MAX_KEY).unwrap_or(shown);
        did(Step::Hashed);
        let shown = KeyDigest::of(shown);
        did(Step::LookedUp);
        let found = self.known.get(blake3::keyed_hash(&self.blind, &shown.0).as_bytes());
        if found.is_none() && !enforced!(KeyPath) {
            return None;
        }
        let (digest, tenant) =
            found.map_or((KeyDigest(self.blind), None), |(digest, tenant)| (*digest, Some(tenant)));
        did(Step::Compared);
        let same = bool::from(digest.0.ct_eq(&shown.0));
        tenant.filter(|_| same).map(String::as_str)
    }
}

/// A step of the lookup of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The SHA-256 of the key is computed.
    Hashed,
    /// The keyed hash of that digest is looked up.
    LookedUp,
    /// The digest is compared in constant time, with the stored digest or with another value if no
    /// digest was found.
    Compared,
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeys").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(known: &[(&str, &ApiKey)]) -> ApiKeys {
        let none = ApiKeys::new().unwrap();
        known.iter().fold(none, |keys, (tenant, key)| keys.with(*tenant, key.digest()).unwrap())
    }

    #[test]
    fn key_matches_its_tenant_and_near_keys_match_none() {
        let [first, second, third, stranger] = std::array::from_fn(|_| ApiKey::generate().unwrap());
        let keys = keys(&[("acme", &first), ("acme", &second), ("other", &third)]);
        let found = [&first, &second, &third, &stranger].map(|key| keys.tenant_of(key.expose()));
        assert_eq!(found, [Some("acme"), Some("acme"), Some("other"), None]);
        let key = first.expose();
        let mut like: Vec<String> = (0..key.len()).map(|end| key[..end].to_owned()).collect();
        like.extend(["=", " ", "\0"].map(|end| format!("{key}{end}")));
        like.extend([format!(" {key}"), key.to_ascii_uppercase(), first.digest().to_string()]);
        like.extend([key.repeat(2), key.repeat(100_000), "é".repeat(MAX_KEY)]);
        for other in like {
            assert_eq!(keys.tenant_of(&other), None, "{other:.80}");
        }
        assert_eq!(keys.with("other", first.digest()).unwrap_err(), KnownKey);
        assert_eq!(ApiKeys::new().unwrap().tenant_of(key), None);
    }

    /// Counts steps instead of measuring time: every key takes the same steps, and each step takes
    /// the same time.
    #[test]
    fn every_key_lookup_takes_the_same_steps() {
        let [known, revoked, stranger] = std::array::from_fn(|_| ApiKey::generate().unwrap());
        let all = keys(&[("acme", &known), ("gone", &revoked)]);
        let left = keys(&[("acme", &known)]);
        let steps = |keys: &ApiKeys, shown: &str| {
            let mut steps = Vec::new();
            let tenant = keys.find_tenant(shown, |step| steps.push(step)).map(str::to_owned);
            (tenant, steps)
        };
        let (tenant, expected) = steps(&all, known.expose());
        assert_eq!(tenant.as_deref(), Some("acme"));
        assert_eq!(expected, [Step::Hashed, Step::LookedUp, Step::Compared]);
        let [near, cut] = [known.expose().replace("tck_", "tck-"), known.expose()[..20].to_owned()];
        for shown in
            [revoked.expose(), stranger.expose(), &near, &cut, "", &known.digest().to_string()]
        {
            assert_eq!(steps(&left, shown), (None, expected.clone()), "{shown}");
        }
        assert_eq!(steps(&keys(&[]), known.expose()), (None, expected), "of a host without keys");
    }

    #[test]
    fn keys_are_neither_stored_nor_shown() {
        let key = ApiKey::generate().unwrap();
        let (keys, digest) = (keys(&[("acme", &key)]), key.digest());
        let shown = format!("{key:?} {keys:?} {digest:?} {digest}");
        for part in [key.expose(), &key.expose()[PREFIX.len()..][..8]] {
            assert!(!shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn digest_round_trips_and_other_text_is_refused() {
        // Source: FIPS 180-2, appendix B.1.
        let digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(KeyDigest::of("abc").to_string(), digest);
        assert_eq!(digest.parse(), Ok(KeyDigest::of("abc")));
        assert_eq!(digest.to_uppercase().replace("SHA", "sha").parse(), Ok(KeyDigest::of("abc")));
        let (long, signed) = (format!("{digest}0"), digest.replace("ba", "+a"));
        let wide = format!("sha256:{}", "é".repeat(32));
        for other in ["", "abc", &digest[7..], &digest[..70], &long, &signed, &wide] {
            assert_eq!(other.parse::<KeyDigest>(), Err(InvalidDigest), "{other}");
        }
    }
}
