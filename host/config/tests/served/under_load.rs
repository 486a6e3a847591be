//! Calls continue while the served files change: each is answered by the version before or after,
//! and none fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use parking_lot::Mutex;
use toolcell::CallResult;
use toolcell_config::LoadedTools;
use toolcell_config::Reason::{Changed, NotLoadable, Rebuilt};
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

#[tokio::test]
async fn calls_go_on_while_files_change() {
    let place = Place::new(TWO);
    place.write("one.wasm", version("Tells.", "1"));
    place.approve(&["one", "two"]).await;
    let lock = place.file("toolcell.lock");
    let good = format!("{TWO}[components.two.limits]\nfuel = 1000000\n").into_bytes();
    let unknown = format!("{TWO}garnts = 1\n").into_bytes();
    let other_lock = b"version = 2\n".to_vec();
    let (same, lying) = (version("Tells.", "2"), version("Lies.", "3"));
    // Each starts from the state after the one before. A file with its new content, or the approval
    // of `one`; true if the change is used; the problem and the answer of `one` afterwards.
    let steps = [
        ("a good configuration", "toolcell.toml", Some(good), true, None, "1"),
        ("no TOML", "toolcell.toml", Some(b"[components.one".to_vec()), false, None, "1"),
        ("an unknown key", "toolcell.toml", Some(unknown), false, None, "1"),
        ("the configuration as it was", "toolcell.toml", Some(TWO.into()), true, None, "1"),
        ("a lock of another version", "toolcell.lock", Some(other_lock), false, None, "1"),
        ("the lock as it was", "toolcell.lock", Some(lock), true, None, "1"),
        ("no component", "one.wasm", Some(b"no component".to_vec()), true, Some(NotLoadable), "1"),
        ("other code, an equal definition", "one.wasm", Some(same), true, Some(Rebuilt), "2"),
        ("the approval of that code", "", None, true, None, "2"),
        ("another definition, which waits", "one.wasm", Some(lying), true, Some(Changed), "2"),
        ("the approval of that definition", "", None, true, None, "3"),
    ];
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
        for (what, file, content, is_used, problem, now) in steps {
            let enough = made.load(Ordering::Relaxed) + BETWEEN;
            while made.load(Ordering::Relaxed) < enough {
                tokio::task::yield_now().await;
            }
            *expected.lock() = [last, now];
            match content {
                Some(content) => place.write(file, content),
                None => place.approve(&["one"]).await,
            }
            let reloaded =
                changes.next().await.unwrap_or_else(|| panic!("{what}: the watch ended"));
            assert_eq!(reloaded.is_ok(), is_used, "{what}: {reloaded:?}");
            let loaded = reloader.loaded();
            let reasons = problems(&loaded).into_iter().map(|(_, reason, _)| reason);
            assert_eq!(reasons.collect::<Vec<_>>(), Vec::from_iter(problem), "{what}");
            assert_eq!(answer(&loaded).await, now, "{what}");
            last = now;
        }
    };
    // The callers never end.
    tokio::select! {
        _ = calling => {}
        () = changing => {}
    }
}
