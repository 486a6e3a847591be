//! npm packages in a JavaScript tool: resolution of imports, and CommonJS.

use std::os::unix::fs::symlink;

use toolcell_author::cases::Options;
use toolcell_author::{Error, ErrorKind, build};
use toolcell_test_guests::rows;

use crate::case_run::{all_passed, project, tested};

fn fault(files: &[(&str, &str)]) -> Error {
    build(project(files).path(), None).expect_err("it is at fault")
}

#[test]
fn packages_resolve_as_in_browser_bundlers() {
    let place = project(&rows::<(&str, &str)>("author/packages", "files"));
    assert_eq!(all_passed(&tested(place.path(), &Options::default())), 1);
}

#[test]
fn commonjs_stack_trace_has_only_lines_of_files() {
    let files =
        rows::<(&str, &str)>("author/packages", "commonjs_stack_trace_has_only_lines_of_files");
    assert_eq!(all_passed(&tested(project(&files).path(), &Options::default())), 1);
}

/// An npm workspace keeps the packages of its members in a folder above them, which a build does
/// not read.
#[test]
fn error_names_package_of_parent_workspace() {
    let place = project(&[("member/tool.js", "import '@a/p/x'"), ("node_modules/@a/p/x.js", "")]);
    let error = build(&place.path().join("member"), None).expect_err("it does not build");
    let shared = place.path().canonicalize().expect("a folder").join("node_modules");
    let told = format!(
        "the package `@a/p` is in `{}`, and only packages in the project's folder are read",
        shared.display()
    );
    assert!(error.to_string().ends_with(&told), "{error}");
    assert!(error.hint().contains("`npm install --no-workspaces @a/p`"), "{}", error.hint());
}

#[test]
fn unusable_package_is_named_with_the_reason() {
    const IN: &str = "import 'p'";
    for (files, told, hint) in rows::<(Vec<(&str, &str)>, &str, &str)>(
        "author/packages",
        "unusable_package_is_named_with_the_reason",
    )
    .into_iter()
    .chain([
        (
            vec![
                ("tool.js", IN),
                ("node_modules/p/index.js", &*format!("export default {}", "(".repeat(200_000))),
            ],
            "`node_modules/p/index.js` cannot be parsed: it is nested too deeply",
            "simplify",
        ),
        (
            vec![("tool.js", &*format!("export default {}{}", "[".repeat(480), "]".repeat(480)))],
            "nested too deeply",
            "simplify",
        ),
        (
            vec![
                ("tool.js", &*format!("import 'p/{}'", "a".repeat(3000))),
                (
                    "node_modules/p/package.json",
                    &*format!(r#"{{"exports": {{"./*": "./{}"}}}}"#, "*".repeat(300_000)),
                ),
            ],
            "the package `p` does not export it",
            "node_modules/p/package.json",
        ),
        (
            vec![("tool.js", &*format!("import '{}'", "a".repeat(5000)))],
            "has more than 4096 bytes",
            "shorter",
        ),
        (
            vec![("tool.js", &*" ".repeat((8 << 20) + 1))],
            "`tool.js` is too large: 8388609 bytes, and at most 8388608 are read",
            "split it",
        ),
        (
            vec![("tool.js", IN), ("node_modules/p/package.json", &*" ".repeat((1 << 20) + 1))],
            "node_modules/p/package.json:1:1: the file is larger than 1048576 bytes",
            "the fault is in the package `p`",
        ),
    ]) {
        let error = fault(&files);
        assert_eq!(error.kind(), ErrorKind::Source, "{told}: {error}");
        assert!(error.to_string().contains(told), "{told}: {error}");
        assert!(error.hint().contains(hint), "{told}: {}", error.hint());
    }
}

#[test]
fn link_out_of_the_project_is_not_followed() {
    let outside = project(&[("p/index.js", "export {}"), ("p/package.json", "{}")]);
    let place = project(&[("tool.js", "import 'p'"), ("node_modules/.keep", "")]);
    symlink(outside.path().join("p"), place.path().join("node_modules/p")).expect("a link");
    let error = build(place.path(), None).expect_err("it is outside");
    // The same holds for a link to the main file.
    let linked = tempfile::tempdir().expect("a folder");
    symlink(outside.path().join("p/index.js"), linked.path().join("tool.js")).expect("a link");
    let entry = build(linked.path(), None).expect_err("it is outside");
    assert!(entry.to_string().contains("`tool.js` is outside of the project"), "{entry}");
    assert!(
        error
            .to_string()
            .contains("its file in the package `p` is missing or outside of the project"),
        "{error}"
    );
}
