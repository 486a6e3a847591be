//! Loads the tools of a `toolcell.toml`: the configuration, the operator's approvals, signatures,
//! reload.
//!
//! In: a configuration, its lock file (approvals), components. Out: typed values and typed errors,
//! each with file, line and hint.
//! Invariants: a tool is offered only as its operator approved it; this crate prints nothing, ends
//! no process and reads no terminal; it reads the environment through [`ReadOptions`] only.
//!
//! ```text
//! toolcell.toml ─► Configuration ─► Engines ┐
//! toolcell.lock ─► Lock ────────────────────┼─► LoadedTools: registry, executor, tenants, problems
//! components ───────────────────────────────┘      ▲
//!                                                  └─ Reloader, when a file changes
//! ```
//!
//! ```no_run
//! # async fn example() -> Result<(), toolcell_config::Error> {
//! use toolcell_config::Configuration;
//!
//! let configuration = Configuration::read("toolcell.toml")?;
//! let engines = configuration.engines().build()?;
//! let loaded = configuration.load(&engines).await?;
//! for problem in loaded.problems() {
//!     eprintln!("{problem}; hint: {}", problem.hint());
//! }
//! # Ok(()) }
//! ```
//!
//! [`LoadedTools::registry`] has the tools, [`LoadedTools::executor`] the tenants and the limits. A
//! [`Reloader`] reads everything again when a file changes. [`Configuration::rollback`] goes back
//! to the previously approved version of a component.

pub mod approval;
mod configuration;
mod error;
pub mod file;
pub mod grants;
pub mod paths;
mod problem;
mod schema;
pub mod serving;
pub mod tenants;
pub mod text;

#[doc(inline)]
pub use configuration::Configuration;
#[doc(inline)]
pub use configuration::lock::Lock;
#[doc(inline)]
pub use configuration::reload::{ReloadChanges, Reloader};
pub use error::Error;
#[doc(inline)]
pub use file::options::ReadOptions;
#[doc(inline)]
pub use file::secret_selection::SecretSelection;
#[doc(inline)]
pub use problem::Problem;
#[doc(inline)]
pub use serving::engines::Engines;
#[doc(inline)]
pub use serving::loaded::LoadedTools;
#[doc(inline)]
pub use serving::report::{ComponentProblem, Reason, Serving};
#[doc(inline)]
pub use tenants::issuer::Issuer;
