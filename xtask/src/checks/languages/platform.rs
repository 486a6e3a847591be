//! Compares answers of the language runtimes with the originals: the answers in `tests/platform`
//! with Node and CPython 3.11, those of Python also with a cell (a test does that for JavaScript);
//! and the results of the packages in `tests/platform/npm` and `packages` in a cell with those in
//! Node and CPython.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Bench;
use crate::build::registries::{Packages, install_python};
use crate::shell::{print, root};

/// Files of pairs of lines: an expression, then `= ` and its answer.
const EXPRESSIONS: [&str; 2] = ["tests/platform/web.txt", "tests/platform/intl.txt"];
/// A file of such pairs for Python, with the lines that `tests/platform/python/answers.py`
/// describes.
const PYTHON: &str = "tests/platform/python.txt";
/// A folder with a module for each npm package, which has a function `work`, and
/// `package-lock.json`.
const NPM: &str = "tests/platform/npm";
/// Such a folder for packages of Python, with `requirements.txt`.
const PACKAGES: &str = "tests/platform/packages";
/// A script that prints the expressions for which Node has another answer, and fails if there are
/// any.
const PROGRAM: &str = r#"
const AsyncFunction = (async () => {}).constructor;
const value = async (line) => {
  try { return String(await new AsyncFunction(`return (${line})`)()); } catch (error) { return `throws ${error?.name}`; }
};
(async () => {
  const lines = require("fs").readFileSync(process.argv[1], "utf8").trimEnd().split("\n");
  for (let at = 0; at < lines.length; at += 2) {
    const answer = `= ${await value(lines[at])}`;
    if (answer === lines[at + 1]) continue;
    console.log(`${lines[at]}\n${answer}\n  the file has: ${lines[at + 1]}`);
    process.exitCode = 1;
  }
  console.log(`${lines.length / 2} expressions were compared with Node ${process.version}`);
})();
"#;
/// Prints the answer of `work` in Node; the next one returns it in a tool.
const NPM_WORK: &str = "console.log(JSON.stringify(await work()));\n";
const NPM_TOOL: &str = "import { tool } from \"toolcell\";\n\
                        const handler = async () => JSON.stringify(await work());\n\
                        export default tool({ name: \"run\", description: \"Works.\", handler });\n";
/// Prints the answer of the module `work` in CPython; the next one returns it in a tool, whose
/// function returns a coroutine and is not `async` itself.
const WORK: &str = "import work\nprint('\\n'.join(map(str, work.work())))\n";
const TOOL: &str = "import work\nfrom toolcell import tool\n\n\nasync def worked():\n    \
                    return '\\n'.join(map(str, work.work()))\n\n\n@tool\ndef run():\n    \"\"\"Works.\"\"\"\n    return worked()\n";
/// The limits of a call, which are as high as SymPy needs.
const BOUNDS: [&str; 6] = ["--fuel", "1000G", "--timeout", "5m", "--memory", "1GiB"];

/// The zone and the language of a cell, for the interpreters that it is compared with.
const ENVIRONMENT: [(&str, &str); 2] = [("TZ", "UTC"), ("LANG", "C.UTF-8")];

/// Installs Node, Python's compiler and the packages, and makes all comparisons.
pub(crate) fn run() -> Result<()> {
    let packages = Packages::install()?;
    compare(&packages.node)?;
    let bench = Bench::install()?;
    packages_of_npm(&bench, &packages)?;
    python(&bench)?;
    packages_of_python(&bench)
}

/// Compares the answers of JavaScript with this Node.
pub(super) fn compare(node: &Path) -> Result<()> {
    for expressions in EXPRESSIONS {
        let mut command = Command::new(node);
        command.arg("-e").arg(PROGRAM).arg(root().join(expressions));
        let status = command.env_clear().envs(ENVIRONMENT).status();
        ensure!(
            status.context("Node does not start")?.success(),
            "answers in {expressions} are not Node's"
        );
    }
    Ok(())
}

/// Compares the answers of Python with the interpreter of this bench, if it is CPython 3.11, and
/// with a cell.
pub(super) fn python(bench: &Bench) -> Result<()> {
    let (place, file) = (root().join("tests/platform/python"), root().join(PYTHON));
    let version = printed(Command::new(&bench.python).arg("--version"))?;
    if version.starts_with("Python 3.11.") {
        let mut command = Command::new(&bench.python);
        command.args(["-B", "-W", "ignore"]).arg(place.join("answers.py")).arg(&file);
        let status =
            command.env_clear().envs(ENVIRONMENT).status().context("CPython does not start")?;
        ensure!(status.success(), "answers in {PYTHON} are not those of {version}");
    } else {
        print(&format!("{PYTHON} is not compared with CPython 3.11: this is {version}"));
    }
    let text = fs::read_to_string(&file)?;
    let differences = in_a_cell(bench, &place, "platform", &format!("text={text}"), &bench.python)?;
    ensure!(
        differences.trim() == "[]",
        "a component has other answers than {PYTHON}: {differences}"
    );
    let count = text.lines().filter(|line| line.starts_with("= ")).count();
    print(&format!("{count} expressions were compared with {version}"));
    Ok(())
}

/// Runs `work` of each npm package in Node and in a cell, and compares.
fn packages_of_npm(bench: &Bench, packages: &Packages) -> Result<()> {
    let folder = packages.project(&root().join(NPM), &bench.place)?;
    let mut outcome = Outcome::default();
    for name in modules(&root().join(NPM), "js")? {
        let tool = folder.join(format!("{name}.tool.js"));
        fs::write(&tool, format!("import {{ work }} from \"./{name}.js\";\n{NPM_TOOL}"))?;
        let script = format!("import {{ work }} from \"./{name}.js\";\n{NPM_WORK}");
        let mut command = Command::new(&packages.node);
        command
            .args(["--input-type=module", "--eval", &script])
            .current_dir(&folder)
            .envs(ENVIRONMENT);
        outcome.add(
            &name,
            &printed(&mut command)?,
            &in_a_cell(bench, &tool, &name, "{}", &bench.python),
        );
    }
    outcome.end("Node")
}

/// Runs `work` of each Python package in CPython and in a cell, and compares.
fn packages_of_python(bench: &Bench) -> Result<()> {
    let (sources, place) = (root().join(PACKAGES), bench.place.join("packages"));
    fs::create_dir_all(&place)?;
    let python = install_python(&place, &sources.join("requirements.txt"))?;
    let mut outcome = Outcome::default();
    for name in modules(&sources, "py")? {
        let project = place.join("projects").join(&name);
        fs::create_dir_all(&project)?;
        fs::copy(sources.join(&name).with_extension("py"), project.join("work.py"))?;
        fs::write(project.join("tool.py"), TOOL)?;
        let mut command = Command::new(&python);
        command.args(["-B", "-W", "ignore", "-c", WORK]).current_dir(&project).envs(ENVIRONMENT);
        outcome.add(
            &name,
            &printed(&mut command)?,
            &in_a_cell(bench, &project, &name, "{}", &python),
        );
    }
    outcome.end("CPython")
}

/// Returns the names of the modules in a folder, sorted.
fn modules(folder: &Path, extension: &str) -> Result<Vec<String>> {
    let files = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let modules = files.filter(|file| file.extension().is_some_and(|found| found == extension));
    let mut names: Vec<_> =
        modules.filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    Ok(names)
}

/// The packages whose answers differ.
#[derive(Default)]
struct Outcome(Vec<String>);

impl Outcome {
    /// Compares the answers of a package: the expected one, and that of a cell.
    fn add(&mut self, name: &str, expected: &str, answer: &Result<String>) {
        let is_equal = answer.as_ref().is_ok_and(|answer| answer == expected);
        print(&format!("{name}: {}\n", if is_equal { "equal" } else { "other" }));
        if !is_equal {
            print(&format!("{answer:?}\n{expected}\n"));
            self.0.push(name.to_owned());
        }
    }

    fn end(self, other: &str) -> Result<()> {
        ensure!(
            self.0.is_empty(),
            "packages work otherwise than in {other}: {}",
            self.0.join(", ")
        );
        Ok(())
    }
}

/// Builds a project with the packages of this interpreter, and returns the output of a call of its
/// tool.
fn in_a_cell(
    bench: &Bench,
    project: &Path,
    name: &str,
    arguments: &str,
    python: &Path,
) -> Result<String> {
    let component = bench.place.join(name).with_extension("wasm");
    let programs = python.parent().context("the interpreter has no folder")?;
    let mut build = bench.command(&[
        "build".as_ref(),
        "--output".as_ref(),
        component.as_ref(),
        project.as_ref(),
    ])?;
    printed(build.env("PATH", crate::build::registries::path_with(programs)))?;
    let mut run = bench.command(&["run".as_ref(), "--quiet".as_ref()])?;
    printed(run.args(BOUNDS).arg(&component).arg(arguments))
}

/// Returns the output of a command; fails if the command fails.
fn printed(command: &mut Command) -> Result<String> {
    let done =
        command.output().with_context(|| format!("{:?} does not start", command.get_program()))?;
    ensure!(
        done.status.success(),
        "{:?}: {}",
        command.get_program(),
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(String::from_utf8(done.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs the registry of Python: `cargo xtask languages` does the same"]
    fn component_python_gives_the_same_as_cpython() {
        let bench = Bench::install().expect("the registry is in reach");
        python(&bench).expect("the answers are equal");
    }
}
