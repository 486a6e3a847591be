//! Builds tools in Python, C and Rust and runs their cases, with compilers from the Python registry
//! and cargo: the common cases, the example tools, and the projects of `toolcell new`. Also builds
//! tools in TypeScript that import npm packages, checks the declarations for TypeScript, runs
//! components and programs that were not made for toolcell (`existing`), and compares answers of
//! the language runtimes with the originals (`platform`).
//!
//! Invariants: a common case is run for every language, or is named with a reason in the project's
//! `skipped.txt`; a name there that no case has is an error.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::build::registries::{Packages, install_python};
use crate::shell::{cargo, print, root};

/// The packages to install: the versions that `host/author/src/languages/python.rs` and
/// `host/author/src/languages/c/compiler.rs` demand.
const REQUIREMENTS: &str = "tests/languages/requirements.txt";

/// Raises the limit: the wasm compiler of this build is not optimised, and on a slow machine it
/// takes longer than the default limit for a component of 11 MiB.
const COMPILE_TIME: [&str; 2] = ["--max-compile-time", "5m"];

/// An array of command-line words from texts and paths.
macro_rules! words {
    ($($word:expr),*) => { [$(OsStr::new($word)),*] };
}

mod existing;
pub(crate) mod platform;
mod services;

/// Builds every project and runs its cases.
pub(crate) fn run() -> Result<()> {
    let bench = Bench::install()?;
    let mut failed = Vec::new();
    let made = bench.place.join("new");
    remove(&made)?;
    let examples =
        ["python", "c"].map(|language| projects(&root().join("example-tools").join(language)));
    let examples = examples.into_iter().collect::<Result<Vec<_>>>()?.concat();
    let packages = Packages::install()?;
    platform::compare(&packages.node)?;
    platform::python(&bench)?;
    let with_packages = projects(&root().join("example-tools/npm"))?.into_iter();
    let with_packages =
        with_packages.map(|project| packages.project(&project, &bench.place.join("npm")));
    let with_packages = with_packages.collect::<Result<Vec<_>>>()?;
    let mut new = Vec::new();
    for language in ["rust", "python", "c"] {
        let folder = made.join(format!("new-{language}"));
        ensure!(
            bench.toolcell(&words!["new", &folder, "--language", language])?,
            "`toolcell new` failed"
        );
        new.push(folder);
    }
    let lock = made.join("new-rust/Cargo.lock");
    let pinned = fs::read(&lock)?;
    for project in projects(&common())?.into_iter().chain(examples).chain(with_packages).chain(new)
    {
        failed.extend(bench.fault(&project)?);
    }
    if fs::read(&lock)? != pinned {
        failed.push("new-rust, whose Cargo.lock is not complete".to_owned());
    }
    for language in ["python", "c"] {
        failed.extend(bench.refused(&common().join(language).join("refused"), &made)?);
    }
    if !bench.types_hold(&packages, &made.join("types"))? {
        failed.push("types".to_owned());
    }
    let toolcell = |words: &[&OsStr]| bench.command(words);
    let programs =
        existing::Programs { python: &bench.python, packages: &packages, command: &toolcell };
    failed.extend(existing::run(&programs)?);
    // The path of an author without the compilers: each build names the command that installs its
    // own.
    let walk = "authors::first_tool::missing_compiler_error_names_next_command";
    cargo(
        root(),
        &[
            "test",
            "--workspace",
            "--locked",
            "--test",
            "command",
            "--",
            "--ignored",
            "--exact",
            walk,
        ],
    )?;
    ensure!(failed.is_empty(), "these projects failed, see above:\n{}", failed.join("\n"));
    Ok(())
}

/// The command, and the compilers that it finds.
struct Bench {
    /// The folder in which everything is built.
    place: PathBuf,
    /// The interpreter of the environment with the compilers.
    python: PathBuf,
    command: PathBuf,
}

impl Bench {
    /// Installs the compilers and builds the command.
    fn install() -> Result<Self> {
        let place = root().join("target/languages");
        fs::create_dir_all(&place)?;
        let python = install_python(&place, &root().join(REQUIREMENTS))?;
        cargo(root(), &["build", "--workspace", "--locked"])?;
        // When a test runs this, the program is in a folder below that of the command.
        let own = std::env::current_exe().context("the path of this program is unknown")?;
        let command = own
            .ancestors()
            .skip(1)
            .map(|folder| folder.join("toolcell"))
            .find(|file| file.is_file());
        Ok(Self {
            place,
            python,
            command: command.context("the command is not beside this program")?,
        })
    }

    /// Runs the command, and returns true if it succeeds.
    fn toolcell(&self, words: &[&OsStr]) -> Result<bool> {
        Ok(self.command(words)?.status().context("the command does not start")?.success())
    }

    /// Returns the command with these words, and the compilers in its `PATH`.
    fn command(&self, words: &[&OsStr]) -> Result<Command> {
        let programs = self.python.parent().context("the interpreter has no folder")?;
        let mut command = Command::new(&self.command);
        command
            .args(COMPILE_TIME)
            .args(words)
            .env("PATH", crate::build::registries::path_with(programs))
            .env("HOME", &self.place);
        // Rust projects share compiled dependencies.
        command.env("CARGO_TARGET_DIR", self.place.join("cargo"));
        Ok(command)
    }

    /// Builds a project and runs its cases, and the common cases if it is one of `tests/languages`.
    /// Returns the name of a project that fails, with the output of the failure.
    fn fault(&self, project: &Path) -> Result<Option<String>> {
        let name = name_of(project);
        let component = self.place.join(format!("{name}.wasm"));
        print(&format!("{name}\n"));
        if !self.toolcell(&words!["build", "--output", &component, project])? {
            return Ok(Some(format!("{name}: it is not built")));
        }
        let is_common = project.starts_with(common());
        let shared =
            is_common.then(|| common_cases(&common(), project, &self.place)).transpose()?;
        for cases in shared.into_iter().chain(has_cases(project).then(|| project.to_owned())) {
            let done = self.command(&words!["test", "--component", &component, &cases])?.output();
            let done = done.context("the command does not start")?;
            let told = [done.stdout, done.stderr].concat();
            let told = String::from_utf8_lossy(&told);
            print(&told);
            if !done.status.success() {
                let failed: Vec<_> = told.lines().filter(|line| !line.starts_with("ok ")).collect();
                return Ok(Some(format!("{name}: {}", failed.join("\n"))));
            }
        }
        if is_common {
            let mut words = vec![OsStr::new("run"), component.as_os_str(), OsStr::new("how=waits")];
            words.extend(
                services::GRANTS.iter().flat_map(|grant| ["--grant", grant]).map(OsStr::new),
            );
            words.extend(["--fuel", "1000G", "--timeout", "2m"].map(OsStr::new));
            if !services::work(&mut self.command(&words)?)? {
                return Ok(Some(format!("{name}: log, progress and abort")));
            }
        }
        Ok(None)
    }

    /// Builds files that must be refused. Returns the names of those that build, or that fail
    /// without the messages in their first lines.
    fn refused(&self, folder: &Path, place: &Path) -> Result<Vec<String>> {
        let mut failed = Vec::new();
        for file in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
            let source = fs::read_to_string(&file)?;
            let commented = |line| str::strip_prefix(line, "# ").or(line.strip_prefix("// "));
            let messages: Vec<_> = source.lines().map_while(commented).collect();
            ensure!(!messages.is_empty(), "{} has no message in its first line", file.display());
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let module = Path::new("tool").with_extension(file.extension().unwrap_or_default());
            let project = place.join(format!("refused-{name}"));
            fs::create_dir_all(&project)?;
            fs::write(project.join(module), &source)?;
            print(&format!("refused: {name}\n"));
            let done = self
                .command(&words!["build", &project])?
                .output()
                .context("the command does not start")?;
            let told = String::from_utf8_lossy(&done.stderr);
            let missing = messages.iter().find(|message| !told.contains(**message));
            if done.status.success() || missing.is_some() {
                print(&format!("`{}` is not in:\n{told}", missing.unwrap_or(&"an error")));
                failed.push(format!("refused-{name}"));
            }
        }
        Ok(failed)
    }

    /// Returns true if the TypeScript compiler accepts the files of `tests/types`, and the example
    /// tools in TypeScript, with the declarations of a new project.
    fn types_hold(&self, packages: &Packages, folder: &Path) -> Result<bool> {
        ensure!(
            self.toolcell(&words!["new", folder, "--language", "ts"])?,
            "`toolcell new` failed"
        );
        let own = std::iter::once((OsString::from("types"), root().join("tests/types")));
        let examples = projects(&root().join("example-tools/ts"))?.into_iter();
        let examples = examples
            .filter_map(|example| Some((example.file_name()?.to_owned(), example.join("src"))));
        for (name, source) in own.chain(examples) {
            let to = folder.join("src").join(name);
            fs::create_dir_all(&to)?;
            for file in fs::read_dir(&source)?.flatten() {
                fs::copy(file.path(), to.join(file.file_name()))?;
            }
        }
        print("types\n");
        let mut compiler = packages.node_program("typescript/bin/tsc");
        Ok(compiler.arg("--project").arg(folder).status().context("tsc does not start")?.success())
    }
}

/// The folder with the projects and the common cases of every language.
fn common() -> PathBuf {
    root().join("tests/languages")
}

fn name_of(project: &Path) -> String {
    project.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the folder with the common cases, without those that the project names in `skipped.txt`.
fn common_cases(common: &Path, project: &Path, place: &Path) -> Result<PathBuf> {
    let Ok(skipped) = fs::read_to_string(project.join("skipped.txt")) else {
        return Ok(common.to_owned());
    };
    let mut cases = fs::read_to_string(common.join("cases.yaml"))?;
    for line in skipped.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let Some((name, reason)) = line.split_once(": ") else {
            bail!("`{line}` has no reason: write `CASE: REASON`")
        };
        cases = without(&cases, name)
            .with_context(|| format!("there is no common case `{name}`, which is skipped"))?;
        print(&format!("skipped: {name}: {reason}\n"));
    }
    let folder = place.join(project.file_name().unwrap_or_default()).with_extension("cases");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("cases.yaml"), cases)?;
    Ok(folder)
}

/// Returns the text of the cases without the one of this name. `None` if no case has it.
fn without(cases: &str, name: &str) -> Option<String> {
    const HEAD: &str = "\n  - name: ";
    let begin = cases.find(&format!("{HEAD}{name}\n"))?;
    let rest = &cases[begin + 1..];
    let end = rest.find(HEAD).map_or(cases.len(), |end| begin + 1 + end);
    Some(format!("{}{}", &cases[..begin], &cases[end..]))
}

/// Removes a folder, if it exists.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context("an old project cannot be removed")
        }
        _ => Ok(()),
    }
}

/// Returns the folders in a folder, sorted.
fn projects(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} is missing", folder.display()))?;
    let mut folders: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

fn has_cases(project: &Path) -> bool {
    ["cases.yaml", "cases.json", "cases"].iter().any(|name| project.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of `tests/types` have arguments whose types come from `parameters`, and none that
    /// do not fit.
    #[test]
    #[ignore = "needs the registries of Python and npm: `cargo xtask languages` does the same"]
    fn types_of_arguments_come_from_parameters() {
        let bench = Bench::install().expect("the registries are in reach");
        let packages = Packages::install().expect("the registries are in reach");
        let folder = bench.place.join("types-alone");
        remove(&folder).expect("it can be removed");
        assert!(bench.types_hold(&packages, &folder).expect("the compiler runs"));
    }

    /// `validate` of this project is not `async` and calls `asyncio.run` in each case; one case
    /// calls it where it must fail.
    #[test]
    #[ignore = "needs the registry of Python: `cargo xtask languages` does the same"]
    fn asyncio_run_works_in_a_function_that_is_not_async() {
        let bench = Bench::install().expect("the registry is in reach");
        assert_eq!(bench.fault(&common().join("python")).expect("the compiler runs"), None);
    }

    #[test]
    #[ignore = "needs the registry of Python: `cargo xtask languages` does the same"]
    fn unavailable_import_fails_the_build() {
        let bench = Bench::install().expect("the registry is in reach");
        let place = bench.place.join("refused-alone");
        let failed = ["python", "c"]
            .map(|language| bench.refused(&common().join(language).join("refused"), &place));
        assert_eq!(
            failed.map(|failed| failed.expect("the compiler runs")),
            [const { Vec::<String>::new() }; 2]
        );
    }

    #[test]
    fn case_is_removed_by_its_name() {
        let cases = "cases:\n  - name: one\n    expect: { ok: 1 }\n  - name: two\n  - name: three\n    now: 3\n";
        assert_eq!(
            without(cases, "one").as_deref(),
            Some("cases:\n  - name: two\n  - name: three\n    now: 3\n")
        );
        assert_eq!(
            without(cases, "three").as_deref(),
            Some("cases:\n  - name: one\n    expect: { ok: 1 }\n  - name: two")
        );
        assert_eq!(without(cases, "four"), None);
    }
}
