//! What theatres share: engines, and how strangers' components are tried.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use toolcell::{Component, Engine, EngineBuilder, Error, Grants, Limits, Missing, Placement};
use toolcell_tests::{call, ending, wait, worst_case};

use crate::dice::Dice;
use crate::tally::{Fault, Tally};

/// Cells at once.
pub(crate) const CELLS: u32 = 80;
/// Bytes of memory of a call.
pub(crate) const MEMORY: u64 = 16 << 20;
/// Processor time of one compilation: what takes longer is a bomb.
pub(crate) const COMPILE_TIME: Duration = Duration::from_secs(10);

/// Where a theatre is set up.
pub(crate) struct Stage {
    pub(crate) seed: u64,
    /// This program, which lends itself as a compiler.
    pub(crate) program: PathBuf,
    /// Compiled code of components that every run has.
    pub(crate) cache: PathBuf,
    /// The temporary files of this process.
    pub(crate) temp: PathBuf,
}

impl Stage {
    /// The most that the process may have in memory, in bytes.
    pub(crate) fn bound() -> u64 {
        worst_case(CELLS, MEMORY)
    }

    /// An engine that compiles in this process and keeps what it compiled.
    pub(crate) fn engine(&self, placement: Placement) -> EngineBuilder {
        Engine::builder().cells(CELLS).placement(placement).cache(&self.cache)
    }

    /// An engine for bytes that are loaded once: nothing is kept.
    pub(crate) fn for_strangers(&self, cells: u32) -> EngineBuilder {
        Engine::builder().cells(cells).compile_in(&self.program, ["compile"], COMPILE_TIME)
    }
}

/// Loads with these rights.
pub(crate) fn load_with(
    engine: &Engine,
    bytes: Vec<u8>,
    grants: Grants,
) -> Result<Component, Error> {
    let engine = engine.clone();
    wait(async move { Component::load_with(&engine, bytes, grants, Missing::Denied).await })
}

/// Loads a component that is called until the end, and waits for its optimised code: what comes in
/// place of the first code opens a file, which would look like a leak if it came after the first
/// reading.
pub(crate) fn load_for_good(engine: &Engine, bytes: Vec<u8>, grants: Grants) -> Component {
    let component = load_with(engine, bytes, grants).expect("a component of the campaign loads");
    let waiting = component.clone();
    wait(async move { waiting.optimised().await });
    component
}

/// What a stranger's tool may use.
pub(crate) fn tight() -> Limits {
    let limits = Limits::default().with_fuel(20_000_000).with_memory(MEMORY).with_host_calls(2_000);
    limits.with_result(64 << 10).with_log(4 << 10).with_timeout(Duration::from_millis(100))
}

/// Whether an error is one of those that are promised: of a kind, with a hint, in bounded words.
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

/// Loads a stranger's component and calls each of its tools: everything has a typed end, in time.
pub(crate) fn try_stranger(engine: &Engine, bytes: Vec<u8>, dice: &mut Dice, tally: &mut Tally) {
    let component = match load_with(engine, bytes, Grants::default()) {
        Ok(component) => component,
        Err(error) if is_typed(&error) => return tally.survived(),
        Err(error) => {
            return tally.failed(Fault::Wrong, "an error of no kind at load", format!("{error:?}"));
        }
    };
    let mut judgement = Ok(());
    for tool in component.tools().iter().take(8) {
        let arguments = dice.pick(&[
            "{}",
            r#"{"a":1}"#,
            r#"{"expression":"1+1"}"#,
            r#"{"text":"a","name":"b"}"#,
            "[",
            "",
        ]);
        let (name, limits) = (tool.definition().name.clone(), tight());
        let began = Instant::now();
        let completion = call(&component, &name, arguments, limits);
        if let Err(fault) = in_time(&ending(&completion.result), began, limits, tally) {
            judgement = Err(fault);
        }
    }
    tally.judged(judgement);
}

/// Notes how late a call ended that its deadline ended. What is later by a second is a failure of
/// its own.
pub(crate) fn in_time(
    ending: &str,
    began: Instant,
    limits: Limits,
    tally: &mut Tally,
) -> Result<(), (Fault, String, String)> {
    let late = began.elapsed().saturating_sub(limits.timeout);
    if ["timeout/deadline", "timeout/blocked"].contains(&ending) {
        tally.overran(late);
    }
    if late > Duration::from_secs(1) {
        return Err((
            Fault::Slow,
            format!("a second late: {ending}"),
            format!("{late:?} after {:?}", limits.timeout),
        ));
    }
    Ok(())
}
