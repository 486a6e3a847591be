//! Checks the packages as a registry would get them: packs them, unpacks them elsewhere, and
//! compiles them there.
//!
//! In: the repository. Out: `target/package/*.crate`, and a failure if one of them does not compile
//! from its own files.
//! Invariants: the folder where they are compiled has nothing of the repository but the unpacked
//! packages, the manifests and the lock file. It also has packages without sources, with the
//! dependencies of the other packages and of the tests, and the same profiles: so the dependencies
//! get the features that they have for the tests, and their compiled code is reused.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::{cargo, print, root};

/// The published packages, each after its dependencies.
const PUBLISHED: [&str; 9] = [
    "toolcell-guest-macros",
    "toolcell-guest",
    "toolcell-contract",
    "toolcell-provider",
    "toolcell",
    "toolcell-config",
    "toolcell-server",
    "toolcell-author",
    "toolcell-cli",
];
/// Files that a registry shows of a package, or that its licence requires.
const PAPERS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Packs, unpacks and checks all packages.
pub(crate) fn run() -> Result<()> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let target = target.to_str().context("a target directory that is text")?;
    let selected = PUBLISHED.iter().flat_map(|name| ["-p", name]);
    // Uncommitted changes are packed as well: they are to be checked.
    let options = ["package", "--no-verify", "--allow-dirty", "--target-dir", target];
    cargo(root(), &options.into_iter().chain(selected).collect::<Vec<_>>())?;

    let place = Path::new(target).join("package/unpacked");
    if place.exists() {
        fs::remove_dir_all(&place).context("what an earlier check left")?;
    }
    for name in PUBLISHED {
        let packed =
            Path::new(target).join(format!("package/{name}-{}.crate", env!("CARGO_PKG_VERSION")));
        unpack(&packed, &place.join("packed").join(name))?;
        for paper in PAPERS {
            ensure!(
                place.join("packed").join(name).join(paper).is_file(),
                "{name} is packed without {paper}"
            );
        }
    }
    workspace(&place)?;
    print(&format!("In {}, where there is nothing but the packages:\n", place.display()));
    cargo(&place, &["check", "--workspace", "--target-dir", target])
}

fn unpack(packed: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(packed).arg("-C").arg(folder).arg("--strip-components=1");
    let status = tar.status().context("hint: install tar and gzip")?;
    ensure!(status.success(), "{} cannot be unpacked: {status}", packed.display());
    Ok(())
}

/// Writes the workspace around the unpacked packages. Packed manifests name versions only; a patch
/// makes them use each other.
fn workspace(place: &Path) -> Result<()> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let (before, after) = manifest.split_once("members = [").context("the members")?;
    let (members, after) = after.split_once(']').context("the members")?;
    for member in members.split('"').skip(1).step_by(2) {
        let own = fs::read_to_string(root().join(member).join("Cargo.toml"))?;
        write_stand_in(&place.join("others"), &member.replace('/', "-"), &own)?;
    }
    let patches: String =
        PUBLISHED.iter().map(|name| format!("{name} = {{ path = \"packed/{name}\" }}\n")).collect();
    let members = r#"members = ["packed/*", "others/*"]"#;
    fs::write(
        place.join("Cargo.toml"),
        format!("{before}{members}{after}\n[patch.crates-io]\n{patches}"),
    )?;
    fs::copy(root().join("Cargo.lock"), place.join("Cargo.lock"))?;
    Ok(())
}

/// Writes a package without sources that has the dependencies of another one and of its tests,
/// except the project's own packages. Those of `xtask` are build dependencies as well, because a
/// build script uses it: else macros would get other features, and be compiled again with all that
/// uses them. Its name and folder differ from the other's: packages with the same ones would
/// overwrite each other in the target directory.
fn write_stand_in(folder: &Path, name: &str, manifest: &str) -> Result<()> {
    let folder = folder.join(name);
    fs::create_dir_all(folder.join("src"))?;
    let mut text = format!("[package]\nname = \"{name}-stand-in\"\nedition.workspace = true\n");
    let for_scripts = (name == "xtask").then_some(("[dependencies]", "[build-dependencies]"));
    for (from, to) in [
        ("[dependencies]", "[dependencies]"),
        ("[dev-dependencies]", "[target.'cfg(unix)'.dependencies]"),
    ]
    .into_iter()
    .chain(for_scripts)
    {
        let lines = manifest
            .lines()
            .skip_while(|line| *line != from)
            .skip(1)
            .take_while(|line| !line.starts_with('['));
        text.push_str(&format!("\n{to}\n"));
        for line in lines.filter(|line| !line.starts_with("toolcell")) {
            text.push_str(&format!("{line}\n"));
        }
    }
    fs::write(folder.join("Cargo.toml"), text)?;
    fs::write(folder.join("src/lib.rs"), "//! Nothing: only the dependencies count.\n")?;
    Ok(())
}
