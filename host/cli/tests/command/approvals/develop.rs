//! Development: grants on the command line, and folders whose components need no approval.

use std::fs;

use toolcell_test_guests::example;

use crate::place::Place;

const DEV: &str = "[dev]\ndirectories = [\"target\", \"not_built_yet\"]\n[components.dev]\npath = \"target/hello.wasm\"\n\
                   grants = { environment = { A = \"B\" } }\n[components.other]\npath = \"other.wasm\"\n";
const GREET: [&str; 4] = ["run", "dev", "greet", "{\"name\": \"Ada\"}"];

fn built(config: &str) -> Place {
    let place = Place::new(config);
    fs::create_dir(place.path().join("target")).expect("a place");
    fs::copy(example("hello"), place.path().join("target/hello.wasm")).expect("a place");
    fs::copy(example("text_stats"), place.path().join("other.wasm")).expect("a place");
    place
}

/// A folder of another user with a configuration in it: its components are used only in their
/// approved form, even if the configuration is approved.
#[test]
fn found_config_waives_no_approval() {
    let place = built(DEV);
    assert_eq!(place.typed(&GREET).status, 21, "not approved at all");
    place.approve();
    assert_eq!(place.typed(&GREET).status, 0, "in the form that was approved");
    let bytes = fs::read(place.path().join("target/hello.wasm")).expect("it is there");
    fs::write(place.path().join("target/hello.wasm"), [&bytes[..], &[0, 2, 1, b'x']].concat())
        .expect("a place");
    let shown = place.typed(&GREET);
    shown.tells(21, "is not the one that was approved");
    let warning = "warning: toolcell.toml:2:16: [dev] is not used: this file was found, not named\n\
                   hint: to use [dev], name the file with `--config FILE`\n";
    assert!(place.typed(&["check"]).stderr.contains(warning), "{}", place.typed(&["check"]));
}
