//! One immutable version of the served tools and tenants.
//!
//! An embedder (the program that uses this library) builds a [`ServedTools`] from the tools of a
//! registry and an executor with its tenants, and gives it to the service at the start and at each
//! change. The service turns it into a [`Version`]: for each tenant a [`View`] with the tools that
//! it sees and the executor that makes its calls. That executor narrows limits and rights to the
//! tenant's, charges its account, and counts and logs its calls. A request keeps the view with
//! which it began.
//!
//! A tenant's view contains none of the tools that it does not see, so that no code path can name
//! them. Once a tenant is defined, principals (authenticated senders) without a tenant have no
//! access, unless the embedder grants it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use toolcell::run::Toolbox;
use toolcell::step::RawCall;
use toolcell::tenant::{PerTenant, Quota, TenantPart, TenantState};
use toolcell::{Event, Executor, Registry, Runner, Tenant, Tool, ToolCall};

use super::facade::{self, ManyTools, facade};
use crate::artifacts::{Artifacts, Layer};
use crate::observe::call_log::CallLog;
use crate::observe::metrics::{Metrics, TenantMetrics};
use crate::tenants::account::Account;

/// One version of the content of a [`Service`](crate::Service): tools, and an executor with its
/// tenants.
///
/// # Defaults
/// An [`Executor::new`]. No tenant is defined: principals without a tenant see every tool, and
/// others have no access.
#[derive(Debug, Clone)]
pub struct ServedTools {
    executor: Executor,
    tools: Toolbox,
    many: ManyTools,
}

impl ServedTools {
    /// Takes the current tools of the registry. Later changes of the registry have no effect.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        Self { executor: Executor::new(), tools: registry.toolbox(), many: ManyTools::default() }
    }

    /// Sets when a search replaces the list of tools.
    #[must_use]
    pub fn with_many_tools(mut self, many: ManyTools) -> Self {
        self.many = many;
        self
    }

    /// Sets the executor: its tenants, beside those that were added already, its limits, and its
    /// observer. If both define a tenant, the executor's counts. The executor's sealer is replaced
    /// by that of the service.
    #[must_use]
    pub fn with_executor(mut self, executor: Executor) -> Self {
        let mut all = executor.clone();
        for (name, tenant) in self.executor.tenants().chain(executor.tenants()) {
            all = with_narrowed(all, name, tenant.clone());
        }
        self.executor = all;
        self
    }

    /// Adds a tenant, as [`Executor::with_tenant`]. Once a tenant is defined, principals without a
    /// tenant have no access, unless [`with_anonymous`](Self::with_anonymous) grants it.
    #[must_use]
    pub fn with_tenant(mut self, name: impl Into<String>, tenant: Tenant) -> Self {
        self.executor = self.executor.with_tenant(name, tenant);
        self
    }

    /// Sets the tools and limits of principals without a tenant, as [`Executor::with_anonymous`].
    #[must_use]
    pub fn with_anonymous(mut self, tenant: Tenant) -> Self {
        self.executor = self.executor.with_anonymous(tenant);
        self
    }

    /// Creates the views. `account` returns the account of a tenant.
    pub(crate) fn version(
        self,
        artifacts: Option<&Artifacts>,
        metrics: &Metrics,
        account: impl Fn(&Arc<TenantState>) -> Arc<Account>,
    ) -> Version {
        let Self { executor: mut defined, tools, many } = self;
        let around = |tool: &Tool| match artifacts {
            Some(artifacts) => Layer::wrap(tool.clone(), artifacts),
            None => tool.clone(),
        };
        let tools: Vec<Tool> = tools.tools().map(around).collect();
        if defined.tenants().next().is_none() {
            defined = defined.with_anonymous(Tenant::default());
        }
        let mut executor = defined.clone();
        for (name, tenant) in defined.tenants() {
            // A view has the tenant's tools only, and the search tools, which no list names.
            let all_tools = Tenant { tools: None, ..tenant.clone() };
            executor = with_narrowed(executor, name, all_tools);
        }
        if let Some(artifacts) = artifacts {
            let quota = |(name, tenant): (_, &Tenant)| Some((name, tenant.quota.artifact_bytes?));
            artifacts.set_quotas(defined.tenants().filter_map(quota));
        }
        let tenants = PerTenant::default();
        let view = |(name, tenant): (Option<&str>, &Tenant)| {
            let state = TenantState::of(name);
            let names = tools.iter().map(|tool| tool.definition().name.clone());
            let names = names.chain(facade::NAMES.map(str::to_owned));
            let measured = metrics.of_tenant(name, names);
            let observers = (measured, CallLog::of_tenant(name));
            let executor = executor.clone();
            let view = View::new(&tools, tenant, executor, account(&state), observers, many);
            tenants.get(&state, || Arc::new(view))
        };
        let views = defined.tenants().map(view).collect();
        Version { tenants, views }
    }
}

/// Defines a tenant of the executor, or, as `None`, its calls without a tenant.
fn with_narrowed(executor: Executor, name: Option<&str>, tenant: Tenant) -> Executor {
    match name {
        Some(name) => executor.with_tenant(name, tenant),
        None => executor.with_anonymous(tenant),
    }
}

/// A version with its views.
#[derive(Debug, Default)]
pub(crate) struct Version {
    tenants: PerTenant<Arc<View>>,
    /// The view of each tenant; principals without a tenant count as one.
    pub(crate) views: Vec<Arc<TenantPart<Arc<View>>>>,
}

impl Version {
    /// Returns the view of this tenant. `None`: the tenant is not served.
    pub(crate) fn view(&self, tenant: &TenantState) -> Option<Arc<View>> {
        self.tenants.find(tenant).map(|view| Arc::clone(&**view))
    }
}

/// The tools, executor and quota of one tenant in one version.
#[derive(Debug)]
pub(crate) struct View {
    /// The tools that the tenant sees, by name.
    pub(crate) tools: BTreeMap<String, Tool>,
    /// True if the list has only the search tools.
    is_searched: bool,
    /// Makes calls with the tenant's limits and rights, and charges its account.
    pub(crate) executor: Executor,
    pub(crate) runner: Runner,
    pub(crate) quota: Quota,
    pub(crate) account: Arc<Account>,
    pub(crate) metrics: TenantMetrics,
}

impl View {
    fn new(
        tools: &[Tool],
        tenant: &Tenant,
        executor: Executor,
        account: Arc<Account>,
        (metrics, log): (TenantMetrics, CallLog),
        many: ManyTools,
    ) -> Self {
        let seen = tools.iter().filter(|tool| tenant.offers(&tool.definition().name));
        let named = |tool: Tool| (tool.definition().name.clone(), tool);
        let mut tools: BTreeMap<String, Tool> = seen.cloned().map(named).collect();
        // Copied before the search tools are added: those are for models only.
        let callable = tools.clone();
        let executor = executor.with_callable(move |name| callable.get(name).cloned());
        let charged = Arc::clone(&account);
        let executor = executor.with_check_fuel(move |fuel| charged.charge_unseen(fuel));
        let facade = facade(many, &tools, &executor);
        let is_searched = facade.is_some();
        tools.extend(facade.into_iter().flatten().map(named));
        let (charged, measured) = (Arc::clone(&account), metrics.clone());
        let executor = executor.with_additional_events(move |event: Event| {
            charged.charge(&event);
            measured.count(&event);
            log.log(&event);
        });
        let runner = Runner::new(registry(tools.values().cloned()));
        Self { tools, is_searched, executor, runner, quota: tenant.quota, account, metrics }
    }

    /// Returns the tools of the list from `begin` on, by name.
    pub(crate) fn listed(&self, begin: Bound<&str>) -> impl Iterator<Item = &Tool> {
        let tools = self.tools.range::<str, _>((begin, Bound::Unbounded));
        tools.filter(|(name, _)| !self.is_searched || facade::is_part(name)).map(|(_, tool)| tool)
    }

    /// Converts a call of `tools_call` to a call of the tool that it names.
    pub(crate) fn resolve_call(&self, call: ToolCall) -> ToolCall {
        if self.is_searched { facade::resolve_call(call) } else { call }
    }

    /// Like [`resolve_call`](Self::resolve_call), for a call as a model wrote it.
    pub(crate) fn resolve_raw_call(&self, call: RawCall) -> RawCall {
        if self.is_searched { facade::resolve_raw_call(call) } else { call }
    }
}

/// Creates a registry of these tools, which have different names.
pub(crate) fn registry(tools: impl IntoIterator<Item = Tool>) -> Registry {
    let registry = Registry::new();
    // Fails only if two tools have the same name.
    let registered = registry.register_all(tools);
    debug_assert!(registered.is_ok(), "{registered:?}");
    registry
}
