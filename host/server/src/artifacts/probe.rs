//! Checks if a directory can be written to, and if an error means that the disk is full.
//!
//! The readiness of the server asks a [`Probe`] for the directory of artifacts (content stored for
//! tenants) and one for the state directory. The probe writes a small file, removes it, and returns
//! true if both succeeded. Every client can cause a check, so the result is cached for
//! [`CACHE_TIME`]. [`is_full`] recognises errors of a full disk and of a used-up disk quota.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcell::clock::Clock;

/// The time for which a result is cached.
const CACHE_TIME: Duration = Duration::from_secs(5);

/// Checks a directory by writing to it.
#[derive(Debug)]
pub(crate) struct Probe {
    file: PathBuf,
    clock: Arc<dyn Clock>,
    /// The time and the result of the last check.
    last_check: Mutex<Option<(Instant, bool)>>,
}

impl Probe {
    /// Checks with a file in this directory whose name begins with `prefix` and contains the
    /// process id, so that processes that share the directory use different files.
    pub(crate) fn new(directory: impl Into<PathBuf>, prefix: &str, clock: Arc<dyn Clock>) -> Self {
        let file = directory.into().join(format!("{prefix}probe-{}", std::process::id()));
        Self { file, clock, last_check: Mutex::default() }
    }

    /// Returns true if a file can be written and removed.
    pub(crate) fn is_writable(&self) -> bool {
        let now = self.clock.now();
        let mut tried = self.last_check.lock();
        if let Some((at, is_writable)) = *tried
            && now.saturating_duration_since(at) < CACHE_TIME
        {
            return is_writable;
        }
        let opened =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&self.file);
        let written = opened.and_then(|mut file| file.write_all(b"toolcell"));
        let is_writable = fs::remove_file(&self.file).and(written).is_ok();
        *tried = Some((now, is_writable));
        is_writable
    }
}

/// Returns true if the disk is full, or the user's disk quota is used up.
pub(crate) fn is_full(error: &io::Error) -> bool {
    [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use toolcell::clock::ManualClock;

    use super::*;

    #[test]
    fn directory_is_probed_again_after_interval() {
        let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
        let place = dir.path().join("state");
        let probe = Probe::new(&place, ".", Arc::new(clock.clone()));
        assert!(!probe.is_writable(), "there is no directory");
        fs::create_dir(&place).unwrap();
        assert!(!probe.is_writable(), "not tried again yet");
        clock.advance(CACHE_TIME);
        assert!(probe.is_writable());
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "nothing is left");
        fs::remove_dir(&place).unwrap();
        assert!(probe.is_writable(), "not tried again yet");
        clock.advance(CACHE_TIME);
        assert!(!probe.is_writable());
    }
}
