//! JSON-Schema-Test-Suite, whose drafts are folders.
//!
//! Prints for each draft how many cases are answered as the suite says, how many are not, and how
//! many groups are refused with their schema.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcell::{Definition, Json, Question, Tool};

/// Each draft with its `$schema`, for the groups that name none.
const DRAFTS: [(&str, &str); 5] = [
    ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
    ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft4", "http://json-schema.org/draft-04/schema#"),
];

#[derive(Default)]
struct Count {
    right: usize,
    wrong: usize,
    refused: usize,
}

pub(crate) fn run(folder: &Path, is_verbose: bool) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for (draft, uri) in DRAFTS {
        for part in ["", "optional"] {
            let mut count = Count::default();
            for file in files(&folder.join(draft).join(part))? {
                let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(&file)?)?;
                for group in groups {
                    for line in judge(&group, uri, &mut count)?.into_iter().filter(|_| is_verbose) {
                        writeln!(out, "{}: {line}", file.display())?;
                    }
                }
            }
            let Count { right, wrong, refused } = count;
            writeln!(
                out,
                "{draft} {part}: {right} cases right, {wrong} wrong, {refused} groups refused"
            )?;
        }
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// Counts the cases of a group, and tells those that are not right.
fn judge(group: &Value, uri: &str, count: &mut Count) -> Result<Vec<String>, Box<dyn Error>> {
    let mut schema = group["schema"].clone();
    if let Value::Object(keywords) = &mut schema {
        keywords.entry("$schema").or_insert_with(|| json!(uri));
    }
    let about = &group["description"];
    if let Err(error) = Tool::manual(Definition::new("suite", "")?.with_output(schema.clone())) {
        count.refused += 1;
        return Ok(vec![format!("{about}: {error}")]);
    }
    let question = Question::new("").with_answer_schema(schema);
    let mut told = Vec::new();
    for case in group["tests"].as_array().into_iter().flatten() {
        if question.check_answer(&Json::from(case["data"].clone())).is_ok()
            == (case["valid"] == json!(true))
        {
            count.right += 1;
        } else {
            count.wrong += 1;
            told.push(format!("{about}: {} is answered wrongly", case["description"]));
        }
    }
    Ok(told)
}
