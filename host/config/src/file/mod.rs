//! Resolves parts of the file: its components, the values of secrets, the network settings.
//!
//! In: sections of the file, and the options that it is read with. Out: typed parts of a
//! configuration.
//! Not here: the keys of the file (`schema`), grants (`grants`).

pub(crate) mod network;
pub(crate) mod options;
pub(crate) mod resolved;
pub(crate) mod secret_selection;
pub(crate) mod secrets;

pub use crate::schema::{Isolation, NAME, schema, without_password};
pub use resolved::{ComponentConfig, ResolvedComponent, Section, ToolConfig, name_of_file};
pub use secrets::{Origin, OwnSecrets};
