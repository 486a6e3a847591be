//! What a tool may reach: granted by an embedder, narrowed for a tool, and by a tenant's or a call's overlay.
//!
//! In: an embedder's choice, or rules in their notation. Out: [`Grants`] and [`Overlay`].
//! Invariants: the default grants nothing; an overlay only narrows; a rule that would match everything is refused.
//! Not here: whether a request is within the rules (`rights`), how much may be used ([`Limits`](crate::Limits)).

pub(crate) mod addresses;
mod http;
mod keys;
mod path;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

pub use addresses::is_metadata_service;
pub use http::{HttpRule, Method};
pub use keys::KeyRule;
pub use path::PathRule;
pub use target::{BadTarget, Host, Target};

pub(crate) use addresses::{is_let_through, networks_of, private_networks};
pub(crate) use path::{check as check_path, is_below};

/// The tool's name for a directory of each call's own.
pub(crate) const SCRATCH: &str = "/scratch";

/// Bytes that a directory may hold unless its grant says otherwise.
pub const DEFAULT_DIRECTORY_BYTES: u64 = 64 << 20;
/// Files and directories that a directory may hold, likewise.
pub const DEFAULT_DIRECTORY_FILES: u64 = 10_000;

/// Looking at something, or changing it too.
///
/// # Shape
/// As text and as JSON: `read` or `write`; writing includes reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Looking.
    Read,
    /// Looking and changing.
    Write,
}

impl Access {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            _ => None,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// A rule or a request whose notation is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {problem}")]
pub struct BadRule {
    /// What was written, in part where it is long.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub hint: String,
}

impl BadRule {
    pub(crate) fn new(text: &str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { text: text.chars().take(200).collect(), problem: problem.into(), hint: hint.into() }
    }
}

/// What a component is granted. Pass it to [`Component::load_with`](crate::Component::load_with); a tool may use what it also
/// declares.
///
/// ```
/// use toolcell::{Access, Directory, Grants, HttpRule, KeyRule, Method, Placed, SecretUse, Target};
///
/// let api: HttpRule = "GET,POST https://api.example.com/v1".parse()?;
/// let mut grants = Grants::default();
/// grants.http.push(api.clone());
/// grants.keys.push("write notes/*".parse()?);
/// grants.directories.push(Directory::new("/data", "/srv/data", Access::Read)?);
/// // The host puts the secret into requests to this API; the tool does not see its value.
/// grants.secrets.insert("api_token".into(), SecretUse::new(api, Placed::Bearer));
///
/// assert!(grants.http[0].covers(Method::Get, &Target::parse("https://api.example.com/v1/users")?));
/// assert!(!grants.http[0].covers(Method::Get, &Target::parse("https://example.org/v1/users")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Defaults
/// Nothing is granted.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Grants {
    /// Directories of the host.
    pub directories: Vec<Directory>,
    /// A directory of each call's own, gone after it, as `/scratch`.
    pub scratch: Option<Room>,
    /// Where requests may go.
    pub http: Vec<HttpRule>,
    /// Environment variables and their values. Not for secrets: the tool reads them.
    pub environment: BTreeMap<String, String>,
    /// Secrets that the host puts into requests, by the name under which the tool asks for them.
    pub secrets: BTreeMap<String, SecretUse>,
    /// Names of secrets whose values the tool may read. Whatever it reads it can send anywhere it may send to.
    pub reveal: BTreeSet<String>,
    /// Which keys of its own store.
    pub keys: Vec<KeyRule>,
    /// Whose store that is: each tool has its own in the store of this name. Absent: the component's digest, so that no
    /// other component can come by it, and a new version begins with none.
    pub store: Option<String>,
    /// What single tools are left of all that, by name. A tool that is not named is left everything.
    pub tools: BTreeMap<String, Overlay>,
}

/// A directory of the host, as a tool sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Directory {
    /// The tool's name for it: an absolute path, `/data` for instance.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What may be done with it.
    pub access: Access,
    /// How much may be in it, where the tool writes.
    pub room: Room,
}

impl Directory {
    /// A directory to read.
    ///
    /// # Errors
    /// [`BadRule`] for a name that is not an absolute path in its shortest form.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>, access: Access) -> Result<Self, BadRule> {
        let name = name.into();
        path::check(&name)?;
        Ok(Self { name, path: path.into(), access, room: Room::default() })
    }

    /// With this much room.
    #[must_use]
    pub fn with_room(mut self, room: Room) -> Self {
        self.room = room;
        self
    }
}

/// How much a directory may hold: for all processes together that share their counts
/// ([`EngineBuilder::directory_counts`](crate::EngineBuilder::directory_counts)).
///
/// # Defaults
/// [`DEFAULT_DIRECTORY_BYTES`], [`DEFAULT_DIRECTORY_FILES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Files and directories.
    pub files: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self { bytes: DEFAULT_DIRECTORY_BYTES, files: DEFAULT_DIRECTORY_FILES }
    }
}

/// Where a secret goes, and how.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SecretUse {
    /// Requests that it may be put into. These must be granted on their own.
    pub bound_to: HttpRule,
    /// How it is put in.
    pub placed: Placed,
}

impl SecretUse {
    /// A secret for requests within this rule.
    #[must_use]
    pub fn new(bound_to: HttpRule, placed: Placed) -> Self {
        Self { bound_to, placed }
    }
}

/// How the host puts a secret into a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placed {
    /// `Authorization: Bearer VALUE`.
    Bearer,
    /// `Authorization: Basic base64(USER:VALUE)`.
    Basic {
        /// The user.
        user: String,
    },
    /// A header of its own.
    Header {
        /// The header's name.
        name: String,
    },
    /// A parameter of the query.
    Query {
        /// The parameter's name.
        name: String,
    },
}

/// What an operator, a tenant or a call leaves of a tool's grants, and what a tool declares that it needs.
///
/// # Defaults
/// Everything is left: each kind that is none narrows nothing.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Overlay {
    /// Paths in the tool's directories.
    pub files: Option<Vec<PathRule>>,
    /// Requests.
    pub http: Option<Vec<HttpRule>>,
    /// Names of environment variables.
    pub environment: Option<BTreeSet<String>>,
    /// Names of secrets that may be used.
    pub secrets: Option<BTreeSet<String>>,
    /// Names of secrets that may be read.
    pub reveal: Option<BTreeSet<String>>,
    /// Keys.
    pub keys: Option<Vec<KeyRule>>,
}

impl Overlay {
    /// Leaves nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self {
            files: Some(Vec::new()),
            http: Some(Vec::new()),
            environment: Some(BTreeSet::new()),
            secrets: Some(BTreeSet::new()),
            reveal: Some(BTreeSet::new()),
            keys: Some(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests;
