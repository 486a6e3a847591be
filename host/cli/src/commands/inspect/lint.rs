//! Finds suggestions for a component's author: unused rights, missing texts, schemas that an API
//! changes, unneeded bytes.
//!
//! `inspect` and `list` call [`findings`] with the imports, the contents and the definitions of a
//! component. A finding has a code such as `unused_need` or `no_description` and a sentence. No
//! finding makes a component unusable. A component with a language runtime imports everything, so
//! its imports say nothing about the needs and are not judged. At most 100 findings are returned;
//! the text shows five of each code, `--json` shows all.

use serde::Serialize;
use toolcell::component::{ComponentKind, Contents, Inspection};
use toolcell::grants::GrantKind;
use toolcell::{Definition, Provider};

use super::contents;
use crate::grants::uses::{NO_IMPORT_TEXT, can_use};
use crate::print::{Size, clean, schema, table};

/// The most findings that are reported.
const MAX_FINDINGS: usize = 100;
/// The most findings of one code that are shown as text.
const MAX_SHOWN: usize = 5;
/// Bytes of debug information up to which there is no finding.
const DEBUG_BYTES: u64 = 256 << 10;
/// Bytes of a component up to which there is no finding.
const LARGE: u64 = 20 << 20;
/// Bytes of a component with CPython up to which there is no finding. CPython has 18 MiB by itself,
/// and 26 MiB with much of its standard library.
const LARGE_PYTHON: u64 = 40 << 20;

/// Kinds of needs whose import is useless if no tool declares the need.
const DECLARED: [GrantKind; 3] = [GrantKind::Http, GrantKind::Kv, GrantKind::Reveal];

/// One suggestion.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// `unused_need`, `undeclared_import`, `no_description`, `provider`, `debug_information` or
    /// `large`.
    code: &'static str,
    /// The tool's name, if the finding is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    message: String,
}

/// Returns all findings about a component that is used as `kind`, in the order of the codes.
pub(crate) fn findings(
    kind: &ComponentKind,
    examination: &Inspection,
    contents: &Contents,
    tools: &[&Definition],
) -> Vec<Finding> {
    let mut found = Vec::new();
    let imports = |start: &str| examination.imports.iter().any(|(name, _)| name.starts_with(start));
    for tool in tools {
        for need in &tool.needs {
            let kind = GrantKind::of_need(&need.kind);
            if kind.is_some_and(|kind| !can_use(examination, kind)) {
                let need = clean::escaped(&format!("{} {}", need.kind, need.pattern));
                let message = format!("declares the need `{need}`, but {NO_IMPORT_TEXT}");
                found.push(Finding::of("unused_need", Some(&tool.name), message));
            }
        }
    }
    // A language runtime imports everything that tools may use or declare.
    let chosen = if contents::runtime(contents).is_none() { &DECLARED[..] } else { &[] };
    for row in chosen.iter().map(|kind| kind.row()) {
        let (kind, start) = (row.need, row.imports[0]);
        let is_declared =
            || tools.iter().any(|tool| tool.needs.iter().any(|need| need.kind == kind));
        let has_needs = || tools.iter().any(|tool| !tool.needs.is_empty());
        if imports(start) && has_needs() && !is_declared() {
            let import = start.trim_end_matches('@');
            let message = format!(
                "the component imports `{import}`, but no tool declares a need of the kind `{kind}`"
            );
            found.push(Finding::of("undeclared_import", None, message));
        }
    }
    // A program's functions have names only, and no descriptions.
    for tool in tools.iter().filter(|_| *kind == ComponentKind::Tools) {
        let mut add = |message| {
            found.push(Finding::of("no_description", Some(&tool.name), message));
        };
        if tool.description.trim().is_empty() {
            add("has no description".to_owned());
        }
        let parameters = tool.parameters.iter().flat_map(schema::parameters);
        let silent = parameters.filter(|parameter| parameter.description.trim().is_empty());
        let names: Vec<_> = silent.map(|parameter| clean::escaped(&parameter.name)).collect();
        if !names.is_empty() {
            add(format!("has parameters without a description: {}", names.join(", ")));
        }
    }
    for provider in Provider::ALL {
        let name = provider.name();
        match provider.definitions(tools.iter().copied()) {
            Ok(converted) => {
                for note in converted.notes.iter().filter(|note| !is_harmless(&note.pointer)) {
                    let pointer = clean::escaped(&note.pointer);
                    let change = clean::escaped(&note.change);
                    let message =
                        format!("for `{name}`, at `{pointer}`: {change} ({})", note.reason);
                    found.push(Finding::of("provider", Some(&note.tool), message));
                }
            }
            Err(error) => {
                let error = clean::escaped(&error.to_string());
                let message = format!("`{name}` cannot express it: {error}");
                found.push(Finding::of("provider", None, message));
            }
        }
    }
    let debug = contents.size("debug_information");
    if debug > DEBUG_BYTES {
        let debug = Size(debug).rounded();
        let message = format!(
            "{debug} of it is debug information, which is used only to show source lines of traps"
        );
        found.push(Finding::of("debug_information", None, message));
    }
    if examination.size > if contents.is_python() { LARGE_PYTHON } else { LARGE } {
        let size = Size(examination.size).rounded();
        let message = format!("the component has {size}, which take long to compile and to send");
        found.push(Finding::of("large", None, message));
    }
    found.truncate(MAX_FINDINGS);
    found
}

/// Returns the reason why unused needs cannot be determined, if so.
fn unknown_reason(contents: &Contents, tools: &[&Definition]) -> Option<String> {
    let runtime =
        contents::runtime(contents).filter(|_| tools.iter().any(|tool| !tool.needs.is_empty()))?;
    Some(format!(
        "not judged: the runtime {runtime} imports what the needs are for, whether the tool uses it or not"
    ))
}

/// Returns the findings as lines, some of each code. Empty if there are none.
pub(super) fn finding_lines(
    findings: &[Finding],
    contents: &Contents,
    tools: &[&Definition],
) -> Vec<String> {
    let unjudged = unknown_reason(contents, tools).map(|why| vec!["unused_need".to_owned(), why]);
    let mut rows: Vec<_> = unjudged.into_iter().collect();
    rows.extend(summaries(findings).map(|(code, message)| vec![code.to_owned(), message]));
    if rows.is_empty() {
        Vec::new()
    } else {
        vec!["lint".to_owned(), table::columns(2, usize::MAX, &rows)]
    }
}

/// Returns code and text of the findings to show: some of each code, and the number of the rest.
pub(crate) fn summaries(findings: &[Finding]) -> impl Iterator<Item = (&'static str, String)> {
    findings.chunk_by(|one, other| one.code == other.code).flat_map(|group| {
        let more = group.len().saturating_sub(MAX_SHOWN);
        let more = (more > 0).then(|| (group[0].code, format!("and {more} more, see `--json`")));
        group.iter().take(MAX_SHOWN).map(Finding::summary).chain(more)
    })
}

/// Returns true if the host enforces what the API omits.
fn is_harmless(pointer: &str) -> bool {
    pointer == "/output"
        || ["/additionalProperties", "/default"].iter().any(|end| pointer.ends_with(end))
}

impl Finding {
    fn of(code: &'static str, tool: Option<&str>, message: String) -> Self {
        Self { code, tool: tool.map(str::to_owned), message }
    }

    fn summary(&self) -> (&'static str, String) {
        let about = self.tool.as_ref().map(|tool| format!("`{tool}` ")).unwrap_or_default();
        (self.code, format!("{about}{}", self.message))
    }
}
