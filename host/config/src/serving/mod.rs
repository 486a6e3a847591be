//! Tools that are ready to be called: their engines, their stores, and the problems of others.
//!
//! A server builds the engines of a configuration (`engines`), which use the key-value store of
//! that configuration (`keys`). Loading gives the tools (`loaded`) and a report of each component
//! that is not served, or only in part (`report`). A tool that needs a secret without a value is
//! disabled (`unset_secrets`).

pub(crate) mod engines;
pub(crate) mod keys;
pub(crate) mod loaded;
pub(crate) mod report;
pub(crate) mod unset_secrets;

pub use unset_secrets::UnsetSecret;

pub use crate::tenants::settings::TenantSettings;
