//! Stores answers for requests that a client repeats with the same `Idempotency-Key`.
//!
//! A client that lost its connection repeats a request with the same key, so that its calls are not
//! made twice. The routes for calls, batches and steps call [`Idempotency::begin`] with the
//! principal (the authenticated sender), the key, the route and the body. The first request gets a
//! [`Claim`], with which it stores its answer; a repeated one gets the stored answer. It is refused
//! while the first still runs, or if its body differs. A claim that ends without an answer frees
//! its key, so only answers of calls that were made are stored. They are kept in memory for
//! [`LIFETIME`].
//!
//! A key belongs to its principal. A principal has at most [`MAX_KEYS`] keys, [`MOST_RUNNING`] of
//! them with running requests, and [`MOST_BYTES`] of answers. All principals of a tenant together
//! have at most [`OF_TENANT`] times as much, because an issuer can name any number of them. The
//! oldest answers are removed first.
//!
//! Source: docs/threat-model.md, row 112.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use toolcell::clock::Clock;
use toolcell::controls::bound;

use super::problem::Problem;
use crate::auth::single_header;
use crate::tenants::principal::Principal;

/// The request header with the key.
pub(super) const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The response header that marks a stored answer.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The time for which an answer is stored.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The most keys of one principal.
const MAX_KEYS: usize = 256;
/// The most bytes of stored answers of one principal.
const MOST_BYTES: usize = 4 << 20;
/// The most running requests of one principal: they continue without their connections.
const MOST_RUNNING: usize = 32;
/// The bounds of all principals of a tenant together, as a multiple of those of one principal.
const OF_TENANT: usize = 8;
/// The most characters of a key.
const MAX_KEY: usize = 255;
/// The time after which to repeat a request whose first is still running.
const RETRY: Duration = Duration::from_secs(1);

type Fingerprint = [u8; 32];
/// The requests of a principal, by its keys.
type Entries = HashMap<String, Entry>;
type Principals = HashMap<Principal, Entries>;

/// The store of answers.
#[derive(Debug)]
pub(crate) struct Idempotency {
    clock: Arc<dyn Clock>,
    principals: Arc<Mutex<Principals>>,
}

#[derive(Debug)]
struct Entry {
    request: Fingerprint,
    since: Instant,
    /// `None` while the first request runs.
    answer: Option<Bytes>,
}

/// The result of beginning a request.
pub(super) enum BeginResult {
    /// The first request: its calls are made, and its answer is stored.
    First(Claim),
    /// The stored answer of an earlier request.
    Repeated(Bytes),
}

/// A key whose request is running.
pub(super) struct Claim {
    principals: Arc<Mutex<Principals>>,
    principal: Principal,
    key: String,
}

/// Returns the key of a request, if it has one.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let is_key = |key: &str| {
        (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match single_header(headers, HEADER) {
        Ok(None) => Ok(None),
        Ok(Some(key)) if is_key(key) => Ok(Some(key.to_owned())),
        Ok(Some(_)) | Err(()) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_idempotency_key",
            "the header `Idempotency-Key` is repeated, or is not 1 to 255 visible ASCII characters",
        )),
    }
}

impl Idempotency {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, principals: Arc::default() }
    }

    /// Begins a request: claims its key, or returns the stored answer.
    pub(super) fn begin(
        &self,
        principal: &Principal,
        key: &str,
        route: &str,
        body: &[u8],
    ) -> Result<BeginResult, Problem> {
        let request: Fingerprint = Sha256::new()
            .chain_update(route)
            .chain_update([0])
            .chain_update(body)
            .finalize()
            .into();
        let now = self.clock.now();
        let is_fresh = |entry: &Entry| {
            entry.answer.is_none() || now.saturating_duration_since(entry.since) < LIFETIME
        };
        // Copied before the lock is taken: one for the map, one for the claim.
        let (entry_key, key) = (key.to_owned(), key.to_owned());
        let mut principals = self.principals.lock();
        principals.retain(|_, entries| {
            entries.retain(|_, entry| is_fresh(entry));
            !entries.is_empty()
        });
        if let Some(entry) = principals.get(principal).and_then(|entries| entries.get(&key)) {
            return match &entry.answer {
                _ if entry.request != request => Err(Problem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "idempotency_mismatch",
                    "this idempotency key was used for another request",
                )
                .with_hint("use a new key for each request")),
                None => Err(Problem::new(
                    StatusCode::CONFLICT,
                    "idempotency_in_flight",
                    "the first request with this idempotency key is running",
                )
                .with_retry_after(RETRY)),
                Some(answer) => Ok(BeginResult::Repeated(answer.clone())),
            };
        }
        for of in [KeyScope::Tenant(principal.tenant()), KeyScope::Principal(principal)] {
            if of.usage(&principals).running >= of.times(MOST_RUNNING)
                || !of.make_room(&mut principals, |used| used.keys < of.times(MAX_KEYS))
            {
                let detail = "too many requests with idempotency keys are running";
                return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "overloaded", detail)
                    .with_retry_after(RETRY));
            }
        }
        let entry = Entry { request, since: now, answer: None };
        principals.entry(principal.clone()).or_default().insert(entry_key, entry);
        let principal = principal.clone();
        Ok(BeginResult::First(Claim { principals: Arc::clone(&self.principals), principal, key }))
    }
}

impl Claim {
    /// Stores the answer.
    pub(super) fn store(self, answer: Bytes) {
        if answer.len() > MOST_BYTES {
            return;
        }
        let mut principals = self.principals.lock();
        let principal = &self.principal;
        for of in [KeyScope::Tenant(principal.tenant()), KeyScope::Principal(principal)] {
            let room = of.times(MOST_BYTES).saturating_sub(answer.len());
            of.make_room(&mut principals, |used| used.bytes <= room);
        }
        let entries = principals.get_mut(principal);
        if let Some(entry) = entries.and_then(|entries| entries.get_mut(&self.key)) {
            entry.answer = Some(answer);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut principals = self.principals.lock();
        if let Some(entries) = principals.get_mut(&self.principal)
            && entries.get(&self.key).is_some_and(|entry| entry.answer.is_none())
        {
            entries.remove(&self.key);
        }
    }
}

/// A principal, or all principals of a tenant: their keys are counted together.
#[derive(Clone, Copy)]
enum KeyScope<'a> {
    Principal(&'a Principal),
    Tenant(Option<&'a str>),
}

/// The amount in use now.
#[derive(Default)]
struct KeyUsage {
    keys: usize,
    running: usize,
    /// Bytes of stored answers.
    bytes: usize,
}

impl KeyScope<'_> {
    fn includes(self, other: &Principal) -> bool {
        match self {
            Self::Principal(principal) => principal == other,
            Self::Tenant(tenant) => tenant == other.tenant(),
        }
    }

    /// Converts the bound of one principal to the bound of this group.
    fn times(self, most: usize) -> usize {
        match self {
            Self::Principal(_) => most,
            Self::Tenant(_) => bound!(TenantAnswers, most * OF_TENANT),
        }
    }

    fn usage(self, principals: &Principals) -> KeyUsage {
        let theirs = principals.iter().filter(|(principal, _)| self.includes(principal));
        let entries = theirs.flat_map(|(_, entries)| entries);
        entries.fold(KeyUsage::default(), |used, (_, Entry { answer, .. })| KeyUsage {
            keys: used.keys + 1,
            running: used.running + usize::from(answer.is_none()),
            bytes: used.bytes + answer.as_ref().map_or(0, Bytes::len),
        })
    }

    /// Removes the oldest answers until the rest fits. Returns true if it does.
    fn make_room(self, principals: &mut Principals, fits: impl Fn(&KeyUsage) -> bool) -> bool {
        let mut used = self.usage(principals);
        if fits(&used) {
            return true;
        }
        let theirs = principals.iter().filter(|(principal, _)| self.includes(principal));
        let answered = theirs.flat_map(|(principal, entries)| {
            let answered = entries.iter().filter(|(_, entry)| entry.answer.is_some());
            answered.map(move |(key, entry)| (entry.since, principal.clone(), key.clone()))
        });
        let mut oldest: Vec<_> = answered.collect();
        oldest.sort_by_key(|(since, ..)| *since);
        for (_, principal, key) in oldest {
            let entry = principals.get_mut(&principal).and_then(|entries| entries.remove(&key));
            let answer = entry.and_then(|entry| entry.answer);
            used.keys -= 1;
            used.bytes -= answer.map_or(0, |answer| answer.len());
            if fits(&used) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use toolcell::clock::ManualClock;

    use super::*;

    /// Begins a request of a new principal, as with the users of an issuer.
    fn claim(kept: &Idempotency, tenant: &str, number: usize) -> Option<Claim> {
        let principal = Principal::new(Some(tenant), &format!("user:{number}"));
        match kept.begin(&principal, "key", "route", b"body") {
            Ok(BeginResult::First(claim)) => Some(claim),
            Ok(BeginResult::Repeated(_)) => panic!("it is new"),
            Err(_) => None,
        }
    }

    fn usage_of(kept: &Idempotency, tenant: &str) -> KeyUsage {
        KeyScope::Tenant(Some(tenant)).usage(&kept.principals.lock())
    }

    #[test]
    fn principals_of_tenant_share_idempotency_limits() {
        let clock = ManualClock::new();
        let kept = Idempotency::new(Arc::new(clock.clone()));
        let running: Vec<_> = (0..=OF_TENANT * MOST_RUNNING)
            .map_while(|number| claim(&kept, "acme", number))
            .collect();
        assert_eq!(running.len(), OF_TENANT * MOST_RUNNING);
        assert!(claim(&kept, "globex", 0).is_some(), "another tenant");
        drop(running);
        let answer = Bytes::from(vec![0; MOST_BYTES / 4]);
        for number in 0..8 * OF_TENANT {
            claim(&kept, "acme", number).expect("room").store(answer.clone());
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(usage_of(&kept, "acme").bytes, OF_TENANT * MOST_BYTES);
        let last = OF_TENANT * MAX_KEYS + 8;
        for number in 0..=last {
            claim(&kept, "globex", number).expect("room").store(Bytes::new());
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(usage_of(&kept, "globex").keys, OF_TENANT * MAX_KEYS);
        assert_eq!(usage_of(&kept, "acme").keys, 4 * OF_TENANT);
        // The newest are kept.
        let newest = Principal::new(Some("globex"), &format!("user:{last}"));
        assert!(matches!(
            kept.begin(&newest, "key", "route", b"body"),
            Ok(BeginResult::Repeated(_))
        ));
    }
}
