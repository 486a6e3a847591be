//! Metrics of engines: cells, calls that wait for one, and outgoing connections of tools.
//!
//! An engine runs WebAssembly; a cell is the instance in which it runs one call. The embedder (the
//! program that uses this library) gives the service a function that returns the resources that its
//! engines have in use. [`Engines::update`] calls it each time the metrics are read, and sets the
//! gauges, with the name of the isolation as label. The total of opened connections is a counter,
//! to which the increase is added.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use toolcell::runtime::InUse;

use super::{Labels, registered};

/// Returns the resources that engines have in use, by the names of their isolation.
#[derive(Clone)]
pub(crate) struct InUseSource(pub(crate) Arc<dyn Fn() -> Vec<(&'static str, InUse)> + Send + Sync>);

impl Default for InUseSource {
    fn default() -> Self {
        Self(Arc::new(Vec::new))
    }
}

impl fmt::Debug for InUseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InUseSource")
    }
}

type Value = fn(&InUse) -> usize;

/// The gauges: name, description and value.
const GAUGES: [(&str, &str, Value); 5] = [
    ("cells_in_use", "Cells that calls use", |now| now.cells),
    ("cells_max", "The most cells that can exist at the same time", |now| now.max_cells),
    ("calls_queued", "Calls that wait for a cell", |now| now.calls_waiting),
    ("connections_open", "Open connections of tools to other hosts", |now| now.connections),
    ("connections_max", "The most connections that can be open at the same time", |now| {
        now.max_connections
    }),
];

/// The metrics of engines, updated at each scrape.
#[derive(Debug)]
pub(super) struct Engines {
    /// Locked during an update: two concurrent updates would both add to the total.
    source: Mutex<InUseSource>,
    /// In the order of [`GAUGES`].
    gauges: [Family<Labels, Gauge>; GAUGES.len()],
    connections_total: Family<Labels, Counter>,
}

impl Engines {
    pub(super) fn new(source: InUseSource, registry: &mut Registry) -> Self {
        let gauges = GAUGES.map(|(name, help, _)| registered(registry, name, help));
        let help = "Connections that tools opened to other hosts";
        let connections_total = registered(registry, "connections", help);
        Self { source: Mutex::new(source), gauges, connections_total }
    }

    /// Updates the metrics.
    pub(super) fn update(&self) {
        let source = self.source.lock();
        for (isolation, now) in source.0() {
            let labels = vec![("isolation", isolation.to_owned())];
            for (family, (.., value)) in self.gauges.iter().zip(GAUGES) {
                family.get_or_create(&labels).set(i64::try_from(value(&now)).unwrap_or(i64::MAX));
            }
            let total = self.connections_total.get_or_create(&labels);
            total.inc_by(now.connections_total.saturating_sub(total.get()));
        }
    }
}
