//! Builds a component from JavaScript modules: evaluates them once in the prebuilt runtime, and
//! stores the resulting memory in the component.
//!
//! The build calls [`snapshot`] with the collected modules. It starts the runtime (a JavaScript
//! engine compiled to WebAssembly), evaluates the modules, and gets the definitions of their tools;
//! each must be one that a host would accept. Then the tool Wizer writes the memory and the globals
//! of the running instance into a new module, so that every later call starts from that state. The
//! result is trimmed and encoded as a component, which is returned with the tools' names and
//! warnings. An exception during evaluation, too much fuel (executed instructions) or memory, and a
//! component that is too large to load are errors.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolcell::grants::{GrantKind, Rights};
use toolcell::tool::Need;
use toolcell::{Definition, Tool};
use wasmparser::ValType;
use wasmtime::StoreLimits;
use wasmtime_wizer::{InstanceState, SnapshotVal, Wizer};
use wit_component::ComponentEncoder;

use super::machine::{Embedded, Machine, Stopped};
use super::modules::Modules;
use super::trim;
use crate::cases::grants;
use crate::languages::tools;
use crate::{Error, Result};

/// The runtime without `Intl`: `guest-sdk/js`, built by `cargo xtask js-runtime`.
static PLAIN: Embedded = Embedded::new(include_bytes!("../../../runtime/runtime.wasm.zlib"));
/// The runtime with `Intl`.
static WITH_INTL: Embedded =
    Embedded::new(include_bytes!("../../../runtime/runtime_intl.wasm.zlib"));
/// The runtime's export that ends the loading.
const SEAL: &str = "toolcell_js_seal";

/// The runtime's answer.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Definitions { definitions: Vec<Value>, warnings: Vec<String> },
    Error { error: String },
}

/// The members of a definition that are used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DefinitionForm {
    name: String,
    description: String,
    parameters: Option<Value>,
    output: Option<Value>,
    #[serde(rename = "attributes")]
    _attributes: Map<String, Value>,
    max_execution_ms: Option<u64>,
    needs: Vec<Need>,
}

/// A component, the names of its tools, and warnings about parts of their schemas that are not
/// enforced.
pub(crate) struct Snapshot {
    pub(crate) component: Vec<u8>,
    pub(crate) tools: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// Evaluates the modules and makes a component of the resulting memory.
pub(crate) fn snapshot(modules: &Modules) -> Result<Snapshot> {
    let mut wizer = Wizer::new();
    wizer.init_func(SEAL);
    let runtime = if modules.absent.uses_intl { &WITH_INTL } else { &PLAIN };
    let (context, instrumented) = wizer.instrument(runtime.wasm()?).map_err(Error::internal)?;
    let mut machine = Machine::start(runtime, &instrumented)?;
    let given = serde_json::to_vec(modules).map_err(Error::internal)?;
    let answer = machine.exchange(&given).map_err(|error| stopped(error, &modules.entry))?;
    let (definitions, drawn) = match serde_json::from_slice(&answer).map_err(Error::internal)? {
        Answer::Definitions { definitions, warnings } => {
            (definitions.into_iter().map(checked).collect::<Result<Vec<_>, _>>()?, warnings)
        }
        Answer::Error { error } if error.contains("\n    at ") => {
            return Err(Error::exception(error));
        }
        // A thrown value that is not an error has no stack. The same holds for a top-level wait and
        // for an import of a name that is not exported.
        Answer::Error { error } => {
            let message = format!("{}: {error}", modules.entry);
            return Err(Error::source(message, "correct this file, or one that it imports"));
        }
    };
    machine.keep_memory();
    machine.call::<(), ()>(SEAL, ()).map_err(|error| stopped(error, &modules.entry))?;
    let module = poll_once(wizer.snapshot(&context, &mut State(machine)))
        .ok_or_else(|| Error::internal("the snapshot waits"))?
        .map_err(Error::internal)?;
    let needs = definitions.iter().flat_map(|definition| &definition.needs);
    let mut needed: BTreeSet<_> = needs.filter_map(|need| GrantKind::of_need(&need.kind)).collect();
    // Requests accept handles of secrets.
    if needed.contains(&GrantKind::Http) {
        needed.insert(GrantKind::Secrets);
    }
    let unused = GrantKind::all().filter(|kind| !needed.contains(kind));
    let unused = unused.filter_map(|kind| kind.row().interface());
    let unused = unused.map(|name| format!("toolcell:tool/{name}@0.1.0"));
    let module = trim::trim(&module, &unused.collect())?;
    let encoded = ComponentEncoder::default()
        .validate(false)
        .module(&module)
        .and_then(|mut encoder| encoder.encode());
    let component = encoded.map_err(Error::internal)?;
    let warnings =
        drawn.into_iter().chain(definitions.iter().flat_map(tools::unenforced)).collect();
    Ok(Snapshot {
        component,
        tools: definitions.into_iter().map(|definition| definition.name).collect(),
        warnings,
    })
}

/// Returns the definition, if a host would accept it.
fn checked(given: Value) -> Result<Definition> {
    const HINT: &str = "correct the object that `tool()` gets";
    let name = given["name"].as_str().unwrap_or_default().to_owned();
    let fault = |problem: String| {
        let message = format!("the definition of the tool `{name}` is not valid: {problem}");
        Error::source(message, HINT)
    };
    let given: DefinitionForm =
        serde_json::from_value(given).map_err(|error| fault(error.to_string()))?;
    grants(&given.needs, &[]).map_err(|problem| fault(format!("in `needs`: {problem}")))?;
    let to_error = |error: toolcell::Error| Error::source(error.to_string(), HINT);
    let mut definition = Definition::new(given.name, given.description).map_err(to_error)?;
    (definition.parameters, definition.output, definition.needs) =
        (given.parameters, given.output, given.needs);
    definition.max_execution = given.max_execution_ms.map(Duration::from_millis);
    Tool::manual(definition.clone()).map_err(to_error)?;
    Rights::new(Arc::default(), &definition)
        .map_err(|bad| fault(format!("in `needs`: {bad}; {}", bad.hint)))?;
    Ok(definition)
}

fn stopped(stopped: Stopped, entry: &str) -> Error {
    match stopped {
        Stopped::Fuel => Error::evaluation_timeout(entry),
        Stopped::Trap(trap) => {
            let message = format!(
                "the modules cannot be evaluated: {trap}; values are nested too deeply, the chain of imports is too long, or \
                 they need too much memory"
            );
            Error::source(message, "simplify the modules, or import less")
        }
        Stopped::Other(error) => error,
    }
}

/// Returns the result of a future that never waits.
fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Gives Wizer access to the runtime's state.
struct State(Machine);

impl InstanceState for State {
    async fn global_get(&mut self, name: &str, _: ValType) -> SnapshotVal {
        let Machine { store, instance } = &mut self.0;
        let value =
            instance.get_global(&mut *store, name).and_then(|global| global.get(store).i32());
        // All globals of the runtimes are addresses, which have 32 bits.
        SnapshotVal::I32(value.unwrap_or_default())
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let Machine { store, instance } = &mut self.0;
        let store: &mut wasmtime::Store<StoreLimits> = store;
        if let Some(memory) = instance.get_memory(&mut *store, name) {
            contents(memory.data(&*store));
        }
    }
}
