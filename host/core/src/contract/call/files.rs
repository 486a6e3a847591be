//! A handle to the files that a caller attaches to one call.
//!
//! The server creates a [`CallFiles`] for a call that comes with files, and sets it in the call's
//! options; a worker process opens the existing directory. When the engine sets up the cell (a
//! fresh WebAssembly instance with its own memory, for this one call), it mounts the directory
//! read-only for the guest. The handle is reference-counted: the files are removed when its last
//! clone is dropped.
//!
//! This module knows only the trait [`CallDirectory`], so that it does no I/O. Not here: the
//! directory on disk, in `capability/files/call_files.rs`.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Files of one call. If the call's tool is a component, it can read them in the directory
/// [`CallFiles::DIRECTORY`]. It cannot change them, and no other call sees them. The files are
/// removed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct CallFiles(pub(crate) Arc<dyn CallDirectory>);

/// A private directory of one call.
pub(crate) trait CallDirectory: fmt::Debug + Send + Sync {
    /// Its path on the host.
    fn path(&self) -> &Path;

    /// The directory, open.
    fn dir(&self) -> &File;
}
