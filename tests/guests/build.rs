//! Builds the Rust guests once, for every test and bench.

use std::fmt::Write as _;
use std::path::PathBuf;

use xtask::guests::{BARE_TARGET, COMPONENT_TARGET, build, built, ensure_target};

/// Workspaces of guests.
const WORKSPACES: [&str; 2] = ["example-tools", "tests/guests/rust"];

fn main() {
    // Asked for now and not when this was compiled: a target directory may have been moved since.
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let root = own.ancestors().nth(2).expect("two folders below the root").to_owned();
    let forms = "tests/attack/src/scenarios/secrets/disguise/forms.rs";
    for watched in [
        "wit",
        "guest-sdk/rust/src",
        "guest-sdk/rust/Cargo.toml",
        "guest-sdk/rust/macros/src",
        forms,
    ] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    for workspace in WORKSPACES {
        for entry in
            std::fs::read_dir(root.join(workspace)).expect("a workspace of guests").flatten()
        {
            if entry.file_name() != "target" {
                println!("cargo::rerun-if-changed={}", entry.path().display());
            }
        }
    }

    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    for target in [COMPONENT_TARGET, BARE_TARGET] {
        ensure_target(target).expect("a target for guests");
    }
    let mut source =
        String::from("/// Every component by name.\npub const COMPONENTS: &[(&str, &str)] = &[\n");
    let mut names = Vec::new();
    for workspace in WORKSPACES {
        let workspace = root.join(workspace);
        build(&workspace, &[], COMPONENT_TARGET).expect("guests build");
        for component in built(&workspace, COMPONENT_TARGET).expect("guests were built") {
            let name = component.file_stem().expect("a file").to_string_lossy().into_owned();
            writeln!(source, "    ({name:?}, {component:?}),").expect("a string");
            names.push(name);
        }
    }
    let examples = root.join(WORKSPACES[0]);
    build(&examples, &["hello"], BARE_TARGET).expect("a bare guest builds");
    let bare = examples.join("target").join(BARE_TARGET).join("release/hello.wasm");
    writeln!(source, "];\n\nconst BARE_HELLO: &str = {bare:?};\n").expect("a string");

    // A component that no test runs does not compile: the macro names a function per component.
    let calls: String = names.iter().map(|name| format!("$each!({name}); ")).collect();
    let doc = "/// Hands the name of every component to a macro.";
    writeln!(source, "{doc}\n#[macro_export]\nmacro_rules! for_each_component {{ ($each:ident) => {{ {calls} }} }}")
        .expect("a string");
    std::fs::write(out.join("components.rs"), source).expect("the list is written");
}
