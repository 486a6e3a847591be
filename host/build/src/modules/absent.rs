//! Names that modules use and that the runtime does not have, and what to use instead.

use std::collections::{BTreeMap, BTreeSet};

use super::Free;
use super::resolve::{is_of_package, package_of};

/// The names of the global object.
const PRESENT: &str = "AbortController AbortSignal AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array
    BigUint64Array Blob Boolean CryptoKey CustomEvent DOMException DataView Date DisposableStack Error EvalError Event EventTarget
    File FinalizationRegistry Float16Array Float32Array Float64Array FormData Function Headers Infinity Int16Array Int32Array
    Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReadableStream
    ReadableStreamDefaultReader ReferenceError Reflect RegExp Request Response Set SharedArrayBuffer String SuppressedError Symbol
    SyntaxError TextDecoder TextEncoder TypeError URIError URL URLSearchParams Uint16Array Uint32Array Uint8Array
    Uint8ClampedArray WeakMap WeakRef WeakSet arguments atob btoa clearImmediate clearInterval clearTimeout console crypto decodeURI
    decodeURIComponent encodeURI encodeURIComponent escape eval fetch globalThis isFinite isNaN parseFloat parseInt performance
    queueMicrotask self setImmediate setInterval setTimeout structuredClone undefined unescape";
/// Names that a CommonJS module has besides.
const COMMON_JS: [&str; 3] = ["exports", "module", "require"];
/// Names and their replacements. Of packages only these are told: what else they use may be for
/// another place.
const INSTEAD: [(&str, &str); 16] = [
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

/// The name of which one runtime has the object. A method with options that only this one honours
/// counts as a use of it.
const INTL: &str = "Intl";

/// The names and imports that were found.
#[derive(Default)]
pub(super) struct Absent {
    /// A file and a line for each name, of each package once.
    names: BTreeMap<(String, String), (String, u32)>,
    uses_intl: bool,
    /// The first line of each file's calls of `import()` that find nothing, by the reason.
    imports: BTreeMap<(String, String), u32>,
}

impl Absent {
    /// Adds names of a file.
    pub(super) fn add(&mut self, file: &str, is_common_js: bool, free: &[Free]) {
        let package = package_of(file);
        for Free { name, line, is_asked } in free {
            self.uses_intl |= name == INTL;
            if *is_asked || name == INTL || (is_common_js && COMMON_JS.contains(&name.as_str())) {
                continue;
            }
            let is_told = !is_of_package(file) || INSTEAD.iter().any(|(known, _)| known == name);
            if is_told && !PRESENT.split_whitespace().any(|present| present == name) {
                let place = if package.is_empty() { file } else { package };
                self.names
                    .entry((place.to_owned(), name.clone()))
                    .or_insert_with(|| (file.to_owned(), *line));
            }
        }
    }

    /// Adds a call of `import()` that finds nothing, and why.
    pub(super) fn add_import(&mut self, file: &str, line: u32, why: &str) {
        self.imports.entry((file.to_owned(), why.to_owned())).or_insert(line);
    }

    /// The packages that use names of a page in a browser.
    pub(super) fn of_a_page(&self) -> BTreeSet<String> {
        let used = self
            .names
            .iter()
            .filter(|((_, name), _)| ["document", "window"].contains(&name.as_str()));
        used.map(|(_, (file, _))| package_of(file).to_owned())
            .filter(|package| !package.is_empty())
            .collect()
    }

    /// A module names `Intl`, or needs it.
    pub(super) fn uses_intl(&self) -> bool {
        self.uses_intl
    }

    /// A sentence for each.
    pub(super) fn warnings(&self) -> Vec<String> {
        let told = self.names.iter().map(|((_, name), (file, line))| {
            let is_locale = name.starts_with("locale ");
            let other = if is_locale {
                "use `en-US`, a call with another one throws"
            } else {
                "nothing defines it"
            };
            let advice =
                INSTEAD.iter().find(|(known, _)| known == name).map_or(other, |(_, advice)| advice);
            format!("{file}:{line}: `{name}` is not there in a component: {advice}")
        });
        let imports =
            self.imports.iter().map(|((file, why), line)| format!("{file}:{line}: {why}"));
        told.chain(imports).collect()
    }
}
