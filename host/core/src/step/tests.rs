//! Tests of the log lines and of the time limit of a step.

use futures_util::FutureExt as _;
use std::fmt::Write as _;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcell_contract::definition::Definition;
use toolcell_test_guests::rows;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;
use crate::tool::handler::Invocation;

/// Collects the log events of this crate as lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(Level, String)>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().contains("step")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                let name = if field.name() == "message" {
                    String::new()
                } else {
                    format!(" {}=", field.name())
                };
                let _ = write!(self.0, "{name}{value:?}");
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().push((*event.metadata().level(), line.0));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Returns the log lines of one step, with its milliseconds as `N`.
fn lines(stepper: &Stepper, call: Value) -> Vec<(Level, String)> {
    let lines = Lines::default();
    let mut turn = Turn::default();
    turn.deliberate = Some(Deliberate::new(["greet", "manual", "unknown"]));
    tracing::subscriber::with_default(lines.clone(), || {
        stepper.step(call, &mut turn).now_or_never().expect("a native handler that answers at once")
    });
    let mut lines = std::mem::take(&mut *lines.0.lock());
    for (_, line) in &mut lines {
        if let Some((before, rest)) = line.split_once(" (") {
            let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            assert_ne!(after, rest, "milliseconds");
            *line = format!("{before} (N{after}");
        }
    }
    lines
}

#[test]
fn step_log_line_depends_on_the_outcome() {
    let registry = Registry::new();
    let greet = Tool::native(Definition::new("greet", "").unwrap(), async |_: Value| json!(1));
    let manual = Tool::manual(Definition::new("manual", "").unwrap());
    registry.register_all([greet.unwrap(), manual.unwrap()]).unwrap();
    let stepper = Stepper::new(registry);
    for (call, expected) in rows::<(Value, Option<(&str, &str)>)>("step", "log_lines") {
        let lines = lines(&stepper, call);
        let seen: Vec<_> =
            lines.iter().map(|(level, line)| (level.as_str(), line.as_str())).collect();
        assert_eq!(seen, Vec::from_iter(expected));
    }
}

#[test]
fn step_log_line_has_the_beginning_of_a_long_text_only() {
    let stepper = Stepper::new(Registry::new());
    let long = "é".repeat(10_000);
    let twice = format!("{{\"{long}\": 1, \"{long}\": 2}}");
    for call in [json!({"name": long}), json!({"name": "greet", "args": twice})] {
        let lines = lines(&stepper, call);
        let [(level, line)] = lines.as_slice() else { panic!("{} lines", lines.len()) };
        assert_eq!(*level, Level::WARN);
        assert!(line.chars().count() < 300, "{} characters", line.chars().count());
    }
}

/// The executor's 30 s do not shorten a step; the turn's limits do.
#[test]
fn step_timeout_yields_only_to_turn_limits() {
    let registry = Registry::new();
    let tool = Tool::native(
        Definition::new("t", "").unwrap(),
        async |_: Value, invocation: Arc<Invocation>| json!(invocation.limits.timeout.as_secs()),
    );
    registry.register(tool.unwrap()).unwrap();
    let (mut turn, seconds) = (Turn::default(), Duration::from_secs);
    for (timeout, left, expected) in [(300, u64::MAX, 300), (20, u64::MAX, 20), (20, 7, 7)] {
        turn.call.limits.timeout = seconds(left);
        let stepper = Stepper::new(registry.clone())
            .with_config(StepConfig { timeout: seconds(timeout), ..StepConfig::default() });
        let step = stepper
            .step(json!({"name": "t"}), &mut turn)
            .now_or_never()
            .expect("it answers at once");
        assert_eq!(json!(step)["entry"]["functionResponse"]["response"]["result"], expected);
    }
}
