//! Bad input at load: any bytes load as a working component, or fail with a typed error with a
//! hint. Also the cache, which saves time and never changes what is loaded.

mod bounds;
mod compile_quota;
mod contents;
mod kinds;
mod on_demand;
mod printed;
mod tiers;

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use toolcell::component::{ImportStatus, Inspection};
use toolcell::runtime::{EngineBuilder, Optimise};
use toolcell::{Component, Definition, Engine, Error, Grants};
use toolcell_test_guests::{Answer, Hostile, bare_hello, bytes, rows};
use toolcell_tests::binary::{COMPONENT, CUSTOM, list, of_component, section};
use toolcell_tests::{call, ending, load, load_ending};

use crate::{load_guest, tight};

static ENGINE: LazyLock<Engine> =
    LazyLock::new(|| Engine::builder().cells(4).build().expect("an engine"));

fn echo() -> Hostile {
    Hostile::answering(Answer::Echo)
}

fn answers(component: &Component) -> bool {
    let tool = component.tools()[0].definition().name.as_str();
    ending(&call(component, tool, "{}", tight()).result) == "ok"
}

type Kind = fn(&Error) -> bool;

fn assert_refused(loaded: Result<Component, Error>, is: Kind, needle: &str) {
    let error = loaded.expect_err(needle);
    assert!(is(&error) && error.to_string().contains(needle), "{needle}: {error:?}");
    assert!(!error.hint().is_empty() && !error.hint().contains('\n'), "{error}");
}

#[test]
fn non_components_are_refused_with_a_reason() {
    let scratch = Scratch::new();
    assert!(!load(&scratch.engine(), echo().component()).expect("loads").is_cached());
    let precompiled = fs::read(&scratch.files("code")[0]).expect("an artifact");
    for (bytes, needle) in [
        (&precompiled[..], "native or precompiled code"),
        (&[0xff; 4096], "an unknown format"),
        (COMPONENT, "does not export `toolcell:tool/tool`"),
    ] {
        assert_refused(load(&ENGINE, bytes.to_vec()), Error::is_component, needle);
    }
    // Each character stands for a byte.
    for (text, needle) in
        rows::<(&str, &str)>("sandbox/load", "non_components_are_refused_with_a_reason")
    {
        let bytes = text.chars().map(|byte| u8::try_from(byte).expect("a byte")).collect();
        assert_refused(load(&ENGINE, bytes), Error::is_component, needle);
    }
}

/// Truncates a component, as a broken download does. It stays valid only if custom sections at its
/// end are cut off.
#[test]
fn every_truncation_is_refused() {
    let whole = echo().component();
    for end in 0..whole.len() {
        match load(&ENGINE, whole[..end].to_vec()) {
            Ok(component) => {
                assert!(whole[end] == CUSTOM && answers(&component), "{end} of {}", whole.len())
            }
            Err(error) => {
                let is_good =
                    !error.to_string().contains("engine panicked") && !error.hint().is_empty();
                assert!(error.is_component() && is_good, "{end}: {error}");
            }
        }
    }
}

/// Bytes are changed at random: each load ends, each call of a component that loads ends, and the
/// engine goes on.
#[test]
fn mutated_components_do_no_harm() {
    let whole = echo().component();
    let mut state = 1_u64;
    let mut dice = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut loaded = 0;
    for round in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..=dice(3) {
            bytes[COMPONENT.len() + dice(whole.len() - COMPONENT.len())] ^= 1 << dice(8);
        }
        match load(&ENGINE, bytes) {
            Ok(component) => {
                loaded += 1;
                answers(&component);
            }
            Err(error) => {
                let kinds = [error.is_component(), error.is_definition(), error.is_not_granted()];
                assert_eq!(kinds.iter().filter(|is| **is).count(), 1, "{round}: {error:?}");
                let is_panic = error.to_string().contains("engine panicked");
                assert!(!is_panic && !error.hint().is_empty(), "{round}: {error}");
            }
        }
    }
    assert!((1..299).contains(&loaded), "{loaded} of 300 load: too mild or too rough mutations");
    assert!(answers(&load(&ENGINE, whole).expect("the component itself")));
}

#[test]
fn invalid_definitions_are_refused() {
    type Row = (&'static str, u32, Option<&'static str>, bool, &'static str);
    for (name, listed, parameters, is_definition, needle) in
        rows::<Row>("sandbox/load", "invalid_definitions_are_refused")
    {
        let is: Kind = if is_definition { Error::is_definition } else { Error::is_component };
        let guest = Hostile { name, listed, parameters, ..echo() };
        assert_refused(load(&ENGINE, guest.component()), is, needle);
    }
}

#[test]
fn unusable_keyword_is_reported_as_unenforced() {
    for (guest, place) in [
        (Hostile { parameters: Some(r#"{"type": 7}"#), ..echo() }, "parameters/type"),
        (Hostile { output: Some(r#"{"type": "text"}"#), ..echo() }, "output/type"),
    ] {
        let component = load_guest(&ENGINE, guest);
        let told: Vec<_> = component.described().flat_map(Definition::unenforced).collect();
        assert!(told.len() == 1 && told[0].contains(place), "{told:?}");
    }
}

#[test]
fn unknown_imports_are_refused_by_name() {
    let name = "wasi:blobstore/container@0.2.0";
    let bytes = toolcell_test_guests::importing(name);
    // This needs no engine: nothing is compiled.
    let examination = Inspection::of(&bytes).expect("a component");
    assert!(examination.has_tools && examination.digest.starts_with("sha256:"));
    assert_eq!(examination.size, bytes.len() as u64);
    let expected = (name.to_owned(), ImportStatus::NeedsGrant);
    assert_eq!(examination.imports, std::slice::from_ref(&expected));
    assert_eq!(examination.ungranted(&Grants::default()).collect::<Vec<_>>(), [&expected]);
    assert_refused(load(&ENGINE, bytes), Error::is_not_granted, name);
}

#[test]
fn bare_component_imports_nothing() {
    let bare = bare_hello();
    assert_eq!(Inspection::of(&bare).expect("a component").imports, []);
    let component = load(&ENGINE, bare).expect("it loads");
    assert!(component.is_pooled() && component.compile_time().is_some());
    let completion = call(&component, "greet", r#"{"name": "Ada"}"#, tight());
    assert_eq!(completion.result.value().expect("an answer").as_str(), r#""Hello, Ada!""#);
}

#[test]
fn unknown_tool_error_suggests_names() {
    let component = load(&ENGINE, bytes("desk")).expect("it loads");
    for (asked, hint) in [
        ("book-table", "did you mean `book_table`?"),
        ("weather", "there are: book_table, submit_plan"),
    ] {
        let error = component.tool(asked).expect_err("no such tool");
        assert!(error.is_unknown_tool() && error.to_string().contains(asked), "{error}");
        assert_eq!(error.hint(), hint);
    }
}

/// A slot of the pool has four memories.
#[test]
fn component_larger_than_a_slot_runs_unpooled() {
    let scratch = Scratch::new();
    for (more_memories, pooled) in [(0, true), (3, true), (4, false), (7, false)] {
        for cached in [false, true] {
            let component = load_guest(&scratch.engine(), Hostile { more_memories, ..echo() });
            let found = (component.is_pooled(), component.is_cached());
            assert_eq!(found, (pooled, cached), "{more_memories}");
            assert!(answers(&component), "{more_memories}");
        }
    }
    let loaded = load(&scratch.engine(), Hostile { more_memories: 8, ..echo() }.component());
    assert_eq!(load_ending(&loaded), "handler_raised/limit_at_start");
}

/// A directory of artifacts that is removed with the test.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("artifacts")
    }

    fn builder(&self) -> EngineBuilder {
        Engine::builder().cells(4).cache(self.path())
    }

    /// Returns a new engine, as after a restart, that does nothing in the background.
    fn engine(&self) -> Engine {
        self.builder().optimise(Optimise::First).build().expect("an engine")
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path()).expect("the cache");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
    }
}

#[test]
fn second_load_comes_from_the_cache() {
    let scratch = Scratch::new();
    let first = load(&scratch.engine(), bytes("calculator")).expect("it loads");
    let second = load(&scratch.engine(), bytes("calculator")).expect("it loads");
    assert_eq!([first.is_cached(), second.is_cached()], [false, true]);
    assert_eq!([first.compile_time().is_some(), second.compile_time().is_some()], [true, false]);
    assert_eq!(first.inspection(), second.inspection());
    assert!(first.definitions().eq(second.definitions()));
    let [one, two] = [first, second]
        .map(|component| call(&component, "calculator", r#"{"expression": "6 * 7"}"#, tight()));
    assert_eq!(one.result.value().expect("an answer").as_str(), "42");
    assert_eq!((one.result, one.usage.fuel), (two.result, two.usage.fuel));
}

/// A guest that gives its tool another name at each `describe` keeps the first one: the host does
/// not call `describe` again.
#[test]
fn describe_is_called_once() {
    let guest = Hostile { name: "unsteady", unsteady: true, ..echo() }.component();
    let name = |scratch: &Scratch| {
        let component = load(&scratch.engine(), guest.clone()).expect("it loads");
        assert!(answers(&component));
        component.tools()[0].definition().name.clone()
    };
    let (one, other) = (Scratch::new(), Scratch::new());
    let first = name(&one);
    assert_eq!(name(&one), first);
    assert_ne!(name(&other), first, "the guest is not unsteady");
}

#[test]
fn tampered_cache_entry_is_recompiled() {
    let scratch = Scratch::new();
    let engine = scratch.engine();
    let guest = echo().component();
    let is_cached = || {
        let component = load(&engine, guest.clone()).expect("it loads");
        assert!(answers(&component));
        component.is_cached()
    };
    type Change = fn(&mut Vec<u8>);
    let changes: [Change; 6] = [
        |content| content[0] ^= 1,
        |content| {
            let at = content.len() / 3;
            content[at] ^= 0x10;
        },
        |content| *content.last_mut().expect("a byte") ^= 0x80,
        |content| content.truncate(content.len() - 1),
        |content| content.push(0),
        Vec::clear,
    ];
    assert!(!is_cached());
    for part in ["code", "tools", "mac"] {
        for (index, change) in changes.iter().enumerate() {
            assert!(is_cached(), "before change {index} of .{part}");
            let path = &scratch.files(part)[0];
            let mut content = fs::read(path).expect("a part of the entry");
            change(&mut content);
            fs::write(path, content).expect("written");
            assert!(!is_cached(), "after change {index} of .{part}");
        }
        fs::remove_file(&scratch.files(part)[0]).expect("removed");
        assert!(!is_cached(), "without .{part}");
    }
}

/// An artifact is valid only with the key that it was made with.
#[test]
fn changed_key_invalidates_cached_artifacts() {
    let scratch = Scratch::new();
    assert!(!load(&scratch.engine(), bare_hello()).expect("it loads").is_cached());
    let key = scratch.path().join("key");
    let mut content = fs::read(&key).expect("a key");
    content[31] ^= 1;
    fs::write(&key, content).expect("written");
    assert!(!load(&scratch.engine(), bare_hello()).expect("it loads").is_cached());
    assert!(load(&scratch.engine(), bare_hello()).expect("it loads").is_cached());
}

/// Two engines use one directory, as two processes would, with loads at the same time.
#[test]
fn engines_share_a_cache_directory() {
    let scratch = Scratch::new();
    let engines = [scratch.engine(), scratch.engine()];
    let guest = echo().component();
    std::thread::scope(|scope| {
        for engine in engines.iter().cycle().take(8) {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert!(answers(&load(engine, guest.clone()).expect("it loads")));
                }
            });
        }
    });
    for engine in &engines {
        assert!(load(engine, guest.clone()).expect("it loads").is_cached());
    }
}

#[test]
fn unusable_engine_options_are_environment_errors() {
    let scratch = Scratch::new();
    fs::write(scratch.path(), "a file").expect("written");
    for path in [scratch.path(), scratch.path().join("below")] {
        let error = Engine::builder().cells(4).cache(&path).build().expect_err("not a directory");
        assert!(error.is_environment() && error.to_string().contains("artifacts"), "{error}");
        assert!(!error.hint().is_empty());
    }
    for cells in [0, Engine::MAX_CELLS + 1] {
        let error = Engine::builder().cells(cells).build().expect_err("no such number");
        assert!(error.is_environment() && error.to_string().contains("1 to 4000"), "{error}");
    }
}

/// The error names each proposal that is off. Since none of these components runs, no call ends
/// with `other_trap`, which stands for the traps of such proposals.
#[test]
fn disabled_proposals_are_refused_by_name() {
    let named = |names: &str| {
        format!("the component uses WebAssembly proposals that this host disables: {names}")
    };
    for (text, names) in
        rows::<(&str, &str)>("sandbox/load", "disabled_proposals_are_refused_by_name")
    {
        let loaded = load(&ENGINE, toolcell_test_guests::with_text(text));
        assert_refused(loaded, Error::is_component, &named(names));
    }
    for (function, names) in rows::<(u8, &str)>("sandbox/load", "disabled_canonical_functions") {
        let canon = section(of_component::CANON, &list(1, &[function]));
        let loaded = load(&ENGINE, [echo().component(), canon].concat());
        assert_refused(loaded, Error::is_component, &named(names));
    }
    // A component that would run something by itself: its first function, without arguments and
    // results.
    let starts = [echo().component(), section(of_component::START, &[0, 0, 0])].concat();
    assert_refused(load(&ENGINE, starts), Error::is_component, "value");
    // Bytes that no proposal would make valid are malformed.
    let broken = [echo().component(), section(of_component::CANON, &list(1, &[0x7f]))].concat();
    assert_refused(load(&ENGINE, broken), Error::is_component, "malformed");
}
