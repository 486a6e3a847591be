//! Host functions that a component can import, and the grant that each of them needs.
//!
//! When an engine is built, [`linker`] links every import of this host; each submodule implements
//! one or more interfaces. When a component is loaded, [`status`] says for the name of each import
//! if it is harmless, offered to all, in need of a grant, or unknown, and [`is_granted`] if the
//! grants suffice. A component with an import that it may not have is refused. Each use of the
//! import then checks the rights of the call again.
//! Deny is the default: an import that is not in the tables of this file is not linked. Versions
//! must be 0.2 of WASI, or 0.1 of the package `toolcell:tool`.

mod errors;
pub(super) mod files;
mod http;
pub(super) mod inert;
mod invoke;
mod kv;
mod own;
mod secrets;
mod seeded_random;
mod sockets;
mod waits;
pub(super) mod wasi_http;

use std::collections::BTreeSet;

use serde::Serialize;
use toolcell_contract::{error::Error, grants::GrantKind};
use wasmtime::{Engine, component::Linker};

use super::Cell;

/// The status of an import.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ImportStatus {
    /// An interface that language runtimes import. It is always available and gives no access
    /// without a grant: closed input, captured output, no environment, no directory, coarse clocks;
    /// each use of a socket is denied.
    Inert,
    /// A service of the host that needs no grant: log, progress, abort, budget.
    Offered,
    /// It needs a grant.
    NeedsGrant,
    /// This host does not know it.
    Unknown,
}

/// The interfaces that can be imported without a grant, by package.
const OPEN: [(&str, &str); 7] = [
    // `secrets` has types that other interfaces use, and handles, each of which is granted by name.
    ("toolcell:tool", "log progress abort budget secrets"),
    (
        "wasi:cli",
        "environment exit stdin stdout stderr terminal-input terminal-output terminal-stdin \
         terminal-stdout terminal-stderr",
    ),
    ("wasi:clocks", "monotonic-clock wall-clock"),
    ("wasi:filesystem", "preopens types"),
    ("wasi:io", "error poll streams"),
    ("wasi:random", "insecure insecure-seed random"),
    (
        "wasi:sockets",
        "instance-network ip-name-lookup network tcp tcp-create-socket udp udp-create-socket",
    ),
];

/// Prefixes of imports that give access to something outside of the cell.
const GRANTABLE: [&str; 6] = [
    "wasi:http/",
    "wasi:keyvalue/",
    "wasi:config/",
    "wasi:blobstore/",
    "toolcell:tool/",
    "wasi:filesystem/",
];

/// Returns the status of an import. `name` is as it stands in the component, version included.
pub(crate) fn status(name: &str) -> ImportStatus {
    let (interface, version) = name.split_once('@').unwrap_or((name, ""));
    if !is_open(interface) {
        let is_grantable = GRANTABLE.iter().any(|package| interface.starts_with(package));
        return if is_grantable { ImportStatus::NeedsGrant } else { ImportStatus::Unknown };
    }
    if !is_served(interface, version) {
        ImportStatus::Unknown
    } else if interface.starts_with("wasi:") {
        ImportStatus::Inert
    } else {
        ImportStatus::Offered
    }
}

fn is_open(interface: &str) -> bool {
    let Some((package, name)) = interface.split_once('/') else { return false };
    OPEN.iter().any(|(open, names)| *open == package && names.split(' ').any(|open| open == name))
}

/// Returns true if the host implements a compatible version: WASI 0.2, and 0.1 of the package
/// `toolcell:tool`.
fn is_served(interface: &str, version: &str) -> bool {
    let line = if interface.starts_with("wasi:") { "0.2." } else { "0.1." };
    version.starts_with(line) && !version.contains('-')
}

/// Returns true if one of these kinds of grants allows an import. `None`: no grant of this host
/// does.
pub(crate) fn is_granted(name: &str, granted: &BTreeSet<GrantKind>) -> Option<bool> {
    let (interface, version) = name.split_once('@')?;
    let kind = kind(name)?;
    is_served(interface, version).then(|| granted.contains(&kind))
}

/// Returns the kind of grants that an import needs. `None` if no grant allows it.
pub(crate) fn kind(name: &str) -> Option<GrantKind> {
    match name.split_once('@')?.0 {
        "wasi:http/types" | "wasi:http/outgoing-handler" => Some(GrantKind::Http),
        // Every component gets handles of secrets.
        "toolcell:tool/secrets" => None,
        interface => GrantKind::of_interface(interface.strip_prefix("toolcell:tool/")?),
    }
}

/// Builds a linker with every import of this host. A component that imports something without the
/// grant it needs is refused when it is loaded, and each use checks the grant again. Called once
/// per engine.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<Cell>, Error> {
    let mut linker = Linker::new(engine);
    inert::link(&mut linker)
        .and_then(|()| waits::link(&mut linker))
        .and_then(|()| sockets::link(&mut linker))
        .and_then(|()| files::link(&mut linker))
        .and_then(|()| own::link(&mut linker))
        .and_then(|()| http::link(&mut linker))
        .and_then(|()| wasi_http::link(&mut linker))
        .and_then(|()| kv::link(&mut linker))
        .and_then(|()| invoke::link(&mut linker))
        .and_then(|()| secrets::link(&mut linker))
        .map_err(|error| Error::engine(format!("{error:#}")))?;
    Ok(linker)
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn import_status_depends_on_name_and_version() {
        for (name, expected) in rows::<(&str, &str)>("engine/cell/imports", "names") {
            assert_eq!(format!("{:?}", status(name)), expected, "{name}");
        }
    }
}
