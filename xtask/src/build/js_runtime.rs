//! Builds the JavaScript runtimes, without and with `Intl`, and the module reader, which are
//! checked in as compressed WebAssembly.
//!
//! QuickJS is C: Zig's compiler, from the Python package `ziglang`, compiles it. `ZIG_PYTHON` names
//! the Python that has it. Then `wasm-opt` of Binaryen, from the npm package `binaryen`, optimises
//! each module; `WASM_OPT` names the program if it is not in `PATH`. A file beside the modules
//! holds the digest of their sources, so that a test without Zig notices sources that were changed
//! and not built.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use miniz_oxide::deflate::compress_to_vec_zlib;
use sha2::{Digest as _, Sha256};

use crate::shell::{print, root};
use xtask::guests::rustlib;

const TARGET: &str = "wasm32-unknown-unknown";
/// A package, its features, and the name of its file in `host/author/runtime`.
const MODULES: [(&str, &str, &str); 3] = [
    ("toolcell-js-runtime", "", "runtime.wasm.zlib"),
    ("toolcell-js-runtime", "intl", "runtime_intl.wasm.zlib"),
    ("toolcell-js-modules", "", "modules.wasm.zlib"),
];
/// The level of the compression that makes them smallest.
const LEVEL: u8 = 10;
/// The C stack of a cell: twice what JavaScript may use of it (`STACK` of the runtime). The pool
/// scans the whole memory after each call, so a megabyte, the default, would make each slower.
const STACK_SIZE: &str = "-Clink-arg=-zstack-size=327680";
/// Options of `wasm-opt`. It allows only the proposals that are named; these are what the compilers
/// use. Without the pass, data stays in two segments: the snapshot would keep an empty one for each
/// of the thousand that the pass makes, and each call would set them up.
const OPTIMISATIONS: [&str; 8] = [
    "-O3",
    "--skip-pass=memory-packing",
    "--enable-bulk-memory-opt",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];
/// The file with the digest of the sources.
const DIGEST: &str = "host/author/runtime/sources.sha256";

/// Builds the modules, replaces the files, and prints which of them changed.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let workspace = root.join("guest-sdk/js");
    let python = std::env::var("ZIG_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_zig = Command::new(&python).args(["-m", "ziglang", "version"]).output();
    let hint = "install the Python package `ziglang`, and name its Python with ZIG_PYTHON";
    ensure!(
        has_zig.is_ok_and(|version| version.status.success()),
        "{python} has no ziglang; {hint}"
    );
    let optimiser = std::env::var("WASM_OPT").unwrap_or_else(|_| "wasm-opt".to_owned());
    ensure!(
        Command::new(&optimiser)
            .arg("--version")
            .output()
            .is_ok_and(|version| version.status.success()),
        "`{optimiser}` does not run; install the npm package `binaryen`, and name its `wasm-opt` with WASM_OPT"
    );
    let tools = workspace.join("target/zig");
    fs::create_dir_all(&tools)?;
    // cc-rs adds a `--target` that Zig spells differently.
    let drop_target = "args=(); for arg in \"$@\"; do case \"$arg\" in --target=*) ;; *) args+=(\"$arg\") ;; esac; done";
    let compile = format!(
        "{drop_target}\nexec {python} -m ziglang cc -target wasm32-freestanding \"${{args[@]}}\""
    );
    let compiler = script(&tools.join("cc"), &compile)?;
    let archiver = script(&tools.join("ar"), &format!("exec {python} -m ziglang ar \"$@\""))?;
    for (package, features, kept) in MODULES {
        let status = Command::new("cargo")
            .current_dir(&workspace)
            .args([
                "build",
                "--release",
                "--locked",
                "--target",
                TARGET,
                "--package",
                package,
                "--features",
                features,
            ])
            .env("CC_wasm32_unknown_unknown", &compiler)
            .env("AR_wasm32_unknown_unknown", &archiver)
            .env("CARGO_ENCODED_RUSTFLAGS", flags(root, package)?)
            // With -O2 the interpreter is inlined more than with -Os: a call costs a third less,
            // and a component has 0.3 MB more.
            .env("CFLAGS_wasm32_unknown_unknown", "-fno-sanitize=undefined -O2")
            .status()?;
        ensure!(status.success(), "{kept} does not build");
        let built = format!("{}.wasm", package.replace('-', "_"));
        let built = workspace.join("target").join(TARGET).join("release").join(built);
        let optimised = tools.join("optimised.wasm");
        let status = Command::new(&optimiser)
            .args(OPTIMISATIONS)
            .arg(&built)
            .arg("-o")
            .arg(&optimised)
            .status()?;
        ensure!(status.success(), "wasm-opt refuses {}", built.display());
        let new = fs::read(optimised)?;
        let new = compress_to_vec_zlib(&new, LEVEL);
        let kept = root.join("host/author/runtime").join(kept);
        let is_same = fs::read(&kept).is_ok_and(|old| old == new);
        fs::write(&kept, &new)?;
        print(&format!(
            "{} {}\n",
            kept.display(),
            if is_same { "is unchanged" } else { "changed" }
        ));
    }
    fs::write(root.join(DIGEST), format!("{}\n", digest_of_sources(root)?))?;
    Ok(())
}

/// Returns the SHA-256 digest of the paths, sizes and contents of all files in `guest-sdk/js`
/// except `target` directories.
fn digest_of_sources(root: &Path) -> Result<String> {
    let mut paths = Vec::new();
    let mut folders = vec![root.join("guest-sdk/js")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true if entry.file_name() == "target" => {}
                true => folders.push(entry.path()),
                false => paths.push(entry.path()),
            }
        }
    }
    paths.sort();
    let mut digest = Sha256::new();
    for path in paths {
        let content = fs::read(&path)?;
        let name = path.strip_prefix(root)?.to_str().context("a path in UTF-8")?;
        digest.update(format!("{name}\0{}\0", content.len()));
        digest.update(content);
    }
    Ok(format!("{:x}", digest.finalize()))
}

/// Returns compiler flags: the C stack of the runtime, and those that keep the paths of this machine
/// out of the output. Panics name files below `crates`, `toolcell` and `rust`.
fn flags(root: &Path, package: &str) -> Result<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .context("the folder of cargo")?;
    let sources = fs::read_dir(home.join("registry/src"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|source| source.path());
    // With the component `rust-src`, the compiler names the standard library by the path of its
    // sources on this machine.
    let own = [(root.to_owned(), "toolcell"), (rustlib()?.join("src/rust"), "rust")];
    let remapped = sources.map(|source| (source, "crates")).chain(own);
    let flags =
        remapped.map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    let stack_size = (package == "toolcell-js-runtime").then(|| STACK_SIZE.to_owned());
    Ok(flags.chain(stack_size).collect::<Vec<_>>().join("\u{1f}"))
}

fn script(path: &Path, text: &str) -> Result<PathBuf> {
    fs::write(path, format!("#!/usr/bin/env bash\n{text}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use miniz_oxide::inflate::decompress_to_vec_zlib;

    use super::*;

    #[test]
    fn js_runtime_is_built_from_current_sources() {
        let root = root();
        let built = fs::read_to_string(root.join(DIGEST)).expect("the digest of the sources");
        let present = digest_of_sources(root).expect("the sources");
        assert_eq!(built.trim(), present, "guest-sdk/js was changed: run `cargo xtask js-runtime`");
    }

    /// A remapped path of a source is relative.
    #[test]
    fn modules_name_no_path_of_a_machine() {
        let toolchain = rustlib().expect("the compiler's libraries");
        let toolchain = toolchain.ancestors().nth(2).expect("the toolchain").display().to_string();
        let sources = "/guest-sdk/js/src/";
        let homes = ["root", "home", "Users"].map(|folder| format!("/{folder}/"));
        let shared = [".cargo/registry", "/registry/src/", "/rustlib/src/", sources];
        for (_, _, name) in MODULES {
            let packed = fs::read(root().join("host/author/runtime").join(name)).expect("a module");
            let module = decompress_to_vec_zlib(&packed).expect("a module");
            let homes = homes.iter().map(String::as_str);
            for path in homes.chain(shared).chain([toolchain.as_str()]) {
                let places = module.windows(path.len()).enumerate();
                for (at, _) in places.filter(|(_, window)| *window == path.as_bytes()) {
                    let is_remapped = path == sources
                        && module.get(..at).is_some_and(|before| before.ends_with(b"toolcell"));
                    assert!(is_remapped, "{name} contains `{path}` at byte {at}");
                }
            }
        }
    }
}
