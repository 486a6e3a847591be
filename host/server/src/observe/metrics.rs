//! Metrics of the server, for its operator.
//!
//! Each tenant has a [`TenantMetrics`], which counts the events of its calls and the requests that
//! were refused; sessions and waiting times are counted too. [`Metrics::text`] returns all of it in
//! the text format of OpenMetrics, which Prometheus reads. The metrics server, at a loopback
//! address, sends that text; no tenant can read it.
//!
//! A label is the name of a tenant, a tool, an ending or a code, never text of a tool or a client.
//! At most 1,000 pairs of a tenant and a tool have metrics of their own; further ones are counted
//! as `other`, and so are names of tools that do not exist.

mod engines;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};
use toolcell::controls::{bound, enforced};
use toolcell::{Event, Usage};

use crate::tenants::account::ending;
pub(crate) use engines::InUseSource;

/// The most pairs of a tenant and a tool with metrics of their own.
const MAX_PAIRS: usize = 1000;
/// The label of further pairs.
const OTHER: &str = "other";
/// The label for calls without a tenant.
const NO_TENANT: &str = "";
/// Buckets in seconds, from a millisecond to a minute.
const SECONDS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0];
/// Buckets in instruction units.
const FUEL: [f64; 7] = [1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

type Labels = Vec<(&'static str, String)>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The metrics of a service. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    /// The pairs of a tenant and a tool with metrics of their own.
    pairs: Mutex<BTreeSet<(String, String)>>,
    calls: Family<Labels, Counter>,
    duration: Histograms,
    fuel: Histograms,
    waiting: Histogram,
    host_calls: Family<Labels, Counter>,
    denials: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
    requests: Gauge,
    sessions: Gauge,
    engines: engines::Engines,
}

/// The metrics of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct TenantMetrics {
    metrics: Metrics,
    tenant: Arc<str>,
    /// The metrics of its tools, looked up at the first call of each.
    tools: Arc<HashMap<String, OnceLock<ToolMetrics>>>,
}

/// The metrics of one tool for one tenant. Cached, because a lookup by labels takes longer than to
/// count.
#[derive(Debug)]
struct ToolMetrics {
    labels: Labels,
    duration: Histogram,
    fuel: Histogram,
    host_calls: Counter,
    /// By ending.
    calls: Mutex<BTreeMap<&'static str, Counter>>,
}

/// Counts an open session, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenSession(Gauge);

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// `engines` returns the resources that engines have in use.
    pub(crate) fn new(engines: InUseSource) -> Self {
        let mut registry = Registry::with_prefix("toolcell");
        let calls = registered(&mut registry, "calls", "Calls that ended");
        let host_calls = registered(&mut registry, "host_calls", "Calls of tools into the host");
        let denials = registered(&mut registry, "denials", "Denied requests of tools");
        let help = "Requests that were refused before a tool ran";
        let refused = registered(&mut registry, "refused_requests", help);
        let duration = Histograms::new_with_constructor(|| Histogram::new(SECONDS));
        let fuel = Histograms::new_with_constructor(|| Histogram::new(FUEL));
        let waiting = Histogram::new(SECONDS);
        let (time, wait) =
            ("Wall time of calls", "Time from the admission of a request to the start of its call");
        registry.register_with_unit("call_duration", time, Unit::Seconds, duration.clone());
        registry.register_with_unit("call_queue", wait, Unit::Seconds, waiting.clone());
        registry.register("call_fuel", "Units of fuel that calls used", fuel.clone());
        let help = "Requests whose calls are running";
        let requests = registered(&mut registry, "requests_running", help);
        let sessions = registered(&mut registry, "mcp_sessions_open", "Open MCP sessions");
        let engines = engines::Engines::new(engines, &mut registry);
        Self(Arc::new(Inner {
            registry,
            pairs: Mutex::default(),
            calls,
            duration,
            fuel,
            waiting,
            host_calls,
            denials,
            refused,
            requests,
            sessions,
            engines,
        }))
    }

    /// Returns the metrics of this tenant, which has these tools.
    pub(crate) fn of_tenant(
        &self,
        tenant: Option<&str>,
        tools: impl Iterator<Item = String>,
    ) -> TenantMetrics {
        let tenant = Arc::from(tenant.unwrap_or(NO_TENANT));
        let tools = tools.map(|tool| (tool, OnceLock::new())).collect();
        TenantMetrics { metrics: self.clone(), tenant, tools: Arc::new(tools) }
    }

    /// Counts an opened session.
    pub(crate) fn session(&self) -> OpenSession {
        self.0.sessions.inc();
        OpenSession(self.0.sessions.clone())
    }

    /// Returns all metrics in the text format of OpenMetrics.
    pub(crate) fn text(&self, running: usize) -> String {
        self.0.requests.set(i64::try_from(running).unwrap_or(i64::MAX));
        self.0.engines.update();
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }

    /// Returns the labels under which a pair is counted.
    fn pair(&self, tenant: &str, tool: &str) -> (String, String) {
        let pair = (tenant.to_owned(), tool.to_owned());
        let mut pairs = self.0.pairs.lock();
        let has_room = pairs.len() < bound!(MetricNames, MAX_PAIRS);
        if pairs.contains(&pair) || (has_room && pairs.insert(pair.clone())) {
            pair
        } else {
            (OTHER.to_owned(), OTHER.to_owned())
        }
    }
}

/// Registers a new metric and returns it.
fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl TenantMetrics {
    /// Counts an event.
    pub(crate) fn count(&self, event: &Event) {
        let inner = &self.metrics.0;
        match event {
            Event::Completed { name, result, usage, .. } => match self.tools.get(name) {
                Some(known) => {
                    known.get_or_init(|| self.of_tool(name)).count(inner, ending(result), usage)
                }
                // A client can invent names: they are counted together.
                None => {
                    let name = if enforced!(MetricNames) { OTHER } else { name };
                    self.of_tool(name).count(inner, ending(result), usage)
                }
            },
            Event::Denied { denial, .. } => {
                // Without a tool: an event of this kind names none.
                let (tenant, _) = self.metrics.pair(&self.tenant, NO_TOOL);
                let layer = serde_json::json!(denial.layer).as_str().unwrap_or(OTHER).to_owned();
                inner.denials.get_or_create(&vec![("tenant", tenant), ("layer", layer)]).inc();
            }
            Event::Started { .. } | Event::Progress { .. } | Event::Log { .. } => {}
            _ => {}
        }
    }

    /// Counts a request that was refused with this code.
    pub(crate) fn refused(&self, code: &'static str) {
        let (tenant, _) = self.metrics.pair(&self.tenant, NO_TOOL);
        let labels = vec![("tenant", tenant), ("code", code.to_owned())];
        self.metrics.0.refused.get_or_create(&labels).inc();
    }

    /// Returns an observer that measures the time from now to the start of a call.
    pub(crate) fn wait_timer(&self) -> impl Fn(Event) + Send + Sync + 'static + use<> {
        let (metrics, since) = (self.metrics.clone(), Instant::now());
        move |event| {
            if let Event::Started { .. } = event {
                metrics.0.waiting.observe(since.elapsed().as_secs_f64());
            }
        }
    }

    fn of_tool(&self, tool: &str) -> ToolMetrics {
        let (tenant, tool) = self.metrics.pair(&self.tenant, tool);
        let labels = vec![("tenant", tenant), ("tool", tool)];
        let inner = &self.metrics.0;
        ToolMetrics {
            duration: inner.duration.get_or_create_owned(&labels),
            fuel: inner.fuel.get_or_create_owned(&labels),
            host_calls: inner.host_calls.get_or_create_owned(&labels),
            calls: Mutex::default(),
            labels,
        }
    }
}

impl ToolMetrics {
    /// Counts a call with this ending.
    fn count(&self, inner: &Inner, ending: &'static str, usage: &Usage) {
        let made = || {
            let ended = [self.labels.clone(), vec![("outcome", ending.to_owned())]].concat();
            inner.calls.get_or_create_owned(&ended)
        };
        self.calls.lock().entry(ending).or_insert_with(made).inc();
        self.duration.observe(usage.wall.as_secs_f64());
        if let Some(fuel) = usage.fuel {
            self.fuel.observe(fuel as f64);
        }
        self.host_calls.inc_by(usage.host_calls);
    }
}

/// The label for events without a tool.
const NO_TOOL: &str = "";

#[cfg(test)]
mod tests;
