//! Builds the text of the module `toolcell` from its JavaScript files, without comments and
//! indentation, which every component would otherwise carry. Line numbers stay the same.

use std::path::PathBuf;
use std::{env, fs};

/// Prefixes of lines that are comments or parts of one.
const COMMENTS: [&str; 4] = ["//", "/**", "* ", "*/"];

/// The parts of the module, in order.
const FILES: [&str; 14] = [
    "src/sdk/prelude.js",
    "src/web/events.js",
    "src/web/timers.js",
    "src/web/text.js",
    "src/web/locale.js",
    "src/web/builtins.js",
    "src/web/url.js",
    "src/web/streams.js",
    "src/web/body.js",
    "src/web/clone.js",
    "src/web/crypto.js",
    "src/web/fetch.js",
    "src/sdk/exact.js",
    "src/sdk/answers.js",
];

/// The part without `Intl`, which [`INTL`] replaces if the feature `intl` is on.
const PLAIN: &str = "src/web/locale.js";
const INTL: [&str; 5] = [
    "src/intl/options.js",
    "src/intl/numbers.js",
    "src/intl/dates.js",
    "src/intl/words.js",
    "src/intl/locale.js",
];

fn main() {
    let mut module = String::new();
    let has_intl = env::var_os("CARGO_FEATURE_INTL").is_some();
    let files = FILES.iter().flat_map(|file| {
        if has_intl && *file == PLAIN { &INTL[..] } else { std::slice::from_ref(file) }
    });
    for file in files {
        println!("cargo::rerun-if-changed={file}");
        let text = fs::read_to_string(file).expect("a file of this package");
        for line in text.lines().map(str::trim) {
            let is_comment = COMMENTS.iter().any(|start| line.starts_with(start));
            module += if is_comment { "" } else { line };
            module.push('\n');
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("toolcell.js"), module).expect("the module is written");
}
