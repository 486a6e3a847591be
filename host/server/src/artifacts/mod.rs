//! Artifacts: content that is stored outside of an agent's messages and read by reference.
//!
//! An artifact is a file that a client has uploaded, or a part of a tool's result that is too long
//! for a model. The HTTP routes, the MCP resources and the middleware around tools use one
//! [`Artifacts`] store, which the embedder (the program that uses this library) opens in a
//! directory. Storing returns an [`ArtifactInfo`]. Its URI stands for the content in results, in
//! the arguments of tools and in the MCP method `resources/read`.
//!
//! Every lookup names a tenant and finds only artifacts of that tenant. An unknown artifact, an
//! expired one and another tenant's have the same answer. [`ArtifactOptions`] bound the bytes of an
//! artifact, the bytes and the number of a tenant's artifacts, and their lifetime. The methods
//! block on the filesystem.

mod disk;
mod layer;
pub(crate) mod members;
pub(crate) mod probe;

use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use toolcell::clock::{Clock, SystemClock};

pub(crate) use disk::Artifact;
use disk::Store;
#[cfg(test)]
pub(crate) use disk::Write;
pub(crate) use layer::Layer;

use probe::is_full;

/// Characters of an artifact's name.
const MAX_NAME: usize = 128;
/// Characters of a media type.
const MAX_MIME_TYPE: usize = 128;
/// Time between two sweeps.
const SWEEP: Duration = Duration::from_secs(60);
/// The media type of content whose type is unknown.
pub(crate) const BYTES: &str = "application/octet-stream";

/// Limits of an artifact store, and which parts of results it stores.
///
/// # Defaults
/// Parts over 256 KiB are stored; artifacts of at most 16 MiB; 256 MiB and 1,000 artifacts a
/// tenant; 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactOptions {
    /// Bytes. A longer content part of a result is stored as an artifact, and the result links to
    /// it.
    pub threshold: usize,
    /// The most bytes of one artifact.
    pub artifact: usize,
    /// The most bytes of all artifacts of one tenant.
    pub quota: u64,
    /// The most artifacts of one tenant.
    pub count: usize,
    /// Time after which an artifact that was not stored again is removed.
    pub lifetime: Duration,
}

impl Default for ArtifactOptions {
    fn default() -> Self {
        Self {
            threshold: 256 << 10,
            artifact: 16 << 20,
            quota: 256 << 20,
            count: 1000,
            lifetime: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// The metadata of an artifact.
///
/// # Shape
/// As JSON: its fields by name.
///
/// # Units
/// `size` in bytes, `expires_in` in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct ArtifactInfo {
    /// The SHA-256 of the content, in hex. It finds the artifact for its own tenant only.
    pub id: String,
    /// The reference: `toolcell://artifacts/ID`.
    pub uri: String,
    /// Its name, for example `report.csv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its media type.
    pub mime_type: String,
    /// Its length.
    pub size: u64,
    /// The time after which it is removed, unless it is stored again.
    pub expires_in: u64,
}

impl ArtifactInfo {
    /// Returns the name of a link to an artifact without a name.
    pub(crate) fn link_name(&self) -> String {
        format!("artifact-{}", self.id.get(..12).unwrap_or(&self.id))
    }
}

/// The reason why an artifact was not stored or not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The tenant has no artifact with this id.
    #[error("there is no such artifact")]
    NotFound,
    /// The content is longer than [`ArtifactOptions::artifact`].
    #[error("the content has more than {limit} bytes, the limit of an artifact")]
    TooLarge {
        /// The most bytes of one artifact.
        limit: usize,
    },
    /// The tenant's limit of bytes or of artifacts is reached.
    #[error("the artifact would exceed the tenant's limit of bytes or number of artifacts")]
    Quota,
    /// The name is not a valid file name.
    #[error(
        "the name of an artifact must be 1 to 128 of the characters A-Z a-z 0-9 . _ -, and not begin with . or -"
    )]
    InvalidName,
    /// The media type is not 1 to 128 visible ASCII characters.
    #[error("the media type is not 1 to 128 visible ASCII characters")]
    InvalidType,
    /// The disk of the store is full, or the server's disk quota is used up.
    #[error("the disk of the artifact store is full")]
    DiskFull(#[source] io::Error),
    /// The filesystem failed.
    #[error("the artifact store failed")]
    Io(#[source] io::Error),
}

impl From<io::Error> for ArtifactError {
    fn from(error: io::Error) -> Self {
        if is_full(&error) { Self::DiskFull(error) } else { Self::Io(error) }
    }
}

/// The artifact store of all tenants, in a directory. Cheap to clone; clones share the store. One
/// process at a time uses a directory.
///
/// The methods block on the filesystem.
#[derive(Debug, Clone)]
pub struct Artifacts(Arc<Store>);

impl Artifacts {
    /// The prefix of an artifact's URI.
    pub const URI: &str = "toolcell://artifacts/";

    /// Opens the store in a directory, which is created if it is missing. Removes unfinished files
    /// that a killed process left.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] if another process still uses the directory after a second,
    /// or the error of the operating system.
    pub fn open(directory: &Path, options: ArtifactOptions) -> io::Result<Self> {
        Self::open_with(directory, options, SystemClock)
    }

    /// Like [`open`](Self::open), with a clock.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        directory: &Path,
        options: ArtifactOptions,
        clock: impl Clock,
    ) -> io::Result<Self> {
        Ok(Self(Arc::new(Store::open(directory, options, Arc::new(clock))?)))
    }

    /// Creates an empty store in a temporary directory of this process.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn temporary(options: ArtifactOptions) -> io::Result<Self> {
        Ok(Self(Arc::new(Store::temporary(options, Arc::new(SystemClock))?)))
    }

    /// Like [`temporary`](Self::temporary), with a function that writes the content.
    #[cfg(test)]
    pub(crate) fn with_write(options: ArtifactOptions, write: Write) -> io::Result<Self> {
        let mut store = Store::temporary(options, Arc::new(SystemClock))?;
        store.write_content = write;
        Ok(Self(Arc::new(store)))
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> ArtifactOptions {
        self.0.options
    }

    /// Removes expired artifacts each minute, by the store's clock, on a thread that may block: at
    /// most 1,000 files at once, and the directories of tenants that have none left. A tenant's own
    /// expired artifacts are also removed before each of its requests. Never returns.
    /// [`HttpServer::serve`](crate::HttpServer::serve) runs it for the store of its service.
    ///
    /// # Cancel safety
    /// Cancel safe: a sweep that has begun runs to its end.
    pub async fn sweep_periodically(&self) {
        let clock = &self.0.clock;
        loop {
            clock.sleep_until(clock.now() + SWEEP).await;
            let store = Arc::clone(&self.0);
            // It fails only when the runtime shuts down.
            let _ = tokio::task::spawn_blocking(move || store.sweep()).await;
        }
    }

    /// Returns true if the directory can be written to. Checked once in a few seconds.
    pub(crate) fn is_writable(&self) -> bool {
        self.0.probe.is_writable()
    }

    /// Stores content for a tenant. Content that the tenant has stored before gets the new name and
    /// type, and a new lifetime.
    ///
    /// # Errors
    /// [`ArtifactError`], but not [`NotFound`](ArtifactError::NotFound).
    pub fn put(
        &self,
        tenant: Option<&str>,
        content: &[u8],
        name: Option<&str>,
        mime_type: &str,
    ) -> Result<ArtifactInfo, ArtifactError> {
        self.0.put_within(1, tenant, content, (name, mime_type))
    }

    /// Stores JSON that the tenant did not ask to store, if at most half of the quota is used
    /// afterwards. The other half is left for the tenant's own artifacts.
    pub(crate) fn put_unrequested(
        &self,
        tenant: Option<&str>,
        json: &[u8],
    ) -> Result<ArtifactInfo, ArtifactError> {
        self.0.put_within(2, tenant, json, (None, "application/json"))
    }

    /// Reads an artifact of the tenant.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`], [`ArtifactError::Io`].
    pub fn read(&self, tenant: Option<&str>, id: &str) -> Result<Vec<u8>, ArtifactError> {
        Ok(self.artifact(tenant, id)?.piece(0, usize::MAX)?)
    }
}

impl Artifact {
    /// Reads `bytes` bytes from the offset `at`, fewer at the end.
    pub(crate) fn piece(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.info.size.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut piece = vec![0; bytes.min(left)];
        self.file.read_exact_at(&mut piece, self.begin + at)?;
        Ok(piece)
    }

    /// Returns a reader of the whole content.
    pub(crate) fn reader(&self) -> impl Read + '_ {
        Reader { artifact: self, at: 0 }
    }
}

struct Reader<'a> {
    artifact: &'a Artifact,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.artifact.piece(self.at, buffer.len())?;
        buffer.get_mut(..piece.len()).ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(&piece);
        self.at += piece.len() as u64;
        Ok(piece.len())
    }
}

/// Runs [`Artifacts::sweep_periodically`] if there is a store. Never returns.
pub(crate) async fn sweep_periodically(artifacts: Option<&Artifacts>) {
    match artifacts {
        Some(artifacts) => artifacts.sweep_periodically().await,
        None => std::future::pending().await,
    }
}

/// Returns the id in an artifact's URI.
pub(crate) fn id_of(uri: &str) -> Option<&str> {
    uri.strip_prefix(Artifacts::URI)
}
