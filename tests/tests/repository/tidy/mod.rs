//! The repository's own rules, checked over every file that git tracks or would add.
//!
//! A check takes files and returns complaints. `each_check_can_fail` gives every check a file that
//! breaks its rule.

mod api;
mod controls;
mod map;
mod papers;
mod repository;

use std::collections::{BTreeMap, BTreeSet};

use toolcell_test_guests::rows;

use controls::unproved_threats;
use papers::{dead_citations, incomplete_packages, oversized_pages};
use repository::{File, core, files_of, library, named, repository, rust, word};

/// Lines that a file may have without a reason in its header. Most have 100 to 500.
const MAX_LINES: usize = 600;
/// Beginnings of header lines that give the reason.
const REASONS: [&str; 2] = ["//! TABLE: ", "//! Long: "];
const MAX_README: usize = 140;
const MIN_PROMISES: usize = 13;
/// Folders with Rust modules of this repository.
const MODULES: [&str; 5] = ["host/", "guest-sdk/", "tests/", "xtask/", "example-tools/"];
const CORE: &str = "host/core/src/";
/// The folders of the library `toolcell` and of the packages that it re-exports.
const LIBRARY: [&str; 3] = ["host/contract/src/", "host/provider/src/", CORE];
/// The packages that it re-exports, as a path names them.
const PARTS: [&str; 2] = ["toolcell_contract", "toolcell_provider"];

/// Returns the modules of the core library in layers: a module uses only its own layer and those
/// above in this list. The picture in ARCHITECTURE.md shows them from the last to the first.
fn layers() -> Vec<(&'static str, Vec<&'static str>)> {
    rows("repository/tidy", "layers")
}

fn too_long(files: &[File]) -> Vec<String> {
    let is_reason = |line: &str| REASONS.iter().any(|reason| line.starts_with(reason));
    let header =
        |file: &&File| file.text.lines().take_while(|line| line.starts_with("//!")).any(is_reason);
    let code = rust(files).filter(|file| !header(file)).map(|file| (file, MAX_LINES));
    let all = code.chain(named(files, "README.md").map(|readme| (readme, MAX_README)));
    let counted = all.map(|(file, most)| (&file.path, file.text.lines().count(), most));
    counted
        .filter(|(_, lines, most)| lines > most)
        .map(|(path, lines, most)| format!("{path} has {lines} lines of {most}"))
        .collect()
}

fn without_header(files: &[File]) -> Vec<String> {
    let is_ours = |file: &&File| MODULES.iter().any(|folder| file.path.starts_with(folder));
    rust(files)
        .filter(is_ours)
        .filter(|file| !file.path.contains("/tests/ui/") && !file.text.starts_with("//! "))
        .map(|file| format!("{} does not say what it owns in a first line with `//!`", file.path))
        .collect()
}

fn engine_named_outside(files: &[File]) -> Vec<String> {
    let is_engine = |file: &File| file.path.starts_with("host/core/src/engine");
    library(files)
        .filter(|file| !is_engine(file) && file.text.contains("wasmtime"))
        .map(|file| format!("{} names wasmtime, which only `engine` knows", file.path))
        .collect()
}

/// Finds calls of the engine crate's constructors; the library's own engines come from a builder.
fn engine_made_elsewhere(files: &[File]) -> Vec<String> {
    core(files)
        .filter(|(_, file)| !file.path.ends_with("engine/compile/config/mod.rs"))
        .filter(|(_, file)| {
            ["Engine::new(", "Engine::default("].iter().any(|made| file.text.contains(made))
        })
        .map(|(_, file)| {
            format!("{} makes an engine, as `engine/compile/config` alone does", file.path)
        })
        .collect()
}

fn upward_uses(files: &[File]) -> Vec<String> {
    let layers = layers();
    let layer = |module: &str| layers.iter().position(|(_, modules)| modules.contains(&module));
    let mut complaints = Vec::new();
    for (module, file) in core(files).filter(|(module, _)| *module != "lib") {
        let Some(own) = layer(module) else {
            complaints.push(format!(
                "{} stands in no layer: give `{module}` a place in `layers` of tidy.yaml",
                file.path
            ));
            continue;
        };
        for line in file.text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (at, _) in
                line.match_indices("crate::").filter(|(at, _)| !line[..*at].ends_with(['_', '$']))
            {
                let used = word(&line[at + "crate::".len()..]);
                match layer(used) {
                    Some(layer) if layer <= own => {}
                    Some(layer) => complaints
                        .push(format!("{} uses `{used}` of {}", file.path, layers[layer].0)),
                    None => {
                        complaints.push(format!("{}: `{}` names no module", file.path, line.trim()))
                    }
                }
            }
        }
    }
    complaints
}

fn foreign_reexports(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in library(files) {
        let lines =
            || file.text.lines().map(|line| line.trim_start().trim_start_matches("pub(crate) "));
        let modules =
            lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
        let own: Vec<_> =
            modules.map(word).chain(PARTS).chain(["crate", "self", "super"]).collect();
        let is_foreign = |line: &&str| match line.strip_prefix("pub use ") {
            Some(used) => !own.contains(&word(used)),
            None => line.starts_with("pub extern "),
        };
        let foreign = lines().filter(is_foreign);
        complaints.extend(
            foreign
                .map(|line| format!("{}: `{line}` makes a dependency's version ours", file.path)),
        );
    }
    complaints
}

/// Finds locks of the standard library in host code: one is poisoned when a thread panics while it
/// holds it.
fn poisonable_locks(files: &[File]) -> Vec<String> {
    const LOCKS: [&str; 4] = ["Mutex", "RwLock", "Condvar", "PoisonError"];
    let host = rust(files).filter(|file| file.path.starts_with("host/"));
    let names = |used: &str| {
        let used = used.split(';').next().unwrap_or_default();
        used.split(|c: char| !c.is_alphanumeric()).any(|word| LOCKS.contains(&word))
    };
    host.filter(|file| file.text.split("std::sync::").skip(1).any(names))
        .map(|file| {
            format!("{} has a lock that a panic poisons: those of parking_lot cannot be", file.path)
        })
        .collect()
}

/// Returns the lines of a page outside of fenced blocks and without code spans.
fn prose(page: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    page.lines().filter_map(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence && !fenced).then(|| line.split('`').step_by(2).collect())
    })
}

/// Returns the anchors of a page's headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    let titles = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    titles.map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// Returns `path` as seen from the page `from`; `None` if it leaves the repository.
fn resolved(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<_> = from.split('/').collect();
    parts.pop();
    for part in path.split('/').filter(|part| !["", "."].contains(part)) {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

fn dead_links(files: &[File]) -> Vec<String> {
    let alive = |from: &File, target: &str| {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let Some(path) =
            (if path.is_empty() { Some(from.path.clone()) } else { resolved(&from.path, path) })
        else {
            return false;
        };
        match named(files, &path) {
            Some(page) => {
                anchor.is_empty() || !path.ends_with(".md") || anchors(&page.text).contains(anchor)
            }
            None => files.iter().any(|file| file.path.starts_with(&format!("{path}/"))),
        }
    };
    let mut complaints = Vec::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        for line in prose(&page.text) {
            for target in line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
            {
                // `a::b` belongs to rustdoc, which checks its own links.
                if !target.contains("://") && !target.contains("::") && !alive(page, target) {
                    complaints.push(format!("{}: `{target}` leads nowhere", page.path));
                }
            }
        }
    }
    complaints
}

fn machine_bound(files: &[File]) -> Vec<String> {
    let needles = rows::<[String; 2]>("repository/tidy", "machine_bound");
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| !file.path.ends_with(".lock")) {
        for needle in needles.iter().map(|[one, two]| format!("{one}{two}")) {
            let goes_on = |c: char| c.is_alphanumeric() || "_.-*}".contains(c);
            let is_own =
                |at: usize| !needle.starts_with('/') || !file.text[..at].ends_with(goes_on);
            if file.text.match_indices(&needle).any(|(at, _)| is_own(at)) {
                let path = &file.path;
                complaints.push(format!("{path} has `{needle}`, which is one machine's own"));
            }
        }
    }
    complaints
}

/// Returns the names of test functions and sessions, each with its file.
fn tests(files: &[File]) -> BTreeSet<(&str, &str)> {
    fn session(file: &File) -> Option<(&str, &str)> {
        let name = file.path.strip_prefix("tests/sessions/")?.strip_suffix(".md")?;
        Some((name, file.path.as_str()))
    }
    let mut found: BTreeSet<_> = files.iter().filter_map(session).collect();
    for file in rust(files) {
        let mut marked = false;
        for line in file.text.lines().map(str::trim_start) {
            if line.starts_with("#[") {
                marked |= line.contains("test]") || line.contains("test(");
            } else if !line.is_empty() && !line.starts_with("//") {
                if let Some((_, rest)) = line.split_once("fn ").filter(|_| marked) {
                    found.insert((word(rest), file.path.as_str()));
                }
                marked = false;
            }
        }
    }
    found
}

/// Returns true if a test has this name, as in `host/core names::cut`: each part of its place is a
/// folder, a file, or the module `tests` inside of one.
fn is_test(tests: &BTreeSet<(&str, &str)>, name: &str) -> bool {
    let (place, name) = name.rsplit_once("::").unwrap_or(("", name));
    let parts = || place.split(['/', ':', ' ']).filter(|part| !["", "tests"].contains(part));
    let lies_there =
        |path: &str| parts().all(|part| path.split(['/', '.']).any(|folder| folder == part));
    tests.iter().any(|(test, path)| *test == name && lies_there(path))
}

/// Finds promises that name no test. A promise is a bullet that ends in the tests that keep it:
/// ``[`tests/hostile::in_execute`, `host/core names::…`]``.
fn unkept_promises(files: &[File]) -> Vec<String> {
    let Some(page) = named(files, "SPECIFICATION.md") else {
        return vec!["there is no SPECIFICATION.md".into()];
    };
    let text = page.text.replace("\n  ", " ");
    let promises: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    let tests = tests(files);
    let mut complaints = Vec::new();
    for promise in &promises {
        match promise.rsplit_once(" [`").and_then(|(_, names)| names.trim_end().strip_suffix("`]"))
        {
            Some(names) => {
                let missing = names.split("`, `").filter(|name| !is_test(&tests, name));
                complaints.extend(missing.map(|name| format!("there is no test `{name}`")));
            }
            None => complaints.push(format!("no test is named for: {promise}")),
        }
    }
    if promises.len() < MIN_PROMISES {
        complaints
            .push(format!("SPECIFICATION.md has {} promises of {MIN_PROMISES}", promises.len()));
    }
    complaints
}

fn unnamed_checks(files: &[File]) -> Vec<String> {
    let (Some(run), Some(readme)) = (named(files, ".ci/run"), named(files, "README.md")) else {
        return vec!["there is no .ci/run or no README.md".into()];
    };
    let further = named(files, "CONTRIBUTING.md").map_or("", |file| &file.text);
    let steps = run
        .text
        .lines()
        .filter_map(|line| line.split_once("cargo xtask ")?.1.split_whitespace().next());
    // A variable of the script stands for several steps.
    let steps = steps.filter(|step| !step.contains('$')).map(|step| format!("cargo xtask {step}"));
    steps
        .filter(|step| !readme.text.contains(step) && !further.contains(step))
        .map(|step| format!("neither README.md nor CONTRIBUTING.md names `{step}` of .ci/run"))
        .collect()
}

/// Finds tables in case files that no test of their package reads.
fn unread_tables(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".yaml")) {
        let Some((package, _)) = file.path.split_once("/cases/") else { continue };
        let sources: Vec<_> =
            rust(files).filter(|source| source.path.starts_with(package)).collect();
        for line in file.text.lines() {
            let table = word(line);
            let is_read = || {
                let quoted = format!("\"{table}\"");
                sources.iter().any(|source| source.text.contains(&quoted))
            };
            if !table.is_empty() && line[table.len()..].starts_with(':') && !is_read() {
                complaints.push(format!("{}: no test reads `{table}`", file.path));
            }
        }
    }
    complaints
}

/// Returns complaints about files.
type Check = fn(&[File]) -> Vec<String>;

/// Lists the checks by name, and defines the test of each, which checks the repository.
macro_rules! rules {
    ($($name:ident: $check:ident,)*) => {
        const CHECKS: &[(&str, Check)] = &[$((stringify!($check), $check)),*];

        $(
            #[test]
            fn $name() {
                let complaints = $check(&repository());
                assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
            }
        )*
    };
}

rules! {
    files_are_short: too_long,
    modules_say_what_they_own: without_header,
    only_the_engine_knows_wasmtime: engine_named_outside,
    engines_are_made_in_one_place: engine_made_elsewhere,
    layers_look_up_only: upward_uses,
    no_dependency_is_exported: foreign_reexports,
    no_lock_is_poisoned: poisonable_locks,
    links_lead_somewhere: dead_links,
    nothing_is_bound_to_a_machine: machine_bound,
    promises_are_kept_by_tests: unkept_promises,
    threats_are_answered_by_controls_and_tests: unproved_threats,
    pages_of_one_screen_stay_short: oversized_pages,
    checks_are_named: unnamed_checks,
    tables_of_cases_are_read: unread_tables,
    citations_lead_somewhere: dead_citations,
    packages_are_complete: incomplete_packages,
}

#[test]
fn each_check_can_fail() {
    type Row = (&'static str, BTreeMap<String, String>, &'static str);
    let manifest = "description = \"A\"\nreadme = \"README.md\"\ncategories = []\nrust-version.workspace = true\n\
        license.workspace = true\nrepository.workspace = true\n[package.metadata.docs.rs]\n";
    let texts = [
        ("LONG", "//! Long.\n".repeat(MAX_LINES + 1)),
        ("HOME", rows::<[String; 2]>("repository/tidy", "machine_bound")[0].concat()),
        ("PROMISES", "- It works. [`tests/a::works`]\n".repeat(MIN_PROMISES)),
        ("MANIFEST", manifest.to_owned()),
    ];
    for (check, files, needle) in rows::<Row>("repository/tidy", "each_check_can_fail") {
        let files = files_of(files.iter().map(|(path, text)| {
            let text = texts.iter().fold(text.clone(), |text, (word, is)| text.replace(word, is));
            (path.as_str(), text)
        }));
        let (_, check) = CHECKS.iter().find(|(name, _)| *name == check).expect(check);
        let complaints = check(&files);
        let is_meant = complaints.len() == 1 && complaints[0].contains(needle);
        assert!(is_meant, "{needle}: {complaints:?}");
    }
}
