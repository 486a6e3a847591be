//! Tracks if the collector accepts spans, and reports failures.
//!
//! [`Exporter`] wraps the OpenTelemetry exporter and records the result of each batch of spans in
//! [`State`]. When the first batch of a series fails, the operator's log gets a warning, and the
//! service reports `traces` as degraded; it stays ready. When a batch succeeds again, the report is
//! cleared. The spans of a failed batch are lost.

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use crate::service::Service;

/// The source under which a failing collector is reported.
const SOURCE: &str = "traces";

/// The result of the last batch.
#[derive(Debug, Default)]
pub(super) struct State(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    service: Option<Service>,
    /// The error of the last request, if it failed.
    problem: Option<String>,
    is_failing: bool,
}

impl State {
    pub(super) fn report_to(&self, service: Service) {
        let mut inner = self.0.lock();
        inner.service = Some(service);
        inner.report();
    }

    /// Records the result of a request.
    pub(super) fn note(&self, problem: Option<String>) {
        self.0.lock().problem = problem;
    }

    /// Records the result of a batch, and reports the first failure in a row.
    fn record_result(&self, result: &OTelSdkResult) {
        let mut inner = self.0.lock();
        let is_failing = result.is_err();
        if let Err(error) = result {
            inner.problem.get_or_insert_with(|| error.to_string());
        }
        if std::mem::replace(&mut inner.is_failing, is_failing) != is_failing {
            match &inner.problem {
                Some(problem) if is_failing => {
                    tracing::warn!(problem, "the collector takes no spans: they are lost")
                }
                Some(_) | None => tracing::warn!("the collector takes spans again"),
            }
            inner.report();
        }
    }
}

impl Inner {
    fn report(&self) {
        let Some(service) = &self.service else { return };
        let details = self.problem.iter().filter(|_| self.is_failing).cloned().collect();
        service.report_degraded(SOURCE, "the collector takes no spans", details);
    }
}

/// The exporter, which records the result of each batch.
#[derive(Debug)]
pub(super) struct Exporter {
    pub(super) inner: opentelemetry_otlp::SpanExporter,
    pub(super) state: Arc<State>,
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let result = self.inner.export(batch).await;
        self.state.record_result(&result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
