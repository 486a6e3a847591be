//! Files and directories: bounded reads, atomic replacement, directories that may be granted.
//!
//! Everything that this crate reads from disk is read by `files`, which bounds sizes and refuses
//! files that other users could have written. `atomic_file` replaces a file without a moment in
//! which it is half written. `roots` refuses directories that no tool may be granted, such as a
//! whole home directory.

pub(crate) mod atomic_file;
pub mod files;
pub(crate) mod roots;
