//! Sends spans to the collector, tracks if it accepts them, and reports failures.
//!
//! [`Exporter`] wraps the OpenTelemetry exporter and records the result of each batch of spans in
//! [`State`]. When the first batch of a series fails, the operator's log gets a warning, and the
//! service reports `traces` as degraded; it stays ready. When a batch succeeds again, the report is
//! cleared. The spans of a failed batch are lost.
//!
//! [`Client`] sends the requests of the OpenTelemetry exporter with `Outbound`, so the same rules
//! hold for time, size and TLS as for other requests of the server. It records the error of each,
//! or that there was none, in [`State`]. It runs on the exporter's thread only and blocks that
//! thread, so a slow collector blocks no thread of a call.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::auth::outbound::Outbound;
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
    fn note(&self, problem: Option<String>) {
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

/// The most bytes of a collector's answer.
const MAX_ANSWER: usize = 64 << 10;

/// Sends the exporter's requests.
#[derive(Debug)]
pub(super) struct Client {
    outbound: Outbound,
    /// `None` only during drop.
    runtime: Option<Runtime>,
    state: Arc<State>,
}

impl Client {
    pub(super) fn new(time: Duration, state: Arc<State>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { outbound: Outbound::new(time, MAX_ANSWER), runtime: Some(runtime), state })
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let Some(runtime) = &self.runtime else { return Err("the exporter has ended".into()) };
        let sent = runtime.block_on(self.outbound.send(request));
        let problem = match &sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!(
                "the collector answered with the status {}",
                response.status().as_u16()
            )),
            Err(error) => Some(error.to_string()),
        };
        self.state.note(problem);
        Ok(sent?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Does not block, because the client may be dropped on a thread of a runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
