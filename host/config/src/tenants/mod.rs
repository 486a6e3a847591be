//! Tenants: the tools that each is offered, its quota, the issuer of its tokens.
//!
//! A tenant is a customer of a server, with a section `[tenants.NAME]` that narrows all components
//! for its calls, which `settings` has as one value. The other modules convert the parts of the
//! file that only a server with tenants needs. What a tenant's tools may access is in `grants`, as
//! an overlay.

pub(crate) mod issuer;
pub(crate) mod offered;
pub(crate) mod quota;
pub(crate) mod settings;

pub use issuer::IssuerKeys;
