//! `toolcell approve`: what is new or changed, shown, and written down when somebody says yes.
//!
//! In: the configuration, its lock, the components as they are now. Out: what differs, and with a yes a new lock and the
//! record that the configuration itself may be used.
//! Invariants: what is written is what was shown; nothing runs but `describe`, no secret is looked at; without a yes nothing
//! is written, and what is written is written whole. Nobody is asked about what they could not see.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell::Standing::Inert;
use toolcell::defence::{Defence, stands};
use toolcell::{Component, Rights, names};

use crate::args::{ApproveArgs, Global};
use crate::config::{self, Approval, Approved, Chosen, Config, Found, Lock, Wanted};
use crate::difference::{Difference, Page, Standing};
use crate::effective::{self, Effective, TOO_MANY};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::host::{self, Engines};
use crate::printer::{Listener, Printer};
use crate::signature::Signer;
use crate::written::Written;
use crate::{clean, components, table};

/// Characters of a column.
const WIDEST: usize = 24;
/// Rows that a person is asked about: what a terminal keeps to be scrolled back to.
const MAX_ROWS: usize = 2000;
/// Characters of a row.
const ROW: usize = 80;

/// One component as it is now.
struct Seen<'a> {
    name: &'a str,
    chosen: Chosen<'a>,
    /// Who signed it, if somebody has to.
    signer: Option<Signer>,
    now: Approved,
    /// Imports that reach nothing.
    inert: BTreeSet<String>,
    /// What each of its tools may, by name.
    may: Vec<(String, Effective)>,
}

/// What is there to be approved.
struct Matter<'a> {
    config: &'a Config,
    file: &'a str,
    lock: Lock,
    seen: Vec<Seen<'a>>,
    /// Names in the lock that the configuration has no more.
    gone: Vec<String>,
}

/// Shows, asks, writes.
pub(crate) async fn approve(printer: &Printer, global: &Global, args: &ApproveArgs) -> Result<ExitStatus, Failure> {
    let config = Config::read_with(global, Wanted::None)?;
    let Some(file) = config.file.as_deref() else {
        return Err(config.missing("a component that no configuration names needs no approval"));
    };
    let again = |options: &[&str]| {
        config.again.command("approve", options, &args.components.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let is_whole = args.components.is_empty();
    if !is_whole && config.approval == Approval::Missing {
        let message = format!("`{file}` was found here: it is approved for you as a whole, or not at all");
        let whole = config.again.command("approve", &[], &[]);
        return Err(Failure::usage(message, format!("{whole} shows all of it and asks")));
    }
    let lock = Lock::beside(&config)?;
    let engines = host::engines(printer, global, 1, &config)?;
    let mut seen = Vec::new();
    for chosen in chosen(&config, file, &args.components)? {
        let Some((name, _)) = chosen.configured else { continue };
        let about = |failure: Failure| failure.about(format_args!("[components.{name}]"));
        seen.push(look(printer, &engines, name, chosen).await.map_err(about)?);
    }
    let gone =
        lock.components.keys().filter(|name| is_whole && !config.components.contains_key(*name)).cloned().collect();
    let matter = Matter { config: &config, file, lock, seen, gone };
    if matter.is_settled() {
        if args.json {
            printer.json(&matter.to_json(true))?;
        } else {
            printer.note("note", &format!("everything in `{file}` is approved as it is now"));
        }
        return Ok(ExitStatus::Ok);
    }
    let mut page = matter.to_page();
    if page.is_cut {
        page.lines.push(format!("not all of it is shown here: {} has all", again(&["--json"])));
    }
    if !args.json {
        printer.text(&page.lines.join("\n"))?;
    }
    for (name, first) in matter.look_alikes() {
        printer.note(
            "warning",
            &format!("the tool `{name}` is taken for `{first}`: one may be made to be called as the other"),
        );
    }
    if !(args.yes || args.json) {
        let (yes, all) = (again(&["--yes"]), again(&["--json"]));
        ask(printer, &page, format!("{yes} when you have looked at it; {all} has all of it"))?;
    }
    let is_approved = args.yes || !args.json;
    if is_approved {
        matter.write()?;
    }
    if args.json {
        printer.json(&matter.to_json(is_approved))?;
    } else {
        let whole = if matter.is_found() { format!("`{file}` for you, and ") } else { String::new() };
        printer.note("note", &format!("approved: {whole}its components in `{}`", matter.lock.shown()));
    }
    Ok(if is_approved { ExitStatus::Ok } else { ExitStatus::Refusal })
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

/// Asks somebody who has seen it. Fails but for a yes.
fn ask(printer: &Printer, page: &Page, instead: String) -> Result<(), Failure> {
    let why = unasked(printer.listener(), page);
    if why.is_none() && printer.ask("approve this?").is_some_and(|answer| is_yes(&answer)) {
        return Ok(());
    }
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    Err(Failure::not_approved(format!("not approved, and nothing was written{why}"), instead))
}

/// Why nobody is asked: a yes is for what was seen.
fn unasked(listener: Listener, page: &Page) -> Option<&'static str> {
    match listener {
        Listener::Nobody => Some("nobody is at a terminal to be asked"),
        Listener::Elsewhere | Listener::Reader if !stands(Defence::SeenWhole) => None,
        Listener::Elsewhere => Some("what it is about went to a file or a pipe, not to the terminal"),
        Listener::Reader if page.is_cut => Some("not all of it is shown"),
        Listener::Reader if rows(page) > MAX_ROWS => Some("it is more than a terminal shows"),
        Listener::Reader => None,
    }
}

/// What it takes of a terminal: a long line is many rows.
fn rows(page: &Page) -> usize {
    page.lines.iter().map(|line| line.chars().count().div_ceil(ROW).max(1)).sum()
}

/// The components that were named, or all of them.
fn chosen<'a>(config: &'a Config, file: &str, asked: &[String]) -> Result<Vec<Chosen<'a>>, Failure> {
    if let Some(unknown) = asked.iter().find(|name| !config.components.contains_key(*name)) {
        let near = names::nearest(unknown, config.components.keys().map(String::as_str));
        let hint = near.map_or_else(
            || "a name is that of a section [components.NAME]".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Failure::usage(format!("`{file}` names no component `{unknown}`"), hint));
    }
    let is_asked = |chosen: &Chosen<'_>| {
        asked.is_empty() || chosen.configured.is_some_and(|(name, _)| asked.iter().any(|asked| asked == name))
    };
    Ok(config.all().filter(is_asked).collect())
}

/// Asks a component what it offers, and works out what that may.
async fn look<'a>(
    printer: &Printer,
    engines: &Engines<'_>,
    name: &'a str,
    chosen: Chosen<'a>,
) -> Result<Seen<'a>, Failure> {
    let (bytes, signer) = components::bytes(&chosen)?;
    let component = components::freely(printer, engines, bytes, &chosen).await?;
    chosen.check_tools(component.definitions().map(|tool| tool.name.as_str()).collect::<Vec<_>>().into_iter())?;
    let grants = Arc::new(chosen.grants());
    let may = component.definitions().map(|tool| {
        let rights = Rights::new(Arc::clone(&grants), tool).map_err(|bad| Failure::usage(bad.to_string(), bad.hint))?;
        Ok((tool.name.clone(), effective::effective(&rights, tool, None)))
    });
    let may = may.collect::<Result<_, Failure>>()?;
    let imports = component.examination().imports.iter();
    let inert = imports.filter(|(_, standing)| *standing == Inert).map(|(import, _)| import.clone()).collect();
    let now = Approved::of(&component, signer.as_ref().map(|signer| signer.publisher.clone()));
    Ok(Seen { name, signer, now, inert, may, chosen })
}

/// How a component that was loaded stands to the lock.
pub(crate) fn standing(lock: &Lock, name: &str, component: &Component, signer: Option<&Signer>) -> Standing {
    let now = Approved::of(component, signer.map(|signer| signer.publisher.clone()));
    Difference { old: lock.components.get(name), new: &now }.standing()
}

impl Matter<'_> {
    fn differences(&self) -> impl Iterator<Item = (&Seen<'_>, Difference<'_>)> {
        // What somebody else approved is news to who did not.
        let is_news = self.unapproved().is_some_and(|found| !found.is_lock_known());
        let old = move |name: &str| self.lock.components.get(name).filter(|_| !is_news);
        self.seen.iter().map(move |seen| (seen, Difference { old: old(seen.name), new: &seen.now }))
    }

    /// The configuration is to be approved for this user.
    fn is_found(&self) -> bool {
        self.config.approval == Approval::Missing
    }

    fn unapproved(&self) -> Option<&Found> {
        self.config.found.as_ref().filter(|_| self.is_found())
    }

    fn is_settled(&self) -> bool {
        let is_locked = |(_, difference): (_, Difference<'_>)| difference.standing() == Standing::Locked;
        !self.is_found() && self.gone.is_empty() && self.differences().all(is_locked)
    }

    /// Pairs of tools that are taken for one another, the later one first.
    fn look_alikes(&self) -> Vec<(&str, &str)> {
        let mut names: Vec<_> = self.seen.iter().flat_map(|seen| seen.now.tools.keys().map(String::as_str)).collect();
        let mut found = Vec::new();
        while let Some((name, first)) = names::look_alike(names.iter().copied()) {
            found.push((name, first));
            names.retain(|other| *other != name);
        }
        found
    }

    /// Everything that a yes says yes to.
    fn to_page(&self) -> Page {
        let mut is_cut = false;
        let mut text = Vec::new();
        if let Some(found) = self.unapproved() {
            text.push(format!("configuration {}: found here, not approved for you as it is now", self.file));
            // All of it, whatever it comes to mean: publishers, pins, tenants, how far calls are kept apart.
            let page = Page::of_texts(found.before(), found.text.clone());
            text.extend(page.lines);
            is_cut |= page.is_cut;
        }
        let shown = || {
            let is_shown = |difference: &Difference<'_>| difference.standing() != Standing::Locked || self.is_found();
            self.differences().filter(move |(_, difference)| is_shown(difference))
        };
        for (seen, difference) in shown() {
            let standing = difference.standing();
            text.push(format!("component {} ({}): {}", seen.name, clean::shown(&seen.chosen.shown()), standing.word()));
            text.extend(seen.signer.as_ref().map(|signer| format!("  signed by {signer}")));
            if standing != Standing::Locked {
                let page = difference.page(&seen.inert);
                text.extend(page.lines);
                is_cut |= page.is_cut;
            }
        }
        // What they may comes last: it stands right above the question.
        for (seen, _) in shown() {
            text.push(format!("granted to {}", seen.name));
            let given = self.given(&seen.chosen);
            if !given.is_empty() {
                text.push(table::columns(2, WIDEST, &given));
            }
            for (tool, may) in &seen.may {
                text.push(format!("  tool {tool} may"));
                text.push(table::columns(4, WIDEST, &effective::rows(may)));
                is_cut |= may.values().flatten().any(|rule| rule == TOO_MANY);
            }
        }
        text.extend(self.gone.iter().map(|name| format!("component {name}: gone from the configuration")));
        let lines = text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
        Page { lines, is_cut }
    }

    /// What of the user's and the machine's own is behind the names by which tools know it, and how much it may use where
    /// that is not as usual.
    fn given(&self, chosen: &Chosen<'_>) -> Vec<Vec<String>> {
        let grants = chosen.grants();
        let row = |kind: &str, name: &str, what: String| vec![kind.to_owned(), clean::shown(name), clean::shown(&what)];
        let directories = grants.directories.iter().map(|directory| {
            row("directory", &directory.name, format!("{}, to {}", directory.path.display(), directory.access))
        });
        let variables = grants.environment.iter().map(|(name, value)| row("environment", name, value.clone()));
        let of_secret = |name: &String| self.config.origins.get(name).map(ToString::to_string).unwrap_or_default();
        let secrets = grants.secrets.iter();
        let secrets =
            secrets.map(|(name, use_)| row("secret", name, format!("{}, for {}", of_secret(name), use_.bound_to)));
        let revealed = grants.reveal.iter().map(|name| row("REVEALED", name, of_secret(name)));
        let said = chosen.configured.map_or(chosen.limits, |(_, configured)| configured.limits);
        let limits = config::unusual(&said).into_iter();
        let limits = limits.map(|[name, said, usual]| row("limit", &name, format!("{said}, in place of {usual}")));
        let store = grants.store.iter().filter(|_| !grants.keys.is_empty());
        let stores =
            store.map(|name| row("keys", name, "kept from one version to the next, for this configuration".into()));
        directories.chain(variables).chain(secrets).chain(revealed).chain(stores).chain(limits).collect()
    }

    fn to_json(&self, is_approved: bool) -> Value {
        let components = self.differences().map(|(seen, difference)| {
            let mut shown = difference.to_json();
            shown["name"] = seen.name.into();
            shown["path"] = seen.chosen.shown().into();
            shown["signed_by"] = json!(seen.signer);
            shown["given"] = json!(self.given(&seen.chosen));
            shown["may"] = seen.may.iter().map(|(tool, may)| (tool.clone(), json!(may))).collect();
            shown
        });
        json!({
            "config": self.file,
            "lock": self.lock.shown(),
            "approved": is_approved,
            "found": self.is_found(),
            "text": self.unapproved().map(|found| json!({ "old": found.before(), "new": found.text })),
            "components": components.collect::<Vec<_>>(),
            "gone": self.gone,
            "look_alikes": self.look_alikes(),
        })
    }

    /// Writes the lock, and that the configuration is approved: the lock is on the disk before the record is kept, and gets
    /// its name after. Killed in between, the configuration is not approved.
    fn write(&self) -> Result<(), Failure> {
        let mut lock = self.lock.components.clone();
        lock.retain(|name, _| !self.gone.contains(name));
        lock.extend(self.seen.iter().map(|seen| (seen.name.to_owned(), seen.now.clone())));
        let lock = self.lock.with(lock);
        // Who had approved the old lock has now approved this one.
        let is_recorded = self.is_found() || self.config.approval == Approval::Given;
        let record = self.config.found.as_ref().filter(|_| is_recorded);
        let record = record.map(|found| found.approved(&lock.text())).transpose()?;
        let lock = lock.written()?;
        if let Some(record) = record {
            record.put()?;
        }
        let put = lock.map_or(Ok(()), Written::put);
        put.map_err(|error| Failure::file(error, "make its directory writable for you"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever is asked has seen all of it.
    #[test]
    fn nobody_is_asked_about_what_is_not_there_to_be_seen() {
        let page = |lines: usize, is_cut| Page { lines: vec![String::new(); lines], is_cut };
        let long = Page { lines: vec!["x".repeat(MAX_ROWS * ROW), "x".to_owned()], is_cut: false };
        for (listener, page, needle) in [
            (Listener::Reader, page(MAX_ROWS, false), ""),
            (Listener::Reader, page(9, true), "not all of it is shown"),
            (Listener::Reader, page(MAX_ROWS + 1, false), "more than a terminal shows"),
            (Listener::Reader, long, "more than a terminal shows"),
            (Listener::Elsewhere, page(9, false), "went to a file or a pipe"),
            (Listener::Nobody, page(9, false), "nobody is at a terminal"),
        ] {
            let why = unasked(listener, &page).unwrap_or_default();
            assert!(why.contains(needle) && why.is_empty() == needle.is_empty(), "{listener:?}: {why}");
        }
    }

    #[test]
    fn nothing_but_a_yes_is_one() {
        for (answer, expected) in
            [("y\n", true), (" Yes\r\n", true), ("", false), ("\n", false), ("n", false), ("yep", false)]
        {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
