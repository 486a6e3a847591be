//! The stores of keys: one for each configuration, which any number of commands use at once.

use std::fs;
use std::thread;

use crate::place::Place;
use crate::typed::CommandResult;

const CONFIG: &str = "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\nkv = [\"write notes/*\"]\n";

fn place() -> Place {
    Place::new(CONFIG).approved()
}

fn add(title: &str) -> String {
    format!(r#"{{"action": "add", "title": "{title}", "text": "x"}}"#)
}

const LIST: [&str; 4] = ["run", "notes", "notes", r#"{"action": "list"}"#];

/// No command waits until another one has ended.
#[test]
fn concurrent_commands_share_a_store() {
    let place = place();
    thread::scope(|threads| {
        for number in 0..8 {
            let place = &place;
            threads.spawn(move || {
                let shown = place.typed(&["run", "notes", "notes", &add(&format!("n{number}"))]);
                assert_eq!(shown.status, 0, "{shown}");
            });
        }
    });
    let listed = place.typed(&LIST);
    assert!((0..8).all(|number| listed.stdout.contains(&format!("n{number}"))), "{listed}");
}

/// Both use one state directory.
///
/// Fails without: a store for each configuration.
#[test]
fn each_project_has_its_own_store() {
    let (one, two) = (place(), place());
    let typed = |place: &Place, words: &[&str]| -> CommandResult {
        place.approve();
        place.shown(place.command().env("XDG_STATE_HOME", one.state()).args(words))
    };
    let config = |place: &Place| place.path().join("toolcell.toml").display().to_string();
    let named = |place: &Place, words: &[&str]| {
        let config = config(place);
        typed(place, &[&["--config", config.as_str()], words].concat())
    };
    assert_eq!(named(&one, &["run", "notes", "notes", &add("of-one")]).status, 0);
    let listed = named(&two, &LIST);
    assert!(listed.status == 0 && !listed.stdout.contains("of-one"), "{listed}");
    let listed = named(&one, &LIST);
    assert!(listed.stdout.contains("of-one"), "{listed}");
    let projects =
        fs::read_dir(one.state().join("toolcell/projects")).expect("it is there").flatten();
    assert_eq!(projects.filter(|project| project.path().join("store.db").is_file()).count(), 2);
}

/// A store in the layout of an earlier version, shared by all configurations, is neither lost nor
/// silently ignored.
#[test]
fn store_of_earlier_version_is_refused() {
    let place = place();
    assert_eq!(place.typed(&LIST).status, 0);
    let mut projects = fs::read_dir(place.state().join("toolcell/projects")).expect("it is there");
    let store = projects.next().expect("a store").expect("a store").path().join("store.db");
    let mut old = fs::read(&store).expect("it is there");
    // The version of the layout: SQLite's `user_version`.
    old[60..64].copy_from_slice(&1_u32.to_be_bytes());
    fs::write(&store, &old).expect("it is there");
    let shown = place.typed(&LIST);
    assert!(shown.status != 0 && shown.stderr.contains("has layout 1"), "{shown}");
    assert!(shown.stderr.contains("move it away"), "{shown}");
    assert!(!shown.stdout.contains("does not answer: the store does not answer"), "{shown}");
    assert!(fs::read(&store).expect("it is there") == old, "it was changed");
    fs::remove_file(store).expect("it is there");
    assert_eq!(place.typed(&LIST).status, 0);
}
