//! The open sessions of the session era.
//!
//! In: a principal that opens a session. Out: the session's id, and later whether a principal may use it.
//! Invariants: an id has 128 random bits; a session is known to the principal that opened it only; a tenant has a bounded number
//! of sessions; one that is idle ends, and so does one whose key was revoked; a session that has ended leaves the table.
//! Source: docs/threat-model.md, row 75.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker, SessionConfig, create_local_session,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolcell::defence::{Defence, stands};

use super::places::{Place, Places};
use crate::metrics::{Metrics, OpenSession};
use crate::principal::Principal;

tokio::task_local! {
    /// The principal whose request is being handled, with its room for a new session.
    pub(super) static CALLER: Caller;
}

/// Whose request is being handled.
pub(super) struct Caller {
    pub(super) principal: Principal,
    pub(super) room: Mutex<Option<Place>>,
    /// Cancelled when the session that it opens ends.
    pub(super) end: CancellationToken,
}

/// All sessions.
pub(super) struct Sessions {
    local: LocalSessionManager,
    table: Arc<Mutex<Table>>,
    places: Places,
    metrics: Metrics,
}

#[derive(Default)]
struct Table {
    open: HashMap<SessionId, Session>,
}

struct Session {
    principal: Principal,
    /// The requests whose answers are awaited.
    requests: HashSet<RequestId>,
    _room: Place,
    _counted: OpenSession,
    /// Ends the calls of the session. The SDK would wait for them for some seconds.
    _end: DropGuard,
}

/// A request of a session, until its answer has been sent.
pub(super) struct Pending {
    session: SessionId,
    request: RequestId,
    table: Arc<Mutex<Table>>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(session) = self.table.lock().open.get_mut(&self.session) {
            session.requests.remove(&self.request);
        }
    }
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("there is no room for the session")]
    NoRoom,
    #[error("the system has no randomness")]
    NoRandomness,
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration, metrics: Metrics) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config = config(idle);
        Self { local, table: Arc::default(), places: Places::new(most), metrics }
    }

    /// Room for one more session of the principal's tenant.
    pub(super) fn reserve(&self, principal: &Principal) -> Option<Place> {
        self.places.enter(principal)
    }

    /// Closes the sessions of principals that are not `known` any more.
    pub(super) async fn close_others(&self, known: impl Fn(&Principal) -> bool) {
        let open: Vec<_> = {
            let table = self.table.lock();
            table.open.iter().map(|(id, session)| (id.clone(), session.principal.clone())).collect()
        };
        for (id, _) in open.iter().filter(|(_, principal)| !known(principal)) {
            // Fails only for a session that has ended meanwhile.
            let _ = self.close_session(id).await;
        }
    }

    /// Whether the principal has opened this session, and it is still open.
    /// It lives as long as the newest token of its principal.
    pub(super) fn is_open(&self, id: &str, principal: &Principal) -> bool {
        let mut table = self.table.lock();
        let Some(session) = table.open.get_mut(id) else { return false };
        let is_same = session.principal == *principal;
        if is_same && principal.outlives(&session.principal) {
            session.principal = principal.clone();
        }
        is_same || !stands(Defence::SessionPrincipal)
    }

    /// Enters a request. `None`: the session waits for the answer of a request with this id.
    pub(super) fn enter(&self, id: &str, request: &RequestId) -> Option<Pending> {
        let mut table = self.table.lock();
        let (id, _) = table.open.get_key_value(id)?;
        let id = id.clone();
        let session = table.open.get_mut(&id)?;
        let entered = session.requests.insert(request.clone());
        entered.then(|| Pending { session: id, request: request.clone(), table: Arc::clone(&self.table) })
    }
}

fn config(idle: Duration) -> SessionConfig {
    let mut config = SessionConfig::default();
    config.keep_alive = Some(idle);
    config
}

/// 128 random bits in hexadecimal.
fn random_id() -> Result<SessionId, SessionError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| SessionError::NoRandomness)?;
    let id = bytes.iter().fold(String::new(), |id, byte| format!("{id}{byte:02x}"));
    Ok(id.into())
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        let caller = CALLER.try_with(|caller| {
            Some((caller.principal.clone(), caller.room.lock().take()?, caller.end.clone().drop_guard()))
        });
        let Ok(Some((principal, room, end))) = caller else { return Err(SessionError::NoRoom) };
        let id = random_id()?;
        let (handle, worker) = create_local_session(id.clone(), self.local.session_config.clone());
        let session =
            Session { principal, requests: HashSet::new(), _room: room, _counted: self.metrics.session(), _end: end };
        self.table.lock().open.insert(id.clone(), session);
        self.local.sessions.write().await.insert(id.clone(), handle);
        Ok((id, WorkerTransport::spawn(worker)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.table.lock().open.remove(id);
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.local.create_stream(id, message).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.local.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.local.resume(id, last_event_id).await?)
    }
}
