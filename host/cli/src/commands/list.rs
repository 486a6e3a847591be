//! `toolcell list`: lists the tools of several components, one per line.
//!
//! [`list`] takes components by name or file, or all of the configuration. It loads each without
//! grants and prints a line for each tool: the component, the tool's name, and the first sentence
//! of its description, or everything as one JSON object. Suspicious texts and suggestions for the
//! author are warnings on standard error. A component that cannot be loaded is reported, and the
//! others are listed; the exit status is then that of the first error.

use serde_json::json;
use toolcell::Component;
use toolcell::component::Contents;

use super::inspect;
use super::inspect::lint::{self, Finding};
use crate::args::ListArgs;
use crate::config::{ResolvedComponent, SecretSelection};
use crate::host::{Cli, Engines};
use crate::print::{ExitStatus, Failure, Result, table};
use crate::{components, host};

/// Characters of a tool's first sentence.
const SENTENCE: usize = 100;

/// Runs the command. A component that cannot be used does not keep the others from being listed.
pub(crate) async fn list(cli: &Cli, args: &ListArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let config = cli.config(SecretSelection::None)?;
    let engines = host::engines(cli, 1, &config)?;
    let (mut tools, mut findings, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for word in &components::typed_components(&config, &args.components)? {
        let name = word.display().to_string();
        let loaded = match components::choose(&config, word) {
            Ok(chosen) => load_component(&engines, &chosen).await,
            Err(failure) => Err(failure),
        };
        match loaded {
            Ok((component, found)) => {
                tools.extend(component.definitions().map(|tool| (name.clone(), tool.clone())));
                findings.push((name, found));
            }
            Err(failure) => failures.push((name, failure)),
        }
    }
    if args.json {
        let tools = tools.iter().map(|(path, tool)| {
            let (description, suspicions) = (&tool.description, tool.suspicions());
            json!({ "component": path, "tool": tool.name, "description": description, "suspicions": suspicions })
        });
        let errors = failures
            .iter()
            .map(|(path, failure)| json!({ "component": path, "error": failure.to_json() }));
        let mut lint = Vec::new();
        for (path, found) in &findings {
            for finding in found {
                let mut finding = json!(finding);
                finding["component"] = json!(path);
                lint.push(finding);
            }
        }
        let (tools, errors): (Vec<_>, Vec<_>) = (tools.collect(), errors.collect());
        printer.json(&json!({ "tools": tools, "lint": lint, "errors": errors }))?;
    } else {
        let row = |(path, tool): &(String, toolcell::Definition)| {
            vec![path.clone(), tool.name.clone(), first_sentence(&tool.description)]
        };
        let rows: Vec<_> = tools.iter().map(row).collect();
        if !rows.is_empty() {
            printer.text(&table::columns(0, usize::MAX, &rows))?;
        }
        for (path, tool) in &tools {
            inspect::warn(printer, &format!("{path}: "), tool);
        }
        for (path, found) in &findings {
            for (code, message) in lint::summaries(found) {
                printer.warning(format!("{path}: {message} ({code})"));
            }
        }
        for (_, failure) in &failures {
            printer.failure(failure);
        }
    }
    Ok(failures.first().map_or(ExitStatus::Ok, |(_, failure)| failure.status))
}

/// Loads a component without grants. Returns it with the findings for its author.
async fn load_component(
    engines: &Engines<'_>,
    chosen: &ResolvedComponent<'_>,
) -> Result<(Component, Vec<Finding>)> {
    let (bytes, _) = chosen.bytes()?;
    let contents =
        Contents::of(&bytes).map_err(|error| Failure::from(error).about(chosen.display_path()))?;
    let component = components::load_without_grants(engines, bytes, chosen).await?;
    chosen.check_tools(&component)?;
    let tools: Vec<_> = component.definitions().collect();
    let findings = lint::findings(&chosen.kind(), component.inspection(), &contents, &tools);
    Ok((component, findings))
}

/// Returns the first sentence, or as much of it as fits a line.
fn first_sentence(description: &str) -> String {
    let text = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    let sentence = text.get(..end).unwrap_or(&text).trim_end_matches('.');
    if sentence.chars().count() <= SENTENCE {
        sentence.to_owned()
    } else {
        sentence.chars().take(SENTENCE - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn first_sentence_is_extracted() {
        for (text, expected) in [
            ("Adds. Twice.", "Adds"),
            ("Adds 1.5 to\n it.", "Adds 1.5 to it"),
            ("", ""),
            (&"word ".repeat(40), &format!("{}…", &"word ".repeat(20)[..99])),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
    }
}
