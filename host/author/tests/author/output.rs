//! The output file of a build.

use std::fs;

use toolcell_author::{ErrorKind, Language, build, create};

#[test]
fn build_replaces_only_empty_and_wasm_files() {
    let place = tempfile::tempdir().expect("a folder");
    let project = place.path().join("greeter");
    create(&project, Language::JavaScript).expect("a project");
    fs::create_dir(place.path().join("folder")).expect("made");
    for (name, content, is_replaced) in [
        ("notes.md", Some("mine"), false),
        ("greeter/src/tool.js", None, false),
        ("folder", None, false),
        ("empty.wasm", Some(""), true),
        ("older.wasm", Some("\0asm older"), true),
        ("new.wasm", None, true),
    ] {
        let out = place.path().join(name);
        if let Some(content) = content {
            fs::write(&out, content).expect("written");
        }
        let before = fs::read(&out).ok();
        match build(&project, Some(&out)) {
            Ok(built) => assert!(is_replaced && built.component == out, "{name}"),
            Err(error) => {
                assert!(!is_replaced && error.kind() == ErrorKind::File, "{name}: {error}");
                assert!(error.hint().contains("`--output`"), "{}", error.hint());
                assert_eq!(fs::read(&out).ok(), before, "{name}");
            }
        }
    }
}
