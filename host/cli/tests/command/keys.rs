//! The store of keys, which one command at a time has open.

use std::fs;
use std::thread;

use toolcell_test_guests::example;

use crate::place::Place;

const CONFIG: &str = "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\nkv = [\"write notes/*\"]\n";

/// Who comes later waits for who came first.
#[test]
fn commands_take_turns_at_the_store() {
    let place = Place::new(CONFIG);
    fs::copy(example("notes"), place.path().join("notes.wasm")).expect("a place");
    let place = place.approved();
    thread::scope(|threads| {
        for number in 0..4 {
            let place = &place;
            threads.spawn(move || {
                let add = format!(r#"{{"action": "add", "title": "n{number}", "text": "x"}}"#);
                let shown = place.typed(&["run", "notes", "notes", &add]);
                assert_eq!(shown.status, 0, "{shown}");
            });
        }
    });
    let listed = place.typed(&["run", "notes", "notes", r#"{"action": "list"}"#]);
    assert!((0..4).all(|number| listed.stdout.contains(&format!("n{number}"))), "{listed}");
}
