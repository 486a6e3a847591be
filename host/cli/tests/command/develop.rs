//! Development: grants on the command line, and folders whose components need no approval.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use toolcell_test_guests::example;

use crate::place::Place;
use crate::typed::check;

const TOKEN: &str =
    "secret=token={ destination = 'https://a.example', source = { file = 'token' } }";
const KEY: &str = "secret=key={ source = { env = 'TOKEN' } }";

/// For a file that no configuration names: each use prints a warning, and the errors are those of a
/// configuration.
#[test]
fn grant_option_applies_to_unconfigured_file() {
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\n");
    let call = ["run", "asks.wasm", "asks", "{\"a\": 1}"];
    let grants = [
        "--grant",
        TOKEN,
        "--grant",
        "http=https://a.example",
        "--grant",
        KEY,
        "--grant",
        "reveal=key",
    ];
    let shown = place.typed(&[&call[..], &grants].concat());
    assert_eq!((shown.status, shown.stdout.as_str()), (0, "{\"a\": 1}\n"), "{shown}");
    let warning = "warning: development mode: asks.wasm is used without approval, with the grants of `--grant`\n";
    assert_eq!(shown.stderr, warning);
    // Without one of the grants it is not loaded, and the hint can be added unchanged.
    let shown = place.typed(&[
        "run",
        "declares.wasm",
        "asks",
        "--grant",
        "http=GET https://api.example.com",
    ]);
    assert_eq!(shown.status, 1, "{shown}");
    assert!(shown.stderr.contains("to allow it, add to the command:\n"), "{shown}");
    assert!(shown.stderr.contains("--grant 'reveal = [\"key\"]'\n"), "{shown}");
    // In a process of its own too.
    place.write("[host]\nisolation = \"process\"\n");
    let shown = place.typed(&[&call[..], &grants].concat());
    assert_eq!((shown.status, shown.stdout.as_str()), (0, "{\"a\": 1}\n"), "{shown}");
    assert_eq!(shown.stderr, warning);
    // A tool must not write the file that decides about its rights.
    fs::write(place.path().join("data/toolcell.toml"), "").expect("a place");
    let write = ["--config", "data/toolcell.toml", "--grant", "directory=write /data=data"];
    let shown = place.typed(&[&call[..], &write].concat());
    assert!(
        shown.status == 2 && shown.stderr.contains("contains `HERE/data/toolcell.toml`"),
        "{shown}"
    );
    for (name, typed) in [
        ("kinds", &["htp=GET https://a.example"][..]),
        ("rules", &["kv=*", "http=GET nowhere", "variable=A=\u{2026}"]),
        ("directory", &["directory=read /data=/etc"]),
        ("scratch", &["scratch=much"]),
    ] {
        let grants: Vec<_> = typed.iter().flat_map(|grant| ["--grant", grant]).collect();
        let shown = place.typed(&[&call[..], &grants].concat());
        assert_eq!((shown.status, shown.stdout.as_str()), (2, ""), "{name}: {shown}");
        check(&format!("grant_{name}"), &shown);
    }
    // A secret without a value refuses the call, as in a configuration.
    let unset = ["--grant", "secret=token=https://a.example"];
    let shown = place.typed(&[&call[..], &unset, &grants[2..]].concat());
    assert_eq!((shown.status, shown.stdout.as_str()), (21, ""), "{shown}");
    check("grant_unset", &shown);
    place.write("[components.asks]\npath = \"asks.wasm\"\n");
    for component in ["asks.wasm", "asks"] {
        let shown = place.typed(&["run", component, "asks", "--grant", "kv=read *"]);
        assert!(
            shown.status == 2
                && shown.stderr.contains(
                    "`--grant` cannot be used for `asks`, which `toolcell.toml` configures"
                ),
            "{shown}"
        );
    }
}

/// Each component of the batch has all grants, and none may be a component of the configuration.
#[test]
fn grant_option_applies_to_all_batch_components() {
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\n").approved();
    fs::copy(example("notes"), place.path().join("notes.wasm")).expect("a place");
    fs::copy(example("text_stats"), place.path().join("stats.wasm")).expect("a place");
    let calls = "{\"name\": \"notes\", \"arguments\": {\"action\": \"list\"}}\n\
                 {\"name\": \"text_stats\", \"arguments\": {\"text\": \"one two\"}}\n";
    fs::write(place.path().join("calls"), calls).expect("a place");
    let batch = |components: &[&str], grants: &[&str]| {
        place.typed(&[&["batch", "--calls", "calls"], components, grants].concat())
    };
    let grants = ["--grant", "kv=write notes/*"];
    for isolation in ["pooled", "process"] {
        let config = format!(
            "[host]\nisolation = \"{isolation}\"\n[components.hello]\npath = \"hello.wasm\"\n"
        );
        place.write(&config);
        place.approve();
        let shown = batch(&["notes.wasm", "stats.wasm"], &grants);
        assert_eq!(shown.status, 0, "{shown}");
        let warning = "is used without approval, with the grants of `--grant`";
        assert_eq!(shown.stderr.matches(warning).count(), 2, "{isolation}: {shown}");
        assert_eq!(shown.stdout.matches("is_error").count(), 0, "{isolation}: {shown}");
    }
    assert_eq!(batch(&["notes.wasm", "stats.wasm"], &[]).status, 1, "not without them");
    let shown = batch(&["notes.wasm", "stats.wasm", "hello"], &grants);
    assert_eq!(shown.status, 2, "{shown}");
    assert!(
        shown
            .stderr
            .contains("`--grant` cannot be used for `hello`, which `toolcell.toml` configures"),
        "{shown}"
    );
}

/// A component of the configuration with an equal name has other keys.
#[test]
fn grant_option_keys_are_stored_separately() {
    let place = Place::new(
        "[components.notes]\npath = \"notes.wasm\"\ngrants = { kv = [\"write notes/*\"] }\n",
    );
    fs::copy(example("notes"), place.path().join("notes.wasm")).expect("a place");
    fs::create_dir(place.path().join("build")).expect("a place");
    fs::copy(example("notes"), place.path().join("build/notes.wasm")).expect("a place");
    place.approve();
    let add = r#"{"action": "add", "title": "milk", "text": "two litres"}"#;
    let list = r#"{"action": "list"}"#;
    let typed = |words: &[&str]| place.typed(&[words, &["--grant", "kv=write notes/*"]].concat());
    assert_eq!(typed(&["run", "build/notes.wasm", "notes", add]).status, 0);
    assert!(
        typed(&["run", "build/notes.wasm", "notes", list]).stdout.contains("milk"),
        "they outlive the call"
    );
    assert!(!place.typed(&["run", "notes", "notes", list]).stdout.contains("milk"));
}

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

/// Each use prints a warning. Components elsewhere still need approval.
#[test]
fn dev_folder_component_needs_no_approval() {
    let place = built(DEV);
    let named = |words: &[&str]| place.typed(&[&["--config", "toolcell.toml"], words].concat());
    let warning = "warning: development mode: HERE/target/hello.wasm is used without approval, because it lies in \
                   `HERE/target`, a directory of [dev]\n";
    let shown = named(&GREET);
    assert_eq!(
        (shown.status, shown.stdout.as_str(), shown.stderr.as_str()),
        (0, "Hello, Ada!\n", warning),
        "{shown}"
    );
    assert!(named(&["tools", "dev"]).stderr.contains(warning));
    let checked = named(&["check"]);
    assert!(
        checked
            .stdout
            .contains("  DEVELOPMENT: used without approval, because it lies in `HERE/target`"),
        "{checked}"
    );
    assert!(
        checked.stderr.contains("not approved, or changed since the approval: other\n"),
        "{checked}"
    );
    let served = named(&["serve", "--check", "--json"]);
    assert_eq!(served.json()["development_components"], serde_json::json!(["dev"]), "{served}");
    assert!(
        served.stderr.contains("development mode: `dev` is served without approval"),
        "{served}"
    );
    let explained = named(&["explain", "dev", "greet", "variable A"]);
    assert!(!explained.stderr.contains("until the component is approved"), "{explained}");
    let other = named(&["run", "other", "text_stats"]);
    assert!(other.status == 21 && other.stderr.contains("not approved yet"), "{other}");
    // A link from outside into the folder does not count as in the folder, and neither does a link
    // in the folder to a file outside.
    fs::remove_file(place.path().join("target/hello.wasm")).expect("it is there");
    std::os::unix::fs::symlink("../hello.wasm", place.path().join("target/hello.wasm"))
        .expect("a place");
    assert_eq!(named(&GREET).status, 21);
    // Other users who can write to the folder could replace its components.
    fs::set_permissions(place.path().join("target"), fs::Permissions::from_mode(0o777))
        .expect("a place");
    let open = named(&GREET);
    assert!(
        open.status == 1 && open.stderr.contains("other users can write to `HERE/target`"),
        "{open}"
    );
    // A home directory or a system directory is rejected too.
    for folder in [".", "/etc", "/"] {
        place.write(&DEV.replacen("target", folder, 1));
        let shown = named(&["check"]);
        assert!(
            shown.status == 1 && shown.stderr.contains("hint: name the folder that your builds"),
            "{folder}: {shown}"
        );
    }
}

/// Approved or not: `check` names the components that are used without approval.
#[test]
fn check_lists_components_in_development() {
    const VALID: &str = "note: `toolcell.toml` is valid";
    let one = "[dev]\ndirectories = [\"target\"]\n[components.dev]\npath = \"target/hello.wasm\"\n";
    let two = format!("{one}[components.two]\npath = \"target/two.wasm\"\n");
    let place = built(one);
    fs::copy(example("calculator"), place.path().join("target/two.wasm")).expect("a place");
    let named = |words: &[&str]| place.typed(&[&["--config", "toolcell.toml"], words].concat());
    for (config, approve, ending) in [
        (one, false, "; not approved, but used in development: dev\n"),
        (&two, false, "; not approved, but used in development: dev, two\n"),
        (one, true, ", and everything in it is approved\n"),
        (&two, false, "; not approved, but used in development: two\n"),
    ] {
        place.write(config);
        if approve {
            assert_eq!(named(&["approve", "--yes"]).status, 0);
        }
        let shown = named(&["check"]);
        assert_eq!(
            (shown.status, shown.stderr.as_str()),
            (0, &*format!("{VALID}{ending}")),
            "{shown}"
        );
        let json = named(&["check", "--json"]).json();
        let developed: Vec<_> = json["development_components"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|name| name.as_str())
            .collect();
        let is_told = developed.is_empty() || ending.contains(&developed.join(", "));
        assert_eq!(
            (json["approved"].as_bool(), is_told),
            (Some(developed.is_empty()), true),
            "{json}"
        );
        assert_eq!(developed.is_empty(), ending.ends_with("is approved\n"), "{json}");
    }
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
    assert!(
        shown.status == 21 && shown.stderr.contains("is not the one that was approved"),
        "{shown}"
    );
    let warning = "warning: toolcell.toml:2:16: [dev] is not used: this file was found, not named\n\
                   hint: to use [dev], name the file with `--config FILE`\n";
    assert!(place.typed(&["check"]).stderr.contains(warning), "{}", place.typed(&["check"]));
}
