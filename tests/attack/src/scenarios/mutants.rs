//! Loads and calls real components in which some bytes or sections were changed.

use toolcell::Engine;
use toolcell_test_guests::{Answer, COMPONENTS, Hostile, bare_hello, bytes};
use toolcell_tests::binary::{number, section};

use super::Scenario;
use super::sections::split_sections;
use crate::fixture::{Fixture, check_untrusted};
use crate::rng::SeededRng;
use crate::tally::Tally;

/// Cells of each engine.
const CELLS: u32 = 4;
/// Bytes of the largest real component that is mutated. Larger ones hold a whole language runtime,
/// which takes seconds to compile.
const LARGEST: usize = 600 << 10;

pub(crate) struct Mutants {
    seed: u64,
    engines: [Engine; 2],
    small: Vec<Vec<u8>>,
    real: Vec<Vec<u8>>,
}

impl Mutants {
    pub(crate) fn new(stage: &Fixture) -> Self {
        let engines = [stage.for_strangers(CELLS), Engine::builder().cells(CELLS)];
        let schema = Some(
            r#"{"type":"object","properties":{"a":{"type":"integer","maximum":5}},"required":["a"]}"#,
        );
        let needs = &[["http", "https://a.example/", "why"]];
        let small = [
            Hostile::answering(Answer::Echo),
            Hostile { parameters: schema, output: schema, ..Hostile::answering(Answer::Echo) },
            Hostile { needs, ..Hostile::answering(Answer::Halt("done")) },
        ];
        let real = COMPONENTS.iter().map(|(name, _)| bytes(name));
        Self {
            seed: stage.seed,
            engines: engines.map(|engine| engine.build().expect("an engine")),
            small: small.map(|guest| guest.component()).into_iter().chain([bare_hello()]).collect(),
            real: real.filter(|bytes| bytes.len() < LARGEST).collect(),
        }
    }
}

/// Makes one random change; sections are taken from `other` too.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], dice: &mut SeededRng) {
    let sections = split_sections(bytes);
    let whole = |dice: &mut SeededRng| {
        sections.get(dice.index(sections.len().max(1))).map(|piece| piece.whole.clone())
    };
    let at = dice.index(bytes.len().max(1));
    match dice.number(0..12) {
        _ if bytes.is_empty() => {}
        0..4 => bytes[at] = dice.byte(),
        4 => bytes[at] ^= 1 << dice.number(0..8),
        5 => bytes.truncate(at),
        6 => {
            let end = (at + dice.index(64)).min(bytes.len());
            bytes.drain(at..end);
        }
        7 => {
            // A LEB128 number, up to the largest, where a length may be expected.
            let count = number(dice.pick(&[0, 127, 128, 65_535, 1 << 20, u32::MAX as usize]));
            bytes.splice(at..at, count);
        }
        8 => {
            if let Some(range) = whole(dice) {
                bytes.drain(range);
            }
        }
        9 => {
            if let Some(range) = whole(dice) {
                let copy = bytes[range.clone()].to_vec();
                bytes.splice(range.end..range.end, copy);
            }
        }
        10 => {
            if let (Some(from), Some(to)) = (whole(dice), whole(dice)) {
                let moved = bytes[from].to_vec();
                bytes.splice(to, moved);
            }
        }
        _ => {
            // Inserts a section of the other component, or a random one.
            let theirs = split_sections(other);
            let strange = if theirs.is_empty() || dice.one_in(3) {
                let content: Vec<u8> = (0..dice.index(40)).map(|_| dice.byte()).collect();
                section(dice.byte() % 14, &content)
            } else {
                other[theirs[dice.index(theirs.len())].whole.clone()].to_vec()
            };
            let place = whole(dice).map_or(bytes.len(), |range| range.start);
            bytes.splice(place..place, strange);
        }
    }
}

impl Scenario for Mutants {
    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let mut dice = SeededRng::of(self.seed, "mutants", case);
        let from = if dice.one_in(6) { &self.real } else { &self.small };
        let (mut mutant, other) = (dice.pick(from), dice.pick(&self.real));
        for _ in 0..dice.pick(&[1, 1, 1, 2, 5, 20]) {
            mutate(&mut mutant, &other, &mut dice);
        }
        let engine = dice.pick(&self.engines);
        check_untrusted(&engine, mutant, &mut dice, tally);
    }
}
