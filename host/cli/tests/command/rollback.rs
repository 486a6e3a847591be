//! `toolcell rollback`: back to the version that was approved before.

use std::fs;

use toolcell_test_guests::{Answer, Hostile};

use crate::place::Place;
use crate::typed::check;

const CONFIG: &str = "[components.mine]\npath = \"mine.wasm\"\n";

fn version(description: &'static str) -> Vec<u8> {
    Hostile { name: "greet", description, ..Hostile::answering(Answer::Echo) }.component()
}

/// Returns a place where these versions were approved, one after the other.
fn place(versions: &[&'static str]) -> Place {
    let place = Place::new(CONFIG);
    for description in versions {
        fs::write(place.path().join("mine.wasm"), version(description)).expect("no error");
        place.approve();
    }
    place
}

#[test]
fn rollback_restores_previous_version() {
    let place = place(&["Greets.", "Greets twice."]);
    let listed = || place.typed(&["tools", "mine"]).json()[0]["description"].clone();
    assert_eq!(listed(), "Greets twice.");
    check("rollback", &place.typed(&["rollback", "mine"]));
    assert_eq!(listed(), "Greets.");
    assert_eq!(fs::read(place.path().join("mine.wasm")).expect("no error"), version("Greets."));
    check("rollback_too_far", &place.typed(&["rollback", "mine"]));
    // Forward again.
    fs::write(place.path().join("mine.wasm"), version("Greets twice.")).expect("no error");
    place.approve();
    fs::write(place.path().join("mine.wasm"), version("Never approved.")).expect("no error");
    assert_eq!(place.typed(&["tools", "mine"]).status, 21);
    let shown = place.typed(&["rollback", "mine", "--json"]);
    assert_eq!((shown.status, &shown.json()["replaced_file"]), (0, &true.into()), "{shown}");
    let kept = shown.json()["backup"].as_str().expect("a path").to_owned();
    assert_eq!(
        fs::read(kept.replace("HERE", place.path().to_str().expect("UTF-8"))).expect("no error"),
        version("Never approved.")
    );
    assert_eq!(listed(), "Greets twice.", "the version that is current comes back first");
    fs::remove_file(place.path().join("mine.wasm")).expect("no error");
    assert_eq!(place.typed(&["rollback", "mine"]).status, 0);
    assert_eq!(listed(), "Greets twice.", "a file that is missing comes back likewise");
    assert_eq!(place.typed(&["rollback", "mine"]).status, 0);
    assert_eq!(listed(), "Greets.");
    fs::write(place.path().join("mine.wasm"), version("Never approved.")).expect("no error");
    let shown = place.typed(&["rollback", "mine"]);
    assert!(shown.stderr.contains("was never approved: a copy is in `"), "{shown}");
}

#[test]
fn impossible_rollback_is_an_error_with_hint() {
    let place = place(&["Greets."]);
    for (words, status, message) in [
        (
            &["rollback", "mine"][..],
            1,
            "no earlier version of `mine` is kept, so there is none to go back to",
        ),
        (&["rollback", "mien"], 2, "has no component `mien`"),
        (&["rollback", "mine.wasm"], 2, "has no component `mine.wasm`"),
        (&["rollback"], 2, "required arguments"),
    ] {
        let shown = place.typed(words);
        assert_eq!((shown.status, shown.stdout.as_str()), (status, ""), "{words:?}: {shown}");
        assert!(shown.stderr.contains(message), "{words:?}: {shown}");
    }
    // A configuration that was found, and has changed since the approval.
    place.write(&format!("{CONFIG}limits = {{ fuel = 1 }}\n"));
    assert_eq!(place.typed(&["rollback", "mine"]).status, 21);
    fs::remove_file(place.path().join("toolcell.toml")).expect("no error");
    let shown = place.typed(&["rollback", "mine"]);
    assert!(shown.status == 2 && shown.stderr.contains("there is no `toolcell.toml`"), "{shown}");
}
