//! Loads the tools of a `toolcell.toml`: the configuration, the operator's approvals, signatures,
//! reload.
//!
//! In: a configuration, its lock, components. Out: typed values and typed errors, each with file,
//! line and hint.
//! Invariants: a tool is offered only as its operator approved it; this crate prints nothing, ends
//! no process and reads no terminal; it reads the environment through [`ReadOptions`] only.
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
//! [`Loaded::registry`] has the tools, [`Loaded::executor`] the tenants and the limits. A
//! [`Reloader`] reads everything again when a file changes. [`Configuration::rollback`] goes back
//! to the previously approved version of a component.

mod approve;
mod choose;
pub mod clean;
mod configuration;
mod dev;
mod difference;
pub mod effective;
mod engines;
mod error;
mod file;
pub mod files;
mod grants;
mod isolation;
mod issuer;
mod keys;
mod kind;
mod limits;
mod loaded;
mod lock;
mod network;
mod offered;
mod options;
mod paste;
mod problem;
mod quota;
mod reload;
mod report;
mod resolved;
mod rollback;
mod roots;
mod rules;
mod search;
mod secrets;
mod shape;
mod signature;
mod signed;
mod trust;
mod typed;
pub mod units;
mod unset;
mod versions;
mod vet;
mod wanted;
mod written;

pub use configuration::{Configuration, NAME, schema};
pub use dev::Development;
pub use difference::{ApprovalState, Difference, Page};
pub use engines::{Engines, EnginesBuilder};
pub use error::{Error, Unapproved};
pub use isolation::Isolation;
pub use issuer::{Issuer, IssuerKeys};
pub use keys::Keys;
pub use limits::unusual;
pub use loaded::{Loaded, TenantSettings};
pub use lock::{Approved, Lock};
pub use network::without_password;
pub use offered::OfferedTools;
pub use options::ReadOptions;
pub use paste::{HintCommand, quoted};
pub use problem::Problem;
pub use quota::TenantQuota;
pub use reload::{Reloaded, Reloader};
pub use report::{ComponentProblem, Reason, Serving};
pub use resolved::{ComponentConfig, ResolvedComponent, Section, ToolConfig, name_of_file};
pub use rollback::RolledBack;
pub use rules::{RuleSection, WrittenRule};
pub use secrets::{Origin, OwnSecrets};
pub use signature::Signer;
pub use signed::Demand;
pub use trust::{Approval, FoundConfiguration};
pub use unset::Unset;
pub use vet::{Rebuilt, Vetted};
pub use wanted::SecretSelection;

/// The folder of a state directory with the counts of granted directories, which processes share.
pub const COUNTS: &str = "directories";

pub(crate) use configuration::{Places, is_name};
