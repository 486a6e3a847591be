//! From a configuration to tools that can be called, and reloads.

pub(crate) mod engines;
pub(crate) mod keys;
pub(crate) mod loaded;
pub(crate) mod reload;
pub(crate) mod report;
pub(crate) mod unset_secrets;

pub use keys::Keys;
pub use loaded::TenantSettings;
pub use unset_secrets::Unset;
