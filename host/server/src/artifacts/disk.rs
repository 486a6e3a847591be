//! Stores artifacts as files in one directory, with a quota for each tenant and an expiry.
//!
//! The parent module calls it for every upload, lookup and removal. A put takes a tenant, bytes, a
//! name and a media type, and returns an `ArtifactInfo`, or an error if the tenant's quota has no
//! room. The store keeps an index of its files in memory, which it reads from the directory when it
//! is opened. Expired artifacts of a tenant are removed before each of its lookups and puts; the
//! child module `sweep` removes those of all tenants. A lock file makes sure that one process at a
//! time uses the directory; a temporary store removes its directory when it is dropped.
//!
//! Layout: the file `TENANT/ID` is one artifact. It has the length of a head (4 bytes, big endian),
//! the head as JSON (name and media type), and the content. `TENANT` is a digest of the tenant's
//! name, `ID` one of the content. So a path consists of digests only, and tenants share no file.
//!
//! A file gets its name only when it is complete and flushed to the disk. Only files that the store
//! has written are removed.

mod sweep;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolcell::call::CallFiles;
use toolcell::clock::Clock;
use toolcell::controls::{bound, enforced};
use toolcell::files::{TemporaryDirectory, remove_tree};
use toolcell::tenant::{Reservation, Share, ShareRule, TenantState};

use super::probe::Probe;
use super::{ArtifactError, ArtifactInfo, ArtifactOptions, Artifacts, MAX_MIME_TYPE, MAX_NAME};

/// The most bytes of a head.
const MAX_HEAD: usize = 1 << 10;
/// The prefix of the names of files that are being written.
const UNFINISHED: &str = ".new-";
/// The file that the process which uses the directory locks.
const LOCK: &str = ".lock";
/// The longest lifetime, 1,000 years: a time after `Duration::MAX` cannot be represented.
const MAX_LIFETIME: Duration = Duration::from_secs(1000 * 365 * 24 * 60 * 60);
/// The longest that the lock of a killed process can remain.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// An artifact that is open for reading.
#[derive(Debug)]
pub(crate) struct Artifact {
    pub(crate) info: ArtifactInfo,
    pub(super) file: File,
    /// The offset of the content.
    pub(super) begin: u64,
}

/// Writes content to a file.
pub(crate) type Write = fn(&mut File, &[u8]) -> io::Result<()>;

#[derive(Debug)]
pub(super) struct Store {
    pub(super) options: ArtifactOptions,
    root: PathBuf,
    pub(super) clock: Arc<dyn Clock>,
    /// By the name of the tenant's directory.
    tenants: Mutex<HashMap<String, Tenant>>,
    /// Bytes of the copies for calls. Each tenant has a bound of its own.
    copies: Arc<Share>,
    pub(super) probe: Probe,
    /// Tests replace it to simulate a full disk.
    pub(super) write_content: Write,
    written: AtomicU64,
    _lock: File,
    /// The directory of a temporary store. Removed on drop.
    temporary: Option<TemporaryDirectory>,
}

#[derive(Debug, Default)]
struct Tenant {
    /// The most bytes, if the tenant has a quota of its own.
    quota: Option<u64>,
    kept: BTreeMap<String, StoredArtifact>,
    /// Bytes and number of the artifacts that are being written.
    writing: (u64, usize),
}

#[derive(Debug)]
struct StoredArtifact {
    head: Head,
    size: u64,
    expires: Instant,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Head {
    name: Option<String>,
    mime_type: String,
}

impl Store {
    pub(super) fn temporary(options: ArtifactOptions, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let temporary = TemporaryDirectory::new()?;
        let mut store = Self::open(temporary.path(), options, clock)?;
        store.temporary = Some(temporary);
        Ok(store)
    }

    pub(super) fn open(
        root: &Path,
        options: ArtifactOptions,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        if root.exists() && !root.is_dir() {
            let problem = format!("`{}` is not a directory", root.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, problem));
        }
        create_directory(root)?;
        let lock = root.join(LOCK);
        let lock = locked(&lock).map_err(with_path(&lock))?;
        let mut tenants = HashMap::new();
        for entry in fs::read_dir(root).map_err(with_path(root))? {
            let entry = entry?;
            if let Some(name) = entry.file_name().to_str().filter(|name| is_digest(name))
                && entry.file_type()?.is_dir()
            {
                let path = entry.path();
                let tenant = Tenant::read(&path, options.lifetime, clock.now());
                tenants.insert(name.to_owned(), tenant.map_err(with_path(&path))?);
            }
        }
        let (root, tenants) = (root.to_owned(), Mutex::new(tenants));
        let probe = Probe::new(&root, UNFINISHED, Arc::clone(&clock));
        let store = Self {
            options,
            root,
            clock,
            tenants,
            copies: Share::new(u64::MAX),
            probe,
            write_content: |file, content| file.write_all(content),
            written: AtomicU64::new(0),
            _lock: lock,
            temporary: None,
        };
        store.sweep();
        Ok(store)
    }

    /// Stores content if all artifacts of the tenant then fit in the quota divided by `part`.
    pub(super) fn put_within(
        &self,
        part: u64,
        tenant: Option<&str>,
        content: &[u8],
        (name, mime_type): (Option<&str>, &str),
    ) -> Result<ArtifactInfo, ArtifactError> {
        if content.len() > self.options.artifact {
            return Err(ArtifactError::TooLarge { limit: self.options.artifact });
        }
        if name.is_some_and(|name| name.len() > MAX_NAME || !CallFiles::is_name(name)) {
            return Err(ArtifactError::InvalidName);
        }
        let is_visible = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if !(1..=MAX_MIME_TYPE).contains(&mime_type.len()) || !mime_type.bytes().all(is_visible) {
            return Err(ArtifactError::InvalidType);
        }
        let (id, directory) = (format!("{:x}", Sha256::digest(content)), directory_of(tenant));
        let head = Head { name: name.map(str::to_owned), mime_type: mime_type.to_owned() };
        let size = content.len() as u64;
        self.reserve(&directory, &id, size, part)?;
        let written = self.write(&directory, &head, content);
        let expires = self.clock.now() + self.options.lifetime.min(MAX_LIFETIME);
        let path = self.root.join(&directory).join(&id);
        let mut tenants = self.tenants.lock();
        let tenant = tenants.entry(directory).or_default();
        tenant.writing =
            (tenant.writing.0.saturating_sub(size), tenant.writing.1.saturating_sub(1));
        // Under the lock: otherwise a removal of the earlier artifact with this id, by a request or
        // because it expired, could remove the new file before the index has it.
        finish(&written?, &path)?;
        let kept = StoredArtifact { head, size, expires };
        let info = kept.info(&id, self.clock.now());
        tenant.kept.insert(id, kept);
        Ok(info)
    }

    /// Reserves space for an artifact that is about to be written.
    fn reserve(
        &self,
        directory: &str,
        id: &str,
        size: u64,
        part: u64,
    ) -> Result<(), ArtifactError> {
        let now = self.clock.now();
        let mut tenants = self.tenants.lock();
        let tenant = tenants.entry(directory.to_owned()).or_default();
        tenant.forget_expired(&self.root.join(directory), now, usize::MAX);
        let others = tenant.kept.iter().filter(|(other, _)| *other != id);
        let (bytes, count) =
            others.fold(tenant.writing, |(bytes, count), (_, kept)| (bytes + kept.size, count + 1));
        let quota = tenant.quota.unwrap_or(self.options.quota);
        let most = self.options.count as u64 / part;
        let fits = bytes.saturating_add(size) <= bound!(ArtifactQuota, quota / part)
            && (count as u64) < bound!(ArtifactQuota, most);
        if !fits {
            return Err(ArtifactError::Quota);
        }
        tenant.writing = (tenant.writing.0 + size, tenant.writing.1 + 1);
        Ok(())
    }

    /// Writes an artifact to an unfinished file, flushed to the disk. Returns its path.
    fn write(&self, directory: &str, head: &Head, content: &[u8]) -> io::Result<PathBuf> {
        let directory = self.root.join(directory);
        create_directory(&directory)?;
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let unfinished = directory.join(format!("{UNFINISHED}{number}"));
        let head = serde_json::to_vec(head)?;
        let length = u32::try_from(head.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let write = || {
            let mut file =
                OpenOptions::new().create_new(true).write(true).mode(0o600).open(&unfinished)?;
            file.write_all(&length.to_be_bytes())?;
            file.write_all(&head)?;
            (self.write_content)(&mut file, content)?;
            file.sync_data()
        };
        write()
            .inspect_err(|_| drop(fs::remove_file(&unfinished)))
            .map_err(with_path(&unfinished))?;
        Ok(unfinished)
    }

    /// Calls a closure with a tenant's artifacts, after expired ones are removed.
    fn with<T>(
        &self,
        tenant: Option<&str>,
        ask: impl FnOnce(&mut BTreeMap<String, StoredArtifact>, &Path, Instant) -> Option<T>,
    ) -> Result<T, ArtifactError> {
        let (name, now) = (directory_of(tenant), self.clock.now());
        let path = self.root.join(&name);
        let mut tenants = self.tenants.lock();
        let tenant = tenants.get_mut(&name).ok_or(ArtifactError::NotFound)?;
        tenant.forget_expired(&path, now, usize::MAX);
        ask(&mut tenant.kept, &path, now).ok_or(ArtifactError::NotFound)
    }
}

impl Artifacts {
    /// Sets the bytes that single tenants can store instead of [`ArtifactOptions::quota`], from now
    /// on. Stored artifacts stay.
    pub(crate) fn set_quotas<'a>(&self, quotas: impl Iterator<Item = (Option<&'a str>, u64)>) {
        let mut tenants = self.0.tenants.lock();
        tenants.values_mut().for_each(|tenant| tenant.quota = None);
        for (tenant, bytes) in quotas {
            tenants.entry(directory_of(tenant)).or_default().quota = Some(bytes);
        }
    }

    /// Returns the description of the tenant's artifact with this id.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`].
    pub fn info(&self, tenant: Option<&str>, id: &str) -> Result<ArtifactInfo, ArtifactError> {
        self.0.with(tenant, |kept, _, now| kept.get(id).map(|kept| kept.info(id, now)))
    }

    /// Reserves room for the copies of a call's files. All calls of a tenant together can have as
    /// many bytes as the tenant can store. If no other call has files, there is always room.
    pub(super) fn room_for_copies(&self, tenant: Option<&str>, bytes: u64) -> Option<Reservation> {
        let tenants = self.0.tenants.lock();
        let quota = tenants.get(&directory_of(tenant)).and_then(|tenant| tenant.quota);
        drop(tenants);
        let rule = ShareRule::Cap(quota.unwrap_or(self.0.options.quota).max(bytes));
        self.0.copies.take(&TenantState::of(tenant), bytes, rule).ok()
    }

    /// Lists the tenant's artifacts, by id.
    #[must_use]
    pub fn list(&self, tenant: Option<&str>) -> Vec<ArtifactInfo> {
        let all = |kept: &mut BTreeMap<String, StoredArtifact>, _: &Path, now| {
            Some(kept.iter().map(|(id, kept)| kept.info(id, now)).collect())
        };
        self.0.with(tenant, all).unwrap_or_default()
    }

    /// Opens an artifact of the tenant.
    pub(crate) fn artifact(
        &self,
        tenant: Option<&str>,
        id: &str,
    ) -> Result<Artifact, ArtifactError> {
        let opened = self.0.with(tenant, |kept, directory, now| {
            let info = kept.get(id)?.info(id, now);
            let path = directory.join(id);
            let read = read_head(&path).map(|(file, _, begin)| Artifact { info, file, begin });
            Some(read.map_err(with_path(&path)))
        });
        opened?.map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                ArtifactError::NotFound
            } else {
                error.into()
            }
        })
    }

    /// Removes an artifact of the tenant.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`], [`ArtifactError::Io`].
    pub fn remove(&self, tenant: Option<&str>, id: &str) -> Result<(), ArtifactError> {
        let removed = self.0.with(tenant, |kept, directory, _| {
            let path = directory.join(id);
            kept.remove(id).map(|_| fs::remove_file(&path).map_err(with_path(&path)))
        })?;
        Ok(removed?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.temporary.is_some()
            && let Err(error) = remove_own(&self.root)
        {
            tracing::warn!(%error, "the artifacts of this process could not be removed");
        }
    }
}

impl Tenant {
    /// Reads the artifacts that an earlier process stored. Removes its unfinished files.
    fn read(directory: &Path, lifetime: Duration, now: Instant) -> io::Result<Self> {
        let mut tenant = Self::default();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(UNFINISHED) {
                fs::remove_file(entry.path())?;
            }
            if !is_digest(name) {
                continue;
            }
            let found = read_head(&entry.path())
                .and_then(|(file, head, begin)| Ok((file.metadata()?, head, begin)));
            let found = found.inspect_err(
                |error| tracing::warn!(%error, artifact = name, "an artifact cannot be read"),
            );
            let Ok((metadata, head, begin)) = found else { continue };
            let age = SystemTime::now().duration_since(metadata.modified()?).unwrap_or_default();
            let expires = now + lifetime.min(MAX_LIFETIME).saturating_sub(age);
            let size = metadata.len().saturating_sub(begin);
            tenant.kept.insert(name.to_owned(), StoredArtifact { head, size, expires });
        }
        Ok(tenant)
    }

    /// Removes at most `most` expired artifacts. Returns the number.
    fn forget_expired(&mut self, directory: &Path, now: Instant, most: usize) -> usize {
        let mut removed = 0;
        self.kept.retain(|id, kept| {
            if kept.expires > now || removed == most {
                return true;
            }
            removed += 1;
            if let Err(error) = fs::remove_file(directory.join(id)) {
                tracing::warn!(%error, artifact = %id, "an expired artifact could not be removed");
            }
            false
        });
        removed
    }
}

impl StoredArtifact {
    fn info(&self, id: &str, now: Instant) -> ArtifactInfo {
        ArtifactInfo {
            id: id.to_owned(),
            uri: format!("{}{id}", Artifacts::URI),
            name: self.head.name.clone(),
            mime_type: self.head.mime_type.clone(),
            size: self.size,
            expires_in: self.expires.saturating_duration_since(now).as_secs(),
        }
    }
}

fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(with_path(path))
}

/// Gives an unfinished file its name. Removes it if that fails.
fn finish(unfinished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(unfinished, path)
        .inspect_err(|_| drop(fs::remove_file(unfinished)))
        .map_err(with_path(unfinished))
}

/// Removes the directory of this process. Succeeds if it is gone already, for example because the
/// system cleaned its temporary files.
fn remove_own(root: &Path) -> io::Result<()> {
    remove_tree(root)
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Opens the file and locks it for this process.
fn locked(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // A process was killed while it spawned another one. The child holds the inherited file
            // until it executes its program.
            Err(TryLockError::WouldBlock) if since.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_TIMEOUT / 100)
            }
            Err(TryLockError::WouldBlock) => {
                let text = "another process uses this directory";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Adds the path to an error, for the operator.
fn with_path(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// Opens an artifact and reads its head. Returns the offset of the content.
fn read_head(path: &Path) -> io::Result<(File, Head, u64)> {
    let mut file = File::open(path)?;
    let mut length = [0; 4];
    file.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_HEAD {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut head = vec![0; length];
    file.read_exact(&mut head)?;
    Ok((file, serde_json::from_slice(&head)?, 4 + length as u64))
}

/// Returns the name of a tenant's directory.
fn directory_of(tenant: Option<&str>) -> String {
    let digest = match tenant.filter(|_| enforced!(ArtifactTenants)) {
        Some(tenant) => Sha256::new().chain_update("tenant ").chain_update(tenant),
        None => Sha256::new().chain_update("no tenant"),
    };
    format!("{:x}", digest.finalize())
}

fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests;
