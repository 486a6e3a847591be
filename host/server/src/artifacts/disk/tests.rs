//! Tests of the artifact store's work on the disk: which files it opens and removes, and how many.
//!
//! A lookup of another tenant's artifact must take as many steps as one of an unknown artifact. A
//! sweep must remove expired files of every tenant, a bounded number at once, and no file that the
//! store did not write.

use std::sync::atomic::AtomicUsize;

use toolcell::clock::{ManualClock, Sleep};

use super::*;

const LIFETIME: Duration = Duration::from_secs(60);

/// Returns a store in a directory of its own.
fn store(clock: impl Clock) -> (tempfile::TempDir, Artifacts) {
    let place = tempfile::tempdir().expect("a place");
    let options = ArtifactOptions { lifetime: LIFETIME, ..ArtifactOptions::default() };
    let store = Artifacts::open_with(place.path(), options, clock).expect("a store");
    (place, store)
}

#[test]
fn removing_a_missing_directory_succeeds() {
    let place = tempfile::tempdir().expect("a place");
    let (gone, file) = (place.path().join("gone"), place.path().join("file"));
    assert!(remove_own(&gone).is_ok());
    fs::create_dir_all(gone.join("a/b")).expect("a place");
    assert!(remove_own(&gone).is_ok() && !gone.exists());
    // Every other error is returned.
    fs::write(&file, "").expect("a place");
    assert!(remove_own(&file.join("below")).is_err());
}

#[test]
fn copies_for_calls_are_bounded_for_each_tenant() {
    let options = ArtifactOptions { quota: 10, ..ArtifactOptions::default() };
    let store = Artifacts::temporary(options).expect("a store");
    let take = |tenant, bytes| store.room_for_copies(Some(tenant), bytes);
    let held = take("acme", 6).expect("room");
    assert!(take("acme", 5).is_none() && take("acme", 4).is_some());
    assert!(take("globex", 10).is_some(), "another tenant");
    drop(held);
    assert!(take("acme", 20).is_some(), "the files of one call");
}

/// A clock that counts its reads. The store reads it once for each lookup.
#[derive(Debug, Clone, Default)]
struct Looks {
    clock: ManualClock,
    count: Arc<AtomicUsize>,
}

impl Clock for Looks {
    fn now(&self) -> Instant {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.clock.now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        self.clock.sleep_until(at)
    }
}

/// Counts work instead of time: lookups of a tenant's artifacts, and files that a lookup opens or
/// removes. A lookup removes expired artifacts, so the files that remain tell which tenant was
/// looked up.
#[test]
fn other_tenants_artifact_takes_same_steps_as_unknown() {
    let looks = Looks::default();
    let (place, store) = store(looks.clone());
    let [acme, globex] = ["acme", "globex"].map(Some);
    let put = |tenant, text: &str| {
        store.put(tenant, text.as_bytes(), None, "text/plain").expect("room").id
    };
    let (expired, unknown) = (put(acme, "old"), "0".repeat(64));
    looks.clock.advance(LIFETIME);
    let kept = put(Some("initech"), "new");
    put(globex, "own");
    let file = place.path().join(directory_of(acme)).join(&expired);
    // A directory in the place of the file: opening it as an artifact is an error.
    let unread = place.path().join(directory_of(Some("initech"))).join(&kept);
    fs::remove_file(&unread).and_then(|()| fs::create_dir(&unread)).expect("a place");
    let steps = |tenant, id: &str| {
        let ask: [&dyn Fn() -> Result<(), ArtifactError>; 3] = [
            &|| store.info(tenant, id).map(drop),
            &|| store.artifact(tenant, id).map(drop),
            &|| store.remove(tenant, id),
        ];
        ask.map(|ask| {
            let before = looks.count.load(Ordering::Relaxed);
            let refused = ask().expect_err("it is not this tenant's").to_string();
            (refused, looks.count.load(Ordering::Relaxed) - before, file.exists(), unread.exists())
        })
    };
    let expected = steps(globex, &unknown);
    assert_eq!(expected, [0; 3].map(|_| ("there is no such artifact".to_owned(), 1, true, true)));
    for foreign in [&expired, &kept] {
        assert_eq!(steps(globex, foreign), expected);
    }
    // The owner's own lookup removes its expired artifact.
    assert!(store.info(acme, &expired).is_err() && !file.exists());
    let unread = store.artifact(Some("initech"), &kept);
    assert!(unread.is_err_and(|error| !matches!(error, ArtifactError::NotFound)));
}

#[test]
fn artifacts_may_be_kept_forever() {
    let place = tempfile::tempdir().expect("a place");
    let options = ArtifactOptions { lifetime: Duration::MAX, ..ArtifactOptions::default() };
    let open = || Artifacts::open(place.path(), options).expect("a store");
    let kept = open().put(None, b"text", None, "text/plain").expect("room");
    assert_eq!(open().read(None, &kept.id).expect("an artifact"), b"text");
}

/// A clock that removes an artifact at one of its next reads.
#[derive(Debug, Clone, Default)]
struct Removes {
    clock: ManualClock,
    /// The number of reads until the removal, the store and the artifact's id.
    due: Arc<Mutex<Option<(usize, Artifacts, String)>>>,
}

impl Clock for Removes {
    fn now(&self) -> Instant {
        let due = self.due.lock().take_if(|(reads, ..)| {
            *reads -= 1;
            *reads == 0
        });
        if let Some((_, store, id)) = due {
            store.remove(None, &id).expect("an artifact");
        }
        self.clock.now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        self.clock.sleep_until(at)
    }
}

/// A put reads the clock a second time when the content is on the disk and not yet in the index.
#[test]
fn content_put_again_during_its_removal_is_kept() {
    let clock = Removes::default();
    let (_place, store) = store(clock.clone());
    let put = || store.put(None, b"text", None, "text/plain").expect("room").id;
    let id = put();
    *clock.due.lock() = Some((2, store.clone(), id.clone()));
    assert_eq!(put(), id);
    assert!(clock.due.lock().is_none(), "the earlier artifact was removed meanwhile");
    assert_eq!(store.read(None, &id).expect("the new artifact"), b"text");
}

/// A sweep covers a tenant that sends no requests and one that is no longer served, and leaves
/// files that the store did not write.
#[test]
fn expired_artifacts_are_swept_from_disk() {
    let clock = ManualClock::new();
    let (place, store) = store(clock.clone());
    let put = |tenant, text: &str| {
        store.put(Some(tenant), text.as_bytes(), None, "text/plain").expect("room").id
    };
    let directory = |tenant| place.path().join(directory_of(Some(tenant)));
    let files = |tenant| fs::read_dir(directory(tenant)).map_or(0, Iterator::count);
    for number in 0..20 {
        put("gone", &number.to_string());
    }
    put("shared", "old");
    for path in [place.path().join("notes"), directory("shared").join("notes")] {
        fs::write(path, "not of the store").expect("a place");
    }
    clock.advance(LIFETIME);
    let fresh = put("acme", "new");
    store.0.sweep();
    assert!(!directory("gone").exists() && store.0.tenants.lock().len() == 1);
    assert_eq!((files("shared"), files("acme")), (1, 1), "the rest stays");
    assert!(place.path().join("notes").exists() && store.info(Some("acme"), &fresh).is_ok());
    // A tenant that comes back starts empty.
    assert!(store.info(Some("gone"), &put("gone", "1")).is_ok());
}

#[test]
fn store_sweeps_expired_artifacts_on_open() {
    let place = tempfile::tempdir().expect("a place");
    let open = |lifetime| {
        let options = ArtifactOptions { lifetime, ..ArtifactOptions::default() };
        Artifacts::open_with(place.path(), options, ManualClock::new()).expect("a store")
    };
    let directory = place.path().join(directory_of(None));
    let store = open(Duration::from_secs(3600));
    store.put(None, b"x", None, "text/plain").expect("room");
    drop(store);
    drop(open(Duration::from_secs(3600)));
    assert!(directory.exists());
    drop(open(Duration::ZERO));
    assert!(!directory.exists());
}

#[test]
fn sweep_removes_bounded_number_of_files() {
    let clock = ManualClock::new();
    let (_place, store) = store(clock.clone());
    for number in 0..30 {
        let tenant = if number < 20 { "acme" } else { "globex" };
        store.put(Some(tenant), number.to_string().as_bytes(), None, "text/plain").expect("room");
    }
    clock.advance(LIFETIME);
    for expected in [5, 0] {
        store.0.sweep_up_to(25);
        let kept = store.0.tenants.lock().values().map(|tenant| tenant.kept.len()).sum::<usize>();
        assert_eq!(kept, expected);
    }
}
