//! Checks snippets that are no sessions: JavaScript must build, YAML must parse, and the command
//! must accept the options of its lines and print the output that follows them.

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolcell_test_guests::{fits, rows};

use super::{Block, Page, blocks, root, shell};

/// Text around code that is the body of an async function, as `run_code` takes it.
const BODY: [&str; 2] = [
    "import { tool } from \"toolcell\";\nconst run = async (tools, console) => {\n",
    "\n};\nexport default tool({ name: \"run\", description: \"Runs.\", handler: () => run({}, console) });\n",
];

/// Returns blocks of JavaScript that `toolcell build` refuses.
pub(super) fn not_built(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in blocks(&page.text).iter().filter(|block| block.info == "js") {
        let code = block.lines.join("\n");
        let [before, after] = if code.contains("export default") { [""; 2] } else { BODY };
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("tool.js"), format!("{before}{code}{after}")).expect("a file");
        let mut build = shell("toolcell build tool.js", folder.path(), folder.path());
        let built = build.output().expect("a shell");
        if !built.status.success() {
            let errors = String::from_utf8_lossy(&built.stderr);
            complaints.push(format!("this does not build: {errors}\n{code}"));
        }
    }
    complaints
}

/// Returns blocks of YAML that do not parse, and steps of GitHub Actions that do nothing.
pub(super) fn unreadable_yaml(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in blocks(&page.text).iter().filter(|block| block.info == "yaml") {
        let text = block.lines.join("\n");
        match serde_norway::from_str::<Value>(&text) {
            Err(error) => complaints.push(format!("this cannot be parsed: {error}\n{text}")),
            Ok(Value::Array(steps)) => {
                let does_nothing =
                    |step: &&Value| step.get("run").or_else(|| step.get("uses")).is_none();
                let idle = steps.iter().filter(does_nothing);
                complaints.extend(idle.map(|step| format!("neither `run` nor `uses`: {step}")));
            }
            Ok(_) => {}
        }
    }
    complaints
}

/// Returns lines of `text` and of steps in `yaml` that begin with `toolcell` and that the command
/// refuses; `--help` after the options keeps it from running.
pub(super) fn refused_commands(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    if page.path.ends_with("docs/commands.md") {
        return complaints;
    }
    for block in blocks(&page.text).iter().filter(|block| ["text", "yaml"].contains(&block.info)) {
        let lines = block.lines.iter().map(|line| {
            let line = line.trim_start_matches(['-', ' ']).trim_start_matches("run: ");
            line.trim_start_matches("$ ")
        });
        for line in lines.filter(|line| line.starts_with("toolcell ")) {
            let command = line.split(" #").next().unwrap_or_default().trim_end();
            let state = tempfile::tempdir().expect("a folder");
            let mut help = shell(&format!("{command} --help"), root(), state.path());
            let taken = help.output().expect("a shell");
            if !taken.status.success() {
                complaints.push(format!("`{command}`: {}", String::from_utf8_lossy(&taken.stderr)));
            }
        }
    }
    complaints
}

/// Units of numbers that differ from run to run.
const UNITS: [&str; 9] = ["fuel", "ms", "s", "µs", "bytes", "KB", "MB", "KiB", "MiB"];

fn is_command(line: &&str) -> bool {
    line.trim_start_matches("$ ").starts_with("toolcell ")
}

/// Returns output in `text` that differs from what the block of `toolcell` lines before it prints,
/// or that follows no such block. Blocks whose first line is a comment with a path are files of the
/// folder in which the lines are run.
pub(super) fn untrue_output(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    let is_users = page.path.starts_with("docs") || page.path.ends_with("README.md");
    if !is_users || page.path.ends_with("docs/commands.md") {
        return complaints;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut before: Option<&Block<'_>> = None;
    let blocks = blocks(&page.text);
    for block in &blocks {
        if let Some(path) = file_of(block) {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, block.lines.join("\n") + "\n").expect("a file");
        }
        let is_output = block.info == "text"
            && !block.lines.iter().any(|line| is_install(line) || is_command(line));
        if is_output {
            let shown: Vec<_> = block.lines.iter().map(|line| steady(line)).collect();
            let commands = before
                .filter(|before| before.info == "text" && before.lines.iter().all(is_command));
            complaints.extend(match commands {
                None => {
                    Some(format!("no `toolcell` line is before this output:\n{}", shown.join("\n")))
                }
                Some(commands) => difference(commands, &shown, folder.path()),
            });
        }
        before = Some(block);
    }
    complaints
}

/// Runs the `toolcell` lines of a block, and returns what they print if it is not what is shown.
fn difference(commands: &Block<'_>, shown: &[String], folder: &Path) -> Option<String> {
    let typed: Vec<_> = commands.lines.iter().map(|line| line.trim_start_matches("$ ")).collect();
    let line = format!("exec 2>&1\n{}", typed.join("\n"));
    let output = shell(&line, folder, folder).output().expect("a shell");
    let printed = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    // Printed only if the code is not in the cache yet.
    let is_note = |line: &&str| line.starts_with("note: compiling a component of ");
    let lines = printed.lines().filter(|line| !is_note(line));
    let seen: Vec<_> = lines.map(|line| steady(line.trim_end())).collect();
    let expected: Vec<_> = shown.iter().map(String::as_str).collect();
    let got: Vec<_> = seen.iter().map(String::as_str).collect();
    let differs = !fits(&expected, &got);
    differs.then(|| format!("-- in the page\n{}\n-- printed\n{printed}", shown.join("\n")))
}

/// Returns true for a line that installs something that tests do not have.
fn is_install(line: &str) -> bool {
    ["python3 -m venv ", "rustup ", "cargo "].iter().any(|program| line.starts_with(program))
}

/// Returns the path of the file that a block contains, from its first line.
fn file_of<'a>(block: &Block<'a>) -> Option<&'a str> {
    let first = block.lines.first()?;
    let comment = match block.info {
        "js" => "// ",
        "yaml" => "# ",
        _ => return None,
    };
    let path = first.strip_prefix(comment)?;
    let is_path = |character: char| character.is_ascii_alphanumeric() || "/._-".contains(character);
    (path.contains('.')
        && path.chars().all(is_path)
        && !path.starts_with('/')
        && !path.contains(".."))
    .then_some(path)
}

/// Returns the line without parts that differ from run to run: times, sizes, fuel and absolute
/// paths.
fn steady(line: &str) -> String {
    let words: Vec<_> = line.split(' ').collect();
    let bare = |word: &str| word.trim_matches(|character| "()`,;:".contains(character)).to_owned();
    let steady = words.iter().enumerate().map(|(at, word)| {
        let (core, next) =
            (bare(word), words.get(at + 1).map(|word| bare(word)).unwrap_or_default());
        let is_number = core.starts_with(|first: char| first.is_ascii_digit())
            && core.chars().all(|character| character.is_ascii_digit() || ".,".contains(character));
        if is_number && UNITS.contains(&next.as_str()) {
            word.replace(&core, "N")
        } else if core.len() > 1 && core.starts_with('/') {
            word.replace(&core, "PATH")
        } else {
            (*word).to_owned()
        }
    });
    steady.collect::<Vec<_>>().join(" ")
}

#[test]
fn varying_output_is_normalised() {
    for (line, expected) in rows::<(&str, &str)>("repository/docs", "varying_output_is_normalised")
    {
        assert_eq!(steady(line), expected);
    }
}
