//! Selects the secrets whose values a process reads.
//!
//! A caller sets a [`SecretSelection`] in the options for reading a configuration. Commands that
//! only show tools read none, a server reads all, and a tenant's worker process (a child that runs
//! the tools of one tenant) reads those that its parent names: the secrets that its components are
//! granted and that the tenant's rules leave to it. The code that reads secrets asks `has` for
//! each value; a tenant with its own value gets that in place of the shared one.

/// The secrets whose values are read.
#[derive(Debug, Clone)]
pub enum SecretSelection {
    /// All secrets of the configuration.
    All,
    /// No secrets, for commands that only inspect tools: `describe`, and a call that is denied
    /// everything, need none.
    None,
    /// Secrets of these names, as calls for this tenant use them.
    Only {
        /// The names of the secrets.
        names: Vec<String>,
        /// The tenant. `None`: the shared values.
        tenant: Option<String>,
    },
}

impl SecretSelection {
    /// Returns true if a value of this name is read. `is_for` returns true for a tenant, or for
    /// `None`, whose calls use the value.
    pub(crate) fn has(&self, name: &str, is_for: impl Fn(Option<&str>) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only { names, tenant } => {
                names.iter().any(|wanted| wanted == name) && is_for(tenant.as_deref())
            }
        }
    }
}
