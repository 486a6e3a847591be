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

mod approval;
mod error;
mod file;
mod grants;
mod paths;
mod serving;
mod tenants;
mod text;

pub use grants::effective;
pub use paths::files;
pub use text::{clean, units};

pub use approval::dev::Development;
pub use approval::difference::{ApprovalState, Difference, Page};
pub use approval::lock::{Approved, Lock};
pub use approval::rollback::RolledBack;
pub use approval::signature::Signer;
pub use approval::signed::Demand;
pub use approval::trust::{Approval, FoundConfiguration};
pub use approval::vet::{Rebuilt, Vetted};
pub use error::{Error, Unapproved};
pub use file::configuration::{Configuration, NAME, schema};
pub use file::isolation::Isolation;
pub use file::network::without_password;
pub use file::options::ReadOptions;
pub use file::problem::Problem;
pub use file::resolved::{ComponentConfig, ResolvedComponent, Section, ToolConfig, name_of_file};
pub use file::secret_selection::SecretSelection;
pub use file::secrets::{Origin, OwnSecrets};
pub use grants::limits::unusual;
pub use grants::rules::{RuleSection, WrittenRule};
pub use serving::engines::{Engines, EnginesBuilder};
pub use serving::keys::Keys;
pub use serving::loaded::{Loaded, TenantSettings};
pub use serving::reload::{Reloaded, Reloader};
pub use serving::report::{ComponentProblem, Reason, Serving};
pub use serving::unset_secrets::Unset;
pub use tenants::issuer::{Issuer, IssuerKeys};
pub use tenants::offered::OfferedTools;
pub use tenants::quota::TenantQuota;
pub use text::hint_command::{HintCommand, quoted};

pub(crate) use file::configuration::{Places, is_name};
