//! Converts spans of `tracing` to those of OpenTelemetry.
//!
//! [`SpanLayer`] is a layer that the program adds to its `tracing` subscriber. It collects the
//! fields of the spans that [`names`](super::names) knows, and passes each span to the batch
//! processor when it ends. The parent of a span is its parent in `tracing`, or the caller's span if
//! the fields `trace_id` and `parent_id` name one. Spans that the caller does not sample are not
//! exported. The layer counts the spans that have begun and not ended, so that a shutdown can wait
//! for them.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{SpanContext, SpanId, Status, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, IdGenerator as _, RandomIdGenerator, SpanData, SpanEvents, SpanLinks,
    SpanProcessor as _,
};
use tokio::sync::watch;
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::names::{self, Fields};

/// A span that has not ended.
struct OpenSpan {
    context: SpanContext,
    /// The span above it, or the caller's.
    parent: Option<SpanContext>,
    start: SystemTime,
    fields: Fields,
}

/// Passes the spans of requests, calls and calls into the host to the exporter. Created by
/// [`Otlp::layer`](super::Otlp::layer).
#[derive(Debug)]
pub struct SpanLayer {
    processor: Arc<BatchSpanProcessor>,
    /// The number of spans that have begun and not ended.
    open: watch::Sender<usize>,
    scope: InstrumentationScope,
    ids: RandomIdGenerator,
}

impl SpanLayer {
    pub(super) fn new(processor: Arc<BatchSpanProcessor>, open: watch::Sender<usize>) -> Self {
        let scope = InstrumentationScope::builder("toolcell")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        Self { processor, open, scope, ids: RandomIdGenerator::default() }
    }

    /// Returns true if this is a span that is exported: the layer's filter.
    #[must_use]
    pub fn is_exported(metadata: &Metadata<'_>) -> bool {
        metadata.is_span()
            && *metadata.level() <= Level::DEBUG
            && metadata.target().starts_with("toolcell")
            && names::NAMES.contains(&metadata.name())
    }

    /// Returns the context of a span with this id and parent.
    fn context(&self, id: SpanId, parent: Option<&SpanContext>) -> SpanContext {
        match parent {
            Some(parent) => SpanContext::new(
                parent.trace_id(),
                id,
                parent.trace_flags() & TraceFlags::SAMPLED,
                false,
                parent.trace_state().clone(),
            ),
            None => {
                let trace = self.ids.new_trace_id();
                SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::NONE)
            }
        }
    }
}

/// Returns the caller's span, if the fields name one.
fn remote(fields: &Fields) -> Option<SpanContext> {
    let (trace, parent) = (fields.text("trace_id")?, fields.text("parent_id")?);
    let flags = fields
        .text("trace_flags")
        .and_then(|flags| u8::from_str_radix(flags, 16).ok())
        .unwrap_or(1);
    let state = fields.text("trace_state").and_then(|state| TraceState::from_str(state).ok());
    let (trace, parent) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(parent).ok()?);
    Some(SpanContext::new(trace, parent, TraceFlags::new(flags), true, state.unwrap_or_default()))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let above = span.parent();
        let above = above.and_then(|above| {
            above.extensions().get::<OpenSpan>().map(|open| open.context.clone())
        });
        let parent = remote(&fields).or(above);
        let context = self.context(self.ids.new_span_id(), parent.as_ref());
        self.open.send_modify(|open| *open += 1);
        let start = SystemTime::now();
        span.extensions_mut().insert(OpenSpan { context, parent, start, fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(open) = extensions.get_mut::<OpenSpan>() else { return };
        let before = open.fields.text("parent_id").map(str::to_owned);
        values.record(&mut open.fields);
        // A request's caller is known after its headers, or its body, are read: before any child
        // span begins.
        if before.as_deref() != open.fields.text("parent_id") {
            open.parent = remote(&open.fields);
            open.context = self.context(open.context.span_id(), open.parent.as_ref());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else { return };
        let described = names::described(span.name(), &open.fields);
        self.processor.on_end(SpanData {
            span_context: open.context,
            parent_span_id: open.parent.as_ref().map_or(SpanId::INVALID, SpanContext::span_id),
            parent_span_is_remote: open.parent.is_some_and(|parent| parent.is_remote()),
            span_kind: described.kind,
            name: described.name.into(),
            start_time: open.start,
            end_time: SystemTime::now(),
            attributes: described.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: if described.has_failed { Status::error("") } else { Status::Unset },
            instrumentation_scope: self.scope.clone(),
        });
        self.open.send_modify(|open| *open -= 1);
    }
}
