//! Connects a component to its engine: the entry of a load, and of calls.
//!
//! `Engine::load` takes bytes and options. It waits for the turn of the tenant, opens the granted
//! directories, waits for one of as many permits as the machine has cores, and runs the load on a
//! thread of its own. It returns a [`LoadedComponent`], whose methods `call` and `check` (for
//! `visible` and `validate`) get the current code and hand the invocation to the scheduler
//! (`placement`). If the code cannot be linked, the caller gets a refusal or an error of the host,
//! and the cause goes to the log.
//! A tenant waits for its own turn, and for directories that may hang, before it takes anything
//! that others wait for.
//! Not here: the steps of a load (`compile/load`), the threads that a cell (a fresh WebAssembly
//! instance for one call) runs on (`schedule/placement`).

use std::future::Future;
use std::sync::Arc;

use toolcell_contract::call::CallResult;
use toolcell_contract::definition::Checks;
use toolcell_contract::error::Error;
use toolcell_contract::grants::rights::Rights;
use toolcell_contract::outcome::refusal::Refusal;
use toolcell_contract::outcome::tool_error::{Crash, ToolError};

use super::Engine;
use super::adapt::component_kind::ComponentBytes;
use super::cell::bounds::run_state::RunState;
use super::cell::invoke::{LinkOptions, Ready};
use super::compile::load::{self, LoadedComponent};
use super::compile::on_a_thread;
use super::compile::tier::CodeTier;
use super::load_options::LoadOptions;
use super::schedule::latency_class::LatencyClass;
use super::schedule::placement;
use crate::capability::files::Mounts;
use crate::tool::handler::Invocation;

impl Engine {
    /// Loads a component on a thread of its own. It waits for the tenant's turn, and then for one
    /// of as many permits as the machine has cores. The directories are opened before it takes a
    /// permit.
    ///
    /// # Errors
    /// [`Error::is_component`], [`Error::is_not_granted`], [`Error::is_definition`],
    /// [`Error::is_directory`], [`Error::is_quota`].
    ///
    /// # Cancel safety
    /// When dropped, a compilation that has begun goes on to its end in the background, and its
    /// result is kept in the cache only.
    pub(super) async fn load(
        &self,
        component: ComponentBytes,
        options: LoadOptions,
    ) -> Result<Arc<LoadedComponent>, Error> {
        let LoadOptions { grants, missing, tenant, source } = options;
        let grants = Arc::new(grants);
        let turn = match tenant {
            Some(tenant) => Some(self.compiler.quota.acquire(&tenant).await?),
            None => None,
        };
        // On a dead network mount this never ends. It holds the turn, also after this future is
        // dropped.
        let granted = Arc::clone(&grants);
        let counts = self.compiler.linker.resources.counts.clone();
        let open = move || {
            Mounts::open(&granted, counts.as_deref()).map(|mounts| (turn, mounts.map(Arc::new)))
        };
        let has_directories = !grants.directories.is_empty();
        let (turn, mounts) =
            if has_directories { on_a_thread("toolcell-mount", open).await? } else { open()? };
        let core = Arc::clone(&self.compiler.loads).acquire_owned().await;
        let compiler = Arc::clone(&self.compiler);
        on_a_thread("toolcell-load", move || {
            let ComponentBytes { bytes, kind } = component;
            let wiring = LinkOptions { kind: Arc::new(kind), mounts };
            let loaded =
                load::load(compiler, bytes, &grants, wiring, missing, turn.as_ref(), source);
            drop((core, turn));
            loaded.map(Arc::new)
        })
        .await
    }
}

impl LoadedComponent {
    /// Waits until the code does not change any more, and returns it.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub(super) async fn optimised(&self) -> CodeTier {
        match self.code.current(&self.compiler).await {
            Ok(current) => current.last().await,
            Err(error) => {
                tracing::warn!(%error, "a component cannot be linked");
                self.code.tier()
            }
        }
    }

    /// Answers one call in a new cell.
    pub(super) async fn call(
        &self,
        invocation: Arc<Invocation>,
        checks: Checks,
        rights: Arc<Rights>,
    ) -> CallResult {
        let latency_class = self.latency_class(&invocation);
        let Ok(ready) = self.ready(&invocation).await else {
            return CallResult::Refusal(Refusal::Unavailable);
        };
        let (scheduler, quarantine) = (&self.compiler.scheduler, &self.quarantine);
        placement::execute(scheduler, ready, quarantine, latency_class, invocation, checks, rights)
            .await
    }

    /// Returns the linked code for a call. The cause of a failure goes to the log only; a guest or
    /// caller does not see it.
    async fn ready(&self, invocation: &Invocation) -> Result<Arc<Ready>, ()> {
        let ready = match self.code.current(&self.compiler).await {
            Ok(current) if invocation.caller.is_some() => {
                self.compiler.linker.link_unpooled(current.ready()).await
            }
            current => current.map(|current| current.ready()),
        };
        let digest = &self.inspection.digest;
        ready.map_err(
            |error| tracing::error!(%error, component = %digest, "a component cannot be linked"),
        )
    }

    /// Returns the latency class of its tenant's calls.
    fn latency_class(&self, invocation: &Invocation) -> Arc<LatencyClass> {
        self.latency_classes.of(&invocation.tenant, &self.compiler.scheduler.flows)
    }

    /// Calls another export than `execute` in a cell of its own: `visible`, which returns true if
    /// the tool is offered, or `validate`, which returns the faults of the arguments.
    pub(super) async fn check<T: Send + 'static, F>(
        &self,
        invocation: Arc<Invocation>,
        export: impl FnOnce(Arc<Ready>, Arc<Invocation>, Arc<RunState>) -> F,
    ) -> Result<T, ToolError>
    where
        F: Future<Output = Result<T, ToolError>> + Send + 'static,
    {
        let by_the_host = |()| ToolError::HandlerRaised(Crash::by_the_host());
        let ready = self.ready(&invocation).await.map_err(by_the_host)?;
        let question = |run_state| export(ready, Arc::clone(&invocation), run_state);
        let (scheduler, latency_class) =
            (&self.compiler.scheduler, self.latency_class(&invocation));
        placement::run_check(scheduler, &self.quarantine, latency_class, &invocation, question)
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc;
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use parking_lot::Mutex;
    use toolcell_contract::call::{CallContext, ToolCall};
    use toolcell_contract::grants::{Access, Directory, Grants};
    use toolcell_contract::limits::Limits;

    use super::*;
    use crate::engine::Optimise;

    /// One tenant loops until its calls begin in the slow lane; another tenant's call to the same
    /// component still begins in the fast lane.
    #[test]
    fn tenants_loops_set_only_its_own_latency_class() {
        use toolcell_test_guests::{Hostile, Misdeed, Place};

        let engine = Engine::builder().cells(1).build().unwrap();
        let bytes = Hostile::new(Place::Execute, Misdeed::Spin).component();
        let sleeps = engine.compiler.scheduler.sleeps;
        let spin = sleeps.block_on(engine.load(bytes.into(), LoadOptions::default())).unwrap();
        let called = |tenant: &str| {
            let mut context = CallContext::default();
            context.tenant = Some(tenant.to_owned());
            let limits = Limits { timeout: Duration::from_millis(10), ..Limits::default() };
            let call = ToolCall::new("1", "hostile", "{}");
            Arc::new(Invocation::outside_call(call, serde_json::Value::Null, context, limits))
        };
        let patience = std::time::Instant::now() + Duration::from_secs(20);
        while spin.latency_class(&called("loops")).is_short() {
            assert!(std::time::Instant::now() < patience, "it is not known for its loops");
            let checks = spin.definitions[0].checks;
            sleeps.block_on(spin.call(called("loops"), checks, Arc::default()));
        }
        assert!(spin.latency_class(&called("other")).is_short());
    }

    /// Opening may hang, and other loads must go on. Fails without: the permit taken after the
    /// directories are opened.
    #[test]
    fn directories_open_before_a_load_permit_is_taken() {
        let engine = Engine::builder().cells(1).build().unwrap();
        let cores = u32::try_from(engine.compiler.loads.available_permits()).unwrap();
        let _all = engine.compiler.loads.try_acquire_many(cores).unwrap();
        let mut grants = Grants::default();
        grants.directories.push(Directory::new("/data", "/nowhere", Access::Read).unwrap());
        let options = LoadOptions { grants, tenant: Some("a".into()), ..LoadOptions::default() };
        let loads = engine.load(Vec::new().into(), options);
        let (sleeps, patience) = (engine.compiler.scheduler.sleeps, Duration::from_secs(5));
        let ended = sleeps.block_on(async { tokio::time::timeout(patience, loads).await });
        let refused = ended.expect("it waits for a core").err().expect("it cannot be opened");
        assert!(refused.is_directory(), "{refused}");
    }

    /// Loads a component whose code is in the cache, and which is read again by this source.
    fn unlinked(
        engine: &Engine,
        source: impl Fn(Vec<u8>) -> io::Result<Vec<u8>> + Send + Sync + 'static,
    ) -> Arc<LoadedComponent> {
        use toolcell_test_guests::{Hostile, Misdeed, Place};

        let bytes = Hostile::new(Place::Execute, Misdeed::None).component();
        let again = bytes.clone();
        let on_demand = LoadOptions {
            source: Some(Arc::new(move || source(again.clone()))),
            ..LoadOptions::default()
        };
        let loads = async {
            engine.load(bytes.clone().into(), LoadOptions::default()).await?;
            engine.load(bytes.into(), on_demand).await
        };
        engine.compiler.scheduler.sleeps.block_on(loads).unwrap()
    }

    /// The cores may compile for minutes. Fails without: permits of their own for links.
    #[test]
    fn call_is_linked_while_loads_have_all_permits() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::builder().cells(1).cache(dir.path()).optimise(Optimise::Never);
        let engine = engine.build().unwrap();
        let loaded = unlinked(&engine, Ok);
        let cores = u32::try_from(engine.compiler.loads.available_permits()).unwrap();
        let _all = engine.compiler.loads.try_acquire_many(cores).unwrap();
        let links = loaded.code.current(&loaded.compiler);
        let (sleeps, patience) = (engine.compiler.scheduler.sleeps, Duration::from_secs(20));
        let ended = sleeps.block_on(async { tokio::time::timeout(patience, links).await });
        assert!(ended.expect("it waits for a load").is_ok());
    }

    /// A call ends before its code is linked, and another one begins. Fails without: the lock that
    /// the linking thread keeps.
    #[test]
    fn code_is_linked_once_though_its_call_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::builder().cells(1).cache(dir.path()).optimise(Optimise::Never);
        let engine = engine.build().unwrap();
        let ((enters, entered), (opens, gate)) = (mpsc::channel(), mpsc::channel::<()>());
        let gate = Mutex::new(gate);
        let loaded = unlinked(&engine, move |bytes| {
            enters.send(()).unwrap();
            let _ = gate.lock().recv();
            Ok(bytes)
        });
        assert!(loaded.code.current(&loaded.compiler).now_or_never().is_none());
        entered.recv().unwrap();
        let mut again = Box::pin(loaded.code.current(&loaded.compiler));
        assert!(again.as_mut().now_or_never().is_none());
        drop(opens);
        assert!(engine.compiler.scheduler.sleeps.block_on(again).is_ok());
        assert!(entered.try_recv().is_err(), "it is linked twice");
    }

    /// Fails without: the lock that the linking thread keeps.
    #[test]
    fn sub_call_waits_for_another_ones_link() {
        use toolcell_test_guests::{Hostile, Misdeed, Place};

        let engine = Engine::builder().cells(1).build().unwrap();
        let (sleeps, linker) = (engine.compiler.scheduler.sleeps, &engine.compiler.linker);
        let [ready, other] = [Misdeed::None; 2].map(|misdeed| {
            let bytes = Hostile::new(Place::Execute, misdeed).component();
            let loads = engine.load(bytes.into(), LoadOptions::default());
            let loaded = sleeps.block_on(loads).unwrap();
            sleeps.block_on(loaded.code.current(&loaded.compiler)).unwrap().ready()
        });
        let mut linking = ready.apart.try_lock().unwrap();
        let mut waits = Box::pin(linker.link_unpooled(Arc::clone(&ready)));
        assert!(waits.as_mut().now_or_never().is_none());
        *linking = Some(Arc::clone(&other));
        drop(linking);
        let linked = sleeps.block_on(waits).unwrap();
        assert!(Arc::ptr_eq(&linked, &other), "it has linked the code again");
    }
}
