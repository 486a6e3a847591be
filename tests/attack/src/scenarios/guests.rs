//! Guests that misbehave in one exact place, under random limits, at both placements.

use std::time::{Duration, Instant};

use toolcell::runtime::Placement;
use toolcell::{Component, Engine, Grants, Limits};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place};
use toolcell_tests::{call, ending, load_with};

use super::Scenario;
use crate::fixture::{Fixture, MEMORY, good_guest, in_time, is_typed, load_for_good};
use crate::rng::SeededRng;
use crate::tally::{Tally, wrong};

const ANSWERS: [Answer; 10] = [
    Answer::Echo,
    Answer::Value("nonsense"),
    Answer::Value(r#"{"a":1,"a":2}"#),
    Answer::Megabytes(1),
    Answer::Megabytes(9),
    Answer::Parts(1_000),
    Answer::NoShape,
    Answer::Outside,
    Answer::NotText,
    Answer::Halt("max_turns"),
];

pub(crate) struct Guests {
    seed: u64,
    /// The engine of each placement, with a loaded guest that behaves.
    engines: Vec<(Engine, Component)>,
}

impl Guests {
    pub(crate) fn new(stage: &Fixture) -> Self {
        let set_up = |placement| {
            let engine = stage.engine(placement).build().expect("an engine");
            let good = load_for_good(&engine, good_guest(), Grants::default());
            (engine, good)
        };
        Self { seed: stage.seed, engines: [Placement::Cells, Placement::Inline].map(set_up).into() }
    }
}

fn limits(dice: &mut SeededRng) -> Limits {
    Limits {
        memory: MEMORY >> dice.number(0..4),
        host_calls: dice.number(1..3_000),
        fuel: dice.pick(&[1, 1_000, 1_000_000, u64::MAX]),
        result: dice.pick(&[0, 1, 1 << 10, 1 << 20]),
        log: dice.pick(&[0, 1, 64 << 10]),
        timeout: Duration::from_millis(dice.number(1..120)),
        ..Limits::default()
    }
}

impl Scenario for Guests {
    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let mut dice = SeededRng::of(self.seed, "guests", case);
        let (mut place, misdeed) = (dice.pick(Place::ALL), dice.pick(Misdeed::ALL));
        if matches!(place, Place::Start | Place::Describe) && !dice.one_in(8) {
            // Both run while the component is loaded, under the host's own limits of seconds: so
            // only now and then.
            place = Place::Execute;
        }
        let mut guest = Hostile { answer: dice.pick(&ANSWERS), ..Hostile::new(place, misdeed) };
        if dice.one_in(8) {
            guest.more_memories = dice.index(9);
        }
        let (engine, good) = &self.engines[dice.index(2)];
        let what = || format!("{misdeed:?} in {place:?}");
        match load_with(engine, guest.component(), Grants::default()) {
            Err(error) if is_typed(&error) => tally.record_success(),
            Err(error) => {
                let what = format!("an error of no kind: {}", what());
                tally.record_result(Err(wrong(what, format!("{error:?}"))));
            }
            Ok(component) => {
                let (limits, began) = (limits(&mut dice), Instant::now());
                let completion = call(&component, "hostile", r#"{"a": 1}"#, limits);
                let judgement = in_time(&ending(&completion.result), began, limits, tally);
                tally.record_result(judgement.map_err(|(fault, _, detail)| {
                    (fault, format!("a second late: {}", what()), detail)
                }));
            }
        }
        let completion = call(good, "hostile", r#"{"a": 1}"#, Limits::default());
        if completion.result.value().map(toolcell::Json::as_str) != Some(r#"{"a": 1}"#) {
            let what = format!("an innocent after {}", what());
            tally.record_result(Err(wrong(what, format!("{completion:?}"))));
        }
    }
}
