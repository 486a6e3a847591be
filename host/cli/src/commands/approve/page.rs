//! Makes the page that a person reads before approving: configuration, components, grants and
//! warnings.
//!
//! `approve` calls `to_page` on its review and prints the lines. For a configuration that is not
//! approved in its present form, the page has its whole text or the changes of it. A new component
//! is shown in the form of `inspect`, with the facts that `inspect` omits; a changed one as a
//! difference. The page has everything that the approval covers, or it says that it is cut. The
//! warnings are the last lines, directly above the question; they include names that look alike,
//! needs (accesses that a tool declares) that are not granted, and imports that no tool declares.
//! Untrusted texts are escaped.

use toolcell::grants::{Directory, GrantKind};
use toolcell::{Grants, names};

use super::{MAX_COLUMN, Review, ReviewedComponent};
use crate::commands::inspect;
use crate::components;
use crate::config::effective::{self, TOO_MANY};
use crate::config::{self, ApprovalState, Difference, Page};
use crate::grants::secrets;
use crate::print::{clean, table};

impl Review<'_> {
    /// Returns the page with everything that the approval covers.
    pub(super) fn to_page(&self) -> Page {
        let mut page = Page::default();
        if let Some(found) = self.unapproved() {
            let file = self.file;
            page.lines.push(format!(
                "configuration {file}: found here, and not approved in its present form"
            ));
            // The whole configuration, whatever a section is for: publishers, pins, tenants,
            // isolation.
            page.append(Page::of_texts(found.before().as_deref(), &found.text));
        }
        let is_shown = |difference: &Difference<'_>| {
            difference.state() != ApprovalState::Unchanged || self.is_found()
        };
        let shown: Vec<_> =
            self.differences().filter(|(_, difference)| is_shown(difference)).collect();
        for (seen, difference) in &shown {
            let standing = difference.state();
            let path = clean::escaped(&seen.chosen.display_path());
            page.lines.push(format!("component {} ({path}): {}", seen.name, standing.word()));
            page.lines.extend(seen.signer.as_ref().map(|signer| format!("  signed by {signer}")));
            match standing {
                ApprovalState::New => page.append(seen.page()),
                ApprovalState::Changed | ApprovalState::Rebuilt => {
                    page.append(difference.page(&seen.inert(), inspect::tool))
                }
                ApprovalState::Unchanged => {}
            }
        }
        for (seen, _) in &shown {
            page.lines.push(format!("grants of {}", seen.name));
            let given = self.grant_rows(&seen.chosen);
            if !given.is_empty() {
                page.block(&table::columns(2, MAX_COLUMN, &given));
            }
            for (tool, may) in seen.effective() {
                page.lines.push(format!("  tool {tool}"));
                page.block(&table::columns(4, MAX_COLUMN, &effective::rows(&may)));
                page.is_cut |= may.values().flatten().any(|rule| rule == TOO_MANY);
            }
        }
        for name in &self.removed {
            page.lines.push(format!("component {name}: removed from the configuration"));
        }
        let warnings = self.warnings();
        if !warnings.is_empty() {
            page.lines.push("warnings".to_owned());
            page.lines.extend(warnings.iter().map(|warning| format!("  ! {warning}")));
        }
        page
    }

    /// Returns the warnings, one a line.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (seen, difference) in self.differences() {
            if difference.state() != ApprovalState::Unchanged {
                let own = difference.warnings().into_iter();
                warnings.extend(own.map(|warning| format!("{}: {warning}", seen.name)));
            }
        }
        for (name, first) in self.confusable_names() {
            warnings.push(format!(
                "the tool name `{name}` looks like `{first}`: a model may confuse the two tools"
            ));
        }
        warnings.extend(self.components.iter().flat_map(ReviewedComponent::without_use));
        for (tool, gap) in self.components.iter().flat_map(|seen| &seen.gaps) {
            warnings.push(format!("`{tool}` {}", gap.text()));
        }
        for problem in self.config.warnings.iter().chain(&self.idle) {
            warnings.push(clean::escaped(&format!("{problem}; hint: {}", problem.hint)));
        }
        warnings
    }

    /// Returns pairs of tools whose names look alike, the later one first.
    pub(super) fn confusable_names(&self) -> Vec<(&str, &str)> {
        let names = self.components.iter().flat_map(|seen| seen.now.tools.keys());
        let mut names: Vec<_> = names.map(String::as_str).collect();
        let mut found = Vec::new();
        while let Some((name, first)) = names::confusable(names.iter().copied()) {
            found.push((name, first));
            names.retain(|other| *other != name);
        }
        found
    }

    /// Returns rows with the targets of grants on this machine (paths of directories, values of
    /// variables, and so on) and with limits that differ from the defaults.
    pub(super) fn grant_rows(&self, chosen: &config::ResolvedComponent<'_>) -> Vec<Vec<String>> {
        let grants = chosen.grants();
        let mut rows = Vec::new();
        let mut row = |kind: &str, name: &str, what: &str| {
            rows.push(vec![kind.to_owned(), clean::escaped(name), clean::escaped(what)]);
        };
        for Directory { name, path, access, .. } in &grants.directories {
            row("directory", name, &format!("{}, to {access}", path.display()));
        }
        for (name, value) in &grants.environment {
            row("environment", name, value);
        }
        for (name, used) in &grants.secrets {
            let origin = secrets::origin(self.config, name);
            row("secret", name, &format!("{origin}, for {}", used.destination));
        }
        for name in grants.remaining(GrantKind::Reveal, &[]) {
            row("REVEALED", &name, &secrets::origin(self.config, &name));
        }
        if let Some(name) = grants.store.as_ref().filter(|_| !grants.kv.is_empty()) {
            let kept = "its stored keys stay when the component is updated; other configurations cannot see them";
            row("keys", name, kept);
        }
        let limits = chosen.configured.map_or(chosen.limits, |(_, configured)| configured.limits);
        for [name, said, usual] in config::unusual(&limits) {
            row("limit", &name, &format!("{said}; the default is {usual}"));
        }
        rows
    }
}

impl ReviewedComponent<'_> {
    /// Returns a warning for each import without a declared need, with the person who can change
    /// that.
    fn without_use(&self) -> Vec<String> {
        let grants = self.chosen.grants();
        let barring = self.missing(&grants);
        let is_declared = self.now.tools.values().any(|tool| tool.declares_needs());
        let warning = |(import, _): &(String, toolcell::component::ImportStatus)| {
            let import = clean::escaped(import);
            if !is_declared && barring.contains(&import) {
                return Some(format!(
                    "{}: no tool can be called until you grant what `{import}` is for; the tools do not declare it",
                    self.name
                ));
            }
            // The imports of a language runtime cover everything that any tool may use; the author
            // did not choose them.
            let is_authors = import.starts_with("toolcell:")
                && inspect::brought_by(&self.contents, &import).is_none();
            (is_declared && !barring.contains(&import) && is_authors).then(|| {
                format!(
                    "{}: no tool declares what `{import}` is for: each use is denied, and only the author can declare it",
                    self.name
                )
            })
        };
        self.inspection.ungranted(&grants).filter_map(warning).collect()
    }

    /// Returns the imports that have to be granted before a tool can be called.
    fn missing(&self, grants: &Grants) -> Vec<String> {
        components::missing_imports(&self.inspection, self.now.tools.values(), grants)
    }

    /// Returns the page of a new component: the content of `inspect`, and the facts that `inspect`
    /// omits.
    fn page(&self) -> Page {
        let mut page = Page::default();
        page.lines.push(format!("  digest {}", self.inspection.digest));
        let grants = self.chosen.grants();
        let missing = self.missing(&grants);
        page.indented(&inspect::imports(&self.inspection, &missing, &grants, &self.contents));
        for definition in self.now.tools.values() {
            page.append(Page::of_new(definition, &inspect::tool(definition)));
        }
        page
    }
}
