//! The core of the server, independent of protocols: the operations of a principal.
//!
//! A [`Service`] is built from a [`ServedTools`], which is one version of the tools and tenants.
//! HTTP and MCP give it requests of a [`Principal`] (a tenant, with the key or user that acts for
//! it): to list tools, to make calls, runs and steps, and to cancel them. It returns answers, or
//! [`RequestError`]. [`Service::replace`] serves another version while running requests finish on
//! theirs; [`Service::drain`] ends the service in order.
//!
//! Every call passes one admission (`Service::admit`), which checks the limits of the server and
//! the tenant's quota before a tool is looked up. Every question of a tool to a person is sealed
//! (encrypted for the client) and bound to its principal.

pub(crate) mod calls;
pub(crate) mod catalogue;
pub(crate) mod facade;
pub(crate) mod health;
pub(crate) mod request_id;
pub(crate) mod running;
pub(crate) mod runs;
mod search;
pub(crate) mod served;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use toolcell::clock::{Clock, SystemClock};
use toolcell::runtime::InUse;
use toolcell::tenant::{PerTenant, TenantPart, TenantState};
use toolcell::{CallOptions, Error, Executor, Sealer};

use crate::artifacts::{Artifacts, probe::Probe};
use crate::observe::metrics::{InUseSource, Metrics};
use crate::tenants::account::{Account, Slots, TenantUsage};
use crate::tenants::{principal::Principal, refused::RequestError};
use health::Reports;
use running::{Running, RunningRequest};
use served::{ServedTools, Version, View};

pub use calls::CallResponse;
pub use catalogue::Page;
pub use facade::ManyTools;
pub use health::{Health, Readiness};
pub use request_id::{InvalidRequestId, RequestId};
pub use runs::{RunEvents, RunRequest, StepRequest};

/// The accounts of the tenants that are or were served.
#[derive(Debug, Default)]
struct Accounts {
    tenants: PerTenant<Arc<Account>>,
    all: Mutex<Vec<Arc<TenantPart<Arc<Account>>>>>,
}

/// Makes calls, runs and steps for principals. Cheap to clone; clones share the service.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::{Value, json};
/// use toolcell::{Definition, Registry, Tool, ToolCall};
/// use toolcell_server::{CallRequest, Principal, ServedTools, Service};
///
/// let registry = Registry::new();
/// registry.register(Tool::native(Definition::new("now", "Tells the time.")?, async |_: Value| json!("noon"))?)?;
/// let service = Service::builder(ServedTools::new(&registry)).build()?;
///
/// let request = CallRequest::new(ToolCall::new("call-1", "now", "{}"));
/// let answer = service.call(&Principal::local(), request).await?;
/// assert_eq!(answer.completion.result.value().map(|value| value.as_str()), Some("\"noon\""));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    version: ArcSwap<Version>,
    /// Notified when the version has changed.
    versions: watch::Sender<()>,
    accounts: Accounts,
    running: Arc<Running>,
    reports: Reports,
    limits: ServiceLimits,
    sealer: Sealer,
    artifacts: Option<Artifacts>,
    /// Checks the directory for data that outlives the process.
    state: Option<Probe>,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
}

/// Limits of one server.
///
/// # Defaults
/// 4,096 calls in flight, 256 calls in a request, 100 tools on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    /// The most calls of all requests that run at once, over all tenants. A request counts with all
    /// of its calls until the last has ended, because their results are kept: at most `in_flight`
    /// times the bytes of one result. If there are several tenants, one that already holds some
    /// must leave as many free as it then holds; one that holds none can take all that are free.
    pub in_flight: usize,
    /// The most calls in one run, batch or list of steps. Never more than `in_flight`.
    pub calls_per_request: usize,
    /// Tools on one page of the list.
    pub page: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self { in_flight: 4096, calls_per_request: 256, page: 100 }
    }
}

/// Builds a [`Service`].
///
/// # Defaults
/// [`ServiceLimits::default`], no artifacts, the system's clock, a new random sealing key: a
/// question cannot be answered after the process has ended.
#[derive(Debug)]
#[must_use]
pub struct ServiceBuilder {
    served: ServedTools,
    limits: ServiceLimits,
    sealer: Option<Sealer>,
    artifacts: Option<Artifacts>,
    state: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    engines: InUseSource,
}

impl ServiceBuilder {
    /// Sets the limits.
    pub fn limits(mut self, limits: ServiceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the sealer for questions, for example one whose key is stored on disk or shared by
    /// several servers.
    pub fn sealer(mut self, sealer: Sealer) -> Self {
        self.sealer = Some(sealer);
        self
    }

    /// Sets the artifact store: long content of results is stored in it, and tools can read
    /// uploads.
    pub fn artifacts(mut self, artifacts: Artifacts) -> Self {
        self.artifacts = Some(artifacts);
        self
    }

    /// Sets the directory for data that outlives the process, such as keys and stored data of
    /// tools. The service is not ready while it cannot be written to.
    pub fn state_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state = Some(directory.into());
        self
    }

    /// Sets a function that returns the resources that engines have in use, by names such as those
    /// of their isolation. The metrics show them.
    pub fn engines(
        mut self,
        in_use: impl Fn() -> Vec<(&'static str, InUse)> + Send + Sync + 'static,
    ) -> Self {
        self.engines = InUseSource(Arc::new(in_use));
        self
    }

    /// Sets the clock of quotas.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Builds the service.
    ///
    /// # Errors
    /// [`Error::is_environment`] if no sealer was given and the system has no randomness.
    pub fn build(self) -> Result<Service, Error> {
        let Self { served, limits, sealer, artifacts, state, clock, engines } = self;
        let service = Service(Arc::new(Inner {
            version: ArcSwap::default(),
            versions: watch::Sender::new(()),
            accounts: Accounts::default(),
            running: Running::new(limits.in_flight),
            reports: Reports::default(),
            limits,
            sealer: sealer.map_or_else(Sealer::generate, Ok)?,
            artifacts,
            state: state.map(|directory| Probe::new(directory, ".", Arc::clone(&clock))),
            metrics: Metrics::new(engines),
            clock,
        }));
        service.replace(served);
        Ok(service)
    }
}

impl Service {
    /// Creates a builder of a service with these tools.
    pub fn builder(served: ServedTools) -> ServiceBuilder {
        ServiceBuilder {
            served,
            limits: ServiceLimits::default(),
            sealer: None,
            artifacts: None,
            state: None,
            clock: Arc::new(SystemClock),
            engines: InUseSource::default(),
        }
    }

    /// Serves a new version from now on. Running requests finish on the version with which they
    /// began. Quotas and totals of tenants are kept.
    pub fn replace(&self, served: ServedTools) {
        let account = |tenant: &Arc<TenantState>| account(&self.0.accounts, &self.0.clock, tenant);
        let version = served.version(self.0.artifacts.as_ref(), &self.0.metrics, account);
        self.0.version.store(Arc::new(version));
        self.0.versions.send_replace(());
    }

    pub(crate) fn requests(&self) -> &Running {
        &self.0.running
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Returns the metrics in the OpenMetrics text format: calls by tool, tenant and ending, times,
    /// fuel, denials, refusals, requests, sessions, calls into the host and engines. They contain
    /// names of tenants and tools: they are for the operator, not for a tenant.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        self.0.metrics.text(self.running())
    }

    /// Returns a receiver that is notified when another version is served.
    pub(crate) fn versions(&self) -> watch::Receiver<()> {
        self.0.versions.subscribe()
    }

    /// The limits of this server.
    #[must_use]
    pub fn limits(&self) -> ServiceLimits {
        self.0.limits
    }

    /// Returns the artifact store, if the service has one.
    #[must_use]
    pub fn artifacts(&self) -> Option<&Artifacts> {
        self.0.artifacts.as_ref()
    }

    /// Returns the clock of the service.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.0.clock)
    }

    /// Returns true if the principal's tenant is served.
    #[must_use]
    pub fn serves(&self, principal: &Principal) -> bool {
        self.view(principal).is_ok()
    }

    /// Returns what the principal's tenant has used, and what its quota leaves.
    ///
    /// # Errors
    /// [`RequestError::NoAccess`].
    pub fn usage(&self, principal: &Principal) -> Result<TenantUsage, RequestError> {
        let view = self.view(principal)?;
        Ok(view.account.usage(&view.quota))
    }

    /// Cancels the principal's running request with this id: its guests are stopped, and the
    /// request is answered with the results of its calls. Has no further effect on a request that
    /// is being cancelled.
    ///
    /// # Errors
    /// [`RequestError::NotRunning`], also for a request of another principal.
    pub fn cancel(&self, principal: &Principal, id: &RequestId) -> Result<(), RequestError> {
        self.0.running.cancel(principal, id)
    }

    /// Returns the number of running requests with calls.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.running.count()
    }

    /// Refuses new calls from now on, waits for the running requests, and cancels those that still
    /// run after `deadline`. Returns when none is running.
    ///
    /// # Cancel safety
    /// When dropped, running requests continue; new ones stay refused.
    pub async fn drain(&self, deadline: Duration) {
        let running = &self.0.running;
        running.drain();
        if tokio::time::timeout(deadline, running.wait_until_idle()).await.is_err() {
            running.cancel_all();
            running.wait_until_idle().await;
        }
    }

    /// Returns the principal's view of the newest version.
    pub(crate) fn view(&self, principal: &Principal) -> Result<Arc<View>, RequestError> {
        self.0.version.load().view(principal.state()).ok_or(RequestError::NoAccess)
    }

    /// Returns true if several tenants are served, so that each has to leave room for the others.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.version.load().views.len() > 1
    }

    /// Counts a request of the principal that was refused with this code before it reached the
    /// service.
    pub(crate) fn refused(&self, principal: &Principal, code: &'static str) {
        if let Ok(view) = self.view(principal) {
            view.metrics.refused(code);
        }
    }

    /// Returns an error if a call of the principal would not be admitted now. Charges nothing; a
    /// refusal is counted.
    pub(crate) fn check(&self, principal: &Principal) -> Result<(), RequestError> {
        let view = self.view(principal)?;
        let checked = self.0.running.check(principal, self.is_shared());
        let checked = checked.and_then(|()| view.account.check(&view.quota));
        checked.inspect_err(|refused| view.metrics.refused(refused.code()))
    }

    /// Admits a request of `calls` calls, and sets the options that the server decides: the tenant,
    /// the request id, the abort signal. Every call passes here before a tool is looked up, so that
    /// a refusal reveals nothing of the tools.
    pub(crate) fn admit(
        &self,
        principal: &Principal,
        view: &View,
        id: &RequestId,
        calls: usize,
        wanted: usize,
        options: &mut CallOptions,
    ) -> Result<Admitted, RequestError> {
        let ServiceLimits { calls_per_request, in_flight, .. } = self.0.limits;
        let limit = calls_per_request.min(in_flight);
        if calls > limit {
            return Err(RequestError::TooManyCalls { actual: calls, limit });
        }
        let request = self.0.running.begin(principal, id, calls, self.is_shared());
        let admitted = request.and_then(|request| {
            let slots = view.account.admit(&view.quota, calls, wanted)?;
            Ok(Admitted { request, slots })
        });
        let admitted = admitted.inspect_err(|refused| view.metrics.refused(refused.code()))?;
        let context = Arc::make_mut(&mut options.context);
        context.tenant = principal.tenant().map(str::to_owned);
        context.request_id = Some(id.to_string());
        options.abort = admitted.request.signal.clone();
        Ok(admitted)
    }

    /// Returns the sealer for this principal only.
    pub(crate) fn sealer(&self, principal: &Principal) -> Sealer {
        self.0.sealer.for_principal(principal.id())
    }

    /// Returns the view's executor, which seals questions for this principal only.
    pub(crate) fn executor(&self, principal: &Principal, view: &View) -> Executor {
        let executor = view.executor.clone().with_sealer(self.sealer(principal));
        executor.with_additional_events(view.metrics.wait_timer())
    }
}

/// Returns the account of a tenant, created when it is first needed.
fn account(accounts: &Accounts, clock: &Arc<dyn Clock>, tenant: &Arc<TenantState>) -> Arc<Account> {
    let mut all = accounts.all.lock();
    let account = accounts.tenants.find(tenant).unwrap_or_else(|| {
        let made = || Arc::new(Account::new(Arc::clone(clock)));
        let account = accounts.tenants.get(tenant, made);
        all.push(Arc::clone(&account));
        account
    });
    Arc::clone(&**account)
}

/// An admitted request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    request: RunningRequest,
    slots: Slots,
}
