//! Finds name clashes: tools of several components that a call or a model cannot tell apart.
//!
//! A command that offers the tools of several components together adds each tool with its component
//! to a [`ToolOwners`]. A second tool of the same name is an error, because a call names its tool
//! and not the component. [`ToolOwners::check`] is called at the end and refuses two names that
//! look alike, such as names with characters of another alphabet, since a model may confuse them.

use std::collections::HashMap;

use anyhow::anyhow;
use toolcell::names;

use crate::print::{Failure, Result};

/// The component of each tool, by the name that users see.
#[derive(Default)]
pub(crate) struct ToolOwners {
    /// In the order of addition.
    tools: Vec<String>,
    owners: HashMap<String, String>,
}

impl ToolOwners {
    /// Adds a tool of this component.
    ///
    /// # Errors
    /// Another component has a tool of the same name.
    pub(crate) fn add(&mut self, tool: &str, home: &str) -> Result<()> {
        let Some(first) = self.owners.insert(tool.to_owned(), home.to_owned()) else {
            self.tools.push(tool.to_owned());
            return Ok(());
        };
        let message = if first == home {
            anyhow!("`{first}` is named twice")
        } else {
            anyhow!("`{first}` and `{home}` both offer a tool `{tool}`")
        };
        Err(Failure::file(message, "leave one of them out: a call names its tool, not the file"))
    }

    /// Checks that no two names look alike.
    pub(crate) fn check(&self) -> Result<()> {
        match names::confusable(self.tools.iter().map(String::as_str)) {
            Some((tool, other)) => {
                let place = |name: &str| self.owners.get(name).cloned().unwrap_or_default();
                let (own, others) = (place(tool), place(other));
                let message = anyhow!("`{tool}` of `{own}` looks like `{other}` of `{others}`");
                let hint = "rename one of the tools, or leave out its component: a model may confuse the two tools";
                Err(Failure::file(message, hint))
            }
            None => Ok(()),
        }
    }
}
