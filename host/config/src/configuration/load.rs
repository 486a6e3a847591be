//! Loads the approved tools of a configuration.
//!
//! A server calls `Configuration::load` with the engines, and again through a reload. Up to eight
//! components are loaded at the same time. The result is a [`LoadedTools`]: the tools in a
//! registry, an executor with the tenants, and the problems. A component that cannot be served does
//! not prevent others from being served. If its file cannot be used or is not approved, the
//! approved version, whose bytes are kept, is still served. Each version that is served passed the
//! same checks. Two tools with one name, or with names that look alike, are both left out with
//! their components.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use futures_util::StreamExt as _;
use toolcell::component::{ComponentBytes, LoadOptions};
use toolcell::{Component, Executor, Limits, Registry, Tenant, Tool, names};

use super::Configuration;
use super::lock::Lock;
use crate::approval::signature::Signer;
use crate::approval::versions::digest;
use crate::error::Error;
use crate::file::resolved::ResolvedComponent;
use crate::paths::files;
use crate::serving::engines::Engines;
use crate::serving::loaded::{LoadedTools, Served, Source};
use crate::serving::report::{ComponentProblem, Reason, Serving};
use crate::serving::unset_secrets::UnsetSecret;
use crate::tenants::settings::TenantSettings;

/// Components that are loaded concurrently.
const AT_ONCE: usize = 8;

impl Configuration {
    /// Loads the approved tools. The problems of components are in [`LoadedTools::problems`].
    ///
    /// # Errors
    /// Fails if the lock cannot be used: it is damaged, of a later version, or other users can
    /// write to it.
    ///
    /// # Cancel safety
    /// May be dropped. Then nothing is served.
    pub async fn load(&self, engines: &Engines) -> Result<LoadedTools, Error> {
        self.load_over(engines, None).await
    }

    /// As [`load`](Self::load), reusing `before`: a component with the same code and grants is not
    /// loaded again.
    pub(super) async fn load_over(
        &self,
        engines: &Engines,
        before: Option<&LoadedTools>,
    ) -> Result<LoadedTools, Error> {
        let lock = Lock::beside(self)?;
        let loading = Loading { configuration: self, lock: &lock, engines, before };
        let names: Vec<_> = self.components.keys().collect();
        let one = |name: &String| loading.load_component(name.clone());
        let mut found: Vec<_> = futures_util::stream::iter(names.into_iter().map(one))
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut problems: Vec<_> =
            found.iter_mut().filter_map(|(_, _, problem)| problem.take()).collect();
        // A file that is not approved is one problem, however many components it has.
        let of_components = problems.len();
        problems.retain(|problem| problem.reason != Reason::ConfigurationNotApproved);
        if problems.len() < of_components {
            problems.push(ComponentProblem::of("", Serving::Nothing, self.none_approved()));
        }
        let served = found.into_iter().filter_map(|(name, served, _)| Some((name, served?)));
        let mut served: BTreeMap<_, _> = served.collect();
        problems.extend(without_same_names(&mut served));
        Ok(self.assembled(served, problems))
    }

    fn assembled(
        &self,
        served: BTreeMap<String, Served>,
        mut problems: Vec<ComponentProblem>,
    ) -> LoadedTools {
        let mut tenants = self.tenants.clone();
        for (tenant, settings) in &mut tenants {
            if settings.isolation.has_process() {
                settings.tenant.tools = Some(Vec::new());
                problems.push(ComponentProblem::of_tenant(tenant));
            }
        }
        let mut limits = self.bounded(self.defaults);
        let unset = self.unset_values();
        let (mut tools, mut development_components) = (Vec::new(), BTreeMap::new());
        for chosen in self.all() {
            let name = chosen.name().unwrap_or_default();
            let Some(served) = served.get(name) else { continue };
            development_components
                .extend(chosen.development().map(|why| (name.to_owned(), why.clone())));
            limits = loosest(&limits, &chosen.limits);
            for tool in served.component.tools() {
                let of_tool = chosen.limits.tightened(&chosen.limits_of(&tool.definition().name));
                problems.extend(self.problems_of_secrets(&unset, name, tool));
                tools.push(self.stopped(tool.clone().with_limits(of_tool)));
            }
        }
        let registry = Registry::new();
        // Duplicate names were removed above.
        if let Err(error) = registry.register_all(tools) {
            tracing::error!(%error, "the tools of a configuration are not registered");
        }
        // A component that is not served may have a tool with that name.
        if served.len() == self.components.len() {
            problems.extend(self.unknown_tools(&registry));
        }
        let mut executor = Executor::new().with_limits(limits);
        if tenants.is_empty() {
            executor = executor.with_anonymous(Tenant { quota: self.quota, ..Tenant::default() });
        }
        for (name, settings) in &tenants {
            executor = executor.with_tenant(name, settings.tenant.clone());
        }
        let problems = problems
            .into_iter()
            .map(|problem| problem.with_place(self.file.as_deref(), &self.components))
            .collect();
        LoadedTools {
            registry,
            executor,
            tenants,
            issuer: self.issuer.clone(),
            problems,
            development_components,
            served,
        }
    }

    /// Returns the names that tenants are offered but that no tool has.
    fn unknown_tools(&self, registry: &Registry) -> Vec<ComponentProblem> {
        let tools = registry.list();
        let known = tools.iter().map(|tool| tool.name.as_str());
        let of_tenant = |(tenant, settings): (&String, &TenantSettings)| {
            let unknown = settings.unknown_tools(known.clone()).into_iter();
            unknown
                .map(|problem| ComponentProblem::no_such_tool(tenant, problem))
                .collect::<Vec<_>>()
        };
        self.tenants.iter().flat_map(of_tenant).collect()
    }

    /// Returns the secrets without a value that a tool may use.
    fn problems_of_secrets(
        &self,
        unset: &[UnsetSecret<'_>],
        component: &str,
        tool: &Tool,
    ) -> Vec<ComponentProblem> {
        let Some(rights) = tool.rights() else { return Vec::new() };
        let needed = unset.iter().filter(|unset| self.may_need(**unset, rights));
        let problem = |UnsetSecret { tenant, problem, .. }: &UnsetSecret<'_>| {
            let error = Error::invalid(&problem.file, vec![(*problem).clone()]);
            let (tool, tenant) = (Some(tool.definition().name.clone()), tenant.map(str::to_owned));
            let problem =
                ComponentProblem::new(component, Reason::UnsetSecret, Serving::Current, error);
            ComponentProblem { tool, tenant, ..problem }
        };
        needed.map(problem).collect()
    }
}

/// The inputs of loading a component.
struct Loading<'a> {
    configuration: &'a Configuration,
    lock: &'a Lock,
    engines: &'a Engines,
    before: Option<&'a LoadedTools>,
}

impl Loading<'_> {
    /// Returns the version of a component that is served, if any, and the problems.
    async fn load_component(
        &self,
        name: String,
    ) -> (String, Option<Served>, Option<ComponentProblem>) {
        // A component that is loaded already needs only a check of its bytes. Yields, so that other
        // tasks run in between.
        tokio::task::yield_now().await;
        let chosen = match self.configuration.used(name.as_ref()) {
            Ok(chosen) => chosen,
            Err(error) => {
                let problem = ComponentProblem::of(&name, Serving::Nothing, error);
                return (name, None, Some(problem));
            }
        };
        if chosen.isolation.has_process() {
            let problem = ComponentProblem::needs_process(&name);
            return (name, None, Some(problem));
        }
        let (served, problem) = match self.file(&chosen).await {
            Ok((served, rebuilt)) => {
                if let Some(approved) =
                    self.lock.components.get(&name).filter(|old| old.digest == served.source.digest)
                {
                    self.configuration.keep_used_version(&chosen, approved);
                }
                let approve = || self.configuration.hint.command("approve", &[], &[&name]);
                (Some(served), rebuilt.then(|| ComponentProblem::rebuilt(&name, &approve())))
            }
            Err(error) => {
                let served = self.approved(&name, &chosen).await;
                let serving = if served.is_some() { Serving::Approved } else { Serving::Nothing };
                (served, Some(ComponentProblem::of(&name, serving, error)))
            }
        };
        (name, served, problem)
    }

    /// Loads the component from its current file. The bool is true if only its code differs from
    /// what was approved.
    async fn file(&self, chosen: &ResolvedComponent<'_>) -> Result<(Served, bool), Error> {
        let (bytes, signer) = chosen.bytes()?;
        self.checked(chosen, bytes, signer.as_ref()).await
    }

    /// Loads the approved version, if it is kept.
    async fn approved(&self, name: &str, chosen: &ResolvedComponent<'_>) -> Option<Served> {
        let wanted = &self.lock.components.get(name)?.digest;
        if let Some(kept) =
            self.configuration.versions(name).and_then(|versions| versions.find(wanted))
        {
            let signer = chosen.verify(&kept.bytes, Some(&kept.signature)).ok()?;
            return Some(self.checked(chosen, kept.bytes, signer.as_ref()).await.ok()?.0);
        }
        // Without the bytes its signature cannot be checked.
        let is_plain = chosen.demand.is_none() && chosen.is_digest_allowed(wanted);
        self.loaded_before(name, &Source::of(chosen, wanted.clone())).filter(|_| is_plain)
    }

    async fn checked(
        &self,
        chosen: &ResolvedComponent<'_>,
        bytes: Vec<u8>,
        signer: Option<&Signer>,
    ) -> Result<(Served, bool), Error> {
        let vetted = self.configuration.vet(self.lock, chosen, &bytes, signer)?;
        let name = chosen.name().unwrap_or_default();
        let source = Source::of(chosen, digest(&bytes));
        let served = match self.loaded_before(name, &source) {
            Some(served) => served,
            None => self.load(chosen, bytes, source).await?,
        };
        let rebuilt = self.configuration.confirm(&vetted, &served.component)?.is_some();
        chosen.check_tools(&served.component)?;
        Ok((served, rebuilt))
    }

    /// Returns the component that was loaded before, if code and grants are the same.
    fn loaded_before(&self, name: &str, source: &Source) -> Option<Served> {
        self.before?.served.get(name).filter(|before| before.source == *source).cloned()
    }

    async fn load(
        &self,
        chosen: &ResolvedComponent<'_>,
        bytes: Vec<u8>,
        source: Source,
    ) -> Result<Served, Error> {
        let engine = self.engines.of(chosen.isolation)?;
        // The bytes are read again from the kept versions, otherwise from the component's file.
        let versions = chosen.name().and_then(|name| self.configuration.versions(name));
        let (path, digest) = (chosen.path.clone(), source.digest.clone());
        let again = move || match versions.as_ref().and_then(|versions| versions.find(&digest)) {
            Some(kept) => Ok(kept.bytes),
            None => files::component(&path).map_err(io::Error::other),
        };
        let bytes = ComponentBytes::new(bytes, source.kind.clone());
        let options = LoadOptions {
            grants: source.grants.clone(),
            source: Some(Arc::new(again)),
            ..LoadOptions::default()
        };
        let component = Component::load_with(engine, bytes, options).await?;
        Ok(Served { component, source })
    }
}

/// Removes components whose tools have the same name, or names that look alike, because a model may
/// confuse the two tools.
fn without_same_names(served: &mut BTreeMap<String, Served>) -> Vec<ComponentProblem> {
    let mut problems = Vec::new();
    loop {
        let tools = served.iter().flat_map(|(component, served)| {
            served.component.definitions().map(move |tool| (tool.name.clone(), component.clone()))
        });
        let tools: Vec<_> = tools.collect();
        let mut homes = BTreeMap::new();
        let twice = tools.iter().find_map(|(tool, home)| {
            let first: &String = homes.entry(tool).or_insert(home);
            (first != home).then(|| (tool.clone(), first.clone(), tool.clone(), home.clone()))
        });
        let home = |tool: &str| {
            homes.get(&tool.to_owned()).map(|home| (*home).clone()).unwrap_or_default()
        };
        let alike = || {
            let (tool, other) = names::confusable(tools.iter().map(|(tool, _)| tool.as_str()))?;
            Some((tool.to_owned(), home(tool), other.to_owned(), home(other)))
        };
        let Some((tool, one, other, two)) = twice.or_else(alike) else { return problems };
        for name in BTreeSet::from([&one, &two]) {
            served.remove(name);
            let problem = ComponentProblem::duplicate_tool(name, (&tool, &one), (&other, &two));
            problems.push(problem);
        }
    }
}

/// Returns the looser value of each limit.
fn loosest(one: &Limits, other: &Limits) -> Limits {
    Limits {
        fuel: one.fuel.max(other.fuel),
        timeout: one.timeout.max(other.timeout),
        memory: one.memory.max(other.memory),
        arguments: one.arguments.max(other.arguments),
        result: one.result.max(other.result),
        log: one.log.max(other.log),
        host_calls: one.host_calls.max(other.host_calls),
    }
}
