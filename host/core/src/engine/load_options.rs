//! Options of a load: grants, missing grants, tenant, and whether the code is linked on demand.
//!
//! An embedder (the program that uses this library) passes [`LoadOptions`] to
//! `Component::load_with`. The grants are what the component may use at most. With a tenant, the
//! load waits for the tenant's other loads and counts against its compilations a minute. With a
//! source, a function that reads the bytes again, the code is linked at the first call, and can be
//! released in the meantime.
//! The defaults: no grants, a component with a missing grant is refused, no tenant, and the code
//! stays linked.

use std::fmt;

use toolcell_contract::grants::Grants;

use super::compile::load::OnMissingGrant;
use super::compile::on_demand::Source;

/// The options of a load: the grants of the component, the tenant that it is loaded for, the time at
/// which its code is linked.
///
/// To grant what tools declare, load the component twice. Load it with [`OnMissingGrant::Denied`],
/// read the [needs](crate::Definition::needs) of its [definitions](crate::Component::definitions),
/// build [`Grants`] (see there), and load it with them. The second load compiles again, unless the
/// engine has a [cache](crate::runtime::EngineBuilder::cache).
///
/// # Defaults
/// No grants, [`OnMissingGrant::Refused`], no tenant; the code stays linked.
///
/// ```no_run
/// use toolcell::component::LoadOptions;
/// use toolcell::{Component, Engine, Grants};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let mut grants = Grants::default();
/// grants.http.push("https://api.example.com".parse()?);
/// let options = LoadOptions { grants, tenant: Some("acme".into()), ..LoadOptions::default() };
/// let bytes = std::fs::read("weather.wasm")?;
/// let component = Component::load_with(&Engine::builder().build()?, bytes, options).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct LoadOptions {
    /// The grants. Each tool can use those of them that it declares.
    pub grants: Grants,
    /// The rule for imports that are not granted.
    pub missing: OnMissingGrant,
    /// The tenant that the component is loaded for. The components of one tenant are loaded one at
    /// a time, and [`compiles_per_minute`](crate::runtime::EngineBuilder::compiles_per_minute)
    /// limits how many are compiled. A component that is in the cache does not count.
    pub tenant: Option<String>,
    /// Loads the component on demand, for a host that has many components. If its code is in the
    /// engine's cache, it is linked at the first call, which takes a millisecond or two longer. If
    /// there is more linked code than
    /// [`linked_bytes`](crate::runtime::EngineBuilder::linked_bytes), the engine releases the code
    /// that was not called for longest; the next call links it again.
    ///
    /// The function reads the component's bytes again; it is called, on a thread of the engine, if
    /// the code is no longer in the cache or is not optimised yet. Bytes with another digest are
    /// not used. If the code cannot be linked, calls are refused as
    /// [`Refusal::Unavailable`](crate::Refusal::Unavailable), and the log gives the reason.
    pub source: Option<Source>,
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("grants", &self.grants)
            .field("missing", &self.missing)
            .field("tenant", &self.tenant)
            .field("on_demand", &self.source.is_some())
            .finish()
    }
}
