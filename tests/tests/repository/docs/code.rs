//! Checks code in pages: Rust must be part of a file that is compiled, TOML must parse, and a
//! configuration must match its schema.

use std::fs;

use super::{Page, blocks, root};

/// The first line of a block that is a whole configuration.
pub(super) const CONFIGURATION: &str = "# toolcell.toml";
const SCHEMA: &str = "host/cli/toolcell.schema.json";

/// Returns blocks of Rust that are not in the file that they name. A block starts with `// PATH`,
/// from the repository's root; the rest must be consecutive lines of that file, at any indentation.
pub(super) fn not_compiled(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in blocks(&page.text).iter().filter(|block| block.info.starts_with("rust")) {
        let Some(path) = block.lines.first().and_then(|line| line.strip_prefix("// ")) else {
            complaints.push(format!("start it with `// PATH`:\n{}", block.lines.join("\n")));
            continue;
        };
        let file =
            fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let trimmed = |lines: &mut dyn Iterator<Item = &str>| {
            lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        let (file, shown) =
            (trimmed(&mut file.lines()), trimmed(&mut block.lines[1..].iter().copied()));
        if !file.windows(shown.len().max(1)).any(|lines| lines == shown) {
            complaints.push(format!("this is not in {path}:\n{}", block.lines.join("\n")));
        }
    }
    complaints
}

/// Returns blocks of TOML that do not parse, and configurations that do not match the schema.
pub(super) fn unreadable_toml(page: &Page) -> Vec<String> {
    let schema = fs::read_to_string(root().join(SCHEMA)).expect("the schema");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let mut complaints = Vec::new();
    for block in blocks(&page.text).iter().filter(|block| block.info.starts_with("toml")) {
        let text = block.lines.join("\n");
        match toml::from_str::<serde_json::Value>(&text) {
            Err(error) => complaints.push(format!("this cannot be parsed: {error}\n{text}")),
            Ok(value) if block.lines.first() == Some(&CONFIGURATION) => complaints.extend(
                schema
                    .iter_errors(&value)
                    .map(|error| format!("{}: {error}\n{text}", error.instance_path())),
            ),
            Ok(_) => {}
        }
    }
    complaints
}
