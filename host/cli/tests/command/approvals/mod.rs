//! Components that need approval, signatures and grants, up to their first call.

mod approval;
mod develop;
pub(crate) mod existing;
mod found;
mod init;
pub(crate) mod path_to_grant;
mod signatures;
