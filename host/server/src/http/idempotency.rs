//! Stores answers for requests that a client repeats with the same `Idempotency-Key`.
//!
//! A client that lost its connection repeats a request with the same key, so that its calls are not
//! made twice. The routes for calls, batches and steps call [`Idempotency::begin`] with the
//! principal (the authenticated sender), the key, the route and the body. The first request gets a
//! [`Claim`], with which it stores its answer; a repeated one gets the stored answer. It is refused
//! while the first still runs, or if its body differs. A claim that ends without an answer frees
//! its key, so only answers of calls that were made are stored. They are kept in memory for
//! [`LIFETIME`]. If an answer is too long, only its key is kept, and a repeated request is refused.
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
use toolcell::tenant::{PerTenant, TenantPart, TenantState};

use super::problem::Problem;
use crate::auth::single_header;
use crate::tenants::principal::Principal;

/// The request header with the key.
pub(super) const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The response header that marks a stored answer.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The time for which an answer is stored.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The time between two searches for old answers of all tenants.
const SWEEP: Duration = Duration::from_secs(60);
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
/// A principal, and a key that it has chosen.
type OwnedKey = (Principal, String);
type Entries = HashMap<OwnedKey, Entry>;
/// The keys of one tenant.
type TenantKeys = Arc<TenantPart<Mutex<Entries>>>;

/// The store of answers. A request looks at the keys of its own tenant only.
#[derive(Debug)]
pub(crate) struct Idempotency {
    clock: Arc<dyn Clock>,
    tenants: PerTenant<Mutex<Entries>>,
    active: Mutex<ActiveTenants>,
}

/// The keys of the tenants that have some, or a request that begins.
#[derive(Debug, Default)]
struct ActiveTenants {
    keys: Vec<TenantKeys>,
    swept: Option<Instant>,
}

impl ActiveTenants {
    /// Removes the old answers of all tenants, from time to time.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= SWEEP) {
            self.swept = Some(now);
            self.keys.retain(|keys| {
                let mut entries = keys.lock();
                remove_old(&mut entries, now);
                // A request that has found its tenant's keys is about to add one.
                Arc::strong_count(keys) > 1 || !entries.is_empty()
            });
        }
    }
}

/// Removes the answers that were stored for their lifetime.
fn remove_old(entries: &mut Entries, now: Instant) {
    entries.retain(|_, entry| {
        entry.answer.is_none() || now.saturating_duration_since(entry.since) < LIFETIME
    });
}

#[derive(Debug)]
struct Entry {
    request: Fingerprint,
    since: Instant,
    /// The answer, or the refusal if it has more than [`MOST_BYTES`]. `None` while the first
    /// request runs.
    answer: Option<Result<Bytes, Problem>>,
}

impl Entry {
    /// Returns the bytes of the stored answer.
    fn bytes(&self) -> usize {
        self.answer.as_ref().and_then(|answer| answer.as_ref().ok()).map_or(0, Bytes::len)
    }
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
    keys: TenantKeys,
    key: OwnedKey,
}

/// Returns the key of a request, if it has one.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let is_key = |key: &str| {
        (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match single_header(headers, HEADER) {
        Ok(None) => Ok(None),
        Ok(Some(key)) if is_key(key) => Ok(Some(key.to_owned())),
        Ok(Some(_)) | Err(()) => Err(Problem::bad_request(
            "invalid_idempotency_key",
            "the header `Idempotency-Key` is repeated, or is not 1 to 255 visible ASCII characters",
        )),
    }
}

impl Idempotency {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tenants: PerTenant::default(), active: Mutex::default() }
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
        // Copied before the lock is taken: one for the map, one for the claim.
        let key = (principal.clone(), key.to_owned());
        let own = key.clone();
        let keys = self.keys_of(principal.state(), now);
        let mut entries = keys.lock();
        remove_old(&mut entries, now);
        if let Some(entry) = entries.get(&key) {
            return match &entry.answer {
                _ if entry.request != request => {
                    let detail = "this idempotency key was used for another request";
                    let (status, code) = (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch");
                    Err(Problem::new(status, code, detail)
                        .with_hint("use a new key for each request"))
                }
                None => {
                    let detail = "the first request with this idempotency key is running";
                    Err(Problem::new(StatusCode::CONFLICT, "idempotency_in_flight", detail)
                        .with_retry_after(RETRY))
                }
                Some(answer) => answer.clone().map(BeginResult::Repeated),
            };
        }
        for of in KeyScope::both(principal) {
            if of.usage(&entries).running >= of.times(MOST_RUNNING)
                || !of.make_room(&mut entries, 1, 0)
            {
                let detail = "too many requests with idempotency keys are running";
                return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "overloaded", detail)
                    .with_retry_after(RETRY));
            }
        }
        entries.insert(own, Entry { request, since: now, answer: None });
        drop(entries);
        Ok(BeginResult::First(Claim { keys, key }))
    }

    /// Returns the keys of a tenant.
    fn keys_of(&self, tenant: &Arc<TenantState>, now: Instant) -> TenantKeys {
        let mut active = self.active.lock();
        active.sweep(now);
        if let Some(keys) = self.tenants.find(tenant) {
            return keys;
        }
        let keys = self.tenants.get(tenant, Mutex::default);
        active.keys.push(Arc::clone(&keys));
        keys
    }
}

impl Claim {
    /// Stores the answer, or that it was too long.
    pub(super) fn store(self, answer: Bytes) {
        let answer = if answer.len() <= MOST_BYTES {
            Ok(answer)
        } else {
            let detail = "the request with this idempotency key was made, and its answer was too long to be stored";
            let (status, code) = (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_not_kept");
            Err(Problem::new(status, code, detail)
                .with_hint("use a new key to make the calls again, fewer in each request"))
        };
        let bytes = answer.as_ref().map_or(0, Bytes::len);
        let mut entries = self.keys.lock();
        for of in KeyScope::both(&self.key.0) {
            of.make_room(&mut entries, 0, bytes);
        }
        if let Some(entry) = entries.get_mut(&self.key) {
            entry.answer = Some(answer);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut entries = self.keys.lock();
        if entries.get(&self.key).is_some_and(|entry| entry.answer.is_none()) {
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

impl<'a> KeyScope<'a> {
    /// Returns the scopes whose bounds a key of this principal counts against.
    fn both(principal: &'a Principal) -> [Self; 2] {
        [Self::Tenant(principal.tenant()), Self::Principal(principal)]
    }

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

    fn entries(self, entries: &Entries) -> impl Iterator<Item = (&OwnedKey, &Entry)> {
        entries.iter().filter(move |((principal, _), _)| self.includes(principal))
    }

    fn usage(self, entries: &Entries) -> KeyUsage {
        let mut used = KeyUsage::default();
        for (_, entry) in self.entries(entries) {
            used.keys += 1;
            used.running += usize::from(entry.answer.is_none());
            used.bytes += entry.bytes();
        }
        used
    }

    /// Removes the oldest answers until there is room for more keys and bytes. Returns true if
    /// there is.
    fn make_room(self, entries: &mut Entries, keys: usize, bytes: usize) -> bool {
        let mut used = self.usage(entries);
        let fits = |used: &KeyUsage| {
            used.keys + keys <= self.times(MAX_KEYS) && used.bytes + bytes <= self.times(MOST_BYTES)
        };
        if fits(&used) {
            return true;
        }
        let answered = self.entries(entries).filter(|(_, entry)| entry.answer.is_some());
        let mut oldest: Vec<_> = answered.map(|(key, entry)| (entry.since, key.clone())).collect();
        oldest.sort_by_key(|(since, _)| *since);
        for (_, key) in oldest {
            used.bytes -= entries.remove(&key).map_or(0, |entry| entry.bytes());
            used.keys -= 1;
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
        let keys = kept.tenants.find(&TenantState::of(Some(tenant))).expect("it has keys");
        KeyScope::Tenant(Some(tenant)).usage(&keys.lock())
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

    #[test]
    fn old_answers_of_quiet_tenant_are_removed() {
        let clock = ManualClock::new();
        let kept = Idempotency::new(Arc::new(clock.clone()));
        claim(&kept, "acme", 0).expect("room").store(Bytes::new());
        clock.advance(LIFETIME);
        claim(&kept, "globex", 0).expect("room").store(Bytes::new());
        assert!(kept.tenants.find(&TenantState::of(Some("acme"))).is_none());
        assert_eq!(usage_of(&kept, "globex").keys, 1);
    }

    #[test]
    fn request_with_too_long_answer_is_not_made_again() {
        let clock = ManualClock::new();
        let kept = Idempotency::new(Arc::new(clock.clone()));
        let long = Bytes::from(vec![0; MOST_BYTES + 1]);
        claim(&kept, "acme", 0).expect("room").store(long);
        let user = Principal::new(Some("acme"), "user:0");
        let refused = kept.begin(&user, "key", "route", b"body").err().expect("it was made");
        assert_eq!(refused.code, "idempotency_not_kept");
        assert_eq!(usage_of(&kept, "acme").bytes, 0);
        clock.advance(LIFETIME);
        assert!(claim(&kept, "acme", 0).is_some());
    }
}
