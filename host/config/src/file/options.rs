//! Options for reading a configuration: the directories and environment variables that it uses, and
//! the names of the secrets whose values are read.
//!
//! The command and an embedder (the program that uses this library) pass [`ReadOptions`] to
//! `Configuration::read_with` or `find`. By default they have the environment of this process: its
//! variables, its working and home directory, and the user's cache and state directories. The
//! working, cache and state directories can be set; [`ReadOptions::new`] uses nothing of the
//! environment. The state directory holds approvals, approved versions of components, the
//! key-value data of tools, and the counts of granted directories. `with_wanted` limits the secrets
//! whose values are read; by default all are. The crate reads variables and directories of the user
//! only through these options, so that tests and servers control them.

use std::path::PathBuf;

use crate::SecretSelection;
use crate::paths::roots::Guarded;
use crate::text::hint_command::HintCommand;

/// Options for reading a configuration.
///
/// # Defaults
/// [`from_environment`](Self::from_environment).
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// True if the variables of the process are read.
    pub(crate) has_variables: bool,
    pub(crate) current_dir: Option<PathBuf>,
    /// True if `current_dir` was set, and so may differ from the process's.
    pub(crate) is_elsewhere: bool,
    /// The user's home directory, which no tool is granted as a whole.
    pub(crate) home: Option<PathBuf>,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) state_dir: Option<PathBuf>,
    /// Directories that no tool is granted, in addition to the two above.
    pub(crate) own: Vec<PathBuf>,
    pub(crate) secrets: SecretSelection,
    pub(crate) hint: HintCommand,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self::from_environment()
    }
}

impl ReadOptions {
    /// Uses nothing of the process's environment: no variables, and no home, cache or state
    /// directory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            has_variables: false,
            current_dir: None,
            is_elsewhere: false,
            home: None,
            cache_dir: None,
            state_dir: None,
            own: Vec::new(),
            secrets: SecretSelection::All,
            hint: HintCommand::default(),
        }
    }

    /// Uses the defaults of the command `toolcell`: variables of this process; `HOME`; `toolcell`
    /// in `XDG_CACHE_HOME` or `~/.cache`, and in `XDG_STATE_HOME` or `~/.local/state`. Directories
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
            has_variables: true,
            current_dir: std::env::current_dir().ok(),
            own: cache_dir.iter().chain(&state_dir).cloned().collect(),
            home,
            cache_dir,
            state_dir,
            ..Self::new()
        }
    }

    /// Sets the directory that a search starts in, and that relative paths in options are resolved
    /// against.
    #[must_use]
    pub fn with_current_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { current_dir: Some(dir.into()), is_elsewhere: true, ..self }
    }

    /// Stores compiled components in this directory.
    #[must_use]
    pub fn with_cache_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { cache_dir: Some(dir.into()), ..self }
    }

    /// Stores no compiled components.
    #[must_use]
    pub fn without_cache(self) -> Self {
        Self { cache_dir: None, ..self }
    }

    /// Stores approvals, approved components, tools' keys and the counts of granted directories in
    /// this directory.
    #[must_use]
    pub fn with_state_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { state_dir: Some(dir.into()), ..self }
    }

    /// Reads only the values of these secrets.
    #[must_use]
    pub fn with_wanted(self, wanted: SecretSelection) -> Self {
        Self { secrets: wanted, ..self }
    }

    /// Sets the start of the commands that hints show.
    #[must_use]
    pub fn with_hint_command(self, hint: HintCommand) -> Self {
        Self { hint, ..self }
    }

    /// Returns the value of a variable that a configuration names, if it is valid UTF-8.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        // The standard library may panic on an invalid name.
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        if self.has_variables && is_name { std::env::var(name).ok() } else { None }
    }

    /// Returns a path of the user as this process can open it.
    pub(crate) fn opened(&self, path: PathBuf) -> PathBuf {
        match &self.current_dir {
            Some(dir) if self.is_elsewhere => dir.join(path),
            Some(_) | None => path,
        }
    }

    /// Returns the paths that no tool is granted, whatever the configuration names.
    pub(crate) fn guarded(&self) -> Guarded {
        let own = self.own.iter().chain(&self.cache_dir).chain(&self.state_dir).cloned();
        Guarded { home: self.home.clone(), own: own.collect(), ..Guarded::default() }
    }
}
