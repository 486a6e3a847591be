//! The files of a dry run: an initially empty directory that the tool sees as `/`.
//!
//! `learn` runs a tool without effects, to see which access it asks for. It creates a
//! [`DryRunFiles`] from the component's grants and the tool's declared needs (the accesses that its
//! author lists), and gives the component the grants that it returns. After each run, `extend` adds
//! empty files and directories for the paths that the tool looked for; it returns false if all
//! existed, which ends the repetition. Files that the tool writes go to the temporary directory and
//! are removed afterwards. A directory of the host is only read, and only if it is granted.
//! [`directory_of`] guesses the directory that a grant for a path would name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;
use toolcell::component::PathUse;
use toolcell::files::TemporaryDirectory;
use toolcell::grants::{Access, Directory};
use toolcell::runtime::Recording;
use toolcell::{Definition, Grants};

use crate::print::{Failure, Result};

/// The value of a variable that a tool declares and was not granted.
const VALUE: &str = "1";

/// The root of the tool's files.
pub(crate) struct DryRunFiles {
    dir: TemporaryDirectory,
    /// Paths that exist when a run begins; true for a file. The directories are made first.
    paths: BTreeSet<(bool, String)>,
    grants: Grants,
}

impl DryRunFiles {
    /// Prepares the files for a tool under these grants.
    pub(crate) fn new(mut grants: Grants, definition: &Definition) -> Result<Self> {
        TemporaryDirectory::collect();
        let dir =
            TemporaryDirectory::new().context("no temporary directory for the files of a dry run");
        let hint = "set `TMPDIR` to a directory that you can write to";
        let dir = dir.map_err(|error| Failure::environment(error, hint))?;
        let written =
            grants.directories.iter().filter(|directory| directory.access == Access::Write);
        let written = written.map(|directory| directory.name.as_str());
        let paths = written.chain(declared_directories(definition));
        let paths = paths.map(|path| (false, path.to_owned())).collect();
        grants.directories.retain(|directory| directory.access == Access::Read);
        if !grants.directories.iter().any(|directory| directory.name == "/") {
            let root = Directory::new("/", dir.path(), Access::Write);
            grants.directories.extend(root);
        }
        for need in definition.needs.iter().filter(|need| need.kind == "environment") {
            grants.environment.entry(need.pattern.clone()).or_insert_with(|| VALUE.to_owned());
        }
        // No request with secrets is sent, so their values are not read.
        grants.clear_secrets();
        // The sections of tools are removed: the command reports them beside the requests.
        grants.tools.clear();
        let made = Self { dir, paths, grants };
        made.recreate()?;
        Ok(made)
    }

    /// Returns the component's grants in the dry run.
    pub(crate) fn grants(&self) -> Grants {
        self.grants.clone()
    }

    /// Empties the directory and adds the paths that the tool looked for. Returns false if all
    /// existed already.
    pub(crate) fn extend(&mut self, recorded: &Recording) -> Result<bool> {
        let before = self.paths.len();
        for (path, PathUse { access, is_directory, .. }) in &recorded.paths {
            let is_read = *access == Access::Read;
            let is_file =
                !is_directory && path.rsplit('/').next().is_some_and(|name| name.contains('.'));
            match path.rsplit_once('/') {
                _ if path == "/" => {}
                Some((above, _)) if is_file || !is_read => {
                    self.paths.insert((false, above.to_owned()));
                    if is_read {
                        self.paths.insert((true, path.clone()));
                    }
                }
                Some(_) | None => drop(self.paths.insert((false, path.clone()))),
            }
        }
        self.paths.remove(&(false, String::new()));
        let is_more = self.paths.len() > before;
        if is_more {
            self.recreate()?;
        }
        Ok(is_more)
    }

    fn recreate(&self) -> Result<()> {
        let fill = || -> io::Result<()> {
            self.clear()?;
            for (is_file, path) in &self.paths {
                // A name that this file system rejects, or that conflicts with another, is left
                // out.
                let _ = self.made_one(path, *is_file);
            }
            Ok(())
        };
        let hint = "is the disk of the temporary files full?";
        fill().map_err(|error| Failure::environment(error, hint))
    }

    /// Empties the directory, which can have any depth, because a tool created it.
    fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.dir.path())?.flatten() {
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                toolcell::files::remove_tree(&path)?
            } else {
                fs::remove_file(path)?
            }
        }
        Ok(())
    }

    fn made_one(&self, path: &str, is_file: bool) -> io::Result<()> {
        let below = path.trim_start_matches('/');
        let is_plain = below.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_plain {
            return Ok(());
        }
        let path: PathBuf = self.dir.path().join(below);
        match (is_file, path.parent()) {
            (true, Some(above)) => {
                fs::create_dir_all(above)?;
                fs::File::create_new(&path).map(drop)
            }
            (_, _) => fs::create_dir_all(&path),
        }
    }
}

impl Drop for DryRunFiles {
    fn drop(&mut self) {
        // A later command removes the rest.
        let _ = toolcell::files::remove_tree(self.dir.path());
    }
}

/// Returns the directories that a tool declares as needs.
fn declared_directories(definition: &Definition) -> impl Iterator<Item = &str> {
    let declared = definition.needs.iter().filter(|need| need.kind == "filesystem");
    declared.filter_map(|need| Some(need.pattern.split_once(' ')?.1))
}

/// Returns the directory that a grant of this path would name: the one that the tool declares, the
/// path itself if it was opened as a directory, otherwise its parent.
pub(crate) fn directory_of<'a>(
    definition: &'a Definition,
    path: &'a str,
    used: PathUse,
) -> &'a str {
    let is_above = |above: &&str| Path::new(path).starts_with(above);
    if let Some(above) = declared_directories(definition).find(is_above) {
        return above;
    }
    match path.rsplit_once('/') {
        _ if used.is_directory => path,
        Some(("", _)) | None => "/",
        Some((above, name)) if name.contains('.') || used.access == Access::Write => above,
        Some(_) => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_in_creates_sought_paths_for_next_run() {
        let definition = Definition::new("t", "").unwrap();
        let mut root = DryRunFiles::new(Grants::default(), &definition).unwrap();
        let at = root.grants().directories[0].path.clone();
        let mut recorded = Recording::default();
        for (path, access, is_directory) in [
            ("/data/a.txt", Access::Read, false),
            ("/out/b.txt", Access::Write, false),
            ("/all", Access::Read, true),
        ] {
            recorded.paths.insert(path.to_owned(), PathUse { access, is_directory });
        }
        assert!(root.extend(&recorded).unwrap() && !root.extend(&recorded).unwrap());
        assert!(
            at.join("data/a.txt").is_file() && at.join("out").is_dir() && at.join("all").is_dir()
        );
        assert!(!at.join("out/b.txt").exists(), "what it makes itself it finds missing");
        fs::write(at.join("out/b.txt"), "x").unwrap();
        recorded
            .paths
            .insert("/more".to_owned(), PathUse { access: Access::Read, is_directory: true });
        assert!(
            root.extend(&recorded).unwrap() && !at.join("out/b.txt").exists(),
            "each run begins anew"
        );
        drop(root);
        assert!(!at.exists());
    }
}
