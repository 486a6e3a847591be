//! Files and directories: bounded reads, atomic replacement, directories that may be granted.

pub(crate) mod atomic_file;
pub mod files;
pub(crate) mod roots;
