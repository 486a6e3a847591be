//! What the store does on the disk, and how much of it.

use std::sync::atomic::AtomicUsize;

use toolcell::{ManualClock, Sleep};

use super::*;

#[test]
fn a_directory_that_is_gone_already_is_removed() {
    let place = tempfile::tempdir().expect("a place");
    let (gone, file) = (place.path().join("gone"), place.path().join("file"));
    assert!(remove_own(&gone).is_ok());
    fs::create_dir_all(gone.join("a/b")).expect("a place");
    assert!(remove_own(&gone).is_ok() && !gone.exists());
    // Every other error is told.
    fs::write(&file, "").expect("a place");
    assert!(remove_own(&file.join("below")).is_err());
}

/// Each look at a tenant's artifacts reads the clock once.
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

/// What is counted is work, and not time: looks at a tenant's artifacts, and files that a look opens or removes. A look removes
/// what has expired, so that it is seen afterwards whose artifacts were looked at.
#[test]
fn what_is_anothers_takes_the_steps_of_what_there_is_not() {
    const LIFETIME: Duration = Duration::from_secs(60);
    let (place, looks) = (tempfile::tempdir().expect("a place"), Looks::default());
    let options = ArtifactOptions::default().with_lifetime(LIFETIME);
    let store = Store::open(place.path(), options, Arc::new(looks.clone())).expect("a store");
    let [acme, globex] = ["acme", "globex"].map(Some);
    let put = |tenant, text: &str| store.put(tenant, text.as_bytes(), None, "text/plain").expect("room").id;
    let (expired, unknown) = (put(acme, "old"), "0".repeat(64));
    looks.clock.advance(LIFETIME);
    let kept = put(Some("initech"), "new");
    put(globex, "own");
    let file = place.path().join(directory_of(acme)).join(&expired);
    // A file that is opened says so by an error: it is a directory.
    let unread = place.path().join(directory_of(Some("initech"))).join(&kept);
    fs::remove_file(&unread).and_then(|()| fs::create_dir(&unread)).expect("a place");
    let steps = |tenant, id: &str| {
        let ask: [&dyn Fn() -> Result<(), ArtifactError>; 3] =
            [&|| store.info(tenant, id).map(drop), &|| store.artifact(tenant, id).map(drop), &|| {
                store.remove(tenant, id)
            }];
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
    // The tenant's own look is seen.
    assert!(store.info(acme, &expired).is_err() && !file.exists());
    assert!(store.artifact(Some("initech"), &kept).is_err_and(|error| !matches!(error, ArtifactError::NotFound)));
}
