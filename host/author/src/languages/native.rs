//! Starts the native programs of a build, such as cargo, Zig or Python, with few environment
//! variables.
//!
//! Every program that a build starts is started with [`command`], which takes the program and
//! returns a [`Command`]. It has only those variables of this process that `KEPT_VARIABLES` lists
//! and whose names do not end like those of credentials (`TOKEN`, for instance). The caller adds
//! arguments, streams and variables of its own. The reason: such a program runs code of the author
//! and of the author's dependencies, and a variable of a shell or of a CI job is often a secret.

use std::ffi::OsStr;
use std::process::Command;

use toolcell::controls::enforced;

/// The names of the variables that a program gets, separated by blanks, with the reason. A name
/// that ends in `*` is a prefix.
const KEPT_VARIABLES: [&str; 7] = [
    // To find programs, and the files of programs.
    "PATH HOME TMPDIR LD_LIBRARY_PATH XDG_CACHE_HOME XDG_CONFIG_HOME",
    // For messages in the author's language and colours.
    "LANG LC_* TERM NO_COLOR CLICOLOR CLICOLOR_FORCE",
    // For cargo and rustup to reach a registry through a proxy and to trust its certificate.
    "http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY \
     SSL_CERT_FILE SSL_CERT_DIR",
    // For cargo and rustup to use the same toolchain, caches and registries as in a shell.
    "CARGO_HOME CARGO_TARGET_DIR CARGO_NET_* CARGO_HTTP_* CARGO_REGISTRIES_* \
     CARGO_REGISTRY_* RUSTUP_*",
    // For build scripts and crates with C code to find a compiler other than the system's.
    "CC AR CXX CFLAGS CXXFLAGS CC_wasm32* AR_wasm32* CXX_wasm32* CFLAGS_wasm32* \
     CXXFLAGS_wasm32* WASI_SDK_PATH WASI_SYSROOT SDKROOT DEVELOPER_DIR",
    // For Zig to find its library and its cache.
    "ZIG_LIB_DIR ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR",
    // For Python to find its library, and the modules ziglang and componentize_py.
    "PYTHONHOME PYTHONPATH PYTHONUSERBASE",
];
/// Suffixes of names whose values are credentials. cargo can also read registry credentials from
/// its own file.
const CREDENTIALS: [&str; 3] = ["TOKEN", "SECRET_KEY", "PASSWORD"];

/// Returns a command that starts this program.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if enforced!(BuildVariables) {
        command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
    }
    command
}

fn kept_variables() -> impl Iterator<Item = &'static str> {
    KEPT_VARIABLES.iter().flat_map(|names| names.split_whitespace())
}

fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let is_listed = kept_variables().any(|kept| match kept.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == kept,
    });
    is_listed && !CREDENTIALS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn variables_with_credentials_are_not_kept() {
        for (name, expected) in
            rows::<(&str, bool)>("languages/native", "variables_with_credentials_are_not_kept")
        {
            assert_eq!(is_kept(OsStr::new(name)), expected, "{name}");
        }
    }

    /// The page on security lists each variable.
    #[test]
    fn security_page_lists_every_kept_variable() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
        let page = std::fs::read_to_string(page).expect("a page");
        for name in kept_variables() {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
