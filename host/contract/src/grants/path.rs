//! Rules that allow access to paths as a tool sees them, such as `read /data` or `write /data/out`.
//!
//! A [`PathRule`] belongs to an overlay (rules that can only narrow a grant) or a declared need,
//! and narrows the directories that are granted; it grants none by itself. [`PathRule::covers`]
//! takes an access and a path, and is true for the rule's path and everything below it. Write
//! access includes reading. Paths are compared as text, so they must be absolute and in their
//! shortest form: without empty parts, `.` or `..`. [`check`] refuses other paths.

use std::fmt;
use std::str::FromStr;

use super::kind::{Row, lists};
use super::rule::{Rule, inner};
use super::{Access, Grants, InvalidRule, SCRATCH, TEMPORARY};

pub(super) static DIRECTORIES: Row = Row {
    section: "paths",
    need: "filesystem",
    words: &["directory", "directories", "filesystem", "file", "files"],
    example: "directory=read /data=./data",
    requests: &["read /data/x", "write /data/x"],
    imports: &["wasi:filesystem/"],
    rules: Some(lists!(paths, granted)),
    ..Row::list("directories", |grants| !grants.directories.is_empty())
};

/// The directory of a single call. The rules of directories narrow it.
pub(super) static CALL_DIRECTORY: Row = Row {
    section: "paths",
    need: "",
    words: &["scratch"],
    brackets: ("", ""),
    example: "scratch",
    ..Row::list("scratch", |grants| grants.scratch.is_some())
};

/// A rule that allows access to a path and everything below it.
///
/// # Shape
/// As text: `read /data` or `write /data/out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    access: Access,
    below: String,
}

impl PathRule {
    /// Creates a rule for this path.
    ///
    /// # Errors
    /// [`InvalidRule`] if the path is not absolute, or not in its shortest form.
    pub fn new(access: Access, below: &str) -> Result<Self, InvalidRule> {
        check(below)?;
        Ok(Self { access, below: below.to_owned() })
    }

    /// Returns the path that the rule covers, with everything below it.
    #[doc(hidden)]
    pub fn below(&self) -> &str {
        &self.below
    }

    /// Returns true if the rule allows this access to this path.
    #[must_use]
    pub fn covers(&self, access: Access, path: &str) -> bool {
        access <= self.access && is_below(path, &self.below)
    }
}

impl FromStr for PathRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let hint = "write for instance `read /data`";
        let (access, path) = Access::before(text, hint)?;
        if path.is_empty() {
            return Err(InvalidRule::new(text, "the path is missing", hint));
        }
        Self::new(access, path)
    }
}

impl Rule for PathRule {
    fn place(&self) -> String {
        self.below.clone()
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        let below = inner(self.below.as_str(), &other.below, is_below)?.to_owned();
        Some(Self { access: self.access.min(other.access), below })
    }

    /// A directory below `/tmp` is an exception from the call's own directory.
    fn is_granted(&self, grants: &Grants) -> bool {
        is_granted(grants, self.access, &self.below)
    }
}

/// Returns the rules for the granted directories. The second path of the call's own directory is
/// among them only where a layer names a path below it.
fn granted(grants: &Grants, layers: &[Vec<PathRule>]) -> Vec<PathRule> {
    let rule = |(access, below): (Access, &str)| PathRule { access, below: below.to_owned() };
    let directories =
        grants.directories.iter().map(|directory| (directory.access, directory.name.as_str()));
    let scratch = grants.scratch.map(|_| (Access::Write, SCRATCH));
    let named = layers.iter().flatten().map(|rule| (Access::Write, rule.below.as_str()));
    let temporary = named
        .filter(|(access, path)| is_below(path, TEMPORARY) && is_granted(grants, *access, path));
    directories.chain(scratch).chain(temporary).map(rule).collect()
}

/// Returns true if these grants allow this access to this path.
pub(super) fn is_granted(grants: &Grants, access: Access, path: &str) -> bool {
    let covers = |name: &str, granted| access <= granted && is_below(path, name);
    let within =
        grants.directories.iter().any(|directory| covers(&directory.name, directory.access));
    let is_temporary = covers(TEMPORARY, Access::Write)
        && !grants.directories.iter().any(|directory| {
            is_below(TEMPORARY, &directory.name) || is_below(path, &directory.name)
        });
    within || grants.scratch.is_some() && (covers(SCRATCH, Access::Write) || is_temporary)
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.access, self.below)
    }
}

/// Returns true if a path equals `above` or is below it. Both must be in their shortest form.
pub fn is_below(path: &str, above: &str) -> bool {
    above == "/"
        || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Checks that a path is absolute and in its shortest form.
pub(crate) fn check(path: &str) -> Result<(), InvalidRule> {
    let fault = |problem: &str| {
        Err(InvalidRule::new(path, problem, "write an absolute path such as `/data`"))
    };
    if !path.starts_with('/') {
        return fault("it is not an absolute path");
    }
    if path.chars().any(char::is_control) {
        return fault("it has a control character");
    }
    if path != "/" && path[1..].split('/').any(|part| matches!(part, "" | "." | "..")) {
        return fault("a part of the path is empty, `.` or `..`");
    }
    Ok(())
}
