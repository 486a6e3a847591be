//! Starts the exporter of spans for `toolcell serve --otlp`.
//!
//! A span is a timed step of a request; OpenTelemetry collectors receive them. `main` calls
//! `Traces::start` with the collector's address, if the command has one, and adds the layer that it
//! returns to the log's subscriber. `serve` connects it with the service, which reports a collector
//! that fails, and calls `finish` at its end, which sends the waiting spans for at most 2 seconds.
//! Without the option, in every other command, and in a build without the feature `otlp`, nothing
//! is started.

use tracing::Subscriber;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::print::Result;

/// Exports spans while a server runs.
#[derive(Clone, Default)]
pub(crate) struct Traces {
    #[cfg(feature = "otlp")]
    otlp: Option<toolcell_server::otlp::Otlp>,
}

#[cfg(feature = "otlp")]
mod exported {
    use std::time::Duration;

    use toolcell_server::Service;
    use toolcell_server::otlp::{Otlp, SpanLayer};
    use tracing_subscriber::filter::filter_fn;

    use super::{Layer, LookupSpan, Result, Subscriber, Traces};
    use crate::print::Failure;

    /// Time to send the last spans when a server ends.
    const LAST_SPANS: Duration = Duration::from_secs(2);

    impl Traces {
        /// Starts the exporter if the command names a collector.
        pub(crate) fn start(collector: Option<&str>) -> Result<Self> {
            let Some(url) = collector else { return Ok(Self::default()) };
            let otlp = Otlp::start(url);
            let otlp = otlp.map_err(|error| Failure::usage(error.to_string(), error.hint()))?;
            Ok(Self { otlp: Some(otlp) })
        }

        /// Returns the layer of the subscriber that takes the spans.
        pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(
            &self,
        ) -> Option<impl Layer<S> + use<S>> {
            self.otlp
                .as_ref()
                .map(|otlp| otlp.layer().with_filter(filter_fn(SpanLayer::is_exported)))
        }

        /// Reports a collector that fails to this service.
        pub(crate) fn report_to(&self, service: &Service) {
            if let Some(otlp) = &self.otlp {
                otlp.report_to(service);
            }
        }

        /// Sends the waiting spans.
        pub(crate) async fn finish(&self) {
            if let Some(otlp) = &self.otlp {
                otlp.finish(LAST_SPANS).await;
            }
        }
    }
}

#[cfg(not(feature = "otlp"))]
mod left_out {
    use toolcell_server::Service;
    use tracing_subscriber::layer::Identity;

    use super::{Layer, LookupSpan, Result, Subscriber, Traces};

    impl Traces {
        pub(crate) fn start(_: Option<&str>) -> Result<Self> {
            Ok(Self::default())
        }

        pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(
            &self,
        ) -> Option<impl Layer<S> + use<S>> {
            None::<Identity>
        }

        pub(crate) fn report_to(&self, _: &Service) {}

        pub(crate) async fn finish(&self) {}
    }
}
