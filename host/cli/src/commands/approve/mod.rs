//! `toolcell approve`: shows the new or changed components, asks, and writes the lock file after a
//! yes.
//!
//! The lock file, `toolcell.lock`, holds the approvals: it records the form of each component that
//! a person approved: digest, imports, the tools' definitions. [`approve`] reads the configuration
//! and the lock file, loads each component without grants, compares it with the lock file, and
//! prints a page of the differences, the effective grants and the warnings. After a yes, or with
//! `--yes`, it writes the lock file, and the record that this user approved the configuration.
//! Without a yes nothing is written.
//!
//! Approval covers exactly the content of the page, so the question is asked only if the whole page
//! was shown on a terminal. No code of a component runs but `describe`, which returns the
//! definitions, and no secret is read. A file is written whole or not at all.

mod page;
pub(crate) mod rollback;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::component::ImportStatus::Inert;
use toolcell::component::{Contents, Inspection};
use toolcell::controls::enforced;
use toolcell::grants::Rights;
use toolcell::names;
use toolcell_config::file::without_password;

use crate::args::ApproveArgs;
use crate::components;
use crate::config::{
    Approval, ApprovalState, ApprovedVersion, Config, Difference, Effective, FoundConfiguration,
    Lock, Page, Problem, ResolvedComponent, SecretSelection, Signer, effective,
};
use crate::grants::gaps::{self, Gap};
use crate::host::{self, Cli, Engines};
use crate::os::files;
use crate::print::{ExitStatus, Failure, Listener, Printer, Result};

/// Characters of a column.
const MAX_COLUMN: usize = 24;
/// The most rows of a page for which the question is asked: terminals keep about this many for
/// scrolling back.
const MAX_ROWS: usize = 2000;
/// The assumed width of a terminal, in characters.
const ROW: usize = 80;

/// One component in its present form.
struct ReviewedComponent<'a> {
    name: &'a str,
    chosen: ResolvedComponent<'a>,
    /// The signer, if a signature is required.
    signer: Option<Signer>,
    now: ApprovedVersion,
    inspection: Inspection,
    contents: Contents,
    /// Declared needs that are not granted, each with the tool's name.
    gaps: Vec<(String, Gap)>,
    /// The rights of each tool, by name.
    rights: BTreeMap<String, Rights>,
}

/// Everything that one approval is about.
struct Review<'a> {
    config: &'a Config,
    file: &'a str,
    lock: Lock,
    components: Vec<ReviewedComponent<'a>>,
    /// Names in the lock that the configuration no longer has.
    removed: Vec<String>,
    /// Rules that have no effect.
    idle: Vec<Problem>,
}

/// Runs the command: compares the components with the lock, prints the page, asks, and writes the
/// lock.
pub(crate) async fn approve(cli: &Cli, args: &ApproveArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let config = cli.config(SecretSelection::None)?;
    let Some(file) = config.file.as_deref() else {
        let hint = "go to the directory of the file, or name one with `--config FILE`; \
                    a component that is run by its path needs no approval";
        return Err(config.missing(hint).into());
    };
    let names: Vec<_> = args.components.iter().map(String::as_str).collect();
    let again = |options: &[&str]| config.hint.command("approve", options, &names);
    let is_whole = args.components.is_empty();
    let lock = Lock::beside(&config)?;
    let engines = host::engines(cli, 1, &config)?;
    let mut seen = Vec::new();
    for chosen in chosen(&config, file, &args.components)? {
        let Some((name, _)) = chosen.configured else { continue };
        let about = |failure: Failure| failure.about(format_args!("[components.{name}]"));
        seen.push(review_component(&engines, (name, chosen)).await.map_err(about)?);
    }
    let locked = lock.components.keys().chain(lock.others.keys());
    let gone =
        locked.filter(|name| is_whole && !config.components.contains_key(*name)).cloned().collect();
    let loaded = seen.iter().map(|seen| {
        let tools = seen.now.tools.values().zip(seen.rights.values().cloned()).collect();
        gaps::Loaded { name: seen.name, inspection: &seen.inspection, tools }
    });
    let idle = gaps::rules_without_effect(&config, &loaded.collect::<Vec<_>>());
    let matter = Review { config: &config, file, lock, components: seen, removed: gone, idle };
    if matter.is_unchanged() {
        if args.json {
            printer.json(&matter.to_json(true))?;
        } else {
            let what = if is_whole { format!("everything in `{file}`") } else { names_of(&matter) };
            printer.note(format!("{what} is approved in its present form"));
        }
        return Ok(ExitStatus::Ok);
    }
    let mut page = matter.to_page();
    if page.is_cut {
        page.lines.push(format!("this page is cut: {} prints everything", again(&["--json"])));
    }
    if !args.json {
        printer.text(&page.lines.join("\n"))?;
    }
    if !(args.yes || args.json) {
        ask(printer, &page, again)?;
    }
    let is_approved = args.yes || !args.json;
    if is_approved {
        matter.write()?;
    }
    if args.json {
        printer.json(&matter.to_json(is_approved))?;
    } else {
        matter.print_summary(printer);
    }
    Ok(if is_approved { ExitStatus::Ok } else { ExitStatus::Refusal })
}

/// Returns the names of the components, each in backticks, separated by commas.
fn names_of(matter: &Review<'_>) -> String {
    matter.components.iter().map(|seen| format!("`{}`", seen.name)).collect::<Vec<_>>().join(", ")
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

/// Asks the question. `again` returns this command with further options.
///
/// # Errors
/// The question cannot be asked, or the answer is not a yes.
fn ask(printer: &Printer, page: &Page, again: impl Fn(&[&str]) -> String) -> Result<()> {
    const NOT_APPROVED: &str = "not approved, and nothing was written";
    let listener = printer.listener();
    if let Some(why) = cannot_ask(listener, page) {
        let is_above = listener == Listener::Absent && !page.is_cut;
        let read = if is_above {
            "the page above".to_owned()
        } else {
            format!("what {} prints", again(&["--json"]))
        };
        let instead =
            format!("read {read}; then {} approves it without a question", again(&["--yes"]));
        return Err(Failure::not_approved(format!("{NOT_APPROVED}: {why}"), instead));
    }
    printer.lines("approve this? [y/N] ");
    if files::answer().is_some_and(|answer| is_yes(&answer)) {
        return Ok(());
    }
    let instead = format!("change what you do not want to allow; {} then asks again", again(&[]));
    Err(Failure::not_approved(NOT_APPROVED, instead))
}

/// Returns the reason why the question cannot be asked; none if it can. Approval covers exactly the
/// content that was shown.
fn cannot_ask(listener: Listener, page: &Page) -> Option<&'static str> {
    match listener {
        Listener::Absent => Some("there is no terminal to ask at"),
        Listener::Redirected | Listener::Reader if !enforced!(SeenWhole) => None,
        Listener::Redirected => Some("the page went to a file or a pipe, not to the terminal"),
        Listener::Reader if page.is_cut => Some("the page is cut"),
        Listener::Reader if rows(page) > MAX_ROWS => {
            Some("the page is longer than a terminal keeps")
        }
        Listener::Reader => None,
    }
}

/// Returns the rows of a terminal that the page takes. A long line takes several.
fn rows(page: &Page) -> usize {
    page.lines.iter().map(|line| line.chars().count().div_ceil(ROW).max(1)).sum()
}

/// Returns the named components, or all of them if none is named.
fn chosen<'a>(
    config: &'a Config,
    file: &str,
    asked: &[String],
) -> Result<Vec<ResolvedComponent<'a>>> {
    if let Some(unknown) = asked.iter().find(|name| !config.components.contains_key(*name)) {
        let known = config.components.keys().map(String::as_str);
        let otherwise = || "give the NAME of a section [components.NAME]".to_owned();
        let hint = names::did_you_mean(unknown, known, otherwise);
        return Err(Failure::usage(format!("`{file}` has no component `{unknown}`"), hint));
    }
    let is_asked = |chosen: &ResolvedComponent<'_>| {
        asked.is_empty()
            || chosen.configured.is_some_and(|(name, _)| asked.iter().any(|asked| asked == name))
    };
    Ok(config.all().filter(is_asked).collect())
}

/// Loads a component without grants, asks for its definitions, and computes the rights of each
/// tool.
async fn review_component<'a>(
    engines: &Engines<'_>,
    (name, chosen): (&'a str, ResolvedComponent<'a>),
) -> Result<ReviewedComponent<'a>> {
    let (bytes, signer) = chosen.bytes()?;
    let contents = Contents::of(&bytes)?;
    let component = components::load_without_grants(engines, bytes, &chosen).await?;
    chosen.check_tools(&component)?;
    let grants = Arc::new(chosen.grants());
    let mut rights = BTreeMap::new();
    let mut gaps = Vec::new();
    for tool in component.tools() {
        let (tool, own) = (tool.definition(), tool.rights().cloned().unwrap_or_default());
        let own = own.with_granted(Arc::clone(&grants));
        let missing = gaps::missing_needs(engines.config, name, &own, tool).into_iter();
        gaps.extend(missing.map(|gap| (tool.name.clone(), gap)));
        rights.insert(tool.name.clone(), own);
    }
    gaps.sort_by(|(one, _), (other, _)| one.cmp(other));
    let now =
        ApprovedVersion::of(&component, signer.as_ref().map(|signer| signer.publisher.clone()));
    let inspection = component.inspection().clone();
    Ok(ReviewedComponent { name, signer, now, inspection, contents, gaps, rights, chosen })
}

impl ReviewedComponent<'_> {
    /// Returns the effective grants of each tool, by name.
    fn effective(&self) -> impl Iterator<Item = (&String, Effective)> {
        self.rights.iter().map(|(tool, rights)| (tool, effective::effective(rights)))
    }

    /// Returns the imports that have no effect.
    fn inert(&self) -> BTreeSet<String> {
        let inert = self.inspection.imports.iter().filter(|(_, standing)| *standing == Inert);
        inert.map(|(import, _)| import.clone()).collect()
    }
}

impl Review<'_> {
    fn differences(&self) -> impl Iterator<Item = (&ReviewedComponent<'_>, Difference<'_>)> {
        // A lock that was approved by another user does not count for this one.
        let is_news = self.unapproved().is_some_and(|found| !found.is_lock_known());
        let old = move |name: &str| self.lock.components.get(name).filter(|_| !is_news);
        self.components
            .iter()
            .map(move |seen| (seen, Difference { old: old(seen.name), new: &seen.now }))
    }

    /// Returns true if the configuration was found, not named, and this user has not approved its
    /// present form.
    fn is_found(&self) -> bool {
        self.config.approval == Approval::Missing
    }

    fn unapproved(&self) -> Option<&FoundConfiguration> {
        self.config.found.as_ref().filter(|_| self.is_found())
    }

    fn is_unchanged(&self) -> bool {
        let is_locked =
            |(_, difference): (_, Difference<'_>)| difference.state() == ApprovalState::Unchanged;
        !self.is_found() && self.removed.is_empty() && self.differences().all(is_locked)
    }

    fn to_json(&self, is_approved: bool) -> Value {
        let components = self.differences().map(|(seen, difference)| {
            let mut shown = difference.to_json();
            shown["name"] = seen.name.into();
            shown["path"] = seen.chosen.display_path().into();
            shown["signed_by"] = json!(seen.signer);
            shown["resolved_grants"] = json!(self.grant_rows(&seen.chosen));
            shown["unmet_needs"] =
                seen.gaps.iter().map(|(tool, gap)| json!({ "tool": tool, "need": gap })).collect();
            shown["rights"] =
                seen.effective().map(|(tool, may)| (tool.clone(), json!(may))).collect();
            shown
        });
        json!({
            "config": self.file,
            "lock": self.lock.display_path(),
            "approved": is_approved,
            "found": self.is_found(),
            "text": self.unapproved().map(|found| json!({
                "old": found.before().as_deref().map(without_password), "new": without_password(&found.text),
            })),
            "components": components.collect::<Vec<_>>(),
            "removed": self.removed,
            "confusable_names": self.confusable_names(),
            "warnings": self.warnings(),
        })
    }

    /// Writes the lock, and the record that the configuration is approved.
    fn write(&self) -> Result<()> {
        let seen: Vec<_> =
            self.components.iter().map(|seen| (seen.name.to_owned(), seen.now.clone())).collect();
        Ok(self.config.approve(&self.lock, &seen, &self.removed)?)
    }

    /// Prints a note that lists the approved components.
    fn print_summary(&self, printer: &Printer) {
        let Self { config, file, lock, components, removed, .. } = self;
        let names = components.iter().map(|seen| seen.name);
        // The components that are approved; none if all of them are.
        let only = config.only_approved(lock, names, removed).filter(|_| self.is_found());
        let lock = lock.display_path();
        let approved = match only {
            None if self.is_found() => format!("`{file}` for this user, its components"),
            None if components.is_empty() => format!("the components of `{file}`"),
            None => names_of(self),
            Some(_) => format!("`{file}` for this user, {}", names_of(self)),
        };
        printer.note(format!("approved: {approved} in `{lock}`"));
        if let Some(only) = only {
            let rest = config.components.keys().filter(|name| !only.contains(*name));
            let rest = rest.map(String::as_str).collect::<Vec<_>>().join(", ");
            printer.note(format!("not approved yet: {rest}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_prompt_requires_fully_shown_page() {
        let page = |lines: usize, is_cut| Page { lines: vec![String::new(); lines], is_cut };
        let long = Page { lines: vec!["x".repeat(MAX_ROWS * ROW), "x".to_owned()], is_cut: false };
        for (listener, page, needle) in [
            (Listener::Reader, page(MAX_ROWS, false), ""),
            (Listener::Reader, page(9, true), "the page is cut"),
            (Listener::Reader, page(MAX_ROWS + 1, false), "longer than a terminal keeps"),
            (Listener::Reader, long, "longer than a terminal keeps"),
            (Listener::Redirected, page(9, false), "went to a file or a pipe"),
            (Listener::Absent, page(9, false), "no terminal to ask at"),
        ] {
            let why = cannot_ask(listener, &page).unwrap_or_default();
            assert!(
                why.contains(needle) && why.is_empty() == needle.is_empty(),
                "{listener:?}: {why}"
            );
        }
    }

    #[test]
    fn only_y_or_yes_approves() {
        for (answer, expected) in [
            ("y\n", true),
            (" Yes\r\n", true),
            ("", false),
            ("\n", false),
            ("n", false),
            ("yep", false),
        ] {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
