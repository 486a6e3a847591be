//! Quick code comes first, optimised code later. A shell script stands in for the compiler: it
//! returns what the real one made, at the moment that a test chooses.

use std::fs;
use std::io::Read as _;
use std::time::Duration;

use toolcell::component::CodeTier;
use toolcell::runtime::{EngineBuilder, Optimise};
use toolcell::{Component, Engine, Limits};
use toolcell_test_guests::{Hostile, Misdeed, Place, bytes, compile_bomb, rows};
use toolcell_tests::{call, load, load_ending, wait};

use super::{Scratch, answers, echo};

/// A directory with the compiler's output for a guest in both tiers, and a record of the workers'
/// orders.
pub(crate) struct Workshop {
    pub(crate) guest: Vec<u8>,
    scratch: Scratch,
}

impl Workshop {
    pub(crate) fn new(guest: Vec<u8>) -> Self {
        let shop = Self { guest, scratch: Scratch::new() };
        for (tier, optimise) in [("quick", Optimise::Never), ("optimised", Optimise::First)] {
            let made = Scratch::new();
            let engine = made.builder().optimise(optimise).build().expect("an engine");
            load(&engine, shop.guest.clone()).expect("it loads");
            fs::copy(&made.files("code")[0], shop.file(tier)).expect("copied");
        }
        shop
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.scratch.0.path().join(name)
    }

    fn fifo(&self, name: &str) -> std::path::PathBuf {
        let made = std::process::Command::new("mkfifo").arg(self.file(name)).status();
        assert!(made.expect("mkfifo runs").success());
        self.file(name)
    }

    /// Returns an engine whose worker returns quick code, and optimised code after this script.
    pub(crate) fn builder(&self, optimised: &str) -> EngineBuilder {
        self.limited(optimised, 60)
    }

    fn limited(&self, optimised: &str, seconds: u64) -> EngineBuilder {
        let script = format!(
            r#"cd "{}"; tier=${{0%/*}}; echo $tier >>orders; case $tier in optimised) {optimised};; esac; exec cat $tier"#,
            self.scratch.0.path().display()
        );
        let time = Duration::from_secs(seconds);
        self.scratch.builder().compile_in("/bin/sh", ["-c", script.as_str()], time)
    }

    fn load(&self, engine: EngineBuilder) -> (Engine, Component) {
        let engine = engine.build().expect("an engine");
        let component = load(&engine, self.guest.clone()).expect("it loads");
        (engine, component)
    }

    /// Returns the orders that the workers got, in order.
    pub(crate) fn orders(&self) -> Vec<String> {
        let orders = fs::read_to_string(self.file("orders")).unwrap_or_default();
        orders.lines().map(str::to_owned).collect()
    }
}

fn last(component: &Component) -> CodeTier {
    let component = component.clone();
    wait(async move { component.optimised().await })
}

#[test]
fn component_answers_before_it_is_optimised() {
    let shop = Workshop::new(echo().component());
    let gate = shop.fifo("gate");
    let (engine, component) = shop.load(shop.builder("read word <gate"));
    // The optimiser waits at the gate.
    assert!(answers(&component));
    assert_eq!((component.code(), component.is_cached()), (CodeTier::Quick, false));
    let (_, other) = shop.load(shop.scratch.builder().optimise(Optimise::Never));
    let found = (other.code(), other.is_cached());
    assert_eq!(found, (CodeTier::Unoptimised, true), "the quick code was not kept");

    fs::write(gate, "go\n").expect("the optimiser is at the gate");
    assert_eq!(last(&component), CodeTier::Optimised);
    assert!(answers(&component) && component.code() == CodeTier::Optimised);
    for optimise in [Optimise::Later, Optimise::First, Optimise::Never] {
        let (_, next) = shop.load(shop.builder("exit 3").optimise(optimise));
        assert_eq!((next.code(), next.is_cached()), (CodeTier::Optimised, true), "{optimise:?}");
        assert!(answers(&next));
    }
    assert_eq!(shop.orders(), ["quick", "optimised"]);
    assert_eq!(shop.scratch.files("code").len(), 1, "the quick code is of no use any more");
    drop(engine);
}

/// If a process ends before its optimiser does, the next one begins with the quick code and tries
/// again.
#[test]
fn next_process_resumes_missed_optimisation() {
    let shop = Workshop::new(echo().component());
    for (script, code) in [
        ("kill -TERM $$", CodeTier::Unoptimised),
        ("exit 4", CodeTier::Unoptimised),
        (":", CodeTier::Optimised),
    ] {
        let (_, component) = shop.load(shop.builder(script));
        assert_eq!(last(&component), code, "{script}");
        assert!(answers(&component));
    }
    assert_eq!(shop.orders(), ["quick", "optimised", "optimised", "optimised"]);
}

/// With no more time than before, another attempt would only fail again.
#[test]
fn failed_optimisation_is_tried_once() {
    for script in ["kill -XCPU $$", "exit 3", "exit 101"] {
        let shop = Workshop::new(echo().component());
        let (engine, component) = shop.load(shop.builder(script));
        let found = [last(&component), component.code()];
        assert_eq!(found, [CodeTier::Unoptimised; 2], "{script}");
        assert!(answers(&component));
        let again = load(&engine, shop.guest.clone()).expect("it loads");
        assert_eq!((last(&again), again.is_cached()), (CodeTier::Unoptimised, true));
        let (_, next) = shop.load(shop.limited(":", 59));
        assert_eq!((last(&next), next.is_cached()), (CodeTier::Unoptimised, true));
        assert!(answers(&next));
        assert_eq!(shop.orders(), ["quick", "optimised"], "{script}");

        let (_, patient) = shop.load(shop.limited(":", 61));
        assert_eq!(last(&patient), CodeTier::Optimised, "{script}");
        let (_, next) = shop.load(shop.limited("exit 3", 1));
        assert_eq!(next.code(), CodeTier::Optimised, "{script}");
    }
}

/// Holds without a cache that records the failure.
#[test]
fn failed_optimisation_is_remembered_without_cache() {
    let shop = Workshop::new(echo().component());
    let script = format!(
        r#"cd "{}"; echo $0 >>orders; case $0 in quick*) exec cat quick;; esac; exit 3"#,
        shop.scratch.0.path().display()
    );
    let engine = Engine::builder().compile_in("/bin/sh", ["-c", &script], Duration::from_secs(60));
    let engine = engine.build().expect("an engine");
    for _ in 0..2 {
        let component = load(&engine, shop.guest.clone()).expect("it loads");
        assert_eq!(last(&component), CodeTier::Unoptimised);
    }
    assert_eq!(shop.orders(), ["quick/60", "optimised/120", "quick/60"]);
}

/// The optimiser of a dropped component is killed in the middle.
#[test]
fn dropped_component_kills_its_optimiser() {
    let shop = Workshop::new(echo().component());
    let held = shop.fifo("held");
    let (_engine, component) =
        shop.load(shop.builder("exec 3>held; echo begun >&3; exec sleep 60"));
    let mut pipe = fs::File::open(held).expect("the optimiser holds the other end");
    let mut begun = [0; 6];
    pipe.read_exact(&mut begun).expect("it has begun");
    drop(component);
    // Ends when the last process that holds the pipe has ended.
    assert_eq!(pipe.read_to_end(&mut Vec::new()).expect("the end"), 0);
    let (_, next) = shop.load(shop.builder(":"));
    assert_eq!((next.is_cached(), last(&next)), (true, CodeTier::Optimised));
}

/// A directory is in the place of the optimised code in the cache.
#[test]
fn quick_code_stays_if_optimised_cannot_be_cached() {
    let shop = Workshop::new(echo().component());
    shop.load(shop.builder(":").optimise(Optimise::Never));
    let quick = shop.scratch.files("code").remove(0);
    let name = quick.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
    let optimised = name.strip_suffix("-quick").expect("the quick tier's");
    fs::create_dir(quick.with_file_name(optimised).with_extension("code")).expect("a directory");
    for optimise in [Optimise::Later, Optimise::First] {
        let (_, component) = shop.load(shop.builder(":").optimise(optimise));
        assert_eq!((last(&component), answers(&component)), (CodeTier::Optimised, true));
        let (_, next) = shop.load(shop.builder("exit 3").optimise(Optimise::Never));
        assert_eq!((next.code(), next.is_cached()), (CodeTier::Unoptimised, true), "{optimise:?}");
    }
    assert_eq!(shop.orders(), ["quick", "optimised", "optimised"]);
}

#[test]
fn builder_decides_when_code_is_optimised() {
    let shop = Workshop::new(echo().component());
    let (_, never) = shop.load(shop.builder("exit 3").optimise(Optimise::Never));
    assert_eq!((never.code(), last(&never)), (CodeTier::Unoptimised, CodeTier::Unoptimised));
    assert_eq!(shop.orders(), ["quick"]);
    let (_, first) = shop.load(shop.builder(":").optimise(Optimise::First));
    assert_eq!((first.code(), first.is_cached()), (CodeTier::Optimised, false));
    assert_eq!(shop.orders(), ["quick", "optimised"]);
    assert!(answers(&never) && answers(&first));
}

/// Runs in both tiers, with the compiler in this process.
#[test]
fn both_tiers_give_equal_results_and_fuel() {
    let engines = [Optimise::Never, Optimise::First]
        .map(|optimise| Engine::builder().cells(4).optimise(optimise).build().expect("an engine"));
    let limits = Limits { fuel: 50_000_000, memory: 8 << 20, ..Limits::default() };
    for (name, arguments) in
        rows::<(&str, &str)>("sandbox/load", "both_tiers_give_equal_results_and_fuel")
    {
        let (guest, tool) = match Misdeed::named(name) {
            Some(misdeed) => (Hostile::new(Place::Execute, misdeed).component(), "hostile"),
            None => (bytes(name), name),
        };
        let [quick, optimised] = engines.each_ref().map(|engine| {
            let component = load(engine, guest.clone()).expect("it loads");
            (call(&component, tool, arguments, limits), component)
        });
        let tiers = [quick.1.code(), optimised.1.code()];
        assert_eq!(tiers, [CodeTier::Unoptimised, CodeTier::Optimised], "{name} {arguments}");
        let [one, other] = [&quick.0, &optimised.0]
            .map(|completion| serde_json::to_string(&completion.result).expect("JSON"));
        assert_eq!(one, other, "{name} {arguments}");
        assert_eq!(quick.0.usage.fuel, optimised.0.usage.fuel, "{name} {arguments}");
        assert!(quick.0.usage.fuel.is_some_and(|fuel| fuel > 0), "{name} {arguments}");
    }
}

/// `describe` is called when the component is first compiled, and never again.
#[test]
fn optimisation_keeps_the_described_names() {
    let guest = Hostile { name: "unsteady", unsteady: true, ..echo() }.component();
    let scratch = Scratch::new();
    let name = |optimise: Optimise| {
        let engine = scratch.builder().optimise(optimise).build().expect("an engine");
        let component = load(&engine, guest.clone()).expect("it loads");
        last(&component);
        assert!(answers(&component));
        component.tools()[0].definition().name.clone()
    };
    let first = name(Optimise::Never);
    for optimise in [Optimise::Later, Optimise::First] {
        assert_eq!(name(optimise), first, "{optimise:?}");
    }
}

/// The entries of both tiers are checked, and neither is accepted for the other.
#[test]
fn tampered_tier_is_recompiled() {
    let guest = echo().component();
    let scratch = Scratch::new();
    for optimise in [Optimise::Never, Optimise::First] {
        let is_cached = || {
            let engine = scratch.builder().optimise(optimise).build().expect("an engine");
            let component = load(&engine, guest.clone()).expect("it loads");
            assert!(answers(&component));
            component.is_cached()
        };
        assert!(!is_cached() && is_cached(), "{optimise:?}");
        for part in ["code", "tools", "mac"] {
            let path = &scratch.files(part)[0];
            let mut content = fs::read(path).expect("a part of the entry");
            content[0] ^= 1;
            fs::write(path, content).expect("written");
            assert!(!is_cached(), "{optimise:?} {part}");
        }
        for part in ["code", "tools", "mac"] {
            let path = &scratch.files(part)[0];
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            let other =
                name.strip_suffix("-quick").map_or_else(|| format!("{name}-quick"), str::to_owned);
            let to = path.with_file_name(other).with_extension(part);
            fs::rename(path, to).expect("renamed");
        }
        assert!(!is_cached(), "{optimise:?}: one tier's entry passes for the other's");
    }
}

/// One engine loads the same bytes several times at once.
#[test]
fn concurrent_equal_loads_compile_once() {
    let shop = Workshop::new(echo().component());
    let engine = shop.builder(":").optimise(Optimise::Never).build().expect("an engine");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert!(answers(&load(&engine, shop.guest.clone()).expect("it loads"))));
        }
    });
    assert_eq!(shop.orders(), ["quick"]);
}

/// Code that stalls an optimiser for minutes does not keep a tool from answering.
#[test]
fn component_that_stalls_the_optimiser_answers() {
    let engine = Engine::builder().cells(4).optimise(Optimise::Never).build().expect("an engine");
    let loaded = load(&engine, compile_bomb(1));
    assert_eq!(load_ending(&loaded), "ok");
    assert!(answers(&loaded.expect("it loads")));
}
