//! Files and directories: bounded reads, atomic replacement, the search for `toolcell.toml`.

pub(crate) mod atomic_file;
pub mod files;
pub(crate) mod roots;
pub(crate) mod search;
