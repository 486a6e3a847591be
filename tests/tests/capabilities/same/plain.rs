//! Runs a component in the engine with its own WASI host, unchanged.

use std::path::Path;

use serde_json::json;
use wasmtime::component::{Component, Linker, ResourceTable, Val};
use wasmtime::{Engine, Store};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

/// A component, and the engine and linker that run it.
pub(crate) struct Host {
    engine: Engine,
    linker: Linker<State>,
    component: Component,
}

struct State {
    context: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.context, table: &mut self.table }
    }
}

impl Host {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let engine = Engine::default();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).expect("WASI");
        let component = Component::from_binary(&engine, bytes).expect("a component");
        Self { engine, linker, component }
    }

    /// Calls the tool `scribe` with this script and this directory as `/data`.
    pub(crate) fn run(&self, dir: &Path, script: &[String]) -> Vec<String> {
        let mut context = WasiCtxBuilder::new();
        context.preopened_dir(dir, "/data", FsPerms::ReadWrite).expect("a directory");
        let state = State { context: context.build(), table: ResourceTable::new() };
        let mut store = Store::new(&self.engine, state);
        let instance = self.linker.instantiate(&mut store, &self.component).expect("an instance");
        let tool = instance.get_export_index(&mut store, None, "toolcell:tool/tool@0.1.0");
        let execute =
            instance.get_export_index(&mut store, tool.as_ref(), "execute").expect("the function");
        let execute = instance.get_func(&mut store, execute).expect("the function");
        let mut results = [Val::Bool(false)];
        execute
            .call(&mut store, &[call(script), context_of_a_call()], &mut results)
            .expect("it returns");
        let [Val::Variant(_, Some(output))] = results else { panic!("no outcome: {results:?}") };
        let Val::Record(fields) = *output else { panic!("no output: {output:?}") };
        let [(_, Val::String(value)), ..] = &fields[..] else { panic!("no value: {fields:?}") };
        serde_json::from_str(value).expect("a list of texts")
    }
}

fn record(fields: Vec<(&str, Val)>) -> Val {
    Val::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Returns the contract's `tool-call`.
fn call(script: &[String]) -> Val {
    let arguments = json!({ "script": script }).to_string();
    let text = |text: &str| Val::String(text.to_owned());
    record(vec![("id", text("1")), ("name", text("scribe")), ("arguments", Val::String(arguments))])
}

/// Returns the contract's `context` with nothing in it.
fn context_of_a_call() -> Val {
    let none = |name| (name, Val::Option(None));
    let ids = ["session-id", "request-id", "thread-id", "run-id", "tenant", "metadata"].map(none);
    let rest = [
        ("remaining-ms", Val::U64(60_000)),
        ("attempt", Val::U32(1)),
        none("resume"),
        ("extensions", Val::List(Vec::new())),
    ];
    record(ids.into_iter().chain(rest).collect())
}
