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
const SYSTEM: [&str; 20] = [
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
    "/private/etc",
];
/// Directories shared by all users: only a subdirectory can be granted.
const SHARED: [&str; 16] = [
    "/",
    "/home",
    "/Users",
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
    "/private",
];
/// Parents of the users' home directories. A whole home directory cannot be granted.
const HOMES: [&str; 2] = ["/home", "/Users"];
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
    if let Some(root) = SYSTEM.iter().find(|root| path.starts_with(root)) {
        return Some(if path == Path::new(root) {
            "is a directory of the operating system".to_owned()
        } else {
            format!("lies in `{root}`, a directory of the operating system")
        });
    }
    let mut parts = path.components();
    if let Some(keys) =
        parts.find_map(|part| KEYS.iter().find(|keys| part == Component::Normal(keys.as_ref())))
    {
        return Some(if path.ends_with(keys) {
            "is a directory for keys".to_owned()
        } else {
            format!("lies in `{keys}`, a directory for keys")
        });
    }
    if SHARED.iter().any(|root| path == Path::new(root)) {
        return Some("contains files of many programs and users".to_owned());
    }
    let is_home =
        path.parent().is_some_and(|parent| HOMES.iter().any(|homes| parent == Path::new(homes)));
    is_home.then(|| "is a whole home directory".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_and_key_directories_are_forbidden() {
        let homes = HOMES.map(|homes| format!("{homes}/someone"));
        let forbidden =
            SYSTEM.iter().chain(&SHARED).copied().chain(homes.iter().map(String::as_str));
        for root in forbidden {
            assert!(forbidden_root(Path::new(root)).is_some(), "{root}");
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
        for home in &homes {
            assert_eq!(forbidden_root(&Path::new(home).join("project")), None);
        }
    }
}
