//! One call in one cell, from store to answer.

use std::sync::Arc;

use wasmtime::{Engine, Store};

use super::bindings::{ToolboxWithImports, ToolboxWithImportsPre};
use super::cell::Cell;
use super::classify::{Phase, classify};
use super::pulse::Pulse;
use super::ticker::Ticker;
use super::translate;
use crate::call::CallResult;
use crate::definition::{Checks, Definition};
use crate::error::Error;
use crate::handler::Invocation;
use crate::refusal::{Fault, Refusal};
use crate::tool_error::ToolError;

/// What is made once per component and serves every call.
pub(super) struct Ready {
    pub(super) engine: Engine,
    pub(super) pre: ToolboxWithImportsPre<Cell>,
    pub(super) ticker: Arc<Ticker>,
}

/// Calls the tool: `visible` and `validate` where it has them, then `execute`, all in one cell and on one budget.
pub(super) async fn execute(
    ready: Arc<Ready>,
    invocation: Arc<Invocation>,
    checks: Checks,
    pulse: Arc<Pulse>,
) -> CallResult {
    let _running = ready.ticker.run();
    let mut cell = match Cell::store(&ready.engine, Arc::clone(&invocation), pulse) {
        Ok(store) => Settling(store),
        Err(error) => return CallResult::ToolError(set_up_failed(&error)),
    };
    let answer = answer(&ready, &mut cell.0, &invocation, checks).await;
    answer.unwrap_or_else(|(error, phase)| CallResult::ToolError(classify(&error, phase, &cell.0, fuel_used(&cell.0))))
}

/// Writes the receipt when the cell ends, also when it is dropped half-way.
struct Settling(Store<Cell>);

impl Drop for Settling {
    fn drop(&mut self) {
        let used = fuel_used(&self.0);
        self.0.data_mut().settle(used);
    }
}

type Failed = (wasmtime::Error, Phase);

async fn answer(
    ready: &Ready,
    store: &mut Store<Cell>,
    invocation: &Invocation,
    checks: Checks,
) -> Result<CallResult, Failed> {
    let in_call = |error| (error, Phase::Call);
    let toolbox = start(ready, store).await?;
    let tool = toolbox.toolcell_tool_tool();
    let wire = translate::Context::of(invocation);
    if checks.visible
        && !tool.call_visible(&mut *store, &invocation.call.name, wire.context()).await.map_err(in_call)?
    {
        return Ok(CallResult::Refusal(Refusal::NotVisible));
    }
    if checks.validate {
        let problems = tool.call_validate(&mut *store, wire.call()).await.map_err(in_call)?;
        if !problems.is_empty() {
            return Ok(CallResult::Refusal(Refusal::InvalidArguments(Fault::of_handler(problems))));
        }
    }
    let said = tool.call_execute(&mut *store, wire.call(), wire.context()).await.map_err(in_call)?;
    Ok(match translate::outcome(said) {
        Ok(outcome) => CallResult::Outcome(outcome),
        Err(rule) => CallResult::ToolError(ToolError::InvalidReturn(rule)),
    })
}

/// Asks a component for its tools.
///
/// # Errors
/// [`Error::is_component`] when it traps, hangs or talks nonsense; [`Error::is_definition`] when a definition is not usable.
pub(super) async fn describe(
    ready: Arc<Ready>,
    invocation: Arc<Invocation>,
    pulse: Arc<Pulse>,
) -> Result<Vec<Definition>, Error> {
    let _running = ready.ticker.run();
    let mut store =
        Cell::store(&ready.engine, invocation, pulse).map_err(|error| Error::describe(set_up_failed(&error)))?;
    let said = match start(&ready, &mut store).await {
        Ok(toolbox) => {
            toolbox.toolcell_tool_tool().call_describe(&mut store).await.map_err(|error| (error, Phase::Call))
        }
        Err(failed) => Err(failed),
    };
    let used = fuel_used(&store);
    let said = said.map_err(|(error, phase)| Error::describe(classify(&error, phase, &store, used)))?;
    said.into_iter().map(translate::definition).collect()
}

async fn start(ready: &Ready, store: &mut Store<Cell>) -> Result<ToolboxWithImports, Failed> {
    ready.pre.instantiate_async(store).await.map_err(|error| (error, Phase::Start))
}

fn fuel_used(store: &Store<Cell>) -> u64 {
    store.data().invocation.limits.fuel.saturating_sub(store.get_fuel().unwrap_or_default())
}

/// The host is out of memory for a store: nothing of the guest has run.
fn set_up_failed(error: &wasmtime::Error) -> ToolError {
    tracing::error!(error = format!("{error:#}"), "no store for a cell");
    ToolError::HandlerExit(crate::tool_error::Exit::Died)
}
