//! Snippets that are no sessions: JavaScript is built, YAML is parsed, and the command takes the options of its lines.

use std::fs;

use serde_json::Value;

use super::{Page, blocks, root, shell};

/// Around code that is the body of an async function, as `run_code` takes it.
const BODY: [&str; 2] = [
    "import { tool } from \"toolcell\";\nconst run = async (tools, console) => {\n",
    "\n};\nexport default tool({ name: \"run\", description: \"Runs.\", handler: () => run({}, console) });\n",
];

/// Blocks of JavaScript that `toolcell build` refuses.
pub(super) fn not_built(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in blocks(&page.text).iter().filter(|block| block.info == "js") {
        let code = block.lines.join("\n");
        let [before, after] = if code.contains("export default") { [""; 2] } else { BODY };
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("tool.js"), format!("{before}{code}{after}")).expect("a file");
        let built = shell("toolcell build tool.js", folder.path(), folder.path()).output().expect("a shell");
        if !built.status.success() {
            complaints.push(format!("this does not build: {}\n{code}", String::from_utf8_lossy(&built.stderr)));
        }
    }
    complaints
}

/// Blocks of YAML that cannot be parsed, and steps of GitHub Actions that do nothing.
pub(super) fn unreadable_yaml(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in blocks(&page.text).iter().filter(|block| block.info == "yaml") {
        let text = block.lines.join("\n");
        match serde_norway::from_str::<Value>(&text) {
            Err(error) => complaints.push(format!("this cannot be parsed: {error}\n{text}")),
            Ok(Value::Array(steps)) => {
                let does_nothing = |step: &&Value| step.get("run").or_else(|| step.get("uses")).is_none();
                complaints
                    .extend(steps.iter().filter(does_nothing).map(|step| format!("neither `run` nor `uses`: {step}")));
            }
            Ok(_) => {}
        }
    }
    complaints
}

/// Lines of `text` and of steps in `yaml` that begin with `toolcell`, and that the command refuses: options come before their
/// help.
pub(super) fn refused_commands(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    if page.path.ends_with("docs/commands.md") {
        return complaints;
    }
    for block in blocks(&page.text).iter().filter(|block| ["text", "yaml"].contains(&block.info)) {
        let line = |line: &&str| {
            line.trim_start_matches(['-', ' ']).trim_start_matches("run: ").trim_start_matches("$ ").to_owned()
        };
        for line in block.lines.iter().map(line).filter(|line| line.starts_with("toolcell ")) {
            let command = line.split(" #").next().unwrap_or_default().trim_end();
            let state = tempfile::tempdir().expect("a folder");
            let taken = shell(&format!("{command} --help"), root(), state.path()).output().expect("a shell");
            if !taken.status.success() {
                complaints.push(format!("`{command}`: {}", String::from_utf8_lossy(&taken.stderr)));
            }
        }
    }
    complaints
}
