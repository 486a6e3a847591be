//! Requests that a client sends again with the same `Idempotency-Key`.
//!
//! In: a principal, its key, a digest of the request. Out: a [`Claim`] for the first, the kept answer for the others.
//! Invariants: a key belongs to its principal; only answers of calls that were made are kept, for [`LIFETIME`]; a principal
//! has at most [`MOST`] keys, [`MOST_RUNNING`] of them with requests that run, and [`MOST_BYTES`] of answers, the oldest go first; a claim that ends without an answer frees its
//! key.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use toolcell::Clock;

use super::problem::Problem;
use crate::principal::Principal;

/// The header.
pub(super) const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Marks an answer that was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// How long an answer is kept.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Keys of one principal.
const MOST: usize = 256;
/// Bytes of the answers that are kept for one principal.
const MOST_BYTES: usize = 4 << 20;
/// Requests of one principal that run: they go on without their connections.
const MOST_RUNNING: usize = 32;
/// Characters of a key.
const MAX_KEY: usize = 255;
/// When to send a request again whose first is still running.
const RETRY: Duration = Duration::from_secs(1);

type Fingerprint = [u8; 32];
type Entries = HashMap<String, Entry>;

/// The answers that are kept.
#[derive(Debug)]
pub(crate) struct Idempotency {
    clock: Arc<dyn Clock>,
    principals: Arc<Mutex<HashMap<Principal, Entries>>>,
}

#[derive(Debug)]
struct Entry {
    request: Fingerprint,
    since: Instant,
    /// `None` while the first request runs.
    answer: Option<Bytes>,
}

/// What is to be done with a request.
pub(super) enum Begun {
    /// It is the first: it is made, and its answer kept.
    First(Claim),
    /// It was answered before.
    Again(Bytes),
}

/// A key whose request runs.
pub(super) struct Claim {
    principals: Arc<Mutex<HashMap<Principal, Entries>>>,
    principal: Principal,
    key: String,
}

/// The key of a request, if it has one.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all(HEADER).iter();
    let is_key = |key: &str| (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    match (keys.next(), keys.next()) {
        (None, _) => Ok(None),
        (Some(key), None) if key.to_str().is_ok_and(is_key) => Ok(key.to_str().ok().map(str::to_owned)),
        (Some(_), _) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad_idempotency_key",
            "the header `Idempotency-Key` is repeated, or is not 1 to 255 visible ASCII characters",
        )),
    }
}

impl Idempotency {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, principals: Arc::default() }
    }

    /// Begins a request.
    pub(super) fn begin(&self, principal: &Principal, key: &str, route: &str, body: &[u8]) -> Result<Begun, Problem> {
        let request: Fingerprint =
            Sha256::new().chain_update(route).chain_update([0]).chain_update(body).finalize().into();
        let now = self.clock.now();
        let is_fresh = |entry: &Entry| entry.answer.is_none() || now.saturating_duration_since(entry.since) < LIFETIME;
        let mut principals = self.principals.lock();
        principals.retain(|_, entries| {
            entries.retain(|_, entry| is_fresh(entry));
            !entries.is_empty()
        });
        let entries = principals.entry(principal.clone()).or_default();
        if let Some(entry) = entries.get(key) {
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
                Some(answer) => Ok(Begun::Again(answer.clone())),
            };
        }
        let running = entries.values().filter(|entry| entry.answer.is_none()).count();
        if running >= MOST_RUNNING || entries.len() >= MOST && !forget_oldest(entries) {
            let detail = "too many requests with idempotency keys are running";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "overloaded", detail).with_retry_after(RETRY));
        }
        entries.insert(key.to_owned(), Entry { request, since: now, answer: None });
        let (principal, key) = (principal.clone(), key.to_owned());
        Ok(Begun::First(Claim { principals: Arc::clone(&self.principals), principal, key }))
    }
}

impl Claim {
    /// Keeps the answer.
    pub(super) fn keep(self, answer: Bytes) {
        let mut principals = self.principals.lock();
        let Some(entries) = principals.get_mut(&self.principal) else { return };
        let kept =
            |entries: &Entries| -> usize { entries.values().flat_map(|entry| &entry.answer).map(Bytes::len).sum() };
        while kept(entries) + answer.len() > MOST_BYTES && forget_oldest(entries) {}
        if let Some(entry) = entries.get_mut(&self.key).filter(|_| answer.len() <= MOST_BYTES) {
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

/// Forgets the answer that was begun first. Returns whether there was one.
fn forget_oldest(entries: &mut Entries) -> bool {
    let answered = entries.iter().filter(|(_, entry)| entry.answer.is_some());
    let oldest = answered.min_by_key(|(_, entry)| entry.since).map(|(key, _)| key.clone());
    oldest.is_some_and(|key| entries.remove(&key).is_some())
}
