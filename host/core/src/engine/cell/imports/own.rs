//! Implements the imports of `toolcell:tool` that need no grant: log, progress, abort, budget.
//!
//! Guests (the WebAssembly code of tools) call them during a call. `log` sends a line as an event,
//! within the log limit of the call. `report` of `progress` sends an event with a number done, a
//! total and a message of at most 200 characters. `abort` tells if the caller has asked the call to
//! stop; the guest can also wait for that. `remaining` of `budget` returns the fuel (executed
//! instructions), time and memory that the call has left.
//! Each use counts as a call into the host.

use toolcell_contract::call::AbortSignal;
use toolcell_contract::event::{LogLevel, LogSource};
use wasmtime::StoreContextMut;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::engine::cell::Cell;
use crate::engine::cell::bindings::toolcell::tool::{abort, budget, log, progress};
use crate::engine::cell::output::lines::{LINE_END, emit};

/// Characters of a progress message.
const PROGRESS_CHARS: usize = 200;

/// Links the interfaces.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    log::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    progress::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    abort::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    linker
        .instance("toolcell:tool/budget@0.1.0")?
        .func_wrap("remaining", |store, ()| remaining(store).map(|left| (left,)))
}

impl log::Host for Cell {
    fn log(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.called("log", "log")?;
        let level = match level {
            log::Level::Trace => LogLevel::Trace,
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        let cost = message.len() as u64 + LINE_END;
        emit(&self.scope.invocation, LogSource::Log, level, &message, cost);
        Ok(())
    }
}

impl progress::Host for Cell {
    fn report(
        &mut self,
        done: u64,
        total: Option<u64>,
        message: Option<String>,
    ) -> wasmtime::Result<()> {
        self.called("progress", "report")?;
        let message = message.map(shorten);
        self.scope.invocation.progress(done, total, message);
        Ok(())
    }
}

/// Cuts a message at [`PROGRESS_CHARS`], and appends the number of characters that were cut.
fn shorten(text: String) -> String {
    match text.char_indices().nth(PROGRESS_CHARS).map(|(end, _)| text.split_at(end)) {
        Some((kept, rest)) => format!("{kept}… ({} more characters)", rest.chars().count()),
        None => text,
    }
}

impl abort::Host for Cell {
    fn requested(&mut self) -> wasmtime::Result<bool> {
        self.called("abort", "requested")?;
        Ok(self.scope.invocation.abort.is_raised())
    }

    fn subscribe(&mut self) -> wasmtime::Result<Resource<DynPollable>> {
        self.called("abort", "subscribe")?;
        let waiting = self.table.push(AbortPollable(self.scope.invocation.abort.clone()))?;
        subscribe(&mut self.table, waiting)
    }
}

/// Ready when the caller has asked the call to stop.
struct AbortPollable(AbortSignal);

#[wasmtime_wasi::async_trait]
impl Pollable for AbortPollable {
    async fn ready(&mut self) {
        self.0.raised().await;
    }
}

/// Linked by hand: the fuel counter belongs to the store, which a host trait does not see.
fn remaining(mut store: StoreContextMut<'_, Cell>) -> wasmtime::Result<budget::Allowance> {
    let fuel = store.get_fuel()?;
    let cell = store.data_mut();
    cell.called("budget", "remaining")?;
    Ok(budget::Allowance {
        fuel: Some(fuel),
        milliseconds: u64::try_from(cell.scope.invocation.remaining().as_millis())
            .unwrap_or(u64::MAX),
        memory: cell.limiter.remaining(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_message_reports_omitted_characters() {
        let long = "é".repeat(PROGRESS_CHARS);
        assert_eq!(shorten(long.clone()), long);
        assert_eq!(shorten(long.clone() + "end"), long + "… (3 more characters)");
    }
}
