//! Calls continue while the served files change: each is answered by the version before or after,
//! and none fails.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use parking_lot::Mutex;
use toolcell::CallResult;
use toolcell_config::{LoadedTools, Reason};
use toolcell_test_guests::{Answer, Hostile};

use crate::place::{Place, TWO, called, problems};

/// Number of callers, each with one call after the other.
const CALLERS: usize = 3;
/// Calls that are made between two changes.
const BETWEEN: usize = 2 * CALLERS;

/// Returns a component whose tool `one` answers with this JSON.
fn version(description: &'static str, answer: &'static str) -> Vec<u8> {
    Hostile { name: "one", description, ..Hostile::answering(Answer::Value(answer)) }.component()
}

/// Returns the answer of the tool `one`.
async fn answer(loaded: &LoadedTools) -> String {
    let result = called(loaded, "one", None).await;
    assert!(matches!(result, CallResult::Outcome(_)), "{result:?}");
    result.value().map(|value| value.as_str().to_owned()).unwrap_or_default()
}

/// A change of the files, and the expected result.
struct Change {
    /// The description, for a failed assertion.
    what: &'static str,
    make: fn(&Place),
    /// True if the operator approves it then.
    is_approved: bool,
    /// True if it is used.
    is_used: bool,
    /// The expected problem of `one` afterwards.
    problem: Option<Reason>,
    /// The expected answer of `one` afterwards.
    answer: &'static str,
}

const fn change(what: &'static str, answer: &'static str, make: fn(&Place)) -> Change {
    Change { what, make, is_approved: false, is_used: true, problem: None, answer }
}

/// Each starts from the state after the one before.
const CHANGES: [Change; 11] = [
    change("a good configuration", "1", |place| {
        place.write("toolcell.toml", format!("{TWO}[components.two.limits]\nfuel = 1000000\n"));
    }),
    Change {
        is_used: false,
        ..change("a configuration that is not TOML", "1", |place| {
            place.write("toolcell.toml", "[components.one")
        })
    },
    Change {
        is_used: false,
        ..change("a configuration with an unknown key", "1", |place| {
            place.write("toolcell.toml", format!("{TWO}garnts = 1\n"));
        })
    },
    change("the configuration as it was", "1", |place| place.write("toolcell.toml", TWO)),
    Change {
        is_used: false,
        ..change("a lock of another version", "1", |place| {
            fs::copy(place.path().join("project/toolcell.lock"), place.path().join("lock"))
                .expect("no error");
            place.write("toolcell.lock", "version = 2\n");
        })
    },
    change("the lock as it was", "1", |place| {
        place.write("toolcell.lock", fs::read(place.path().join("lock")).expect("no error"));
    }),
    Change {
        problem: Some(Reason::NotLoadable),
        ..change("a file that is no component", "1", |place| {
            place.write("one.wasm", "no component")
        })
    },
    Change {
        problem: Some(Reason::Rebuilt),
        ..change("other code with an equal definition", "2", |place| {
            place.write("one.wasm", version("Tells.", "2"))
        })
    },
    Change { is_approved: true, ..change("the approval of that code", "2", |_| {}) },
    Change {
        problem: Some(Reason::Changed),
        ..change("another definition, which waits", "2", |place| {
            place.write("one.wasm", version("Lies.", "3"))
        })
    },
    Change { is_approved: true, ..change("the approval of that definition", "3", |_| {}) },
];

#[tokio::test]
async fn calls_go_on_while_files_change() {
    let place = Place::new(TWO);
    place.write("one.wasm", version("Tells.", "1"));
    place.approve(&["one", "two"]).await;
    let (reloader, made) = (place.reloader().await, AtomicUsize::new(0));
    // The answers of the last and the next served version; both can occur while the change happens.
    let expected = Mutex::new(["1", "1"]);
    let call = async || loop {
        let before = *expected.lock();
        let told = answer(&reloader.loaded()).await;
        let after = *expected.lock();
        assert!(
            before.iter().chain(&after).any(|answer| *answer == told),
            "{told}, and not one of {before:?} {after:?}"
        );
        made.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    };
    let calling = join_all((0..CALLERS).map(|_| call()));
    let changing = async {
        let mut changes = std::pin::pin!(reloader.changes(Duration::from_millis(5)));
        let mut last = "1";
        for change in &CHANGES {
            let enough = made.load(Ordering::Relaxed) + BETWEEN;
            while made.load(Ordering::Relaxed) < enough {
                tokio::task::yield_now().await;
            }
            *expected.lock() = [last, change.answer];
            (change.make)(&place);
            if change.is_approved {
                place.approve(&["one"]).await;
            }
            let reloaded =
                changes.next().await.unwrap_or_else(|| panic!("{}: the watch ended", change.what));
            assert_eq!(reloaded.is_ok(), change.is_used, "{}: {reloaded:?}", change.what);
            let loaded = reloader.loaded();
            let reasons: Vec<_> =
                problems(&loaded).into_iter().map(|(_, reason, _)| reason).collect();
            assert_eq!(reasons, Vec::from_iter(change.problem), "{}", change.what);
            assert_eq!(answer(&loaded).await, change.answer, "{}", change.what);
            last = change.answer;
        }
    };
    // The callers never end.
    tokio::select! {
        _ = calling => {}
        () = changing => {}
    }
}
