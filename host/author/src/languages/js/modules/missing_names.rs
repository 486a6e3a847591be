//! Finds names that JavaScript modules use and the runtime lacks, and suggests alternatives.
//!
//! A tool has no Node.js and no browser, so `Buffer` or `document` do not exist. The collector of
//! modules gives [`Absent`] the global names that each file uses, and the `import()` calls that
//! have no target. It returns a warning for each, such as "use Uint8Array" for `Buffer`. In files
//! of packages only well-known names are reported, since packages test for others. It also says if
//! a module uses `Intl`, for which a larger runtime is chosen, and which packages use names of web
//! pages, so that their files for other platforms are tried.

use std::collections::{BTreeMap, BTreeSet};

use super::Free;
use super::resolve::{is_of_package, package_of};

/// The names of the runtime's global object.
const PRESENT: &str = "AbortController AbortSignal AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array
    BigUint64Array Blob Boolean CryptoKey CustomEvent DOMException DataView Date DisposableStack Error EvalError Event EventTarget
    File FinalizationRegistry Float16Array Float32Array Float64Array FormData Function Headers Infinity Int16Array Int32Array
    Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReadableStream
    ReadableStreamDefaultReader ReferenceError Reflect RegExp Request Response Set SharedArrayBuffer String SuppressedError Symbol
    SyntaxError TextDecoder TextEncoder TypeError URIError URL URLSearchParams Uint16Array Uint32Array Uint8Array
    Uint8ClampedArray WeakMap WeakRef WeakSet arguments atob btoa clearImmediate clearInterval clearTimeout console crypto decodeURI
    decodeURIComponent encodeURI encodeURIComponent escape eval fetch globalThis isFinite isNaN parseFloat parseInt performance
    queueMicrotask self setImmediate setInterval setTimeout structuredClone undefined unescape";
/// Names that are defined in a CommonJS module only.
const COMMON_JS: [&str; 3] = ["exports", "module", "require"];
/// What begins the entry of a literal locale, such as `locale de-CH`. A package that names one calls
/// it on every platform.
const LOCALE: &str = "locale ";
/// Names and their alternatives. For packages, only these and locales are reported: their other
/// names may be used on other platforms only.
const ALTERNATIVES: [(&str, &str); 16] = [
    ("require", "use import"),
    ("Buffer", "use Uint8Array, TextEncoder, TextDecoder, btoa and atob"),
    ("WebAssembly", "make a component of the module, and call it with invoke"),
    ("WebSocket", "use fetch"),
    ("EventSource", "use fetch"),
    ("XMLHttpRequest", "use fetch"),
    ("Worker", "a component has one thread"),
    ("Atomics", "a component has one thread"),
    ("__dirname", "a component has no files: import what it needs"),
    ("__filename", "a component has no files: import what it needs"),
    ("document", "parse HTML with a package such as cheerio"),
    ("window", "use globalThis"),
    ("global", "use globalThis"),
    ("navigator", "a component runs in no browser"),
    ("localStorage", "use kv of toolcell"),
    ("process", "take settings as arguments, and secrets by secrets.get of toolcell"),
];

/// The global object that only one of the two runtimes has. Methods with options that only that
/// runtime supports count as a use of it.
const INTL: &str = "Intl";

/// The missing names and imports of a set of modules.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    /// The file and line of each name, reported once for each package.
    names: BTreeMap<(String, String), (String, u32)>,
    /// True if a module uses `Intl`.
    pub(crate) uses_intl: bool,
    /// The first line in each file of `import()` calls that cannot be resolved, by the reason.
    imports: BTreeMap<(String, String), u32>,
}

impl Absent {
    /// Adds the global names that a file uses.
    pub(super) fn add(&mut self, file: &str, is_common_js: bool, free: &[Free]) {
        let package = package_of(file);
        for Free { name, line, is_asked } in free {
            self.uses_intl |= name == INTL;
            if *is_asked || name == INTL || (is_common_js && COMMON_JS.contains(&name.as_str())) {
                continue;
            }
            let is_told = !is_of_package(file)
                || name.starts_with(LOCALE)
                || ALTERNATIVES.iter().any(|(known, _)| known == name);
            if is_told && !PRESENT.split_whitespace().any(|present| present == name) {
                let place = if package.is_empty() { file } else { package };
                self.names
                    .entry((place.to_owned(), name.clone()))
                    .or_insert_with(|| (file.to_owned(), *line));
            }
        }
    }

    /// Adds a call of `import()` that cannot be resolved, and the reason.
    pub(super) fn add_import(&mut self, file: &str, line: u32, why: &str) {
        self.imports.entry((file.to_owned(), why.to_owned())).or_insert(line);
    }

    /// Returns the packages that use names of web pages (`document`, `window`).
    pub(super) fn of_a_page(&self) -> BTreeSet<String> {
        let used = self
            .names
            .iter()
            .filter(|((_, name), _)| ["document", "window"].contains(&name.as_str()));
        used.map(|(_, (file, _))| package_of(file).to_owned())
            .filter(|package| !package.is_empty())
            .collect()
    }

    /// Returns one sentence for each missing name and import.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let names = self.names.iter().map(|((_, name), (file, line))| {
            let other = if name.starts_with(LOCALE) {
                "use `en-US`, a call with another one throws"
            } else {
                "nothing defines it"
            };
            let advice = ALTERNATIVES
                .iter()
                .find(|(known, _)| known == name)
                .map_or(other, |(_, advice)| advice);
            format!("{file}:{line}: `{name}` is not there in a component: {advice}")
        });
        let imports =
            self.imports.iter().map(|((file, why), line)| format!("{file}:{line}: {why}"));
        names.chain(imports).collect()
    }
}
