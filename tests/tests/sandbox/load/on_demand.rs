//! Components whose code is linked at the first call, and released when there is too much of it.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use toolcell::component::LoadOptions;
use toolcell::runtime::Optimise;
use toolcell::{Component, Engine, Limits};
use toolcell_test_guests::{Answer, Hostile, bytes};
use toolcell_tests::{call, ending, load, wait_here};

use super::Scratch;

/// A component that is read from a file, and the number of times that it was read again.
struct Filed {
    file: std::path::PathBuf,
    reads: Arc<AtomicUsize>,
    component: Component,
}

/// A component whose tool has no time limit of its own, because a call that compiles first may take
/// long.
fn patient(description: &'static str) -> Vec<u8> {
    Hostile { description, ..Hostile::answering(Answer::Echo) }.component()
}

impl Filed {
    fn load(scratch: &Scratch, engine: &Engine, name: &str) -> Self {
        Self::of(scratch, engine, name, bytes(name))
    }

    fn of(scratch: &Scratch, engine: &Engine, name: &str, bytes: Vec<u8>) -> Self {
        let (file, reads) = (scratch.0.path().join(name), Arc::<AtomicUsize>::default());
        fs::write(&file, &bytes).expect("written");
        let (path, count) = (file.clone(), Arc::clone(&reads));
        let source = move || {
            count.fetch_add(1, Ordering::Relaxed);
            fs::read(&path)
        };
        let options = LoadOptions { source: Some(Arc::new(source)), ..LoadOptions::default() };
        let loaded = Component::load_with(engine, bytes, options);
        Self { file, reads, component: wait_here(loaded).expect("it loads") }
    }

    /// Returns the ending of a call of its only tool.
    fn ending(&self) -> String {
        let tool = self.component.tools()[0].definition().name.clone();
        let arguments =
            if tool == "calculator" { r#"{"expression": "6 * 7"}"# } else { r#"{"name": "Ada"}"# };
        // A call that compiles first takes long on a busy machine.
        let limits = Limits { timeout: Duration::from_secs(300), ..Limits::default() };
        ending(&call(&self.component, &tool, arguments, limits).result)
    }

    fn answers(&self) -> bool {
        self.ending() == "ok"
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }
}

fn engine(scratch: &Scratch, linked_bytes: u64) -> Engine {
    let builder = scratch.builder().optimise(Optimise::First).linked_bytes(linked_bytes);
    builder.build().expect("an engine")
}

#[test]
fn cached_code_is_linked_at_the_first_call() {
    let scratch = Scratch::new();
    let eager = load(&engine(&scratch, 0), bytes("calculator")).expect("it loads");
    let engine = engine(&scratch, u64::MAX);
    let lazy = Filed::load(&scratch, &engine, "calculator");
    assert!(eager.definitions().eq(lazy.component.definitions()));
    assert!(lazy.component.is_cached() && engine.linked_bytes() == 0);
    assert_eq!(lazy.component.code(), eager.code());
    assert!(lazy.answers() && engine.linked_bytes() > 0);
    assert_eq!(lazy.reads(), 0, "what is in the cache is not read again");
}

#[test]
fn code_over_budget_is_released_and_relinked() {
    let scratch = Scratch::new();
    let engine = engine(&scratch, 1);
    let [one, other] = ["calculator", "hello"].map(|name| Filed::load(&scratch, &engine, name));
    for _ in 0..2 {
        assert!(one.answers());
        let alone = engine.linked_bytes();
        assert!(other.answers());
        let both = engine.linked_bytes();
        assert!(alone > 0 && both > 0 && both != alone, "both are kept");
    }
    assert_eq!((one.reads(), other.reads()), (0, 0));
}

/// The cache may be emptied at any time; then only the bytes that were loaded are accepted.
#[test]
fn evicted_code_is_recompiled_from_the_same_bytes() {
    let scratch = Scratch::new();
    let engine = engine(&scratch, 1);
    let [one, other] =
        ["one", "other"].map(|name| Filed::of(&scratch, &engine, name, patient(name)));
    let released = || {
        assert!(other.answers(), "which releases the first");
        scratch.files("mac").into_iter().for_each(|mac| fs::remove_file(mac).expect("removed"));
    };
    let file = fs::read(&one.file).expect("it is there");
    type Change = fn(&std::path::Path) -> io::Result<()>;
    let changes: [(Change, &str); 3] = [
        (|_| Ok(()), "ok"),
        (|file| fs::write(file, bytes("hello")), "refusal/unavailable"),
        (|file| fs::remove_file(file), "refusal/unavailable"),
    ];
    for (place, (change, expected)) in changes.into_iter().enumerate() {
        released();
        change(&one.file).expect("changed");
        assert_eq!((one.ending().as_str(), one.reads()), (expected, place + 1));
        fs::write(&one.file, &file).expect("restored");
    }
    assert_eq!(one.ending(), "ok", "it works again with the file");
}
