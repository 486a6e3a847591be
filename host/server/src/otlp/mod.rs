//! Exports spans to an OpenTelemetry collector, as protobuf over HTTP (OTLP).
//!
//! A program calls [`Otlp::start`] with the URL of a collector, and adds the [`SpanLayer`] to its
//! [`tracing`] subscriber. A thread then sends finished spans in batches to `/v1/traces` of the
//! collector. [`Otlp::finish`] sends the rest at shutdown.
//!
//! Only the spans and fields of a fixed table are exported: no argument, result, path, secret or
//! log line. A call never waits for the collector: spans over the queue's limit are lost. A failing
//! collector is reported once, until it works again.
//!
//! Source: OpenTelemetry protocol 1.9, semantic conventions 1.38 (GenAI, MCP, HTTP; the first two
//! are in development).

mod exporter;
mod layer;
mod names;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanProcessor as _};
use tokio::sync::watch;

use exporter::{Client, Exporter, State};
pub use layer::SpanLayer;

use crate::auth::outbound::{self, UrlError};
use crate::service::Service;

/// The path for spans, below the collector's URL.
const PATH: &str = "/v1/traces";
/// The most spans in one request.
const BATCH: usize = 512;
/// The most spans that wait for a batch. Further ones are lost.
const QUEUE: usize = 4096;
/// Time between two batches.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// `service.name` of the spans.
const SERVICE: &str = "toolcell";

/// The reason why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The collector's URL cannot be used.
    #[error("the URL of the collector, `{url}`, cannot be used: {problem}")]
    Url {
        /// The URL, with control characters escaped.
        url: String,
        /// The reason.
        problem: UrlError,
    },
    /// The exporter failed to start.
    #[error("the exporter of spans cannot be started: {0}")]
    Start(String),
}

impl OtlpError {
    /// Returns advice for the user: one line without a period.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Url { problem: UrlError::Cleartext, .. } => {
                "use `https://`, or a collector on this machine: spans name tenants and tools"
            }
            Self::Url { .. } => {
                "write for instance `http://127.0.0.1:4318` or `https://collector.example.com`"
            }
            Self::Start(_) => "check the variables `OTEL_EXPORTER_OTLP_*` of the environment",
        }
    }
}

/// Exports spans until it is dropped. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Otlp {
    processor: Arc<BatchSpanProcessor>,
    /// The number of spans that have begun and not ended.
    open: watch::Sender<usize>,
    state: Arc<State>,
}

impl Otlp {
    /// Starts the thread that sends spans to `/v1/traces` below a collector's URL, for example
    /// `http://127.0.0.1:4318`: with TLS, unless the collector is on this machine. Nothing is sent
    /// before the first span ends. The environment variable `OTEL_EXPORTER_OTLP_HEADERS` adds headers, for example a key of the
    /// collector.
    ///
    /// # Errors
    /// [`OtlpError`].
    pub fn start(url: &str) -> Result<Self, OtlpError> {
        if let Err(problem) = outbound::checked(url) {
            return Err(OtlpError::Url { url: url.escape_debug().to_string(), problem });
        }
        let failed = |error: String| OtlpError::Start(error);
        let state = Arc::<State>::default();
        let client =
            Client::new(TIMEOUT, Arc::clone(&state)).map_err(|error| failed(error.to_string()))?;
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}{PATH}", url.trim_end_matches('/')))
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(INTERVAL)
            .build();
        let exporter = Exporter { inner: exporter, state: Arc::clone(&state) };
        let mut processor =
            BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        // Without detectors: the environment must not change the content of spans.
        let resource =
            Resource::builder_empty().with_service_name(SERVICE).with_attribute(version).build();
        processor.set_resource(&resource);
        Ok(Self { processor: Arc::new(processor), open: watch::Sender::default(), state })
    }

    /// Returns the layer that exports spans. Add it to the program's subscriber, with
    /// [`is_exported`](SpanLayer::is_exported) as its filter.
    #[must_use]
    pub fn layer(&self) -> SpanLayer {
        SpanLayer::new(Arc::clone(&self.processor), self.open.clone())
    }

    /// Reports a failing collector to this service: under `traces` in its degraded state.
    pub fn report_to(&self, service: &Service) {
        self.state.report_to(service.clone());
    }

    /// Waits at most half of `time` for open spans to end. Then sends the queued spans, for at most
    /// the other half, and stops.
    ///
    /// # Cancel safety
    /// When dropped, the spans that it sends are sent in the background.
    pub async fn finish(&self, time: Duration) {
        let time = time / 2;
        // A task can hold the span of its request for a moment after the answer was sent.
        let _ = tokio::time::timeout(time, self.open.subscribe().wait_for(|open| *open == 0)).await;
        let processor = Arc::clone(&self.processor);
        // A failure was already reported.
        let _ = tokio::task::spawn_blocking(move || processor.shutdown_with_timeout(time)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use axum::Router;
    use axum::routing::post;
    use bytes::Bytes;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[tokio::test]
    async fn span_ending_late_is_exported() {
        let (sender, received) = mpsc::channel::<Bytes>();
        let collector = Router::new()
            .route(PATH, post(move |body: Bytes| async move { sender.send(body).expect("read") }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        tokio::spawn(async move { axum::serve(listener, collector).await });

        let otlp = Otlp::start(&url).expect("it starts");
        let subscriber = tracing_subscriber::registry().with(otlp.layer());
        let span = tracing::subscriber::with_default(subscriber, || tracing::info_span!("request"));
        let mut finish = pin!(otlp.finish(Duration::from_secs(20)));
        let early = tokio::time::timeout(Duration::from_millis(100), &mut finish).await;
        assert!(early.is_err(), "it has not waited for the span");
        drop(span);
        finish.await;
        let body = received.try_recv().expect("a request of the exporter");
        assert!(body.windows(8).any(|part| part == b"toolcell"), "{body:?}");
    }
}
