//! Components that a compiler would work on for hours. Each must be refused, or its compiler
//! killed, within a bound; meanwhile calls of other tools must not slow down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use toolcell::runtime::Placement;
use toolcell::{Component, Engine, Grants, Limits};
use toolcell_test_guests::with_record;
use toolcell_tests::binary::{component, list, module, number, of_component, of_module, section};
use toolcell_tests::{call, ending, load_with};

use super::Scenario;
use crate::fixture::{Fixture, good_guest, is_typed, load_for_good};
use crate::report::larger;
use crate::tally::{Fault, Tally, record, wrong};

/// Time that loading one bomb may take at most.
const BOUND: Duration = Duration::from_secs(30);
/// Calls of the other tool that are measured before the attack, as the baseline.
const BASELINE_CALLS: u64 = 500;
/// Calls from which on the p99 means something: then ten calls lie above it, so that two that the
/// scheduler delayed do not decide it.
const MIN_SAMPLES: u64 = 1_000;
/// Microseconds. Differences of latency below it come from the scheduler's tick.
const NOISE: u64 = 1_000;
/// Sizes at which each bomb is loaded: the largest size over the number.
const SIZES: [usize; 3] = [16, 4, 1];

/// Section ids of a core module that the table of `toolcell_tests` does not have.
const EXPORTS: u8 = 7;
const DATA: u8 = 11;
const FUNCTION: [u8; 5] = [0x60, 2, 0x7f, 0x7f, 0];

/// Makes a bomb of a size.
type Bomb = fn(usize) -> Vec<u8>;

/// The bombs by name. Their size is 1 to 16 sixteenths of the largest.
const BOMBS: [(&str, Bomb); 18] = [
    ("nested blocks", |size| code(1, &nested(size * 2_000, &[0x02, 0x40], &[0x20, 0, 0x0d, 0]))),
    ("nested loops", |size| {
        code(1, &nested(size * 2_000, &[0x03, 0x40], &[0x20, 0, 0x0d, 0, 0x20, 1, 0x21, 0]))
    }),
    ("nested ifs", |size| {
        code(1, &nested(size * 2_000, &[0x20, 0, 0x04, 0x40], &[0x20, 1, 0x21, 0]))
    }),
    ("a deep expression", |size| {
        let (gets, adds) = ([0x20_u8, 0].repeat(size * 10_000), vec![0x6a; size * 10_000 - 1]);
        code(1, &[gets, adds, vec![0x1a]].concat())
    }),
    ("one long function", |size| code(1, &[0x20, 0, 0x20, 1, 0x6c, 0x21, 0].repeat(size * 4_500))),
    ("a jump table", |size| {
        let targets = list(size * 20_000, &vec![0; size * 20_000]);
        let table = [&[0x02, 0x40, 0x20, 0, 0x0e], targets.as_slice(), &[0, 0x0b]];
        code(1, &table.concat())
    }),
    ("jump tables out of nested blocks", |size| {
        let depth = size * 60;
        let targets: Vec<u8> = (0..depth).flat_map(number).collect();
        let table = [&[0x20, 0, 0x0e], list(depth, &targets).as_slice(), &[0]].concat();
        code(1, &[[0x02, 0x40].repeat(depth), [table, vec![0x0b]].concat().repeat(depth)].concat())
    }),
    ("many functions", |size| code(size * 12_000, &[0x20, 0, 0x1a])),
    ("many functions that call each other", |size| {
        code(size * 3_000, &[0x20, 0, 0x20, 1, 0x10, 0].repeat(4))
    }),
    ("divisions with traps", |size| {
        code(1, &[0x20, 0, 0x20, 1, 0x6d, 0x21, 0].repeat(size * 4_500))
    }),
    ("locals live through loops", |size| {
        let sum = |local| [vec![0x20], number(local), vec![0x20, 0, 0x6a, 0x21], number(local)];
        let step: Vec<u8> = (2..500).flat_map(|local| sum(local).concat()).collect();
        let open = [&[0x03, 0x40], step.as_slice(), &[0x20, 0, 0x0d, 0]].concat();
        let locals = [vec![1], number(498), vec![0x7f]].concat();
        let body = [locals, open.repeat(size * 4), vec![0x0b; size * 4 + 1]].concat();
        with_second_module(&of_code(1, &body))
    }),
    ("many types", |size| distinct_types(size * 1_200)),
    ("types over the bound", |size| distinct_types(size * 6_000)),
    ("a long record in a lifted signature", |size| with_record(size * 620)),
    ("instances of instances", nested_instances),
    ("instances side by side of instances", multiplied_beside),
    ("many exports", |size| {
        let exports = (0..size * 6_000).flat_map(|n| {
            let name = format!("{n:0>60}");
            [list(60, name.as_bytes()), vec![0, 0]].concat()
        });
        let exports: Vec<u8> = exports.collect();
        let exports = section(EXPORTS, &list(size * 6_000, &exports));
        with_second_module(&[of_code(1, &[0, 0x0b]), exports].concat())
    }),
    ("much data", |size| {
        let data = vec![0xaa; size * 3_900_000];
        with_second_module(&section(DATA, &list(1, &[vec![1], list(data.len(), &data)].concat())))
    }),
];

/// Returns nested blocks, each with `inside` in it.
fn nested(depth: usize, open: &[u8], inside: &[u8]) -> Vec<u8> {
    [[open, inside].concat().repeat(depth), vec![0x0b; depth]].concat()
}

/// A component with `count` functions of this code and no locals.
fn code(count: usize, code: &[u8]) -> Vec<u8> {
    with_second_module(&of_code(count, &[&[0], code, &[0x0b]].concat()))
}

/// The type, function and code sections of `count` functions with this body.
fn of_code(count: usize, body: &[u8]) -> Vec<u8> {
    let types = section(of_module::TYPES, &list(1, &FUNCTION));
    let functions = section(of_module::FUNCTIONS, &list(count, &vec![0; count]));
    let code = section(of_module::CODE, &list(count, &list(body.len(), body).repeat(count)));
    [types, functions, code].concat()
}

/// A component with `count` different function types.
fn distinct_types(count: usize) -> Vec<u8> {
    let types = (0..count).flat_map(|number| {
        let parameters: Vec<u8> =
            (0..17).map(|bit| if number >> bit & 1 == 0 { 0x7f } else { 0x7e }).collect();
        [&[0x60], list(17, &parameters).as_slice(), &[0]].concat()
    });
    let types: Vec<u8> = types.collect();
    with_second_module(&section(of_module::TYPES, &list(count, &types)))
}

/// A component that behaves, with components nested in it that each make `of_each` instances of the
/// next, over several levels.
fn nested_instances(of_each: usize) -> Vec<u8> {
    let inside = (2..8).fold(component(&[]), |inner, _| {
        component(&[section(of_component::COMPONENT, &inner), copies(of_each, 0)].concat())
    });
    // Index 0 is the interface of the guest itself.
    [good_guest(), section(of_component::COMPONENT, &inside), copies(of_each, 1)].concat()
}

/// Like `nested_instances`, side by side: each component instantiates the one before it through an
/// alias of the enclosing component.
fn multiplied_beside(of_each: usize) -> Vec<u8> {
    let parts = (1..100).map(|before| {
        // An alias of the component with this index in the enclosing component.
        let alias = section(of_component::ALIASES, &list(1, &[4, 2, 1, before]));
        section(of_component::COMPONENT, &component(&[alias, copies(of_each, 0)].concat()))
    });
    let parts: Vec<u8> = parts.flatten().collect();
    let first = section(of_component::COMPONENT, &component(&[]));
    [good_guest(), first, parts, copies(1, 100)].concat()
}

/// An instance section with `count` instances of the component with this index.
fn copies(count: usize, index: u8) -> Vec<u8> {
    section(of_component::INSTANCES, &list(count, &[0, index, 0].repeat(count)))
}

/// A component that behaves, with a second core module of these sections.
fn with_second_module(sections: &[u8]) -> Vec<u8> {
    [good_guest(), section(of_component::CORE_MODULE, &module(sections))].concat()
}

pub(crate) struct Bombs {
    /// Loads the bombs and runs the calls of the other tool.
    engine: Engine,
    other_tool: Component,
}

impl Bombs {
    pub(crate) fn new(stage: &Fixture) -> Self {
        let engine =
            stage.for_strangers(16).placement(Placement::Cells).build().expect("an engine");
        // The bombs alone are to slow this tool down, not its own optimiser.
        let innocent = load_for_good(&engine, good_guest(), Grants::default());
        Self { engine, other_tool: innocent }
    }

    /// Calls the other tool while `goes_on` returns true. Returns the latencies, and true if all
    /// calls succeeded.
    fn measure_other_calls(&self, goes_on: impl Fn(u64) -> bool) -> (Histogram<u64>, bool) {
        let mut latencies = Histogram::new(3).expect("three digits are possible");
        let mut well = true;
        while goes_on(latencies.len()) {
            let began = Instant::now();
            let completion = call(&self.other_tool, "hostile", "{}", Limits::default());
            record(&mut latencies, began.elapsed());
            well &= ending(&completion.result) == "ok";
        }
        (latencies, well)
    }
}

impl Scenario for Bombs {
    fn cases(&self) -> Option<u64> {
        Some((BOMBS.len() * SIZES.len()) as u64)
    }

    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let (name, make) = BOMBS[case as usize % BOMBS.len()];
        let size = SIZES[case as usize / BOMBS.len()];
        let bomb = make(size);
        let (alone, _) = self.measure_other_calls(|made| made < BASELINE_CALLS);
        let goes_on = AtomicBool::new(true);
        let began = Instant::now();
        let (loaded, took, (during, well)) = thread::scope(|scope| {
            let load = scope.spawn(|| {
                let loaded = load_with(&self.engine, bomb, Grants::default()).map(|_| ());
                let took = began.elapsed();
                goes_on.store(false, Ordering::Relaxed);
                (loaded, took)
            });
            let others = self.measure_other_calls(|_| goes_on.load(Ordering::Relaxed));
            let (loaded, took) = load.join().expect("a load does not panic");
            (loaded, took, others)
        });
        if during.len() >= MIN_SAMPLES {
            let p99 =
                |latencies: &Histogram<u64>| latencies.value_at_quantile(0.99).max(NOISE) as f64;
            tally.slip = larger(tally.slip, Some(p99(&during) / p99(&alone)));
        }
        let detail = format!("size {size}: {took:?}, {:?}", loaded.as_ref().err());
        tally.record_result(match loaded {
            _ if took > BOUND => Err((Fault::Slow, name.to_owned(), detail)),
            _ if !well => Err(wrong(format!("a call of others during {name}"), detail)),
            Err(error) if !is_typed(&error) => {
                Err(wrong(format!("an error of no kind: {name}"), detail))
            }
            Ok(()) | Err(_) => Ok(()),
        });
    }
}
