//! Public type for a loaded component: its tools, ready to be registered and called.
//!
//! An embedder (the program that uses this library) calls [`Component::load`] or `load_with` with
//! an engine and bytes. It gets a [`Component`] with one [`Tool`] for each definition. The executor
//! runs such a tool through its handler (the code of the tool), which computes the rights of the
//! call (the grants, narrowed by tenant, call and calling tool) and runs it in a fresh cell, a
//! wasmtime store.
//! A definition that cannot be used leaves out its tool only; without any usable tool the load
//! fails. Files of a call are refused for a component that imports no file system. The component
//! can be asked for its inspection, the state of its code, and its quarantine.

use std::sync::Arc;
use std::time::Duration;

use toolcell_contract::definition::{Checks, Definition};
use toolcell_contract::outcome::refusal::{Fault, Refusal};
use toolcell_contract::{call::CallResult, error::Error, grants::Grants, grants::rights::Rights};

use super::adapt::component_kind::{ComponentBytes, ComponentKind};
use super::cell::invoke;
use super::compile::load::LoadedComponent;
use crate::engine::{CodeTier, Engine, Inspection, LoadOptions};
use crate::tool::handler::{
    Handler, HandlerFuture, Invocation, Overlays, ValidateFuture, VisibleFuture,
};
use crate::tool::{self, Tool};

/// A component that was checked and compiled, and has described its tools. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    loaded: Arc<LoadedComponent>,
    tools: Arc<[Tool]>,
    /// The names of tools that cannot be used, each with its problem.
    unusable_tools: Arc<[(String, String)]>,
}

impl Component {
    /// Loads a component without grants. Compiling takes about 0.1 s for a Rust tool, and seconds
    /// for a language runtime; loading from the cache takes well under a millisecond per megabyte.
    /// Unless the engine's [`Optimise`](crate::runtime::Optimise) says otherwise, the component
    /// answers on quickly compiled code until its [`optimised`](Self::optimised) code is ready,
    /// with the same answers on the same fuel. The optimiser stops when the last clone of the
    /// component and of its tools is dropped.
    ///
    /// By default the compiler runs in this process. An untrusted component is best compiled in a
    /// child process, with bounds on time and memory: see
    /// [`EngineBuilder::compile_in`](crate::runtime::EngineBuilder::compile_in) and
    /// [`compile_worker`](crate::runtime::compile_worker).
    ///
    /// # Errors
    /// [`Error::is_component`] for bytes that are not a usable component, [`Error::is_not_granted`]
    /// for imports that need a grant or are unknown, [`Error::is_definition`] for a definition that
    /// is not usable. [`Error::is_environment`] for a failure of the host, for example if all cells
    /// are busy; the compiled code is in the cache then, if there is one.
    ///
    /// # Cancel safety
    /// May be dropped: the compiler finishes in the background.
    pub async fn load(engine: &Engine, bytes: impl Into<ComponentBytes>) -> Result<Self, Error> {
        Self::load_with(engine, bytes, LoadOptions::default()).await
    }

    /// Loads a component with grants and other [options](LoadOptions).
    ///
    /// # Errors
    /// As [`load`](Self::load). [`Error::is_not_granted`] if a grant is missing, unless
    /// [`missing`](LoadOptions::missing) says that each use is denied instead; its hint
    /// lists what the tools declare. [`Error::is_definition`] for a need that cannot be read.
    /// [`Error::is_directory`] for a granted directory that cannot be opened or must not be
    /// granted. [`Error::is_quota`] if the tenant has used up its quota or has too many waiting
    /// loads: [`Error::retry_after`] tells when to try again.
    ///
    /// # Cancel safety
    /// As [`load`](Self::load). Nothing has started while it waits for the tenant's other loads.
    pub async fn load_with(
        engine: &Engine,
        bytes: impl Into<ComponentBytes>,
        options: LoadOptions,
    ) -> Result<Self, Error> {
        let grants = options.grants.clone();
        Self::new(engine.load(bytes.into(), options).await?, grants)
    }

    fn new(loaded: Arc<LoadedComponent>, mut grants: Grants) -> Result<Self, Error> {
        if grants.store.is_none() {
            grants.store = Some(loaded.inspection.digest.clone());
        }
        let grants = Arc::new(grants);
        let tool = |definition: &Definition| {
            let rights = Rights::in_component(Arc::clone(&grants), definition, &loaded.definitions)
                .map_err(|bad| {
                    Error::definition(&definition.name, format_args!("in `needs`: {bad}"))
                })?;
            let (loaded, checks) = (Arc::clone(&loaded), definition.checks);
            let handler = WasmHandler { loaded, checks, rights: Arc::new(rights.clone()) };
            Tool::with_handler(definition.clone(), handler).map(|tool| tool.with_rights(rights))
        };
        let (tools, unusable_tools) = usable_tools(&loaded.definitions, tool)?;
        for (tool, problem) in &unusable_tools {
            tracing::warn!(tool, problem, "a tool cannot be used; the others of its component can");
        }
        Ok(Self { loaded, tools: tools.into(), unusable_tools: unusable_tools.into() })
    }

    /// Returns the tools, in the component's order.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the tool of this name.
    ///
    /// # Errors
    /// [`Error::is_unknown_tool`], with the nearest name as a hint.
    pub fn tool(&self, name: &str) -> Result<&Tool, Error> {
        tool::find_tool(&self.tools, name)
    }

    /// Returns the definitions of its tools, in the component's order, with their schemas in JSON
    /// Schema 2020-12.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.tools.iter().map(Tool::definition)
    }

    /// Returns the same definitions as the component gives them, for example to
    /// [recognise](Definition::hash) them.
    pub fn described(&self) -> impl Iterator<Item = &Definition> {
        let is_tool = |definition: &&Definition| {
            !self.unusable_tools.iter().any(|(name, _)| *name == definition.name)
        };
        self.loaded.definitions.iter().filter(is_tool)
    }

    /// Returns the tools that cannot be used, each by its name with the problem in its definition.
    /// A component without any usable tool is not loaded.
    pub fn unusable_tools(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unusable_tools.iter().map(|(name, problem)| (&**name, &**problem))
    }

    /// Returns the properties that are known without running the component: digest, size and
    /// imports.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.loaded.inspection
    }

    /// Returns the kind of the component: tools, functions or a command.
    #[must_use]
    pub fn kind(&self) -> &ComponentKind {
        &self.loaded.kind
    }

    /// Returns true if the compiled code came from the cache.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.loaded.compile_time.is_none()
    }

    /// Returns true if the cells come from the pool. A component that is larger than a slot of the
    /// pool, and each one under strict isolation, gets its memory on demand, which is slower. For a
    /// component that is [loaded on demand](LoadOptions::source) this is the state when it was
    /// loaded, or, if its code was in the cache, true if the engine has a pool.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.loaded.pooled
    }

    /// Returns true if the calls are refused because the host panicked too often while it ran them:
    /// see [`EngineBuilder::quarantine_after`](crate::runtime::EngineBuilder::quarantine_after).
    #[must_use]
    pub fn is_quarantined(&self) -> bool {
        self.loaded.quarantine.is_closed()
    }

    /// Ends the quarantine, and counts panics from zero.
    pub fn reinstate(&self) {
        self.loaded.quarantine.reset();
    }

    /// Returns the time that it took to compile, or `None` if the code came from the cache.
    #[must_use]
    pub fn compile_time(&self) -> Option<Duration> {
        self.loaded.compile_time
    }

    /// Returns the code on which a call that starts now would run.
    #[must_use]
    pub fn code(&self) -> CodeTier {
        self.loaded.code.tier()
    }

    /// Waits until the component is optimised: [`CodeTier::Optimised`]. Returns
    /// [`CodeTier::Unoptimised`] if that failed or is turned off.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn optimised(&self) -> CodeTier {
        self.loaded.optimised().await
    }
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component")
            .field("digest", &self.inspection().digest)
            .finish_non_exhaustive()
    }
}

/// The handler of one tool of a component.
struct WasmHandler {
    loaded: Arc<LoadedComponent>,
    checks: Checks,
    rights: Arc<Rights>,
}

impl WasmHandler {
    /// Returns true if the component can ask for directories.
    fn reads_files(&self) -> bool {
        let imports = &self.loaded.inspection.imports;
        imports.iter().any(|(import, _)| import.starts_with("wasi:filesystem/preopens"))
    }

    /// Returns the tool's rights in this call. Most calls are not narrowed, and share them.
    fn rights(&self, invocation: &Invocation) -> Arc<Rights> {
        let Overlays { tenant, call } = &invocation.overlays;
        let caller = invocation.caller.as_ref().and_then(|caller| caller.rights.clone());
        if tenant.is_none() && call.is_none() && caller.is_none() {
            return Arc::clone(&self.rights);
        }
        Arc::new(self.rights.narrowed(tenant.clone(), call.clone()).within_caller(caller))
    }
}

impl Handler for WasmHandler {
    fn call(&self, invocation: Arc<Invocation>) -> HandlerFuture<'_> {
        if invocation.files.is_some() && !self.reads_files() {
            let rule = "no file, because the tool's component does not import `wasi:filesystem`";
            let refusal = Refusal::InvalidArguments(vec![Fault::new("", rule)]);
            return Box::pin(std::future::ready(CallResult::Refusal(refusal)));
        }
        let rights = self.rights(&invocation);
        Box::pin(self.loaded.call(invocation, self.checks, rights))
    }

    fn always_visible(&self) -> bool {
        !self.checks.visible
    }

    fn visible(&self, invocation: Arc<Invocation>) -> VisibleFuture<'_> {
        if self.always_visible() {
            return Box::pin(std::future::ready(true));
        }
        let visible = self.loaded.check(invocation, invoke::visible);
        Box::pin(async { visible.await.unwrap_or(false) })
    }

    fn validate(&self, invocation: Arc<Invocation>) -> ValidateFuture<'_> {
        if !self.checks.validate {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        Box::pin(self.loaded.check(invocation, invoke::validate))
    }

    fn digest(&self) -> Option<&str> {
        Some(&self.loaded.inspection.digest)
    }

    /// Returns true if the host calls a function or a command with the arguments.
    fn reads_arguments(&self) -> bool {
        *self.loaded.kind != ComponentKind::Tools
    }

    fn enforces_deadline(&self) -> bool {
        true
    }
}

/// Usable tools, and the names of the others with the problem of each.
type Usable = (Vec<Tool>, Vec<(String, String)>);

/// Makes tools of these definitions. Returns the usable ones, and the names of the others with the
/// problem of each.
///
/// # Errors
/// The first problem, if there is no usable tool.
fn usable_tools(
    definitions: &[Definition],
    make: impl Fn(&Definition) -> Result<Tool, Error>,
) -> Result<Usable, Error> {
    let (mut tools, mut unusable_tools, mut first) = (Vec::new(), Vec::new(), None);
    for definition in definitions {
        match make(definition) {
            Ok(tool) => tools.push(tool),
            Err(error) => {
                unusable_tools.push((definition.name.clone(), error.to_string()));
                first = first.or(Some(error));
            }
        }
    }
    match first {
        Some(error) if tools.is_empty() => Err(error),
        Some(_) | None => Ok((tools, unusable_tools)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn listed_schemas_are_2020_12() {
        let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {}});
        let definition =
            Definition::new("old", "").unwrap().with_parameters(old.clone()).with_output(old);
        let tool = Tool::manual(definition).unwrap();
        let new = json!({"type": "object", "properties": {}});
        assert_eq!(tool.definition().parameters.as_ref(), Some(&new));
        assert_eq!(tool.definition().output.as_ref(), Some(&new));
        assert!(tool.output().is_some_and(|schema| schema.check(&json!([])).is_err()));
    }

    #[test]
    fn bad_tool_leaves_others_usable() {
        let good = Definition::new("good", "").unwrap();
        let bad =
            Definition::new("bad", "").unwrap().with_parameters(json!({"$ref": "other.json"}));
        let make = |definition: &Definition| Tool::manual(definition.clone());
        let (tools, unusable_tools) = usable_tools(&[bad.clone(), good], make).unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.definition().name.as_str()).collect();
        assert_eq!(names, ["good"]);
        let [(name, problem)] = unusable_tools.as_slice() else { panic!("{unusable_tools:?}") };
        assert_eq!(name, "bad");
        assert!(problem.contains("at `/$ref`: `other.json` is in another document"), "{problem}");
        assert!(usable_tools(&[bad], make).unwrap_err().is_definition());
    }
}
