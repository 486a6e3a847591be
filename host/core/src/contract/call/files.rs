//! Files of one call.
//!
//! Not here: the directory that contains them (`directory::call_files`).

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
