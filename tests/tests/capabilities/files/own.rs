//! Tests what each call has of its own: environment, a scratch directory, clocks, randomness.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use toolcell::grants::{Access, DirectoryQuota};
use toolcell::runtime::Deterministic;
use toolcell::{CallOptions, Component, Engine, Executor, Grants, Limits, Overlay};
use toolcell_tests::ending;

use super::{
    BIG, FULL, answers, call, expect, expect_rows, granted, load, load_on, narrowed, run, tree,
};
use crate::complete;

/// Loads the tool on an engine with these fixed values.
fn load_fixed(fixed: Deterministic, grants: Grants) -> Component {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("artifacts");
    let engine = Engine::builder().cells(4).cache(cache).deterministic(fixed);
    load_on(&engine.build().expect("an engine"), grants).expect("it loads")
}

/// Fails without: the filter by rights.
#[test]
fn environment_is_limited_to_grant_and_overlay() {
    let mut grants = Grants::default();
    grants.environment =
        [("LEFT", "1"), ("TAKEN", "2")].map(|(name, value)| (name.into(), value.into())).into();
    let component = load(grants);
    expect(&component, &[(&["environment"], "LEFT=1 TAKEN=2")]);
    let mut overlay = Overlay::default();
    overlay.environment = Some(["LEFT".to_owned(), "PATH".to_owned()].into());
    let options = CallOptions { overlay: Some(overlay.into()), ..CallOptions::default() };
    assert_eq!(answers(&call(&component, "1", &[&["environment"]], options)), ["LEFT=1"]);
}

fn with_scratch(room: DirectoryQuota) -> Grants {
    let mut grants = Grants::default();
    grants.scratch = Some(room);
    grants
}

/// Returns files of this name in directories of calls.
fn left_behind(name: &str) -> Vec<PathBuf> {
    let below =
        |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_cells = below(&std::env::temp_dir())
        .filter(|path| path.to_string_lossy().contains("toolcell-own-"));
    let of_calls = of_cells.flat_map(|dir| below(&dir)).map(|dir| dir.join(name));
    of_calls.filter(|path| path.exists()).collect()
}

#[test]
fn tmpdir_and_tmp_lead_to_scratch() {
    let component = load(with_scratch(DirectoryQuota::default()));
    expect_rows(&component, "own", "tmpdir_and_tmp_lead_to_scratch");
    // A granted directory keeps its own content at this path.
    let root = tree();
    fs::create_dir(root.path().join("tmp")).expect("a directory");
    fs::write(root.path().join("tmp/notes"), "x").expect("a file");
    let mut grants = granted(&[("/", root.path(), Access::Read, BIG)]);
    grants.scratch = Some(DirectoryQuota::default());
    let steps: [(&[&str], &str); 2] =
        [(&["read", "/tmp/notes"], "x"), (&["write", "/scratch/a", "3"], "done")];
    expect(&load(grants), &steps);
}

#[test]
fn random_device_never_repeats_even_with_a_seed() {
    for seed in [None, Some(7)] {
        let fixed = Deterministic { seed, ..Deterministic::default() };
        let component = load_fixed(fixed, Grants::default());
        let drawn = run(&component, &[&["random"], &["random"], &["chance"]]);
        assert!(drawn.iter().all(|bytes| bytes.len() == 32), "{drawn:?}");
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 3, "{drawn:?}");
    }
}

#[test]
fn devices_need_no_grant() {
    expect_rows(&load(Grants::default()), "own", "devices_need_no_grant");
    // A granted directory of the same name is the tool's.
    let root = tree();
    fs::create_dir(root.path().join("dev")).expect("a directory");
    fs::write(root.path().join("dev/notes"), "x").expect("a file");
    let component = load(granted(&[("/", root.path(), Access::Read, BIG)]));
    expect(&component, &[(&["read", "/dev/null"], ""), (&["read", "/dev/notes"], "x")]);
}

/// Fails without: the removal of the directory.
#[test]
fn scratch_directory_is_removed_after_the_call() {
    let component = load(with_scratch(DirectoryQuota { bytes: 1000, files: 50 }));
    let name = format!("mark-{}", std::process::id());
    let path = format!("/scratch/{name}");
    for _ in 0..3 {
        expect(
            &component,
            &[
                (&["list", "/scratch"], ""),
                (&["write", &path, "1000"], "done"),
                (&["append", &path, "1"], FULL),
                (&["list", "/scratch"], &name),
            ],
        );
        assert_eq!(left_behind(&name), <[PathBuf; 0]>::default());
    }
    for (last, expected) in [("panic", "handler_raised/unreachable"), ("spin", "timeout/deadline")]
    {
        let mut steps = vec![vec!["write".to_owned(), path.clone(), "1".to_owned()]];
        steps.extend((0..40).map(|file| vec!["make".to_owned(), format!("/scratch/{file}")]));
        steps.push(vec![last.to_owned()]);
        let limits =
            Limits { fuel: u64::MAX, timeout: Duration::from_secs(2), ..Limits::default() };
        let (executor, steps) =
            (Executor::new().with_limits(limits), serde_json::json!({ "steps": steps }));
        let ended = complete(&executor, &component.tools()[0], &steps, CallOptions::default());
        assert_eq!(ending(&ended.result), expected);
        // A directory with much in it is removed on another thread.
        let patience = Instant::now() + Duration::from_secs(20);
        while !left_behind(&name).is_empty() && Instant::now() < patience {
            std::thread::yield_now();
        }
        assert_eq!(left_behind(&name), <[PathBuf; 0]>::default(), "{last:?}");
    }
}

#[test]
fn overlay_can_remove_the_scratch_directory() {
    let component = load(with_scratch(DirectoryQuota::default()));
    let options = narrowed(&["read /scratch"]);
    let answer = answers(&call(&component, "1", &[&["list", "/scratch"]], options));
    assert_ne!(answer, [""]);
}

/// Returns the first random bytes of calls with these ids on a new engine.
fn chance(fixed: Deterministic, ids: &[&str]) -> Vec<String> {
    let component = load_fixed(fixed, Grants::default());
    let one = |id: &&str| {
        answers(&call(&component, id, &[&["chance"]], CallOptions::default())).remove(0)
    };
    ids.iter().map(one).collect()
}

#[test]
fn seed_reproduces_the_randomness_of_a_call() {
    let seeded = |seed| {
        let fixed = Deterministic { seed: Some(seed), ..Deterministic::default() };
        chance(fixed, &["1", "2", "1"])
    };
    let first = seeded(7);
    assert_eq!((first[0] == first[2], first[0] == first[1]), (true, false), "{first:?}");
    assert_eq!(seeded(7), first);
    assert_ne!(seeded(8)[0], first[0]);
    // No two calls share their first bytes.
    let free = chance(Deterministic::default(), &["1"; 200]);
    assert_eq!(free.iter().collect::<HashSet<_>>().len(), 200);
}

#[test]
fn frozen_clocks_stay_at_the_configured_time() {
    let date = UNIX_EPOCH + Duration::from_nanos(1_234_567_891_234);
    let fixed = Deterministic { now: Some(date), frozen_clock: true, ..Deterministic::default() };
    let component = load_fixed(fixed, Grants::default());
    for _ in 0..2 {
        let taken = run(&component, &[&["date"], &["waits"], &["date"]]);
        assert_eq!(taken, ["1234567000000", "still", "1234567000000"]);
    }
}

/// Steps that leave a file with the time at which they ran, and return that time.
const STAMPED: [&[&str]; 5] = [
    &["write", "/scratch/a", "1"],
    &["waits"],
    &["write", "/scratch/b", "1"],
    &["stamps", "follow", "/scratch/b"],
    &["own-stamps", "/scratch/b"],
];

/// Times of a file in nanoseconds: read, content changed, metadata changed.
fn stamps(answer: &str) -> Vec<u128> {
    answer.split(' ').map(|time| time.parse().unwrap_or_else(|_| panic!("{answer}"))).collect()
}

/// Fails without: replacing the times of the disk.
#[test]
fn file_times_reveal_no_more_than_clocks() {
    let dir = tree();
    let old = fs::File::create(dir.path().join("old")).expect("a file");
    let before =
        fs::FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_nanos(5_123_456_789));
    old.set_times(before).expect("a time");
    let mut grants = granted(&[("/data", dir.path(), Access::Write, BIG)]);
    grants.scratch = Some(DirectoryQuota::default());
    // A moment in 2001.
    let (start, minute) = (1_000_000_000_000_000_000, 60_000_000_000);
    let date = UNIX_EPOCH + Duration::from_nanos(start);
    let load = |now, frozen_clock| {
        let fixed = Deterministic { now, frozen_clock, ..Deterministic::default() };
        load_fixed(fixed, grants.clone())
    };
    let mut steps = STAMPED.to_vec();
    steps.push(&["stamps", "stay", "/data/old"]);
    for (component, told) in [
        (load(None, false), 0..=u128::MAX),
        (load(Some(date), false), u128::from(start - minute)..=u128::from(start + minute)),
        (load(Some(date), true), u128::from(start)..=u128::from(start)),
    ] {
        let taken = run(&component, &steps);
        for time in [stamps(&taken[3]), stamps(&taken[4])].concat() {
            assert!(time % 1_000_000 == 0 && told.contains(&time), "{time} in {told:?}");
        }
        assert_eq!(stamps(&taken[5])[1], 5_123_000_000, "from before the call");
    }
}
