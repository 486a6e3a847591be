//! The fixture that scenarios share: engines, limits, and the load and calls of an untrusted
//! component.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use toolcell::runtime::{EngineBuilder, Placement};
use toolcell::{Component, Engine, Error, Grants, Limits};
use toolcell_test_guests::{Answer, Hostile};
use toolcell_tests::{call, ending, load_with, wait, worst_case};

use crate::rng::SeededRng;
use crate::tally::{Failure, Fault, Tally, wrong};

/// Cells of an engine.
pub(crate) const CELLS: u32 = 80;
/// Memory of a call, in bytes.
pub(crate) const MEMORY: u64 = 16 << 20;
/// Arguments for the tools of an untrusted component.
const ARGUMENTS: [&str; 6] =
    ["{}", r#"{"a":1}"#, r#"{"expression":"1+1"}"#, r#"{"text":"a","name":"b"}"#, "[", ""];
/// Processor time of one compilation: a component that takes longer is a bomb.
pub(crate) const COMPILE_TIME: Duration = Duration::from_secs(10);

/// The fixture of a scenario.
pub(crate) struct Fixture {
    pub(crate) seed: u64,
    /// This program, which engines also start as their compiler.
    pub(crate) program: PathBuf,
    /// The cache of compiled code, kept from run to run.
    pub(crate) cache: PathBuf,
    /// The directory of this process's temporary files.
    pub(crate) temp: PathBuf,
}

impl Fixture {
    /// Returns the memory that the process may have at most, in bytes.
    pub(crate) fn bound() -> u64 {
        worst_case(CELLS, MEMORY)
    }

    /// Returns an engine that compiles in this process and keeps compiled code in the cache.
    pub(crate) fn engine(&self, placement: Placement) -> EngineBuilder {
        Engine::builder().cells(CELLS).placement(placement).cache(&self.cache)
    }

    /// Returns an engine for bytes that are loaded once: it compiles in a child process and keeps
    /// nothing.
    pub(crate) fn for_strangers(&self, cells: u32) -> EngineBuilder {
        Engine::builder().cells(cells).compile_in(&self.program, ["compile"], COMPILE_TIME)
    }
}

/// Loads a component that is called until the end, and waits for its optimised code. Optimised code
/// opens a file, which would look like a leak if that happened after the first reading.
pub(crate) fn load_for_good(engine: &Engine, bytes: Vec<u8>, grants: Grants) -> Component {
    let component = load_with(engine, bytes, grants).expect("a component of the campaign loads");
    let waiting = component.clone();
    wait(async move { waiting.optimised().await });
    component
}

/// Limits for the tools of an untrusted component.
pub(crate) fn tight_limits() -> Limits {
    let limits =
        Limits { fuel: 20_000_000, memory: MEMORY, host_calls: 2_000, ..Limits::default() };
    Limits { result: 64 << 10, log: 4 << 10, timeout: Duration::from_millis(100), ..limits }
}

/// Returns true if an error keeps the promises: it has a kind, a hint, and a bounded message.
pub(crate) fn is_typed(error: &Error) -> bool {
    let kinds = [
        error.is_component(),
        error.is_definition(),
        error.is_not_granted(),
        error.is_directory(),
        error.is_options(),
    ];
    kinds.contains(&true) && !error.hint().is_empty() && error.to_string().len() < 8_000
}

/// Returns a guest that behaves.
pub(crate) fn good_guest() -> Vec<u8> {
    Hostile::answering(Answer::Echo).component()
}

/// Loads an untrusted component and calls each of its tools: everything must end in time with a
/// typed error or result.
pub(crate) fn check_untrusted(
    engine: &Engine,
    bytes: Vec<u8>,
    dice: &mut SeededRng,
    tally: &mut Tally,
) {
    let component = match load_with(engine, bytes, Grants::default()) {
        Ok(component) => component,
        Err(error) if is_typed(&error) => return tally.record_success(),
        Err(error) => {
            let failure = wrong("an error of no kind at load", format!("{error:?}"));
            return tally.record_result(Err(failure));
        }
    };
    let mut judgement = Ok(());
    for tool in component.tools().iter().take(8) {
        let arguments = dice.pick(&ARGUMENTS);
        let (name, limits) = (tool.definition().name.clone(), tight_limits());
        let began = Instant::now();
        let completion = call(&component, &name, arguments, limits);
        if let Err(fault) = in_time(&ending(&completion.result), began, limits, tally) {
            judgement = Err(fault);
        }
    }
    tally.record_result(judgement);
}

/// Records the overrun of a call that its deadline ended. A call that ends a second late is a
/// failure.
pub(crate) fn in_time(
    ending: &str,
    began: Instant,
    limits: Limits,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let late = began.elapsed().saturating_sub(limits.timeout);
    if ["timeout/deadline", "timeout/blocked"].contains(&ending) {
        tally.overran(late);
    }
    if late > Duration::from_secs(1) {
        let what = format!("a second late: {ending}");
        return Err((Fault::Slow, what, format!("{late:?} after {:?}", limits.timeout)));
    }
    Ok(())
}
