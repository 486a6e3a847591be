//! The table of open sessions over HTTP.
//!
//! The endpoint calls [`Sessions::open`] for `initialize` and gets an id with 128 random bits,
//! which the client sends with each later request; [`Sessions::find`] returns the session for it. A
//! session is found only by the principal (the authenticated sender: a key or user of a tenant)
//! that opened it, and a tenant has a bounded number of sessions. Each running request has a stream
//! of its own, which a client can resume after a lost connection.
//!
//! [`Sessions::sweep`] ends sessions that are idle, even if their requests wait for answers of the
//! client, and those whose key was revoked. A session that has ended is removed from the table.
//!
//! Source: docs/threat-model.md, rows 75 and 106.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use toolcell::controls::enforced;
use toolcell::tenant::Reservation;

use crate::mcp::session::outbox::{Outbox, Reader};
use crate::mcp::{McpOptions, message::raw::Raw, session::Session};
use crate::observe::metrics::{Metrics, OpenSession};
use crate::tenants::{principal::Principal, share::Places};

/// The least time without a message after which a session is ended to make room for a new one.
const UNUSED: Duration = Duration::from_secs(60);

/// All open sessions.
pub(super) struct Sessions {
    open: Mutex<HashMap<Arc<str>, Opened>>,
    places: Places,
    metrics: Metrics,
    idle: Duration,
    unused: Duration,
    questions: usize,
}

/// One session, with its streams.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) session: Arc<Session>,
    principal: Principal,
    streams: Arc<Mutex<Streams>>,
    _held: Arc<(Reservation, OpenSession)>,
}

#[derive(Default)]
struct Streams {
    next: u64,
    open: HashMap<u64, Arc<Outbox>>,
}

/// The stream of a running request. Ends when it is dropped.
pub(super) struct Stream {
    pub(in crate::mcp) outbox: Arc<Outbox>,
    pub(super) number: u64,
    streams: Arc<Mutex<Streams>>,
}

impl Sessions {
    pub(super) fn new(options: &McpOptions, metrics: Metrics) -> Self {
        let (idle, questions) = (options.session_idle, options.session_questions);
        let places = Places::new(options.sessions);
        Self { open: Mutex::default(), places, metrics, idle, unused: UNUSED, questions }
    }

    /// Takes a place for a session of the principal's tenant. If none is free, it ends the session
    /// that was unused for longest: many clients end without closing theirs. `None`: all are used.
    pub(super) fn enter(&self, principal: &Principal) -> Option<Reservation> {
        loop {
            let room = self.places.enter(principal);
            // Another client may take the place of the session that was ended.
            if room.is_some() || !self.end_unused(principal) {
                return room;
            }
        }
    }

    /// Ends the session of a tenant that was unused for longest. Returns false if all are used.
    fn end_unused(&self, principal: &Principal) -> bool {
        let unused_since = |opened: &Opened| {
            // Running requests and open streams share the session.
            let is_unused = opened.principal.tenant() == principal.tenant()
                && Arc::strong_count(&opened.session) == 1;
            let since = opened.session.idle_since().filter(|_| is_unused)?;
            (since.elapsed() >= self.unused).then_some(since)
        };
        let mut open = self.open.lock();
        let unused = open.iter().filter_map(|(id, opened)| Some((unused_since(opened)?, id)));
        let oldest = unused.min().map(|(_, id)| Arc::clone(id));
        let ended = oldest.and_then(|id| open.remove(&id));
        drop(open);
        let is_ended = ended.is_some();
        if let Some(opened) = ended {
            opened.end();
        }
        is_ended
    }

    /// Opens a session. Returns its id. `None`: the system has no randomness.
    pub(super) fn open(
        &self,
        principal: &Principal,
        room: Reservation,
        capabilities: Raw,
    ) -> Option<Arc<str>> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id: Arc<str> = format!("{:032x}", u128::from_be_bytes(random)).into();
        let opened = Opened {
            session: Arc::new(Session::new(capabilities, Arc::default(), self.questions)),
            principal: principal.clone(),
            streams: Arc::default(),
            _held: Arc::new((room, self.metrics.session())),
        };
        self.open.lock().insert(Arc::clone(&id), opened);
        Some(id)
    }

    /// Returns the session, if the principal opened it and it is still open. It lives as long as
    /// the newest token of its principal.
    pub(in crate::mcp) fn find(&self, id: &str, principal: &Principal) -> Option<Opened> {
        let mut open = self.open.lock();
        let opened = open.get_mut(id)?;
        let is_same = opened.principal == *principal;
        if is_same && principal.expires_after(&opened.principal) {
            opened.principal = principal.clone();
        }
        let is_found = is_same || !enforced!(SessionPrincipal);
        if is_found {
            opened.session.mark_used();
        }
        is_found.then(|| opened.clone())
    }

    /// Ends a session.
    pub(super) fn close(&self, id: &str) {
        let closed = self.open.lock().remove(id);
        if let Some(opened) = closed {
            opened.end();
        }
    }

    /// Ends idle sessions, and those of principals for which `known` returns false.
    pub(super) fn sweep(&self, known: impl Fn(&Principal) -> bool) {
        let is_over = |opened: &Opened| {
            opened.session.idle_since().is_some_and(|since| since.elapsed() >= self.idle)
                || !known(&opened.principal)
        };
        let over: Vec<_> = self.open.lock().extract_if(|_, opened| is_over(opened)).collect();
        // The table is unlocked while they end.
        for (_, opened) in over {
            opened.end();
        }
    }

    /// Returns the time between two sweeps, so that idle sessions end soon after their time.
    pub(super) fn sweep_after(&self, recheck: Duration) -> Duration {
        recheck.min(self.idle.max(Duration::from_millis(10)))
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        for opened in self.open.get_mut().values() {
            opened.end();
        }
    }
}

impl Opened {
    /// Creates a stream for one request.
    pub(super) fn stream(&self) -> Stream {
        let (outbox, mut streams) = (Arc::new(Outbox::default()), self.streams.lock());
        let number = streams.next;
        streams.next += 1;
        streams.open.insert(number, Arc::clone(&outbox));
        Stream { outbox, number, streams: Arc::clone(&self.streams) }
    }

    /// Resumes after the event of this id. Returns the stream's number, the number of its next
    /// message, and a reader. `None`: the stream is unknown or has ended.
    pub(super) fn resume(&self, last: &str) -> Option<(Option<u64>, u64, Reader)> {
        let Some((next, stream)) = last.split_once('/') else {
            let next = last.parse().ok()?;
            return Some((None, next, self.session.common.read(next)));
        };
        let (next, stream) = (next.parse().ok()?, stream.parse().ok()?);
        let outbox = self.streams.lock().open.get(&stream).cloned()?;
        Some((Some(stream), next, outbox.read(next)))
    }

    fn end(&self) {
        self.session.end.cancel();
        self.session.common.end();
        for outbox in self.streams.lock().open.values() {
            outbox.end();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.outbox.end();
        self.streams.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::metrics::InUseSource;

    #[test]
    fn newer_token_extends_its_session() {
        let sessions = Sessions::new(&McpOptions::default(), Metrics::new(InUseSource::default()));
        let of = |expires| Principal::new(Some("acme"), "user:ada").with_expiry(expires);
        let room = sessions.enter(&of(1)).expect("room");
        let id = sessions.open(&of(1), room, Raw::empty()).expect("an id");
        assert!(sessions.find(&id, &of(u64::MAX)).is_some());
        sessions.sweep(|principal| !principal.is_expired());
        assert!(sessions.find(&id, &of(u64::MAX)).is_some());
    }

    #[test]
    fn session_is_not_idle_while_its_client_listens() {
        let options = McpOptions { session_idle: Duration::ZERO, ..McpOptions::default() };
        let sessions = Sessions::new(&options, Metrics::new(InUseSource::default()));
        let ada = Principal::new(Some("acme"), "user:ada");
        let room = sessions.enter(&ada).expect("room");
        let id = sessions.open(&ada, room, Raw::empty()).expect("an id");
        let stream = sessions.find(&id, &ada).expect("a session").session.listen();
        sessions.sweep(|_| true);
        assert!(sessions.find(&id, &ada).is_some());
        drop(stream);
        sessions.sweep(|_| true);
        assert!(sessions.find(&id, &ada).is_none());
    }

    #[test]
    fn unused_session_makes_room_for_new_one() {
        let options = McpOptions { sessions: 1, ..McpOptions::default() };
        let mut sessions = Sessions::new(&options, Metrics::new(InUseSource::default()));
        let ada = Principal::new(Some("acme"), "user:ada");
        let room = sessions.enter(&ada).expect("room");
        let id = sessions.open(&ada, room, Raw::empty()).expect("an id");
        assert!(sessions.enter(&ada).is_none(), "it was used a moment ago");
        sessions.unused = Duration::ZERO;
        let in_use = sessions.find(&id, &ada);
        assert!(in_use.is_some() && sessions.enter(&ada).is_none(), "it is in use");
        drop(in_use);
        assert!(sessions.enter(&Principal::new(Some("globex"), "user:bob")).is_some());
        assert!(sessions.find(&id, &ada).is_some(), "the other tenant has places of its own");
        assert!(sessions.enter(&ada).is_some() && sessions.find(&id, &ada).is_none());
    }
}
