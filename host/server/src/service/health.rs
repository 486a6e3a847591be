//! Health of the server: readiness, problems, and details for the operator.
//!
//! Parts of the server, and its embedder (the program that uses this library), report problems
//! under a name, such as `configuration`, with [`Service::report`] and its variants, and clear them
//! later. [`Service::readiness`] returns the public part: if the server takes calls, and one line
//! for each problem. It also checks the limit of running calls, the shutdown, and the directories
//! that must be writable. A degraded part does not work while the server stays ready.
//! [`Service::health`] adds details for the operator.
//!
//! The public part names no component, tool, tenant or secret. A problem keeps the time at which it
//! began when it is reported again.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;

use crate::service::Service;
use crate::tenants::refused::RequestError;

/// The readiness of the server to take calls. For everyone: it names nothing that a tenant has.
///
/// # Shape
/// As JSON: its fields by name; `degraded` and `since` only if they are not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct Readiness {
    /// True if the server takes calls.
    pub ready: bool,
    /// The reasons why it takes none, one line each, by the source of the report.
    pub problems: BTreeMap<String, String>,
    /// The parts that do not work while the rest does, one line each, by the source of the report.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub degraded: BTreeMap<String, String>,
    /// The beginning of each reported problem, in seconds since 1970, by the source of the report.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub since: BTreeMap<String, u64>,
}

/// The readiness with details, for the operator: it contains names of components and tenants.
///
/// # Shape
/// As JSON: the fields of [`Readiness`], and `details`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// The public part.
    #[serde(flatten)]
    pub readiness: Readiness,
    /// Lines that explain a problem, by the source of the report.
    pub details: BTreeMap<String, Vec<String>>,
}

/// The reports by their source.
pub(crate) type Reports = Mutex<BTreeMap<String, Report>>;

#[derive(Debug, Clone)]
pub(crate) struct Report {
    message: String,
    details: Vec<String>,
    is_degraded: bool,
    since: u64,
}

impl Service {
    /// Reports a problem that makes the server not ready, or clears it with `None`. `source` names
    /// the reporting part, for example `configuration`. The text is public.
    pub fn report(&self, source: &str, problem: Option<String>) {
        self.set_report(source, problem.map(|message| (false, message, Vec::new())));
    }

    /// Like [`report`](Self::report), with lines that only the operator sees.
    pub fn report_with(&self, source: &str, problem: impl Into<String>, details: Vec<String>) {
        self.set_report(source, Some((false, problem.into(), details)));
    }

    /// Reports a failure while the server still takes calls, for example a component that cannot be
    /// loaded. Only the operator sees the details. A report without details clears it.
    pub fn report_degraded(&self, source: &str, summary: impl Into<String>, details: Vec<String>) {
        self.set_report(source, (!details.is_empty()).then(|| (true, summary.into(), details)));
    }

    /// Stores a report, with the time since which its source has one, or removes it.
    fn set_report(&self, source: &str, found: Option<(bool, String, Vec<String>)>) {
        let mut reports = self.0.reports.lock();
        let Some((is_degraded, message, details)) = found else {
            reports.remove(source);
            return;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let since = reports.get(source).map_or(now, |before| before.since);
        reports.insert(source.to_owned(), Report { message, details, is_degraded, since });
    }

    /// Returns the public part: if the server takes calls, and the problems.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let reports = self.0.reports.lock().clone();
        let since = reports.iter().map(|(source, report)| (source.clone(), report.since)).collect();
        let (mut problems, mut degraded) = (BTreeMap::new(), BTreeMap::new());
        for (source, report) in reports {
            let found = if report.is_degraded { &mut degraded } else { &mut problems };
            found.insert(source, report.message);
        }
        if self.0.running.is_ending() {
            problems.insert("server".into(), RequestError::Draining.to_string());
        } else if self.0.running.is_full() {
            problems.insert("queue".into(), "the server runs as many requests as it can".into());
        }
        if self.artifacts().is_some_and(|artifacts| !artifacts.is_writable()) {
            problems.insert("artifacts".into(), "the artifact store cannot be written to".into());
        }
        if self.0.state.as_ref().is_some_and(|directory| !directory.is_writable()) {
            let text = "the state directory cannot be written to";
            problems.insert("state_directory".into(), text.into());
        }
        Readiness { ready: problems.is_empty(), problems, degraded, since }
    }

    /// Returns the readiness with details, for the operator.
    #[must_use]
    pub fn health(&self) -> Health {
        let readiness = self.readiness();
        let reports = self.0.reports.lock();
        let details = reports.iter().filter(|(_, report)| !report.details.is_empty());
        let details =
            details.map(|(source, report)| (source.clone(), report.details.clone())).collect();
        Health { readiness, details }
    }
}
