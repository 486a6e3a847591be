//! Resolves a word on the command line to a component of the configuration, or to a file.
//!
//! `choose` takes a word such as `notes` or `tools/notes.wasm` and returns a `ResolvedComponent`:
//! its file, its settings in the configuration if it has any, its limits and isolation. `used` does
//! so for a command that makes calls, and refuses a component of a configuration that was found and
//! is not approved; such a component can only be inspected. A file that no configuration names has
//! no grants. A name that is unknown is an error with the nearest name. `all` returns every
//! component.

use std::fs;
use std::path::{Path, PathBuf};

use toolcell::controls::enforced;
use toolcell::{Limits, names};

use super::{Configuration, search};
use crate::approval::dev::Development;
use crate::approval::trust::Approval;
use crate::error::{Error, Unapproved};
use crate::file::resolved::{ComponentConfig, ResolvedComponent};
use crate::schema::isolation::Isolation;
use crate::schema::{NAME, is_name};

impl Configuration {
    /// Returns the component that a word refers to, by its name in the configuration or by its
    /// path.
    pub fn choose(&self, word: &Path) -> Result<ResolvedComponent<'_>, Error> {
        if let Some((name, configured)) =
            word.to_str().and_then(|word| self.components.get_key_value(word))
        {
            return Ok(self.chosen(configured.path.clone(), Some((name, configured))));
        }
        let is_bare = word.to_str().is_some_and(is_name);
        if is_bare && !word.exists() {
            if let Some(foreign) = &self.foreign {
                return Err(search::not_used(foreign));
            }
            let asked = word.display().to_string();
            let known = self.components.keys().map(String::as_str);
            return Err(match &self.file {
                Some(file) => Error::usage(
                    format!(
                        "`{file}` has no component `{asked}`, and there is no file of that name"
                    ),
                    names::did_you_mean(&asked, known, || self.listed()),
                ),
                None => self.missing_component(&asked),
            });
        }
        let real = fs::canonicalize(word).ok();
        let same = |configured: &ComponentConfig| {
            real.is_some() && fs::canonicalize(&configured.path).ok() == real
        };
        Ok(match self.components.iter().find(|(_, configured)| same(configured)) {
            Some((name, configured)) => {
                let chosen = self.chosen(word.to_owned(), Some((name, configured)));
                let is_typed = configured.development == Some(Development::CommandLine);
                let is_surprise = self.found.is_some() && chosen.is_granted_anything() && !is_typed;
                ResolvedComponent { is_surprise, ..chosen }
            }
            None => self.chosen(word.to_owned(), None),
        })
    }

    /// Returns the error for a component's name without a configuration that could define it.
    fn missing_component(&self, asked: &str) -> Error {
        let file = format!("{asked}.wasm");
        let hint = if Path::new(&file).exists() {
            format!("did you mean `{file}`?")
        } else {
            format!(
                "name the file of a component, or write a section [components.{asked}] in a `{NAME}`"
            )
        };
        Error::usage(
            format!(
                "there is no file `{asked}`, and no `{NAME}` that has a component of this name"
            ),
            hint,
        )
    }

    /// Returns the error of a command that needs a configuration and has none. `hint` is for a user
    /// without any file.
    pub fn missing(&self, hint: &str) -> Error {
        match &self.foreign {
            Some(foreign) => search::not_used(foreign),
            None => {
                Error::usage(format!("there is no `{NAME}` in this directory or above it"), hint)
            }
        }
    }

    /// Returns the minimum isolation of a tenant's calls.
    pub fn isolation_of(&self, tenant: Option<&str>) -> Isolation {
        tenant
            .and_then(|tenant| self.tenants.get(tenant))
            .map_or(self.isolation, |settings| settings.isolation)
    }

    /// As [`choose`](Self::choose), for a command that uses the component. Refuses a component of a
    /// configuration that was found and is not approved.
    pub fn used(&self, word: &Path) -> Result<ResolvedComponent<'_>, Error> {
        let chosen = self.choose(word)?;
        let is_typed = chosen.development() == Some(&Development::CommandLine);
        if let (false, Some(file), Some(name)) = (is_typed, &self.file, chosen.name())
            && self.approval.is_missing()
        {
            let message = format!(
                "`{name}` comes from `{}`: you have not approved this configuration",
                with_dot_slash(file)
            );
            return Err(self.not_approved(message, &[name]));
        }
        Ok(chosen)
    }

    /// Returns the error for a configuration that was found and is not approved: this message, and
    /// a hint on how to approve these components.
    fn not_approved(&self, message: String, names: &[&str]) -> Error {
        let record = self.found.as_ref().and_then(|found| found.read_error());
        let record =
            record.map(|why| format!(": the record of your approvals cannot be used: {why}"));
        let message = format!("{message} in its present form{}", record.unwrap_or_default());
        let hint = self.how_to_approve("the configuration", names);
        Error::not_approved(Unapproved::Configuration, message, hint)
    }

    /// As `not_approved`, for the file as a whole, of which nothing is served.
    pub(super) fn none_approved(&self) -> Error {
        let file = with_dot_slash(self.file.as_deref().unwrap_or(NAME));
        self.not_approved(
            format!("nothing of `{file}` is served: you have not approved this configuration"),
            &[],
        )
    }

    /// Returns all components of the configuration.
    pub fn all(&self) -> impl Iterator<Item = ResolvedComponent<'_>> {
        self.components.iter().map(|(name, configured)| {
            self.chosen(configured.path.clone(), Some((name, configured)))
        })
    }

    fn chosen<'a>(
        &'a self,
        path: PathBuf,
        configured: Option<(&'a str, &'a ComponentConfig)>,
    ) -> ResolvedComponent<'a> {
        let (limits, isolation, demand) = match configured {
            Some((_, configured)) => (configured.limits, configured.isolation, &configured.demand),
            None => (self.defaults, self.isolation, &self.demand),
        };
        ResolvedComponent {
            path,
            configured,
            limits: self.bounded(limits),
            isolation,
            demand: demand.as_ref(),
            is_surprise: false,
        }
    }

    /// Returns the limits that apply. Limits of a file that is not approved can only tighten the
    /// defaults.
    pub(super) fn bounded(&self, said: Limits) -> Limits {
        match self.approval {
            Approval::Missing if enforced!(FoundLimits) => said.tightened(&Limits::default()),
            Approval::Missing | Approval::Given => said,
        }
    }

    /// Returns true if a configuration was found but not read, because it belongs to another user.
    pub fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// Lists the configuration's components, as a hint.
    pub fn listed(&self) -> String {
        let names: Vec<_> = self.components.keys().map(String::as_str).collect();
        if names.is_empty() {
            "it has no components: add [components.NAME]".to_owned()
        } else {
            format!("its components: {}", names.join(", "))
        }
    }
}

/// Formats a file of the working directory as `./NAME`, so that it reads as a path.
fn with_dot_slash(file: &str) -> String {
    if file.contains('/') { file.to_owned() } else { format!("./{file}") }
}
