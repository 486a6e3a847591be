//! Generates and mutates WebAssembly with `wasm-smith` and `wasm-mutate`, the generators of the
//! engine's own fuzzers.
//!
//! It is a tool in a cell, so that the host's build does not depend on them, a generator that does
//! not end stops at its deadline, and a seed gives the same bytes on every machine.

use arbitrary::Unstructured;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use toolcell_guest::{Failure, tool, tools};
use wasm_mutate::WasmMutate;
use wasm_smith::{Component, Config, Module};

/// Random bytes for one component.
const CHANCE: usize = 16 << 10;
/// Fuel of one mutation: enough for the module of a language runtime.
const FUEL: u64 = 10_000;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A component of chance.
    Component,
    /// A module of chance with the imports and exports of another.
    Shaped,
    /// A module that is another, but for one change.
    Mutated,
}

/// A sequence of random numbers from a seed.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
struct SplitMix(u64);

impl SplitMix {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// In seven of eight cases, leaves out the proposals that the host disables, so that most binaries
/// get as far as they can.
fn config(dice: &mut SplitMix) -> Config {
    let mut config =
        Config { max_instructions: 400, max_memories: 2, max_tables: 4, ..Config::default() };
    if !dice.roll().is_multiple_of(8) {
        config.exceptions_enabled = false;
        config.gc_enabled = false;
        config.relaxed_simd_enabled = false;
        config.tail_call_enabled = false;
        config.threads_enabled = false;
        config.shared_everything_threads_enabled = false;
        config.wide_arithmetic_enabled = false;
    }
    config
}

fn generate(kind: Kind, dice: &mut SplitMix, base: Option<Vec<u8>>) -> Result<Vec<u8>, Failure> {
    let chance: Vec<u8> = (0..CHANCE / 8).flat_map(|_| dice.roll().to_le_bytes()).collect();
    let fault = |error: arbitrary::Error| Failure::new(error.to_string());
    let wanted = || Failure::new("a base is wanted");
    let mut chance = Unstructured::new(&chance);
    let config = config(dice);
    Ok(match kind {
        Kind::Component => Component::new(config, &mut chance).map_err(fault)?.to_bytes(),
        Kind::Shaped => {
            let config = Config { module_shape: Some(base.ok_or_else(wanted)?), ..config };
            Module::new(config, &mut chance).map_err(fault)?.to_bytes()
        }
        Kind::Mutated => {
            let base = base.ok_or_else(wanted)?;
            let mut mutation = WasmMutate::default();
            mutation.seed(dice.roll()).fuel(FUEL).preserve_semantics(dice.roll().is_multiple_of(2));
            let fault = |error: wasm_mutate::Error| Failure::new(error.to_string());
            let mut mutants = mutation.run(&base).map_err(fault)?;
            mutants.next().ok_or_else(|| Failure::new("no mutant"))?.map_err(fault)?
        }
    })
}

/// Makes one binary from a seed, in base64.
#[tool]
fn forge(kind: Kind, seed: u64, base: Option<String>) -> Result<String, Failure> {
    let base = base
        .map(|base| STANDARD.decode(base))
        .transpose()
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(STANDARD.encode(generate(kind, &mut SplitMix(seed), base)?))
}

tools![forge];
