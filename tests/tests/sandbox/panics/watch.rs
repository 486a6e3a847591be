//! Observes the call and the return of every host function, and panics in a chosen one.
//!
//! It reads the traces that the bindings of the engine and of the library write, so the functions
//! need no code for it.

use std::collections::BTreeSet;
use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, Once};

use toolcell_test_guests::Function;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber, subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use super::{ON_PURPOSE, lock};

/// The targets of the traces.
const TRACED: [&str; 4] =
    ["wasmtime_wasi", "wasmtime_wasi_io", "wasmtime_wasi_http", "toolcell::engine::cell"];

/// A function, and a moment of its call.
pub(crate) type Moment = (Function, When);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    Called,
    Returns,
}

struct Watch {
    told: Option<Moment>,
    seen: BTreeSet<Moment>,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { told: None, seen: BTreeSet::new() });

/// Begins to record; later calls have no effect.
pub(crate) fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let traced = Targets::new().with_targets(TRACED.map(|target| (target, LevelFilter::TRACE)));
        let watcher = tracing_subscriber::registry().with(Watcher.with_filter(traced));
        subscriber::set_global_default(watcher).expect("no other subscriber is set");
    });
    lock(&WATCH).seen.clear();
}

/// Returns the moments that were recorded.
pub(crate) fn seen() -> BTreeSet<Moment> {
    lock(&WATCH).seen.clone()
}

/// Makes the next moment like this one panic.
pub(crate) fn panic_at(moment: &Moment) {
    lock(&WATCH).told = Some(moment.clone());
}

/// Returns true if the chosen moment has come.
pub(crate) fn has_panicked() -> bool {
    lock(&WATCH).told.is_none()
}

struct Watcher;

/// The fields of a span or an event.
#[derive(Default, Clone)]
struct Words {
    module: String,
    function: String,
    message: String,
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "module" => value.clone_into(&mut self.module),
            "function" => value.clone_into(&mut self.function),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Watcher {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut words = Words::default();
        attributes.record(&mut words);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(words);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut words = Words::default();
        event.record(&mut words);
        let when = match words.message.as_str() {
            "call" => When::Called,
            "return" => When::Returns,
            _ => return,
        };
        // The library's events have the function's name; those of the engine are in a span that has
        // it.
        let around =
            context.event_span(event).and_then(|span| span.extensions().get::<Words>().cloned());
        let Words { module, function, .. } =
            if words.function.is_empty() { around.unwrap_or_default() } else { words };
        let moment = ((module, function), when);
        let mut watch = lock(&WATCH);
        let is_told = watch.told.as_ref() == Some(&moment);
        if is_told {
            watch.told = None;
        }
        watch.seen.insert(moment);
        drop(watch);
        assert!(!is_told, "{ON_PURPOSE}");
    }
}
