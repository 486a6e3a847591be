//! Decides which directories of the host may be granted to a tool.
//!
//! Reading a configuration fills a [`Guarded`] with the places to protect: the user's home,
//! toolcell's own directories, files with secrets, and files that decide about a tool's code and
//! rights. For each granted directory it calls `resolve` with the path as the user wrote it and the
//! access. It returns the directory that the path leads to, with links resolved, or the reason why
//! it cannot be granted and a hint. Directories of the system are refused on every machine. The
//! decision is about the resolved path, not its spelling, and the resolved path is the one that is
//! granted.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toolcell::controls::enforced;
use toolcell::grants::Access;

/// Directories in a home from which programs start. Write access there would allow code execution.
const STARTING: [&str; 3] = [".config", ".local", "bin"];

/// Paths that must not be granted, in addition to those that are forbidden on every machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guarded {
    /// The user's home directory. Parts of it may be granted, but not the whole.
    pub(crate) home: Option<PathBuf>,
    /// Directories of toolcell itself.
    pub(crate) own: Vec<PathBuf>,
    /// Files that hold secrets.
    pub(crate) unread: Vec<PathBuf>,
    /// Files that decide about a tool's code and rights.
    pub(crate) unwritten: Vec<PathBuf>,
}

impl Guarded {
    /// Resolves all links. A path that does not exist yet is resolved as far as it exists. Links in
    /// these paths must not be replaced either.
    pub(crate) fn resolved(self) -> Self {
        let places = self.unwritten.iter().chain(&self.unread).chain(&self.own);
        let unwritten = places.flat_map(|path| resolved(path).into_iter().chain(links(path)));
        let unwritten = unwritten.collect();
        let resolved =
            |paths: Vec<PathBuf>| paths.iter().filter_map(|path| resolved(path)).collect();
        Self {
            home: self.home.and_then(|home| self::resolved(&home)),
            own: resolved(self.own),
            unread: resolved(self.unread),
            unwritten,
        }
    }

    /// Returns the reason why this resolved directory cannot be granted.
    fn refusal_reason(&self, path: &Path, access: Access) -> Option<String> {
        if let Some(why) = toolcell::files::forbidden_root(path) {
            return Some(why);
        }
        if self.home.as_ref().is_some_and(|home| home.starts_with(path)) {
            return Some("contains your whole home directory".to_owned());
        }
        let starts = |place: &&&str| {
            self.home.as_ref().is_some_and(|home| path.starts_with(home.join(place)))
        };
        if let (Access::Write, Some(place)) = (access, STARTING.iter().find(starts)) {
            return Some(format!("is in `~/{place}`, from which your programs start"));
        }
        if self.own.iter().any(|own| path.starts_with(own) || own.starts_with(path)) {
            return Some("contains toolcell's own files, or is among them".to_owned());
        }
        if let Some(file) = self.unread.iter().find(|file| file.starts_with(path)) {
            return Some(format!(
                "contains `{}`, which holds the value of a secret",
                file.display()
            ));
        }
        let file =
            self.unwritten.iter().find(|file| access == Access::Write && file.starts_with(path))?;
        Some(format!("contains `{}`, which tools must not change", file.display()))
    }

    /// Returns the directory that a path leads to. The error is the problem and a hint.
    pub(crate) fn resolve(
        &self,
        base: &Path,
        written: &str,
        access: Access,
    ) -> Result<PathBuf, (String, String)> {
        let fault = |problem: String, hint: &str| {
            Err((format!("`{}` {problem}", written.escape_debug()), hint.to_owned()))
        };
        if written.is_empty() {
            return fault(
                "is not a directory: the path is empty".into(),
                "write the path of a directory",
            );
        }
        if written.contains('*') {
            return fault(
                "is not a directory: it has a wildcard".into(),
                "name one directory: everything in it is granted with it",
            );
        }
        // Collecting the components removes a trailing `/` or `/.`, which would hide that it is a
        // link.
        let path: PathBuf = base.join(written).components().collect();
        let found = fs::symlink_metadata(&path);
        if found.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            let hint = "make the directory first, or correct the path";
            return fault("does not exist".to_owned(), hint);
        }
        let led = found.and_then(|found| Ok((found.is_symlink(), fs::canonicalize(&path)?)));
        let (is_link, led) = match led {
            Ok(led) => led,
            Err(error) => return fault(format!("cannot be granted: {error}"), "correct the path"),
        };
        if let Some(why) = self.refusal_reason(&led, access).filter(|_| enforced!(ForbiddenRoots)) {
            return fault(why, "grant a directory that was made for the tool");
        }
        if is_link {
            return fault(
                "is a link".into(),
                &format!("write its target instead: `{}`", led.display()),
            );
        }
        if !led.is_dir() {
            return fault("is not a directory".into(), "grant the directory that contains it");
        }
        Ok(led)
    }
}

/// Resolves the links in the path, as far as it exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find_map(|there| {
        let rest = path.strip_prefix(there).ok()?;
        fs::canonicalize(there)
            .ok()
            .map(|there| there.components().chain(rest.components()).collect())
    })
}

/// Returns the places of the links in a path.
fn links(path: &Path) -> Vec<PathBuf> {
    let path = std::path::absolute(path).unwrap_or_default();
    let place = |link: &Path| Some(resolved(link.parent()?)?.join(link.file_name()?));
    path.ancestors().filter(|part| part.is_symlink()).filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn forbidden_roots_are_refused_in_any_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let (home, data) = (base.join("home"), base.join("home/data"));
        for made in rows::<&str>("paths/roots", "made_roots") {
            fs::create_dir_all(base.join(made)).unwrap();
        }
        for (file, text) in [
            ("home/keys/token", "secret"),
            ("home/project/toolcell.toml", ""),
            ("home/data/file", ""),
        ] {
            fs::write(base.join(file), text).unwrap();
        }
        for (link, to) in [
            ("etc", Path::new("/etc")),
            ("all", Path::new("/")),
            ("me", &home),
            ("good", &data),
            ("links/config", &home.join("project/toolcell.toml")),
            ("gone", Path::new("none")),
        ] {
            symlink(to, base.join(link)).unwrap();
        }
        let guarded = Guarded {
            home: Some(base.join("me")),
            // The second does not exist yet.
            own: vec![home.join(".cache/toolcell"), base.join("me/later/state/toolcell")],
            unread: vec![home.join("keys/token")],
            unwritten: vec![home.join("project/toolcell.toml"), base.join("links/config")],
        };
        let guarded = guarded.resolved();
        let resolve = |written: &str, access| guarded.resolve(&base, written, access);
        for written in rows::<&str>("paths/roots", "written_roots") {
            let judged = resolve(written, Access::Write);
            assert!(judged.is_err(), "{written:?}: {judged:?}");
            assert!(judged.is_err_and(|(problem, hint)| !problem.is_empty() && !hint.is_empty()));
        }
        for written in ["home/data", "home/data/", "./home/data", "me/data", "home/../home/data"] {
            assert_eq!(resolve(written, Access::Write), Ok(data.clone()), "{written}");
        }
        for written in ["home/project", "home/.config/app", "links"] {
            assert_eq!(resolve(written, Access::Read), Ok(base.join(written)), "{written}");
        }
        assert!(resolve("home/keys", Access::Read).is_err());
    }
}
