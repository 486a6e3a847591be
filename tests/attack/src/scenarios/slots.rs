//! Guests that look for memory that another guest left in their slot of the pool, and leave marks
//! for the next. Each engine has one cell, so each call gets the slot of the call before it.

use serde_json::json;
use toolcell::runtime::Placement;
use toolcell::{CallOptions, Engine, Executor, Grants, Limits, Tool, ToolCall};
use toolcell_test_guests::{Hostile, Misdeed, Place};
use toolcell_tests::{call, ending, wait};

use super::Scenario;
use crate::fixture::{Fixture, load_for_good};
use crate::rng::SeededRng;
use crate::tally::{Tally, wrong};

/// Calls of one case.
pub(crate) const CALLS: u64 = 1_000;
/// Memory in pages of the guests that are called mostly, and of those that are called rarely.
const FREQUENT_PAGES: [u32; 4] = [1, 2, 3, 4];
const RARE_PAGES: [u32; 3] = [16, 256, 1000];
/// Memories beside the guest's own: none, or as many as a cell can have.
const EXTRA_MEMORIES: [usize; 2] = [0, 3];

pub(crate) struct Slots {
    seed: u64,
    engines: Vec<Guests>,
}

struct Guests {
    _engine: Engine,
    frequent_guests: Vec<Tool>,
    rare_guests: Vec<Tool>,
}

impl Slots {
    pub(crate) fn new(stage: &Fixture) -> Self {
        let set_up = |placement| {
            let engine = stage.engine(placement).cells(1).build().expect("an engine");
            let guest = |pages, more_memories| {
                let guest = Hostile::new(Place::Execute, Misdeed::LeaveMarks);
                let guest = Hostile { pages, more_memories, ..guest };
                let component = load_for_good(&engine, guest.component(), Grants::default());
                // The first call on optimised code opens resources that all later calls share.
                let _ = call(&component, "hostile", "{}", Limits::default());
                component.tools()[0].clone()
            };
            let each = |pages: &u32| EXTRA_MEMORIES.map(|more| guest(*pages, more));
            let all = |pages: &[u32]| pages.iter().flat_map(each).collect();
            Guests {
                frequent_guests: all(&FREQUENT_PAGES),
                rare_guests: all(&RARE_PAGES),
                _engine: engine,
            }
        };
        Self { seed: stage.seed, engines: [Placement::Cells, Placement::Inline].map(set_up).into() }
    }
}

impl Scenario for Slots {
    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let mut dice = SeededRng::of(self.seed, "slots", case);
        let guests = &self.engines[dice.index(2)];
        let one = |_| {
            let from = if dice.one_in(200) { &guests.rare_guests } else { &guests.frequent_guests };
            dice.pick(from)
        };
        let tools: Vec<_> = (0..CALLS).map(one).collect();
        let endings = wait(async move {
            let executor = Executor::new();
            let mut endings = Vec::new();
            for tool in tools {
                let call = ToolCall::new("1", "hostile", "{}");
                let completion = executor.call(&tool, call, CallOptions::default()).await;
                endings.push(ending(&completion.result));
            }
            endings
        });
        for ending in endings {
            tally.record_result(if ending == "ok" {
                Ok(())
            } else {
                Err(wrong(format!("{ending} instead of ok"), json!({"case": case}).to_string()))
            });
        }
    }
}
