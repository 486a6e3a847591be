//! Paths that lead out of a directory: built from pieces that once fooled a resolver, while links
//! are planted and swapped.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;
use toolcell::grants::{Access, Directory, DirectoryQuota};
use toolcell::runtime::Placement;
use toolcell::{CallOptions, Completion, Component, Executor, Grants, Limits, ToolCall};
use toolcell_test_guests::bytes;
use toolcell_tests::wait;

use super::Scenario;
use crate::fixture::{Fixture, load_for_good};
use crate::rng::SeededRng;
use crate::tally::{Fault, Tally};

/// Separators between the pieces of a path.
const SEPARATORS: [&str; 6] = ["/", "/", "//", "/./", "\\", "%2f"];
static PIECES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let pieces = "..|..|..|.||sub|up|away|straight|winding|plain|nothing|swapped|mine|%2e%2e|\
                  %252e%252e|..\0|\0|..;|.. |\u{ff0e}\u{ff0e}|\
                  \u{2024}\u{2024}|..\u{200b}|\u{fffd}..|....|secret";
    pieces.split('|').collect()
});
const STARTS: [&str; 8] =
    ["/data/", "/data/", "/data/", "/data", "/", "", "/data/../", "/proc/self/cwd/"];
const ENDS: [&str; 7] = ["secret", "secret", "secret/", "secret/.", "", "etc/passwd", "environ"];
/// Paths of one case.
const PATHS: usize = 6;
/// Bytes of the file outside: no other file has this size.
const SIZE: usize = 60_921;
/// Room that a tool may write: little, so that nothing grows.
const ROOM: DirectoryQuota = DirectoryQuota { bytes: 1 << 20, files: 200 };

pub(crate) struct Paths {
    seed: u64,
    outer: PathBuf,
    canary: String,
    /// One with the right to read, one with the right to write too.
    components: [Component; 2],
    is_over: Arc<AtomicBool>,
    swapper: Option<JoinHandle<()>>,
}

impl Paths {
    pub(crate) fn new(stage: &Fixture) -> Self {
        // Not among the temporary files: no tool may get those.
        let outer = stage.cache.with_file_name(format!("attack-paths-{}", std::process::id()));
        let canary = format!("canary-{}", SeededRng::of(stage.seed, "paths", u64::MAX).letters(24));
        for name in ["inner/sub", "turned"] {
            fs::create_dir_all(outer.join(name)).expect("a directory");
        }
        // The canary is the content of a file of unique size, and a name: so reading, listing and
        // stat can each be detected.
        fs::write(outer.join("secret"), format!("{canary:.<SIZE$}")).expect("a file");
        fs::write(outer.join(&canary), "").expect("a file");
        let outer = outer.canonicalize().expect("a path");
        let engine = stage.engine(Placement::Cells).build().expect("an engine");
        let clerks = [Access::Read, Access::Write].map(|access| {
            let mut grants = Grants::default();
            let directory = Directory::new("/data", outer.join("inner"), access).expect("a name");
            grants.directories.push(directory.with_quota(ROOM));
            load_for_good(&engine, bytes("clerk"), grants)
        });
        let over = Arc::new(AtomicBool::new(false));
        let (stop, place) = (Arc::clone(&over), outer.clone());
        let swapping = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                swap_link(&place);
            }
        });
        let (seed, swapper) = (stage.seed, Some(swapping));
        let paths = Self { seed, outer, canary, components: clerks, is_over: over, swapper };
        paths.plant_links();
        paths
    }

    /// Plants links that lead out, again if a tool with the right to write removed them.
    fn plant_links(&self) {
        let inner = self.outer.join("inner");
        let secret = self.outer.join("secret");
        let links = [
            ("up", Path::new("../secret")),
            ("away", &self.outer),
            ("straight", &secret),
            ("winding", Path::new("sub/../../secret")),
        ];
        for (name, target) in links {
            let at = inner.join(name);
            if fs::read_link(&at).ok().as_deref() != Some(target) {
                let _ = fs::remove_dir_all(&at).or_else(|_| fs::remove_file(&at));
                let _ = symlink(target, at);
            }
        }
        let _ = fs::create_dir_all(inner.join("sub"));
        let _ = fs::write(inner.join("plain"), "inside");
    }

    /// Returns true if the files outside are unchanged.
    fn is_outside_unchanged(&self) -> bool {
        let entries = fs::read_dir(&self.outer).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        let expected = format!("{:.<SIZE$}", self.canary);
        names == [self.canary.as_str(), "inner", "secret", "turned"]
            && fs::read_to_string(self.outer.join("secret")).is_ok_and(|found| found == expected)
    }
}

/// Makes `inner/swapped` alternately a directory and a link that leads out.
fn swap_link(outer: &Path) {
    let (at, turned) = (outer.join("inner/swapped"), outer.join("turned"));
    let _ = fs::remove_dir_all(&at).or_else(|_| fs::remove_file(&at));
    let _ = fs::create_dir(turned.join("directory"));
    let _ = fs::write(turned.join("directory/secret"), "inside");
    let _ = fs::rename(turned.join("directory"), &at);
    let _ = symlink(outer, turned.join("link"));
    let _ = fs::rename(&at, turned.join("gone"));
    let _ = fs::rename(turned.join("link"), &at);
    let _ = fs::remove_dir_all(turned.join("gone"));
}

fn path(dice: &mut SeededRng, outer: &Path) -> String {
    let mut path = match dice.number(0..10) {
        0 => format!("{}/", outer.display()),
        1 => format!("/data/{}/", outer.display()),
        _ => dice.pick(&STARTS).to_owned(),
    };
    for _ in 0..dice.pick(&[1, 2, 3, 4, 8, 1500]) {
        path.push_str(dice.pick(&PIECES));
        path.push_str(dice.pick(&SEPARATORS));
    }
    path + dice.pick(&ENDS)
}

/// Steps on a path, which `@` stands for; `%` is another one.
const STEPS: &str = "read @,list @,look @,follow @,target @,size @,stat follow @,stat stay @,\
                     write @ 3,append @ 3,resize @ 3,make @,symlink % @,rename @ /data/mine,\
                     link @ /data/mine,remove @,read /data/mine";

fn operations(path: &str, other: &str) -> Vec<Vec<String>> {
    let named = |word: &str| match word {
        "@" => path.to_owned(),
        "%" => other.to_owned(),
        _ => word.to_owned(),
    };
    STEPS.split(',').map(|step| step.split(' ').map(named).collect()).collect()
}

/// Returns true if a step answered with the size of the file outside.
fn reveals_size(completion: &Completion) -> bool {
    let value = completion.result.value();
    let answers = value.and_then(|value| serde_json::from_str::<Vec<String>>(value.as_str()).ok());
    answers.into_iter().flatten().any(|answer| answer.split(' ').next() == Some(&SIZE.to_string()))
}

impl Scenario for Paths {
    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let mut dice = SeededRng::of(self.seed, "paths", case);
        let clerk = dice.pick(&self.components);
        self.plant_links();
        let paths: Vec<_> = (0..PATHS).map(|_| path(&mut dice, &self.outer)).collect();
        let mut all: Vec<_> = paths.iter().flat_map(|path| operations(path, &paths[0])).collect();
        // A race against `swap`.
        all.extend(operations("/data/swapped/secret", "../../secret").into_iter().take(11));
        let tool = clerk.tools()[0].clone();
        let call = ToolCall::with_value("1", "clerk", &json!({ "steps": all }));
        let executor = Executor::new()
            .with_limits(Limits { timeout: Duration::from_secs(10), ..Limits::default() });
        let completion =
            wait(async move { executor.call(&tool, call, CallOptions::default()).await });
        let seen = format!("{completion:?}");
        let what = if seen.contains(&self.canary) || seen.contains("root:x:") {
            "a file from outside was read"
        } else if reveals_size(&completion) {
            "a file from outside was looked at"
        } else if !self.is_outside_unchanged() {
            "something outside was changed"
        } else {
            return tally.record_success();
        };
        let short: Vec<String> = paths.iter().map(|path| path.chars().take(60).collect()).collect();
        tally.record_result(Err((Fault::Canary, what.to_owned(), short.join(" "))));
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.swapper.take().map(JoinHandle::join);
        let _ = fs::remove_dir_all(&self.outer);
    }
}
