//! Reads the tools of a component that was just built, since a component that compiles can still
//! have an invalid definition.
//!
//! The build calls [`names`] with the component's bytes. It loads the component in a throwaway
//! engine without grants, and so runs its function that describes the tools. It returns the tools'
//! names, and warnings about tools that cannot be used and about parts of their schemas that are
//! not enforced. A component that cannot be loaded is an error with the caller's hint.
//! [`unenforced`] gives the warnings for a definition that is already known, which the JavaScript
//! build has.

use tokio::runtime::Builder;
use toolcell::component::{LoadOptions, OnMissingGrant};
use toolcell::runtime::Optimise;
use toolcell::{Component, Definition, Engine};

use crate::{Error, Result};

/// Returns the names of the tools, and warnings about tools that cannot be used and schemas that
/// are not enforced. `hint` says where the author corrects them.
///
/// # Errors
/// [`ErrorKind::Source`](crate::ErrorKind::Source) if the component cannot be loaded.
pub(crate) fn names(component: &[u8], hint: &str) -> Result<(Vec<String>, Vec<String>)> {
    let named = || {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(Error::internal)?;
        let engine =
            Engine::builder().optimise(Optimise::Never).build().map_err(Error::internal)?;
        let options = LoadOptions { missing: OnMissingGrant::Denied, ..LoadOptions::default() };
        let loading = Component::load_with(&engine, component, options);
        let loaded = runtime.block_on(loading);
        let loaded = loaded.map_err(|error| Error::source(error.to_string(), hint))?;
        let left_out = loaded.unusable_tools().map(|(_, problem)| problem.to_owned());
        let warnings = left_out.chain(loaded.described().flat_map(unenforced)).collect();
        Ok((loaded.definitions().map(|tool| tool.name.clone()).collect(), warnings))
    };
    // On its own thread: the caller may be in a runtime, where blocking is not allowed.
    std::thread::scope(|scope| scope.spawn(named).join())
        .unwrap_or_else(|_| Err(Error::internal("the component could not be looked at")))
}

/// Returns warnings about the parts of a tool's schemas that are not enforced.
pub(crate) fn unenforced(tool: &Definition) -> Vec<String> {
    tool.unenforced().into_iter().map(|problem| format!("{}: {problem}", tool.name)).collect()
}
