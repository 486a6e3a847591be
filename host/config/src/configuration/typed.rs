//! Adds a component with the grants of the command line: `--grant KIND=RULE`.
//!
//! `run`, `batch` and `learn` call `Configuration::with_command_line_grants` with a component's
//! file and these options. It returns the configuration with one more component, which needs no
//! approval. The options are converted to the text of a configuration and read by its parser, so
//! that a rule means the same in both and is refused with the same message; lines of problems are
//! mapped back to the options. A component that the configuration names has only the grants of the
//! configuration, so `--grant` or `--as` for it is an error.

use std::path::Path;

use super::{Configuration, Places};
use crate::approval::dev::Development;
use crate::approval::trust::Approval;
use crate::error::Error;
use crate::file::resolved::{ComponentConfig, name_of_file};
use crate::file::secrets::{OwnSecrets, Secrets};
use crate::grants::typed_grants::{items, store, to_text};
use crate::paths::roots::Guarded;
use crate::problem::{Problem, Problems};
use crate::text::hint_command::quoted;

/// The file name in problems of the generated text. The line is mapped to the option.
const FILE: &str = "--grant";

impl Configuration {
    /// Adds this component, with the grants from the command line.
    ///
    /// # Errors
    /// Fails for a rule that cannot be used, and for a component that the file configures.
    pub fn with_command_line_grants(
        mut self,
        component: &Path,
        typed: &[String],
    ) -> Result<Self, Error> {
        if typed.is_empty() {
            return Ok(self);
        }
        match (self.choose(component)?.configured, &self.file) {
            (Some((_, ComponentConfig { development: Some(Development::CommandLine), .. })), _) => {
                return Ok(self);
            }
            (Some((name, _)), Some(file)) => {
                let is_grant = typed.iter().any(|typed| !typed.starts_with("as="));
                let (option, instead) = if is_grant {
                    ("--grant", format!("add the grants to [components.{name}.grants]"))
                } else {
                    ("--as", format!("leave it out, or set `as` in [components.{name}]"))
                };
                return Err(Error::usage(
                    format!("`{option}` cannot be used for `{name}`, which `{file}` configures"),
                    format!("{instead}, or give the path of a file that is not in `{file}`"),
                ));
            }
            (Some(_) | None, _) => {}
        }
        let name = self.unused_name(component);
        let items = items(typed)?;
        let (text, lines) = to_text(&name, component, &items);
        // If the configuration is not approved, no secret was read.
        let secrets = match self.approval {
            Approval::Given => {
                let (origins, unset) = (self.origins.clone(), self.unset.clone());
                let (shared, stored) = (OwnSecrets { origins, unset }, self.secrets.clone());
                Secrets { shared, stored, ..Secrets::default() }
            }
            Approval::Missing => Secrets::default(),
        };
        let base = self.options.current_dir.clone().unwrap_or_default();
        // The list of a configuration that was not read is empty.
        let Guarded { unread, unwritten, .. } = self.guarded.clone();
        let guarded = Guarded { unread, unwritten, ..self.options.guarded() };
        let places = Places { base, guarded, secrets };
        let mut problems = Problems::new(FILE, &text);
        let parsed = Self::parsed(&mut problems, places, None, &self.options);
        let about = |line: usize| {
            typed.get(lines.get(line.saturating_sub(1)).copied().flatten().unwrap_or_default())
        };
        let about = |line| about(line).map(|typed| quoted(typed)).unwrap_or_default();
        if let Some((last, others)) = problems.errors.split_last() {
            // The option has the key without its section.
            let section = format!("components.{name}.grants.");
            let said = |problem: &Problem| {
                format!(
                    "`--grant {}`: {}",
                    about(problem.line),
                    problem.message.replace(&section, "")
                )
            };
            let others = others
                .iter()
                .map(|problem| format!("{}\n  hint: {}\n", said(problem), problem.hint));
            return Err(Error::usage(others.collect::<String>() + &said(last), last.hint.clone()));
        }
        if let Some(mut parsed) = parsed
            && let Some(configured) = parsed.components.remove(&name)
        {
            let mut grants = configured.grants;
            grants.store = Some(store(component));
            let configured = ComponentConfig {
                path: component.to_owned(),
                grants,
                limits: self.bounded(self.defaults),
                isolation: self.isolation,
                demand: self.demand.clone(),
                development: Some(Development::CommandLine),
                ..configured
            };
            self.components.insert(name, configured);
            // A secret without a value is refused at the call, as with a file.
            for unset in parsed.unset.values_mut().filter(|unset| unset.file == FILE) {
                (unset.file, unset.line, unset.column) =
                    (format!("`{FILE} {}`", about(unset.line)), 0, 0);
            }
            (self.origins, self.secrets, self.unset, self.guarded) =
                (parsed.origins, parsed.secrets, parsed.unset, parsed.guarded);
            if self.approval == Approval::Missing {
                self.tenants
                    .values_mut()
                    .for_each(|settings| settings.secrets = OwnSecrets::default());
            }
            self.typed = typed.to_vec();
        }
        Ok(self)
    }

    /// Returns a name for the component that the configuration does not use.
    fn unused_name(&self, component: &Path) -> String {
        let mut name = name_of_file(component);
        while self.components.contains_key(&name) {
            name.push_str("-dev");
        }
        name
    }
}
