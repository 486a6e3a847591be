//! Finds a C compiler for WebAssembly: Zig of a tested version, or clang with the WASI libc.
//!
//! The build of a C project calls [`Compiler::find`], which tries Zig of the project's `.venv`, of
//! `PATH` and of `python3 -m ziglang`, then clang under several names. Zig must have a version from
//! 0.14 to 0.17; a clang must compile and link a small program. The result gives commands with the
//! arguments of every build: allocation functions are replaced by ones that end the call when
//! memory is exhausted, and warnings about undefined behaviour are errors. If none works, the error
//! says which versions were found and how to install one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::languages::scratch::Scratch;
use crate::languages::{native, venv};
use crate::{Error, Result};

/// The Python package of Zig that the hint tells users to install.
pub(crate) const PACKAGE: &str = "ziglang==0.17.1";
/// The first and the last version of Zig that are accepted, without the patch number.
const VERSIONS: [(u32, u32); 2] = [(0, 14), (0, 17)];
/// Arguments for every compiler. The stack has the same size as a Rust tool's. The warnings that
/// are errors are those about undefined behaviour.
const ARGUMENTS: [&str; 5] = [
    "-mexec-model=reactor -std=gnu17 -O2 -gdwarf-4 -gline-tables-only -Wl,-z,stack-size=1048576",
    // Zig would define NDEBUG and so remove assertions.
    "-UNDEBUG",
    // Replaces the allocation functions by ones that end the call when memory is exhausted.
    // Otherwise a program that does not check the result would write to address 0, which is
    // ordinary memory.
    "-Dmalloc=tc_malloc -Dcalloc=tc_calloc -Drealloc=tc_realloc -Daligned_alloc=tc_aligned_alloc \
     -Dposix_memalign=tc_posix_memalign -Dstrdup=tc_strdup -Dstrndup=tc_strndup",
    "-fno-sanitize=undefined -fno-strict-aliasing -Wall",
    "-Werror=return-type -Werror=implicit-function-declaration -Werror=incompatible-pointer-types \
     -Werror=int-conversion -Werror=format-security -Werror=uninitialized",
];
/// Names of the clang binary, the preferred one first.
const CLANGS: [&str; 4] = ["clang", "clang-22", "clang-19", "clang-14"];
/// A program that a clang must be able to compile and link.
const PROBE: &str = "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n";

/// A compiler, and the arguments that make it compile for WASI.
pub(super) struct Compiler {
    program: PathBuf,
    arguments: Vec<String>,
    /// The folder for Zig's cache, if the environment names none.
    cache: Option<PathBuf>,
}

impl Compiler {
    /// Returns the first that works of: Zig of the project's `.venv`, of the folders in `path`, of
    /// `python3`; clang of `path`. The hint of the error names the folder as the user typed it.
    pub(super) fn find(
        path: &OsStr,
        (folder, typed): (&Path, &Path),
        scratch: &Scratch,
    ) -> Result<Self> {
        let mut others = Vec::new();
        for (program, module) in [
            (venv::program(folder, "python"), &["-m", "ziglang"][..]),
            (PathBuf::from("zig"), &[]),
            (PathBuf::from("python3"), &["-m", "ziglang"]),
        ] {
            let Some(version) =
                answer(native::command(&program).args(module).arg("version").env("PATH", path))
            else {
                continue;
            };
            if is_known(&version) {
                let words = ["cc", "-target", "wasm32-wasi"];
                let arguments = module.iter().chain(&words).map(ToString::to_string).collect();
                let has_place = ["HOME", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR"];
                let has_place = has_place.iter().any(|name| std::env::var_os(name).is_some());
                let cache = (!has_place).then(|| scratch.join("cache"));
                return Ok(Self { program, arguments, cache });
            }
            others.push(version);
        }
        let probe = scratch.write("probe.c", PROBE)?;
        for name in CLANGS {
            // A stack overflow must not overwrite the data, so the stack comes first. Zig does so
            // by default.
            let arguments =
                ["--target=wasm32-wasi", "-Wl,--stack-first"].map(ToOwned::to_owned).to_vec();
            let compiler = Self { program: name.into(), arguments, cache: None };
            let mut command = compiler.command();
            if answer(
                command.arg("-o").arg(scratch.join("probe.wasm")).arg(&probe).env("PATH", path),
            )
            .is_some()
            {
                return Ok(compiler);
            }
        }
        let [first, last] = VERSIONS;
        let why = match others.as_slice() {
            [] => "no Zig, and no clang with wasi-libc and lld, is installed".to_owned(),
            others => format!(
                "Zig {} is installed, and a version from {}.{} to {}.{} is needed",
                others.join(" and "),
                first.0,
                first.1,
                last.0,
                last.1
            ),
        };
        Err(missing(typed, &why))
    }

    /// Returns a command that compiles and links the files that are added to it.
    pub(super) fn command(&self) -> Command {
        let mut command = native::command(&self.program);
        command.args(&self.arguments).args(arguments()).stdin(Stdio::null());
        if let Some(cache) = &self.cache {
            command.env("ZIG_GLOBAL_CACHE_DIR", cache);
        }
        command
    }
}

fn arguments() -> impl Iterator<Item = &'static str> {
    ARGUMENTS.iter().flat_map(|words| words.split_whitespace())
}

/// Returns the error for a missing compiler, with the reason.
pub(super) fn missing(folder: &Path, why: &str) -> Error {
    let message = format!("no usable C compiler was found: {why}");
    Error::toolchain(message, venv::hint("Zig", folder, PACKAGE))
}

/// Returns the standard output of a program, if the program succeeds.
fn answer(command: &mut Command) -> Option<String> {
    let done = command.stdin(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// Returns true if this version of Zig is accepted.
fn is_known(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
    (VERSIONS[0]..=VERSIONS[1]).contains(&(major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn missing_compiler_error_has_install_command() {
        let scratch = Scratch::new("test").expect("a folder");
        let Err(error) =
            Compiler::find(OsStr::new("/nowhere"), (&scratch.join(""), Path::new("a b")), &scratch)
        else {
            panic!("there is no compiler in an empty folder");
        };
        assert_eq!(error.kind(), ErrorKind::Toolchain);
        assert!(
            error.to_string().contains("no Zig, and no clang with wasi-libc and lld, is installed"),
            "{error}"
        );
        let command =
            format!("python3 -m venv 'a b/.venv' && 'a b/.venv/bin/pip' install {PACKAGE}");
        let hint =
            format!("install Zig with `{command}` (Debian has venv in the package python3-venv)");
        assert_eq!(error.hint(), hint);
        let page = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/authoring/c.md"
        ));
        let command = venv::install(Path::new("greeter"), PACKAGE) + "\n";
        assert!(page.expect("a page").contains(&command), "{command}");
    }

    /// Each allocation function that the author's files call is replaced by the SDK's, which calls
    /// the one of the C library and ends the call when memory is exhausted.
    #[test]
    fn each_c_allocator_ends_the_call_when_out_of_memory() {
        let names =
            ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "strdup", "strndup"];
        let in_place: Vec<_> =
            arguments().filter_map(|argument| argument.strip_prefix("-D")).collect();
        assert_eq!(in_place, names.map(|name| format!("{name}=tc_{name}")));
        let (source, memory) =
            (include_str!("../../../c/toolcell.c"), include_str!("../../../c/memory.inc"));
        for name in names {
            assert!(source.contains(&format!("#undef {name}\n")), "{name}");
            let defined = memory
                .lines()
                .find(|line| line.contains(&format!("tc_{name}(")) && line.ends_with('{'));
            assert!(defined.is_some(), "{name}");
        }
    }

    #[test]
    fn only_supported_zig_versions_are_known() {
        let installed = PACKAGE.strip_prefix("ziglang==").expect("a version");
        for version in ["0.14.0", "0.15.2", "0.17.1", installed] {
            assert!(is_known(version), "{version}");
        }
        for version in ["0.13.0", "0.18.0", "1.15.0", "zig", "", "0"] {
            assert!(!is_known(version), "{version}");
        }
    }
}
