//! What a configuration is read with: directories, environment variables, which secrets are read.
//!
//! Invariants: the crate looks at no environment variable and no directory of the user but by these
//! options.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{HintCommand, Wanted};

/// What a configuration is read with.
///
/// # Defaults
/// [`from_environment`](Self::from_environment).
#[derive(Debug, Clone)]
pub struct ReadOptions {
    pub(crate) variables: Variables,
    pub(crate) current_dir: Option<PathBuf>,
    /// That directory was said, and may be another one than the process's.
    pub(crate) is_elsewhere: bool,
    pub(crate) home: Option<PathBuf>,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) state_dir: Option<PathBuf>,
    /// Directories that no tool is granted, besides the two above.
    pub(crate) own: Vec<PathBuf>,
    pub(crate) wanted: Wanted,
    pub(crate) hint: HintCommand,
}

/// Where the values of environment variables come from.
#[derive(Debug, Clone)]
pub(crate) enum Variables {
    Process,
    Given(BTreeMap<String, String>),
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self::from_environment()
    }
}

impl ReadOptions {
    /// Nothing of the process's environment: no variable, no home, no cache and no state directory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            variables: Variables::Given(BTreeMap::new()),
            current_dir: None,
            is_elsewhere: false,
            home: None,
            cache_dir: None,
            state_dir: None,
            own: Vec::new(),
            wanted: Wanted::All,
            hint: HintCommand::default(),
        }
    }

    /// As the command `toolcell` does it: variables of this process; `HOME`; `toolcell` in
    /// `XDG_CACHE_HOME` or `~/.cache`, and in `XDG_STATE_HOME` or `~/.local/state`. Directories
    /// that are not absolute are ignored.
    #[must_use]
    pub fn from_environment() -> Self {
        let absolute = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let home = absolute("HOME");
        let user = |variable: &str, below: &str| {
            let dir = absolute(variable).or_else(|| Some(home.as_ref()?.join(below)));
            dir.map(|dir| dir.join("toolcell"))
        };
        let (cache_dir, state_dir) =
            (user("XDG_CACHE_HOME", ".cache"), user("XDG_STATE_HOME", ".local/state"));
        Self {
            variables: Variables::Process,
            current_dir: std::env::current_dir().ok(),
            own: cache_dir.iter().chain(&state_dir).cloned().collect(),
            home,
            cache_dir,
            state_dir,
            ..Self::new()
        }
    }

    /// Takes the values of secrets from these variables instead of the process's.
    #[must_use]
    pub fn with_variables(self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { variables: Variables::Given(variables.into_iter().collect()), ..self }
    }

    /// The directory that a search begins in, and that relative paths in options are seen from.
    #[must_use]
    pub fn with_current_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { current_dir: Some(dir.into()), is_elsewhere: true, ..self }
    }

    /// The user's home directory, which no tool is granted as a whole.
    #[must_use]
    pub fn with_home(self, dir: impl Into<PathBuf>) -> Self {
        Self { home: Some(dir.into()), ..self }
    }

    /// Keeps compiled components in this directory.
    #[must_use]
    pub fn with_cache_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { cache_dir: Some(dir.into()), ..self }
    }

    /// Keeps no compiled components.
    #[must_use]
    pub fn without_cache(self) -> Self {
        Self { cache_dir: None, ..self }
    }

    /// Keeps approvals, approved components, tools' keys and the counts of granted directories in
    /// this directory.
    #[must_use]
    pub fn with_state_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { state_dir: Some(dir.into()), ..self }
    }

    /// Reads the values of these secrets alone.
    #[must_use]
    pub fn with_wanted(self, wanted: Wanted) -> Self {
        Self { wanted, ..self }
    }

    /// The command that hints show.
    #[must_use]
    pub fn with_hint_command(self, hint: HintCommand) -> Self {
        Self { hint, ..self }
    }

    /// The value of a variable that a configuration names, if it is text.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        match &self.variables {
            // What is no name at all would make the standard library panic.
            Variables::Process if name.is_empty() || name.contains(['=', '\0']) => None,
            Variables::Process => std::env::var(name).ok(),
            Variables::Given(values) => values.get(name).cloned(),
        }
    }

    /// A path that was named, as this process can open it.
    pub(crate) fn opened(&self, path: PathBuf) -> PathBuf {
        match &self.current_dir {
            Some(dir) if self.is_elsewhere => dir.join(path),
            Some(_) | None => path,
        }
    }

    /// Directories of toolcell itself.
    pub(crate) fn own_directories(&self) -> Vec<PathBuf> {
        self.own.iter().chain(&self.cache_dir).chain(&self.state_dir).cloned().collect()
    }

    pub(crate) fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref()
    }
}
