//! List of the directories that must not be granted to a tool, and the check of a path against it.
//!
//! [`forbidden_root`] takes a path without links and returns the reason for a refusal, or `None`.
//! Refused are directories of the operating system and all below them, directories in which users
//! keep keys (such as `.ssh`, at any place), whole home directories, and directories that many
//! users share (such as `/tmp`, but not a directory in it).
//! The library calls the function when it opens granted directories. The package `toolcell-config`
//! calls it earlier, to report the line of the file that has the grant. There is no other list.
//! Not here: filesystems of the kernel that are mounted elsewhere, which `capability/files.rs`
//! recognises by their type.

use std::path::{Component, Path};

/// System directories: neither they nor anything below them can be granted.
const SYSTEM: [&str; 19] = [
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/etc",
    "/boot",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/var/run",
    "/var/log",
    "/var/spool",
    "/var/lib/docker",
    "/snap",
];
/// Directories shared by all users: only a subdirectory can be granted.
const SHARED: [&str; 14] = [
    "/",
    "/home",
    "/root",
    "/usr",
    "/usr/local",
    "/usr/share",
    "/var",
    "/var/lib",
    "/var/tmp",
    "/tmp",
    "/opt",
    "/srv",
    "/mnt",
    "/media",
];
/// Parent of the users' home directories. A whole home directory cannot be granted.
const HOMES: &str = "/home";
/// Names of directories in which users keep keys, at any place.
const KEYS: [&str; 8] =
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".mozilla"];

/// Returns the reason why this directory must not be granted, as the end of a sentence that begins
/// with its path; `None` if it may be granted. The caller must resolve links in the path first.
/// Source: docs/threat-model.md, rows 25 to 32.
#[must_use]
pub fn forbidden_root(path: &Path) -> Option<String> {
    if path == Path::new("/") {
        return Some("is the root of all files".to_owned());
    }
    let reason = |kind: &str, root: &str, is_root: bool| {
        if is_root { format!("is {kind}") } else { format!("lies in `{root}`, {kind}") }
    };
    if let Some(root) = SYSTEM.iter().find(|root| path.starts_with(root)) {
        let kind = "a directory of the operating system";
        return Some(reason(kind, root, path == Path::new(root)));
    }
    let mut parts = path.components();
    if let Some(keys) =
        parts.find_map(|part| KEYS.iter().find(|keys| part == Component::Normal(keys.as_ref())))
    {
        return Some(reason("a directory for keys", keys, path.ends_with(keys)));
    }
    if SHARED.iter().any(|root| path == Path::new(root)) {
        return Some("contains files of many programs and users".to_owned());
    }
    let is_home = path.parent() == Some(Path::new(HOMES));
    is_home.then(|| "is a whole home directory".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_and_key_directories_are_forbidden() {
        let home = Path::new(HOMES).join("someone");
        let forbidden = SYSTEM.iter().chain(&SHARED).map(Path::new).chain([home.as_path()]);
        for root in forbidden {
            assert!(forbidden_root(root).is_some(), "{}", root.display());
        }
        for root in SYSTEM {
            assert!(forbidden_root(&Path::new(root).join("deep/below")).is_some(), "{root}");
        }
        for keys in KEYS {
            let root = Path::new("/srv/data").join(keys).join("deep");
            assert!(forbidden_root(&root).is_some(), "{keys}");
        }
        for fine in ["/srv/data", "/tmp/a", "/var/lib/tool", "/procession", "/etcetera"] {
            assert_eq!(forbidden_root(Path::new(fine)), None, "{fine}");
        }
        assert_eq!(forbidden_root(&home.join("project")), None);
    }
}
