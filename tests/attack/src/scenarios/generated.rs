//! Calls components made by the generators of the engine's own fuzzers, which run in a cell: random
//! components, random modules in the shape of the contract, and real modules with mutations that a
//! compiler may handle wrongly.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolcell::runtime::{Deterministic, Optimise, Placement};
use toolcell::{Component, Engine, Executor, Grants, Limits, ToolCall};
use toolcell_test_guests::{Hostile, Misdeed, Place, bare_hello, bytes};
use toolcell_tests::binary::{of_component, section};
use toolcell_tests::{load_with, wait};

use super::Scenario;
use super::sections::{module, with_module};
use crate::fixture::{Fixture, check_untrusted};
use crate::rng::SeededRng;
use crate::tally::Tally;

/// Limits of the generator: its memory in bytes, its time.
const MEMORY: u64 = 512 << 20;
const TIME: Duration = Duration::from_secs(5);
/// Real tools whose modules are small enough to be mutated often.
const REAL: [&str; 4] = ["hello", "calculator", "mischief", "caller"];

pub(crate) struct GeneratedComponents {
    seed: u64,
    forge: Component,
    engines: [Engine; 2],
    real: Vec<Vec<u8>>,
}

impl GeneratedComponents {
    pub(crate) fn new(stage: &Fixture) -> Self {
        // With a frozen clock the generator's result does not depend on how long it took.
        let fixed = Deterministic { now: None, frozen_clock: true, seed: Some(stage.seed) };
        let engine = stage.engine(Placement::Cells).deterministic(fixed);
        // Optimising the generator takes a minute of processor time, and the optimised code would
        // open a file when it arrives.
        let engine = engine.optimise(Optimise::Never).build().expect("an engine");
        Self {
            seed: stage.seed,
            forge: load_with(&engine, bytes("forge"), Grants::default()).expect("the generator"),
            engines: [stage.for_strangers(4), Engine::builder().cells(4)]
                .map(|engine| engine.build().expect("an engine")),
            real: REAL.iter().map(|name| bytes(name)).chain([bare_hello()]).collect(),
        }
    }

    /// Runs the generator. Returns `None` if it fails.
    fn generate(&self, kind: &str, dice: &mut SeededRng, base: Option<&[u8]>) -> Option<Vec<u8>> {
        let tool = self.forge.tools()[0].clone();
        let base = base.map(|base| STANDARD.encode(base));
        let arguments = json!({"kind": kind, "seed": dice.number(..), "base": base});
        let call = ToolCall::with_value("1", "forge", &arguments);
        let limits = Limits { timeout: TIME, memory: MEMORY, ..Limits::default() };
        let limits = Limits { result: 16 << 20, arguments: 16 << 20, ..limits };
        let executor = Executor::new().with_limits(limits);
        let completion = wait(async move { executor.call(&tool, call, Default::default()).await });
        let value = completion.result.value()?.to_value();
        STANDARD.decode(value.as_str()?).ok()
    }

    fn untrusted_component(&self, dice: &mut SeededRng) -> Option<Vec<u8>> {
        let hostile = Hostile::new(dice.pick(Place::ALL), dice.pick(Misdeed::ALL));
        match dice.number(0..8) {
            0 => self.generate("component", dice, None),
            // Beside a guest that behaves: otherwise it is refused before the compiler sees it.
            1 => {
                let inner = self.generate("component", dice, None)?;
                Some([hostile.component(), section(of_component::COMPONENT, &inner)].concat())
            }
            2 | 3 => {
                let guest = hostile.component();
                with_module(&guest, &self.generate("shaped", dice, Some(&module(&guest)?))?)
            }
            kind => {
                let mut guest = if kind == 4 { dice.pick(&self.real) } else { hostile.component() };
                // Some mutations are impossible for some modules.
                for _ in 0..dice.number(2..8) {
                    let changed = self.generate("mutated", dice, Some(&module(&guest)?));
                    guest =
                        changed.and_then(|module| with_module(&guest, &module)).unwrap_or(guest);
                }
                Some(guest)
            }
        }
    }
}

impl Scenario for GeneratedComponents {
    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let mut dice = SeededRng::of(self.seed, "smith", case);
        if let Some(stranger) = self.untrusted_component(&mut dice) {
            let engine = dice.pick(&self.engines);
            check_untrusted(&engine, stranger, &mut dice, tally);
        }
    }
}
