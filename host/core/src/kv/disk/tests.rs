//! What only a disk brings: other processes, kills, damage, and no room.

use std::fs::{self, Permissions};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::*;
use crate::kv::ledger::audit;
use crate::kv::{KeyStore as _, Namespace};

/// Where the child process of a test writes.
const CHILD: &str = "TOOLCELL_TEST_STORE";

impl DiskStore {
    /// As on disk, without one: for tests of many writes.
    pub(in crate::kv) fn without_disk() -> Self {
        Self::on("memory".into(), |builder| builder.create_with_backend(InMemoryBackend::new())).unwrap()
    }
}

fn notes() -> Namespace {
    Namespace::new(Some("acme"), "notes")
}

#[test]
fn it_outlives_its_process_and_is_this_users_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("a/b");
    let version = DiskStore::open(&dir).unwrap().set(&notes(), "k", b"value", None).unwrap();
    let store = DiskStore::open(&dir).unwrap();
    let entry = store.get(&notes(), "k").unwrap().unwrap();
    assert_eq!((entry.data.as_slice(), entry.version), (&b"value"[..], version));
    assert!(store.delete(&notes(), "k").unwrap());
    drop(store);
    let again = DiskStore::open(&dir).unwrap().set(&notes(), "k", b"", None).unwrap();
    assert!(again > version, "a version never comes again");
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(dir.join(place::FILE)).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left there");
}

/// Refused with what is wrong, where, and what to do.
#[test]
fn what_is_no_store_of_ours_is_refused() {
    type Spoil = fn(&Path);
    fn relabelled(file: &Path, layout: u64) {
        let database = Database::open(file).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(LAYOUT).unwrap().insert((), layout).unwrap();
        transaction.commit().unwrap();
    }
    let spoilt: [(&str, Spoil); 10] = [
        ("has the layout 2", |file| relabelled(file, 2)),
        ("no store of ours", |file| relabelled(file, 0)),
        ("no store of ours", |file| {
            fs::remove_file(file).unwrap();
            let transaction = Database::create(file).unwrap().begin_write().unwrap();
            transaction.open_table(TableDefinition::<u64, u64>::new("other")).unwrap();
            transaction.commit().unwrap();
            fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
        }),
        ("is no store", |file| fs::write(file, "[component]\n".repeat(100)).unwrap()),
        ("is empty", |file| fs::write(file, "").unwrap()),
        ("is damaged", |file| {
            let content = fs::read(file).unwrap();
            fs::write(file, &content[..content.len() / 2]).unwrap();
        }),
        ("can be read or written by others", |file| {
            fs::set_permissions(file, Permissions::from_mode(0o640)).unwrap();
        }),
        ("is a link", |file| {
            fs::rename(file, file.with_extension("old")).unwrap();
            std::os::unix::fs::symlink(file.with_extension("old"), file).unwrap();
        }),
        ("not a plain file", |file| {
            fs::remove_file(file).unwrap();
            let fifo = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, file, fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, 0)
                .unwrap();
        }),
        ("written by others", |file| {
            fs::set_permissions(file.parent().unwrap(), Permissions::from_mode(0o770)).unwrap();
        }),
    ];
    for (needle, spoil) in spoilt {
        let dir = tempfile::tempdir().unwrap();
        DiskStore::open(dir.path()).unwrap().set(&notes(), "k", b"value", None).unwrap();
        spoil(&dir.path().join(place::FILE));
        for _ in 0..2 {
            let error = DiskStore::open(dir.path()).unwrap_err();
            assert!(error.is_environment() && error.to_string().contains(needle), "{needle}: {error}");
            assert!(error.to_string().contains(&dir.path().display().to_string()) && !error.hint().is_empty());
        }
        if needle.contains("layout") {
            relabelled(&dir.path().join(place::FILE), OUR_LAYOUT);
            let kept = DiskStore::open(dir.path()).unwrap().get(&notes(), "k").unwrap();
            assert_eq!(kept.unwrap().data, b"value", "nothing is lost");
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(DiskStore::open(file.path()).unwrap_err().to_string().contains("cannot be made"));
}

#[test]
fn one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = DiskStore::open(dir.path()).unwrap();
    let error = DiskStore::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("open in another process"), "{error}");
    store.set(&notes(), "k", b"value", None).unwrap();
}

/// Any changed bytes: refused, or what is read is what was written.
#[test]
fn damage_is_never_read() {
    let mut random = fastrand::Rng::with_seed(4);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(place::FILE);
    let store = DiskStore::open(dir.path()).unwrap();
    for key in 0..20 {
        store.set(&notes(), &format!("k{key}"), &[key; 3000], None).unwrap();
    }
    drop(store);
    let whole = fs::read(&file).unwrap();
    let written = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let mut refused = 0;
    for _ in 0..40 {
        let mut content = whole.clone();
        let at = random.usize(..written);
        content[at] ^= random.u8(1..);
        fs::write(&file, content).unwrap();
        match DiskStore::open(dir.path()) {
            Err(error) => refused += usize::from(error.is_environment()),
            Ok(store) => {
                for key in 0..20 {
                    let entry = store.get(&notes(), &format!("k{key}")).unwrap();
                    assert!(entry.is_none_or(|entry| entry.data == [key; 3000]), "{at}");
                }
            }
        }
    }
    assert!(refused > 0);
}

/// A file on a disk with so many bytes. As on a real one, a file may be longer than what it has room for.
#[derive(Debug)]
struct Small {
    file: FileBackend,
    room: Arc<AtomicU64>,
}

impl StorageBackend for Small {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset + data.len() as u64 > self.room.load(Ordering::SeqCst) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.write(offset, data)
    }
}

/// Writes are refused, all that was acknowledged can be read, and when there is room again writing goes on.
#[test]
fn a_full_disk_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (file, room) = (dir.path().join("small"), Arc::new(AtomicU64::new(4 << 20)));
    let (path, left) = (file.clone(), room.clone());
    let open = move |builder: &Builder| {
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        builder.create_with_backend(Small { file: FileBackend::new(file)?, room: left.clone() })
    };
    let store = DiskStore::on(file, open).unwrap();
    let acknowledged = (0..1000).find(|at| match store.set(&notes(), &at.to_string(), &[7; 50_000], None) {
        Ok(_) => false,
        Err(StoreError::Unavailable(problem)) => {
            assert!(problem.contains("the disk is full") && problem.contains("small"), "{problem}");
            true
        }
        Err(error) => panic!("{error}"),
    });
    let acknowledged = acknowledged.unwrap();
    assert!(acknowledged > 5, "{acknowledged}");
    for _ in 0..3 {
        for at in 0..acknowledged {
            let entry = store.get(&notes(), &at.to_string()).unwrap();
            assert_eq!(entry.unwrap().data, [7; 50_000], "{at}");
        }
        assert!(store.set(&notes(), "more", &[7; 500_000], None).is_err());
    }
    assert!(store.delete(&notes(), "0").is_ok() || store.get(&notes(), "0").unwrap().is_some());
    room.store(u64::MAX, Ordering::SeqCst);
    store.set(&notes(), "more", &[7; 500_000], None).unwrap();
    audit(&store, &notes());
}

/// The child's part: writes for ever, and says what was acknowledged. Without a parent it does nothing.
#[test]
fn writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let store = DiskStore::open(Path::new(&dir)).unwrap();
    let first = store.get(&notes(), "next").unwrap().map_or(0, |entry| entry.version);
    for at in first.. {
        let version = store.set(&notes(), &format!("key {}", at % 500), at.to_string().as_bytes(), None).unwrap();
        println!("\nacknowledged {} {at} {version}", at % 500);
        store.set(&notes(), "next", b"", None).unwrap();
    }
}

/// Killed at any moment, again and again: every acknowledged write is there.
#[test]
fn a_killed_process_loses_nothing() {
    let mut random = fastrand::Rng::with_seed(9);
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let mut acknowledged = std::collections::BTreeMap::new();
    for round in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kv::disk::tests::writes_until_it_is_killed", "--nocapture"])
            .env(CHILD, &dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let kill_after = random.usize(..30);
        let (mut count, mut killed) = (0, false);
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            if !killed && count >= kill_after {
                child.kill().unwrap();
                killed = true;
            }
            if let Some(told) = line.unwrap().strip_prefix("acknowledged ") {
                let [key, value, version] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
                acknowledged.insert(format!("key {key}"), (value.to_owned(), version.parse::<u64>().unwrap()));
                count += 1;
            }
        }
        assert!(killed && !child.wait().unwrap().success(), "{round}");
        let store = DiskStore::open(&dir).unwrap();
        audit(&store, &notes());
        for (key, (value, version)) in &acknowledged {
            let entry = store.get(&notes(), key).unwrap().unwrap();
            // A later write may be there that nobody was told of.
            let is_it = entry.version == *version && entry.data == value.as_bytes();
            assert!(is_it || entry.version > *version, "{round}: {key} {value} {version}");
        }
    }
    assert!(acknowledged.len() > 50, "{}", acknowledged.len());
}
