//! `toolcell run DIR`: the component of a project, in the place where cargo or `toolcell build`
//! writes it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::place::Place;
use crate::typed::{CommandResult, command, example};

/// Runs `greet` of the named component, from a folder.
fn greet(dir: &Path, named: &str) -> CommandResult {
    let mut command = command();
    command.current_dir(dir).args(["run", named, "greet", r#"{"name": "Ada"}"#]);
    let output = command.output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    CommandResult {
        status: output.status.code().expect("no signal"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn write(path: &Path, bytes: &[u8], age: u64) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a place");
    fs::write(path, bytes).expect("a place");
    File::options()
        .append(true)
        .open(path)
        .expect("a place")
        .set_modified(SystemTime::now() - Duration::from_secs(age))
        .expect("a place");
}

const MANIFEST: &str = "[package]\nname = \"my-tool\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n";

#[test]
fn newest_build_of_crate_is_run() {
    let dir = tempfile::tempdir().unwrap();
    let hello = fs::read(example("hello")).unwrap();
    fs::write(dir.path().join("Cargo.toml"), MANIFEST).unwrap();
    write(&dir.path().join("target/wasm32-wasip2/release/my_tool.wasm"), b"an older build", 60);
    write(&dir.path().join("target/wasm32-wasip2/debug/my_tool.wasm"), &hello, 10);
    let shown = greet(dir.path(), ".");
    assert_eq!((shown.status, shown.stdout.as_str()), (0, "Hello, Ada!\n"), "{shown}");
    write(&dir.path().join("target/wasm32-wasip2/release/my_tool.wasm"), b"a newer build", 0);
    assert!(
        greet(dir.path(), ".").stderr.contains("release/my_tool.wasm"),
        "{}",
        greet(dir.path(), ".")
    );
}

#[test]
fn workspace_member_uses_workspace_target_folder() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("Cargo.toml"), "[workspace]\nmembers = [\"tool\"]\n").unwrap();
    write(
        &dir.path().join("tool/Cargo.toml"),
        b"[package]\nname = \"t\"\n[lib]\nname = \"other\"\n",
        0,
    );
    write(
        &dir.path().join("target/wasm32-wasip2/release/other.wasm"),
        &fs::read(example("hello")).unwrap(),
        0,
    );
    let shown = greet(dir.path(), "tool");
    assert_eq!((shown.status, shown.stdout.as_str()), (0, "Hello, Ada!\n"), "{shown}");
}

#[test]
fn unbuilt_crate_names_build_command() {
    let dir = tempfile::tempdir().unwrap();
    for (folder, manifest, named, error, hint) in [
        (
            "",
            MANIFEST,
            ".",
            "the crate `my-tool` is not built",
            "`cargo build --release --target wasm32-wasip2`",
        ),
        ("a b", MANIFEST, "a b", "is not built", "--manifest-path 'a b/Cargo.toml'`"),
        (
            "lib",
            "[package]\nname = \"t\"\n",
            "lib",
            "is not built",
            "write `crate-type = [\"cdylib\"]` below `[lib]`",
        ),
        (
            "space",
            "[workspace]\n",
            "space",
            "is a workspace",
            "name the folder of one of its packages",
        ),
        ("broken", "[package", "broken", "cannot read `broken/Cargo.toml`", "correct it"),
    ] {
        let path = dir.path().join(folder).join("Cargo.toml");
        write(&path, manifest.as_bytes(), 0);
        let shown = greet(dir.path(), named);
        fs::remove_file(&path).unwrap();
        assert_eq!((shown.status, shown.stdout.as_str()), (1, ""), "{shown}");
        assert!(shown.stderr.starts_with("error: ") && shown.stderr.contains(error), "{shown}");
        assert!(
            shown.stderr.lines().any(|line| line.starts_with("hint: ") && line.contains(hint)),
            "{hint}: {shown}"
        );
    }
}

/// Named from outside or found from inside. Before the build, the hint has the build command.
#[test]
fn project_folder_resolves_to_its_component() {
    for (folder, outside, inside) in [
        ("g2", "`toolcell build g2`", "`toolcell build`"),
        ("a b", "`toolcell build 'a b'`", "`toolcell build`"),
    ] {
        let place = Place::new("");
        fs::remove_file(place.path().join("toolcell.toml")).expect("it is there");
        let within = |words: &[&str]| {
            place.shown(place.command().current_dir(place.path().join(folder)).args(words))
        };
        assert_eq!(place.typed(&["new", "greeter", "--language", "js"]).status, 0);
        fs::rename(place.path().join("greeter"), place.path().join(folder)).expect("a place");
        let file = format!("{folder}.wasm");
        let (unbuilt, here) = (place.typed(&["run", folder, "name=Ada"]), within(&["inspect"]));
        for (shown, file, hint) in
            [(unbuilt, format!("{folder}/{file}"), outside), (here, file.clone(), inside)]
        {
            let told = format!(
                "error: the project is not built: there is no `{file}`\nhint: build it: {hint}\n"
            );
            assert_eq!((shown.status, shown.stdout.as_str(), shown.stderr), (1, "", told));
        }
        assert_eq!(place.typed(&["build", folder]).status, 0);
        for shown in [place.typed(&["run", folder, "name=Ada"]), within(&["run", ".", "name=Ada"])]
        {
            assert_eq!((shown.status, shown.stdout.as_str()), (0, "Hello, Ada!\n"), "{shown}");
        }
        for (shown, component) in [
            (place.typed(&["inspect", folder, "--json"]), format!("{folder}/{file}")),
            (within(&["inspect", "--json"]), file),
        ] {
            assert_eq!(shown.json()["component"], component, "{shown}");
        }
        assert_eq!(within(&["run"]).status, 21, "a name is missing, and no component");
    }
    let place = Place::new("");
    let shown = place.typed(&["run", "data", "name=Ada"]);
    assert!(shown.status == 1 && shown.stderr.contains("`data` is a directory"), "{shown}");
}

/// The copy that `toolcell build` made is used if cargo's own folder is not known.
#[test]
fn crate_with_unknown_target_dir_uses_built_copy() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("tool/Cargo.toml"), MANIFEST.as_bytes(), 0);
    write(&dir.path().join("tool/tool.wasm"), &fs::read(example("hello")).unwrap(), 0);
    let shown = greet(dir.path(), "tool");
    assert_eq!((shown.status, shown.stdout.as_str()), (0, "Hello, Ada!\n"), "{shown}");
}

/// Commands about one component use the one that was built here, or else the only one that is
/// configured.
#[test]
fn omitted_component_defaults_to_this_folder() {
    let place = Place::new("[components.hello]\npath = \"hello.wasm\"\n").approved();
    let commands: [(&[&str], i32); 4] = [
        (&["inspect"], 0),
        (&["run"], 21),
        (&["learn"], 21),
        (&["explain", "GET https://a.example"], 21),
    ];
    let check = |tool: &str, place: &Place| {
        // Compiled before, so that both print the same facts.
        assert_eq!(place.typed(&["inspect"]).status, 0);
        for (words, status) in commands {
            let shown = place.typed(words);
            assert_eq!(shown.status, status, "{words:?}: {shown}");
            assert_eq!(
                shown.stdout,
                place.typed(&[&words[..1], &["."], &words[1..]].concat()).stdout,
                "{words:?}"
            );
        }
        let shown = place.typed(&["inspect", "--json"]);
        assert_eq!(shown.json()["tools"][0]["name"], tool, "{shown}");
    };
    check("greet", &place);
    assert_eq!(place.typed(&["run", ".", "name=Ada"]).stdout, "Hello, Ada!\n");
    fs::write(place.path().join("Cargo.toml"), MANIFEST).unwrap();
    check("greet", &place);
    write(
        &place.path().join("target/wasm32-wasip2/debug/my_tool.wasm"),
        &fs::read(example("jq")).unwrap(),
        0,
    );
    check("jq", &place);
}

#[test]
fn omitted_component_without_default_gets_hint() {
    let two = "[components.one]\npath = \"hello.wasm\"\n[components.two]\npath = \"asks.wasm\"\n";
    for (config, status, error, hint) in [
        (
            two,
            2,
            "`toolcell.toml` configures several components: name one",
            "its components: one, two",
        ),
        ("", 2, "no component is named, and none is found", "toolcell inspect asks.wasm"),
    ] {
        let place = Place::new(config);
        for words in [&["run"][..], &["learn"], &["inspect"], &["explain", "GET https://a.example"]]
        {
            let shown = place.typed(words);
            assert_eq!((shown.status, shown.stdout.as_str()), (status, ""), "{words:?}: {shown}");
            assert!(shown.stderr.starts_with(&format!("error: {error}")), "{words:?}: {shown}");
            assert!(shown.stderr.contains(hint), "{words:?}: {shown}");
        }
    }
}

/// One file, named or found.
#[test]
fn grant_option_works_for_folder_component() {
    let place = Place::new("");
    fs::write(place.path().join("Cargo.toml"), MANIFEST).unwrap();
    write(
        &place.path().join("target/wasm32-wasip2/release/my_tool.wasm"),
        &fs::read(example("notes")).unwrap(),
        0,
    );
    let add = ["run", ".", "action=add", "title=milk", "text=two", "--grant", "kv=write notes/*"];
    let shown = place.typed(&add);
    assert_eq!(shown.status, 0, "{shown}");
    let shown = place.typed(&["run", ".", "action=list"]);
    assert!(
        shown.status == 1 && shown.stderr.contains("add to `toolcell run` or `toolcell batch`:"),
        "{shown}"
    );
    assert!(
        shown.stderr.contains("path = \"target/wasm32-wasip2/release/my_tool.wasm\"\n"),
        "{shown}"
    );
    for words in [&["run", "action=list"][..], &["learn", "{\"action\": \"list\"}"]] {
        let shown = place.typed(words);
        assert_eq!((shown.status, shown.stdout.as_str()), (2, ""), "{shown}");
        assert!(shown.stderr.contains(
            "and the component comes first\nhint: for the component of this folder, write `.`"
        ));
    }
}

/// The project can choose its toolchain: rustc is run in its folder.
#[test]
fn rust_build_names_missing_tool_and_install_command() {
    let place = Place::new("");
    assert_eq!(place.typed(&["new", "greeter", "--language", "rust"]).status, 0);
    let bin = place.path().join("bin");
    fs::create_dir(&bin).expect("a place");
    let build = |told: &str, hint: &str| {
        let shown = place.shown(place.command().env("PATH", &bin).args(["build", "greeter"]));
        assert_eq!(shown.status, 1, "{shown}");
        assert!(
            shown.stderr.contains(told) && shown.stderr.contains(&format!("hint: {hint}")),
            "{shown}"
        );
    };
    build("cargo or rustc cannot be started", "install Rust with rustup (https://rustup.rs)");

    let rustc = bin.join("rustc");
    fs::write(&rustc, "#!/bin/sh\ntest -e rust-toolchain.toml && echo \"$PWD/toolchain\"\n")
        .expect("a place");
    fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)).expect("a place");
    fs::write(place.path().join("greeter/rust-toolchain.toml"), "").expect("a place");
    build(
        "no standard library for wasm32-wasip2",
        "install it with `rustup target add wasm32-wasip2`",
    );
    // A toolchain that is too old is reported with the required version, not with its missing
    // target.
    let script = fs::read_to_string(&rustc).expect("the script");
    for (version, is_told) in [
        ("1.81.0 (eeb90cda1 2024-09-04)", true),
        ("1.94.1", true),
        ("1.95.0-nightly", false),
        ("2.0.0", false),
    ] {
        let version_of =
            format!("if [ \"$1\" = --version ]; then echo 'rustc {version}'; exit; fi\n");
        fs::write(&rustc, script.replace("#!/bin/sh\n", &format!("#!/bin/sh\n{version_of}")))
            .expect("a place");
        if is_told {
            let number = version.split(' ').next().expect("a number");
            let told =
                format!("rustc {number} is installed, and toolcell-guest needs 1.95 or later\n");
            build(&told, "update it with `rustup update`");
        } else {
            build(
                "no standard library for wasm32-wasip2",
                "install it with `rustup target add wasm32-wasip2`",
            );
        }
    }
    // For a crate without the SDK, cargo reports the error.
    let manifest = place.path().join("greeter/Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    fs::write(
        &rustc,
        script.replace(
            "#!/bin/sh\n",
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'rustc 1.80.0'; exit; fi\n",
        ),
    )
    .expect("a place");
    fs::write(&manifest, text.replace("toolcell-guest", "other")).expect("a place");
    build(
        "no standard library for wasm32-wasip2",
        "install it with `rustup target add wasm32-wasip2`",
    );
    fs::write(&manifest, text).expect("a place");
    fs::write(&rustc, script).expect("a place");
    // The toolchain is there now, but without cargo.
    fs::create_dir_all(place.path().join("greeter/toolchain/lib/rustlib/wasm32-wasip2/lib"))
        .expect("a place");
    build("cargo or rustc cannot be started", "install Rust with rustup");
    // The output of cargo is shown.
    let cargo = bin.join("cargo");
    fs::write(&cargo, "#!/bin/sh\necho 'error[E0425]: cannot find value `nam`' >&2\nexit 101\n")
        .expect("a place");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("a place");
    build("error[E0425]: cannot find value `nam`", "correct what cargo reports above");
    build("cargo could not build the crate", "correct what cargo reports above");
}
