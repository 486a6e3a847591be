//! Resolves parts of the file: its components, the values of secrets, the network settings.
//!
//! Reading a configuration first gives the sections of `toolcell.toml` as the types of `schema`.
//! The modules here turn some of them into values that can be used: a component with its bytes and
//! its checks (`resolved`), the values of secrets from variables and files (`secrets`), proxy and
//! certificate authorities (`network`). `options` has the directories and variables with which a
//! file is read.
//!
//! Not here: the keys of the file, in `schema`; grants, in `grants`.

pub(crate) mod network;
pub(crate) mod options;
pub(crate) mod resolved;
pub(crate) mod secret_selection;
pub(crate) mod secrets;

pub use crate::schema::{Isolation, NAME, schema, without_password};
pub use resolved::{ComponentConfig, ResolvedComponent, Section, ToolConfig, name_of_file};
pub use secrets::{Origin, OwnSecrets};
