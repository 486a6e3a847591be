//! Runs one call in a cell: creates the store and the instance, calls the guest (the WebAssembly
//! code of a tool), converts its answer.
//!
//! The code that schedules calls (`schedule/placement`) runs [`execute`] for a call, and
//! [`visible`], [`validate`] or [`describe`] for the other exports of a tool. They take a
//! [`Ready`], the linked code of a component, and the invocation. `execute` calls `visible` and
//! `validate` first if the tool has them, all in one cell (a fresh WebAssembly instance for one
//! call) and on one budget; a command or a plain function is run by `engine/adapt`.
//! Each failure becomes a [`ToolError`]. Secrets are removed from the answer of a tool if it, or a
//! tool that called it, was granted some. Cells of the other exports have no rights. The usage
//! (fuel, memory, host calls) is written when the cell ends, also if the future is dropped before
//! its end.

use std::sync::{Arc, LazyLock};

use tokio::sync::Mutex;
use toolcell_contract::outcome::refusal::{Fault, Refusal};
use toolcell_contract::outcome::tool_error::{Exit, ToolError};
use toolcell_contract::{call::CallResult, definition::Checks, grants::rights::Rights};
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Engine, Store};

use super::classify::{Phase, classify};
use super::{
    Cell, Scope, bindings::exports::toolcell::tool::tool, bounds::run_state::RunState,
    bounds::ticker::Ticker, call_redactor::CallRedactor, exports::Exports,
    output::captured::Streams, resources::EngineResources, translate,
};
use crate::capability::files::Mounts;
use crate::engine::adapt::{command, component_kind::ComponentKind, functions};
use crate::secrets::secret_redactor::SecretRedactor;
use crate::tool::handler::Invocation;

/// The linked code of a component, which serves every call.
pub(crate) struct Ready {
    pub(crate) engine: Engine,
    pub(crate) pre: InstancePre<Cell>,
    pub(crate) exports: Exports,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) resources: Arc<EngineResources>,
    pub(crate) wiring: LinkOptions,
    /// Code linked outside of the pool, for calls that tools make of other tools. Locked while a
    /// thread links it.
    pub(crate) apart: Arc<Mutex<Option<Arc<Ready>>>>,
}

/// The settings with which a component is linked.
#[derive(Clone, Default)]
pub(crate) struct LinkOptions {
    /// The kind that it is used as.
    pub(crate) kind: Arc<ComponentKind>,
    /// Its granted directories, if there are any.
    pub(crate) mounts: Option<Arc<Mounts>>,
}

impl Ready {
    /// Returns the bytes of the compiled image.
    pub(crate) fn code_bytes(&self) -> u64 {
        let image = self.pre.component().image_range();
        (image.end as usize).saturating_sub(image.start as usize) as u64
    }
}

/// Calls the tool: `visible` and `validate` if it has them, then `execute`, all in one cell and on
/// one budget.
pub(crate) async fn execute(
    ready: Arc<Ready>,
    invocation: Arc<Invocation>,
    checks: Checks,
    rights: Arc<Rights>,
    streams: Option<Box<Streams>>,
    run_state: Arc<RunState>,
) -> Result<CallResult, ToolError> {
    let redactor = if CallRedactor::is_needed(&invocation, &rights) {
        // Boxed, since most tools need no redactor, and it would make every call's future larger.
        Some(Box::pin(CallRedactor::for_call(&ready.resources, &invocation, &rights)).await?)
    } else {
        None
    };
    if let (Some(streams), Some(redactor)) = (&streams, &redactor) {
        streams.stdout.set_redactor(Arc::clone(redactor));
    }
    let scope = Scope {
        invocation: Arc::clone(&invocation),
        resources: Arc::clone(&ready.resources),
        mounts: ready.wiring.mounts.clone(),
        rights,
        redactor: redactor.clone(),
    };
    let answer = in_cell(&ready, scope, streams, run_state, async |store, instance| {
        let indices = match &ready.exports {
            Exports::Tools(indices) => indices,
            Exports::Functions(functions) => {
                return functions::call(functions, store, &instance, &invocation).await;
            }
            Exports::Command { entry, command } => {
                let streams = store.data().streams.as_deref();
                if streams.is_some_and(Streams::is_cut_by_nul) {
                    let fault = Fault::new("", "expected words without the character U+0000");
                    return Ok(CallResult::Refusal(Refusal::InvalidArguments(vec![fault])));
                }
                let status = command::run(*entry, store, &instance).await?;
                let cell = store.data();
                let stdout = cell.captured().unwrap_or_default().answer();
                let limit = cell.scope.invocation.limits.result;
                let stderr = || cell.stderr_excerpt();
                return Ok(command::answer(command, status, stdout, limit, stderr));
            }
        };
        let toolbox = indices.load(&mut *store, &instance)?;
        let tool = toolbox.toolcell_tool_tool();
        if checks.visible {
            let extensions = translate::with_arguments(&invocation);
            let context = translate::context(&invocation, &extensions);
            if !tool.call_visible(&mut *store, &invocation.call.name, context).await? {
                return Ok(CallResult::Refusal(Refusal::NotVisible));
            }
        }
        if checks.validate {
            let problems = tool.call_validate(&mut *store, translate::call(&invocation)).await?;
            if !problems.is_empty() {
                return Ok(CallResult::Refusal(Refusal::InvalidArguments(Fault::of_handler(
                    problems,
                ))));
            }
        }
        let extensions = translate::extensions(&invocation);
        let context = translate::context(&invocation, &extensions);
        let call = translate::call(&invocation);
        let said = tool.call_execute(&mut *store, call, context).await?;
        Ok(match translate::outcome(said) {
            Ok(outcome) => CallResult::Outcome(outcome),
            Err(rule) => CallResult::ToolError(ToolError::InvalidReturn(rule)),
        })
    });
    let answer = answer.await;
    match redactor {
        // Boxed for the same reason.
        Some(redactor) if answer.as_ref().is_ok_and(SecretRedactor::is_slow) => {
            Box::pin(searched(ready, invocation, redactor, answer)).await
        }
        Some(redactor) => redactor.answer(answer),
        None => answer,
    }
}

/// Removes the secrets from an answer on a thread that may block. Here the search would outlast the
/// deadline, and other cells would wait for it.
async fn searched(
    ready: Arc<Ready>,
    invocation: Arc<Invocation>,
    redactor: Arc<CallRedactor>,
    answer: Result<CallResult, ToolError>,
) -> Result<CallResult, ToolError> {
    let pool = ready.resources.for_files.way(&invocation.tenant);
    let searched = pool.run(move || redactor.answer(answer)).await;
    searched.unwrap_or_else(|unserved| {
        tracing::error!(?unserved, "an answer could not be searched for secrets");
        Err(ToolError::HandlerExit(Exit::ProcessEnded))
    })
}

/// Calls the tool's `visible`, and returns true if the tool is offered.
pub(crate) async fn visible(
    ready: Arc<Ready>,
    invocation: Arc<Invocation>,
    run_state: Arc<RunState>,
) -> Result<bool, ToolError> {
    ask(&ready, &invocation, run_state, async |tool, store| {
        let extensions = translate::with_arguments(&invocation);
        let context = translate::context(&invocation, &extensions);
        tool.call_visible(store, &invocation.call.name, context).await
    })
    .await
}

/// Calls the tool's `validate`, and returns the faults of the arguments.
pub(crate) async fn validate(
    ready: Arc<Ready>,
    invocation: Arc<Invocation>,
    run_state: Arc<RunState>,
) -> Result<Vec<Fault>, ToolError> {
    let asked = ask(&ready, &invocation, run_state, async |tool, store| {
        tool.call_validate(store, translate::call(&invocation)).await
    });
    asked.await.map(Fault::of_handler)
}

/// Calls the component's `describe`, and returns the definitions of its tools.
pub(crate) async fn describe(
    ready: Arc<Ready>,
    invocation: Arc<Invocation>,
    run_state: Arc<RunState>,
) -> Result<Vec<tool::Definition>, ToolError> {
    ask(&ready, &invocation, run_state, async |tool, store| tool.call_describe(store).await).await
}

/// Calls another export than `execute`, in a cell without rights.
async fn ask<T>(
    ready: &Ready,
    invocation: &Arc<Invocation>,
    run_state: Arc<RunState>,
    export: impl AsyncFnOnce(&tool::Guest, &mut Store<Cell>) -> wasmtime::Result<T>,
) -> Result<T, ToolError> {
    static NO_RIGHTS: LazyLock<Arc<Rights>> = LazyLock::new(Arc::default);
    let scope = Scope {
        invocation: Arc::clone(invocation),
        resources: Arc::clone(&ready.resources),
        mounts: None,
        rights: Arc::clone(&NO_RIGHTS),
        redactor: None,
    };
    in_cell(ready, scope, None, run_state, async |store, instance| {
        // Definitions of other kinds have no checks, and `describe` is not called.
        let Exports::Tools(indices) = &ready.exports else {
            return Err(wasmtime::Error::msg("the component has no toolbox"));
        };
        let toolbox = indices.load(&mut *store, &instance)?;
        export(toolbox.toolcell_tool_tool(), store).await
    })
    .await
}

/// Runs a guest in a cell of its own. Every failure in it becomes a [`ToolError`].
async fn in_cell<T>(
    ready: &Ready,
    scope: Scope,
    streams: Option<Box<Streams>>,
    run_state: Arc<RunState>,
    guest: impl AsyncFnOnce(&mut Store<Cell>, Instance) -> wasmtime::Result<T>,
) -> Result<T, ToolError> {
    let _running = ready.ticker.run();
    let store = Cell::store(&ready.engine, scope, streams, run_state);
    let mut cell = Settling(store.map_err(|error| {
        // The host has no memory for a store: no code of the guest has run.
        tracing::error!(error = format!("{error:#}"), "a cell cannot be created");
        ToolError::HandlerExit(Exit::ProcessEnded)
    })?);
    let ended = match ready.pre.instantiate_async(&mut cell.0).await {
        Ok(instance) => guest(&mut cell.0, instance).await.map_err(|error| (error, Phase::Call)),
        Err(error) => Err((error, Phase::Start)),
    };
    ended.map_err(|(error, phase)| classify(&error, phase, &cell.0, fuel_used(&cell.0)))
}

/// Writes the usage when the cell ends, also when it is dropped before its end.
struct Settling(Store<Cell>);

impl Drop for Settling {
    fn drop(&mut self) {
        let used = fuel_used(&self.0);
        self.0.data_mut().settle(used);
    }
}

/// Returns the fuel that the call has used, earlier attempts included: the limit is the call's, and
/// the store began with the rest of it.
fn fuel_used(store: &Store<Cell>) -> u64 {
    store.data().scope.invocation.limits.fuel.saturating_sub(store.get_fuel().unwrap_or_default())
}
