//! Tools that are ready to be called: their engines, their stores, and the problems of others.

pub(crate) mod engines;
pub(crate) mod keys;
pub(crate) mod loaded;
pub(crate) mod report;
pub(crate) mod unset_secrets;

pub use keys::Keys;
pub use loaded::TenantSettings;
pub use unset_secrets::Unset;
