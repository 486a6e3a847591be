//! What is shown of a configuration that was found, before its user says yes to it.

use crate::place::Place;

/// Whatever it comes to mean: what is shown is its text, and later what changed in it.
#[test]
fn of_a_configuration_every_line_is_shown_that_is_new_to_who_approves() {
    let config =
        |more: &str| format!("[host]\nisolation = \"strict\"\n\n[components.mine]\npath = \"hello.wasm\"\n{more}");
    let place = Place::new(&config("[tenants.acme]\nhttp = []"));
    let shown = place.typed(&["approve"]).stdout;
    assert!(shown.contains("      + \"isolation = \"strict\"\"\n") && shown.contains("+ \"http = []\""), "{shown}");
    place.approve();
    place.write(&config("[tenants.acme]\nisolation = \"pooled\""));
    let shown = place.typed(&["approve"]).stdout;
    let expected = "      - \"http = []\"\n      + \"isolation = \"pooled\"\"\n";
    assert!(shown.contains(expected) && !shown.contains("strict"), "{shown}");
    assert!(place.typed(&["approve", "--json"]).json()["text"]["old"].as_str().unwrap().contains("http = []"));
}
