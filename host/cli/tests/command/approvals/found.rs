//! A configuration of another user, in a directory that users share.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};

use crate::place::Place;

/// In a directory that users share, such as `/tmp`: with any content of another user's file,
/// readable or not. Only root can change the owner of a file; for other users the rule is tested
/// beside its code.
#[test]
fn foreign_config_stops_only_commands_that_need_it() {
    let place = Place::new("");
    fs::remove_file(place.path().join("toolcell.toml")).expect("it is there");
    let shared = place.path().join("shared");
    fs::create_dir_all(shared.join("mine")).expect("a place");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("a place");
    fs::copy(place.path().join("hello.wasm"), shared.join("mine/hello.wasm")).expect("a place");
    let file = shared.join("toolcell.toml");
    let calls = shared.join("mine/calls.json");
    fs::write(&calls, r#"[{"name": "greet", "arguments": {"name": "Ada"}}]"#).expect("a place");
    for (config, mode) in
        [("[components.named]\npath = \"hello.wasm\"\n", 0o644), ("= broken", 0o666), ("", 0o000)]
    {
        fs::write(&file, config).expect("a place");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a place");
        if chown(&file, Some(65_534), None).is_err() {
            return;
        }
        let typed = |words: &[&str]| {
            place.shown(place.command().current_dir(shared.join("mine")).args(words))
        };
        for words in [
            &["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#][..],
            &["batch", "hello.wasm", "--calls", "calls.json"],
            &["list", "hello.wasm"],
            &["inspect", "hello.wasm"],
            &["tools", "hello.wasm"],
            &["explain", "hello.wasm", "greet", "GET https://a.example"],
        ] {
            let shown = typed(words);
            assert_eq!(
                shown.status,
                if words[0] == "explain" { 21 } else { 0 },
                "{config:?} {words:?}: {shown}"
            );
            assert!(!shown.stderr.contains("error: "), "{config:?} {words:?}: {shown}");
            assert!(
                shown.stderr.contains("ignored a configuration that belongs to another user"),
                "{words:?}: {shown}"
            );
        }
        for words in [&["run", "named", "greet"][..], &["check"], &["approve", "--yes"]] {
            let shown = typed(words);
            assert!(
                shown.status == 1 && shown.stderr.contains("belongs to another user"),
                "{config:?}: {shown}"
            );
            let named = "error: `HERE/shared/toolcell.toml` is ignored: it belongs to another user (uid 65534)\n";
            assert!(shown.stderr.contains(named), "{config:?}: {shown}");
            assert!(
                shown.stderr.contains("\nhint: name a configuration of your own"),
                "{config:?}: {shown}"
            );
        }
        fs::remove_file(&file).expect("it is there");
    }
    // The directory's owner could replace the file.
    fs::write(&file, "").expect("a place");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).expect("a place");
    chown(&shared, Some(65_534), None).expect("as before");
    let shown = place.shown(place.command().current_dir(shared.join("mine")).args(["check"]));
    let named = "is ignored: `HERE/shared` belongs to another user (uid 65534)\n";
    shown.tells(1, named);
    chown(&shared, Some(0), None).expect("as before");
    // It does not hide a configuration in a directory above.
    fs::write(&file, "= broken").expect("a place");
    chown(&file, Some(65_534), None).expect("as before");
    fs::write(place.path().join("toolcell.toml"), "[components.above]\npath = \"hello.wasm\"\n")
        .expect("a place");
    let shown = place.shown(place.command().current_dir(shared.join("mine")).args(["check"]));
    assert!(shown.status == 0 && shown.stdout.contains("above"), "{shown}");
}
