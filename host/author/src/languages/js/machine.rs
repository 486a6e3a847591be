//! Runs a core module that is part of this crate: passes it bytes, and returns the bytes that it
//! answers.
//!
//! The build of a JavaScript tool uses it for two modules: the parser of source files, and the
//! JavaScript runtime in which the author's modules are evaluated. [`Machine::start`] compiles and
//! instantiates a module; [`Machine::exchange`] passes it JSON and returns its answer, or a
//! [`Stopped`] with the reason why there is none. The imports of the module are traps, so that it
//! can only compute. Its memory is at most 512 MiB, and its fuel (instruction units) is enough for
//! some seconds. A process unpacks and compiles each module once, however often `toolcell dev`
//! builds.

use std::sync::{LazyLock, OnceLock};

use miniz_oxide::inflate::decompress_to_vec_zlib;
use wasmtime::{
    Engine, Instance, Linker, Module, OptLevel, Store, StoreLimits, StoreLimitsBuilder, Strategy,
    Trap,
};

use crate::{Error, Result};

/// Bytes of memory that a module may use while a tool is built.
const MEMORY: usize = 512 << 20;
/// Fuel: enough for some seconds.
const FUEL: u64 = 20_000_000_000;

/// Winch compiles the runtime in a fifth of the time that Cranelift takes without optimisations,
/// and compiling takes most of a build. It is used on the architecture where this was measured.
const COMPILER: Strategy =
    if cfg!(target_arch = "x86_64") { Strategy::Winch } else { Strategy::Cranelift };

static ENGINE: LazyLock<wasmtime::Result<Engine>> = LazyLock::new(|| {
    let mut config = wasmtime::Config::new();
    // No trap in these modules is shown with its place in the module.
    config.strategy(COMPILER).consume_fuel(true).generate_address_map(false);
    if matches!(COMPILER, Strategy::Cranelift) {
        config.cranelift_opt_level(OptLevel::None);
    }
    Engine::new(&config)
});

/// A running instance of a module.
pub(crate) struct Machine {
    pub(crate) store: Store<StoreLimits>,
    pub(crate) instance: Instance,
}

/// The reason why a module did not answer.
pub(crate) enum Stopped {
    /// It ran out of fuel.
    Fuel,
    /// It trapped: its input is nested too deeply, or needs too much memory.
    Trap(Trap),
    /// The module or the host failed otherwise.
    Other(Error),
}

/// A module that `cargo xtask js-runtime` built. It is part of the crate in the format of zlib, and
/// is unpacked and compiled when it is first needed.
pub(crate) struct Embedded {
    packed: &'static [u8],
    unpacked: OnceLock<Vec<u8>>,
    compiled: OnceLock<Module>,
}

impl Embedded {
    pub(crate) const fn new(packed: &'static [u8]) -> Self {
        Self { packed, unpacked: OnceLock::new(), compiled: OnceLock::new() }
    }

    /// Returns the WebAssembly.
    pub(crate) fn wasm(&self) -> Result<&[u8]> {
        if let Some(unpacked) = self.unpacked.get() {
            return Ok(unpacked);
        }
        let unpacked = decompress_to_vec_zlib(self.packed).map_err(Error::internal)?;
        Ok(self.unpacked.get_or_init(|| unpacked))
    }
}

impl Machine {
    /// Starts a module. `wasm` is the embedded one, or always the same change of it.
    pub(crate) fn start(embedded: &Embedded, wasm: &[u8]) -> Result<Self> {
        let engine = ENGINE.as_ref().map_err(Error::internal)?;
        let module = match embedded.compiled.get() {
            Some(module) => module,
            None => {
                let module = Module::new(engine, wasm).map_err(Error::internal)?;
                embedded.compiled.get_or_init(|| module)
            }
        };
        let mut store = Store::new(engine, StoreLimitsBuilder::new().memory_size(MEMORY).build());
        store.limiter(|limits| limits);
        store.set_fuel(FUEL).map_err(Error::internal)?;
        let mut linker = Linker::new(engine);
        linker.define_unknown_imports_as_traps(module).map_err(Error::internal)?;
        let instance = linker.instantiate(&mut store, module).map_err(Error::internal)?;
        Ok(Self { store, instance })
    }

    /// Passes bytes to the module, and returns its answer.
    pub(crate) fn exchange(&mut self, given: &[u8]) -> Result<Vec<u8>, Stopped> {
        let length = u32::try_from(given.len())
            .map_err(|_| Stopped::Other(Error::internal("too much source")))?;
        let buffer = self.call::<u32, u32>("toolcell_js_buffer", length)?;
        let memory = self.instance.get_memory(&mut self.store, "memory");
        let memory =
            memory.ok_or_else(|| Stopped::Other(Error::internal("a module without memory")))?;
        memory.write(&mut self.store, buffer as usize, given).map_err(Stopped::of)?;
        let length = self.call::<(), u32>("toolcell_js_evaluate", ())?;
        let answer = self.call::<(), u32>("toolcell_js_answer", ())?;
        let mut read = vec![0; length as usize];
        memory.read(&self.store, answer as usize, &mut read).map_err(Stopped::of)?;
        Ok(read)
    }

    /// Stops memory from growing further.
    pub(crate) fn keep_memory(&mut self) {
        *self.store.data_mut() = StoreLimitsBuilder::new().memory_size(0).build();
    }

    pub(crate) fn call<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
        &mut self,
        name: &str,
        given: P,
    ) -> Result<R, Stopped> {
        let function = self
            .instance
            .get_typed_func::<P, R>(&mut self.store, name)
            .map_err(Stopped::of_engine)?;
        function.call(&mut self.store, given).map_err(Stopped::of_engine)
    }
}

impl Stopped {
    fn of(error: impl std::error::Error) -> Self {
        Self::Other(Error::internal(error))
    }

    fn of_engine(error: wasmtime::Error) -> Self {
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => Self::Fuel,
            Some(trap) => Self::Trap(*trap),
            None => Self::Other(Error::internal(error)),
        }
    }
}
