//! The imports that a component can have, and the grant that each needs.
//!
//! In: a component's import names.
//! Out: their [`Standing`], and a linker with every import of this host.
//! Invariants: deny is the default. An import that is not in the tables below is not linked.

mod chance;
mod errors;
pub(super) mod files;
mod http;
pub(super) mod inert;
mod invoke;
mod kv;
pub(super) mod lines;
mod own;
mod secrets;
mod sockets;
mod waits;
pub(super) mod wasi_http;

use std::collections::BTreeSet;

use serde::Serialize;

#[expect(unreachable_pub, reason = "the generated bindings name them in a `pub use`")]
pub use self::{http::Pending, secrets::Handle};
use wasmtime::Engine;
use wasmtime::component::Linker;

use super::cell::Cell;
use crate::error::Error;
use crate::grants::GrantKind;

/// The status of an import.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
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

/// The interfaces that can be imported without a grant, by name without version.
const OPEN: [(&str, Standing); 32] = [
    ("toolcell:tool/log", Standing::Offered),
    ("toolcell:tool/progress", Standing::Offered),
    ("toolcell:tool/abort", Standing::Offered),
    ("toolcell:tool/budget", Standing::Offered),
    // Types that other interfaces use, and handles, each of which is granted by name.
    ("toolcell:tool/secrets", Standing::Offered),
    ("wasi:cli/environment", Standing::Inert),
    ("wasi:cli/exit", Standing::Inert),
    ("wasi:cli/stdin", Standing::Inert),
    ("wasi:cli/stdout", Standing::Inert),
    ("wasi:cli/stderr", Standing::Inert),
    ("wasi:cli/terminal-input", Standing::Inert),
    ("wasi:cli/terminal-output", Standing::Inert),
    ("wasi:cli/terminal-stdin", Standing::Inert),
    ("wasi:cli/terminal-stdout", Standing::Inert),
    ("wasi:cli/terminal-stderr", Standing::Inert),
    ("wasi:clocks/monotonic-clock", Standing::Inert),
    ("wasi:clocks/wall-clock", Standing::Inert),
    ("wasi:filesystem/preopens", Standing::Inert),
    ("wasi:filesystem/types", Standing::Inert),
    ("wasi:io/error", Standing::Inert),
    ("wasi:io/poll", Standing::Inert),
    ("wasi:io/streams", Standing::Inert),
    ("wasi:random/insecure", Standing::Inert),
    ("wasi:random/insecure-seed", Standing::Inert),
    ("wasi:random/random", Standing::Inert),
    ("wasi:sockets/instance-network", Standing::Inert),
    ("wasi:sockets/ip-name-lookup", Standing::Inert),
    ("wasi:sockets/network", Standing::Inert),
    ("wasi:sockets/tcp", Standing::Inert),
    ("wasi:sockets/tcp-create-socket", Standing::Inert),
    ("wasi:sockets/udp", Standing::Inert),
    ("wasi:sockets/udp-create-socket", Standing::Inert),
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
pub(super) fn standing(name: &str) -> Standing {
    let (interface, version) = name
        .split_once('@')
        .map_or((name, None), |(interface, version)| (interface, Some(version)));
    let known = OPEN.iter().find(|(open, _)| *open == interface).map(|(_, standing)| *standing);
    match known {
        Some(standing) if version.is_some_and(|version| is_served(interface, version)) => standing,
        Some(_) => Standing::Unknown,
        None if GRANTABLE.iter().any(|package| interface.starts_with(package)) => {
            Standing::NeedsGrant
        }
        None => Standing::Unknown,
    }
}

/// Returns true if the host implements a compatible version: WASI 0.2, and 0.1 of the package
/// `toolcell:tool`.
fn is_served(interface: &str, version: &str) -> bool {
    let line = if interface.starts_with("wasi:") { "0.2." } else { "0.1." };
    version.starts_with(line) && !version.contains('-')
}

/// Returns true if one of these kinds of grants allows an import. `None`: no grant of this host
/// does.
pub(super) fn is_granted(name: &str, granted: &BTreeSet<GrantKind>) -> Option<bool> {
    let (interface, version) = name.split_once('@')?;
    let kind = kind(name)?;
    is_served(interface, version).then(|| granted.contains(&kind))
}

/// Returns the kind of grants that an import needs. `None` if no grant allows it.
pub(super) fn kind(name: &str) -> Option<GrantKind> {
    match name.split_once('@')?.0 {
        "toolcell:tool/http" | "wasi:http/types" | "wasi:http/outgoing-handler" => {
            Some(GrantKind::Http)
        }
        "toolcell:tool/reveal" => Some(GrantKind::Reveal),
        "toolcell:tool/kv" => Some(GrantKind::Keys),
        "toolcell:tool/invoke" => Some(GrantKind::Invoke),
        _ => None,
    }
}

/// Builds a linker with every import of this host. A component that imports something without the
/// grant it needs is refused when it is loaded, and each use checks the grant again. Called once
/// per engine.
pub(super) fn linker(engine: &Engine) -> Result<Linker<Cell>, Error> {
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
    use super::*;

    #[test]
    fn import_status_depends_on_name_and_version() {
        for (name, expected) in [
            ("wasi:cli/exit@0.2.6", Standing::Inert),
            ("wasi:random/insecure-seed@0.2.0", Standing::Inert),
            ("toolcell:tool/log@0.1.0", Standing::Offered),
            ("toolcell:tool/log@0.9.0", Standing::Unknown),
            ("toolcell:tool/log", Standing::Unknown),
            ("wasi:cli/exit@0.3.0-rc-2026-01", Standing::Unknown),
            ("wasi:http/outgoing-handler@0.2.6", Standing::NeedsGrant),
            ("wasi:sockets/tcp@0.2.6", Standing::Inert),
            ("wasi:sockets/tls@0.2.6", Standing::Unknown),
            ("wasi:sockets/types@0.3.0", Standing::Unknown),
            ("wasi:blobstore/blobstore@0.2.0", Standing::NeedsGrant),
            ("env", Standing::Unknown),
        ] {
            assert_eq!(standing(name), expected, "{name}");
        }
    }
}
