//! Converts a CommonJS module of a package into ECMAScript modules.
//!
//! CommonJS is Node's older module system (`require`, `exports`), which many npm packages still use
//! and the runtime does not know. The collector of modules calls [`module`] and [`front_module`]
//! for such a file. They return two texts. The first wraps the source in a function, `$require`,
//! which evaluates it at the first call, as Node does. The second, called its front, calls this
//! function and exports the properties of `exports`; it is made only if an ECMAScript module
//! imports the file. The exported names must be known in advance: [`names`] takes them from the
//! texts and from the imports, at most 100,000 in all.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{File, SDK, Text};
use crate::{Error, Result};

/// Maximum number of names that all fronts export, without those that are imported.
const MAX_NAMES: usize = 100_000;

/// Returns the name of the front of a module.
pub(super) fn front_name(name: &str) -> String {
    // No file path contains two slashes in a row.
    format!("{name}//import")
}

/// For each CommonJS module that an ECMAScript module imports, returns the names that its front
/// exports: those that its text exports, and those that are imported.
///
/// # Errors
/// [`ErrorKind::Source`](crate::ErrorKind::Source) if there are more than [`MAX_NAMES`].
pub(super) fn names(files: &BTreeMap<String, File>) -> Result<BTreeMap<&str, BTreeSet<&str>>> {
    let is_common =
        |name: &str| files.get(name).is_some_and(|file| matches!(file.text, Text::CommonJs { .. }));
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut count = 0;
    for file in files.values() {
        for (specifier, target) in &file.meanings {
            if file.requires(specifier) || !is_common(target) {
                continue;
            }
            let known = names.entry(target).or_insert_with(|| {
                let exported = all_exports(files, target);
                count += exported.len();
                exported
            });
            // A call of `import()` requests no names.
            if let Text::Module { imports, .. } = &file.text {
                known.extend(imports.get(specifier).into_iter().flatten().map(String::as_str));
            }
        }
        if count > MAX_NAMES {
            let message = format!(
                "the CommonJS modules that are imported export more than {MAX_NAMES} names"
            );
            return Err(Error::source(message, "import fewer packages"));
        }
    }
    for known in names.values_mut() {
        known.retain(|name| is_identifier(name) && *name != "default");
    }
    Ok(names)
}

/// Returns the names that the text of a module exports, including re-exports.
fn all_exports<'f>(files: &'f BTreeMap<String, File>, name: &'f str) -> BTreeSet<&'f str> {
    let (mut names, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![name]);
    while let Some(name) = open.pop() {
        let Some(File { text: Text::CommonJs { facts, .. }, meanings, .. }) = files.get(name)
        else {
            continue;
        };
        if seen.insert(name) && names.len() <= MAX_NAMES {
            names.extend(facts.exports.iter().map(String::as_str));
            open.extend(
                facts
                    .passes_on
                    .iter()
                    .filter_map(|specifier| meanings.get(specifier))
                    .map(String::as_str),
            );
        }
    }
    names
}

/// Returns the module with the source in a function. The code before the source is on the source's
/// first line, so that line numbers stay.
pub(super) fn module(
    name: &str,
    source: &str,
    requires: &BTreeSet<String>,
    File { meanings, missing, .. }: &File,
    files: &BTreeMap<String, File>,
) -> String {
    // The `#!` line becomes a comment, as in Node.
    let source =
        source.strip_prefix("#!").map_or_else(|| source.to_owned(), |rest| format!("//{rest}"));
    let (mut imports, mut found) = (String::new(), String::new());
    for (number, specifier) in requires.iter().enumerate() {
        let quoted = json!(specifier);
        let target = meanings.get(specifier).and_then(|target| files.get(target));
        let (clause, value) = match target.map(|file| &file.text) {
            Some(Text::CommonJs { .. }) => {
                (format!("{{ $require as ${number} }}"), format!("${number}"))
            }
            Some(Text::Json(_)) => (format!("${number}"), format!("() => ${number}")),
            Some(Text::Module { .. }) => (format!("* as ${number}"), format!("() => ${number}")),
            None if specifier == SDK => (format!("* as ${number}"), format!("() => ${number}")),
            None => continue,
        };
        imports.push_str(&format!("import {clause} from {quoted}; "));
        found.push_str(&format!("[{quoted}, {value}], "));
    }
    let folder = name.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let (name, folder, missing) =
        (json!(name), json!(folder), json!(missing.iter().collect::<Vec<_>>()));
    format!(
        "{imports}var $module; export function $require() {{ if (!$module) {{ \
         $module = {{ exports: {{}} }}; const $found = new Map([{found}]), $missing = new Map({missing}); \
         const $get = (name) => {{ if ($found.has(name)) return $found.get(name)(); \
         const why = $missing.has(name) ? `: ${{$missing.get(name)}}` : \"\"; \
         throw Object.assign(new Error(`Cannot find module '${{name}}'${{why}}`), {{ code: \"MODULE_NOT_FOUND\" }}); }}; \
         try {{ (function $scope(global) {{ (function (exports, require, module, __filename, __dirname) {{ {source}\n}})\
         .call($module.exports, $module.exports, $get, $module, {name}, {folder}); }})\
         (globalThis); }} catch (error) {{ $module = undefined; throw error; }} }} return $module.exports; }}"
    )
}

/// Returns the front of a module.
pub(super) fn front_module(name: &str, exports: &BTreeSet<&str>) -> String {
    let mut text = format!(
        "import {{ $require }} from {}; const $all = $require(); \
         export default $all?.__esModule && \"default\" in $all ? $all.default : $all;\n",
        json!(name)
    );
    for (number, export) in exports.iter().enumerate() {
        text.push_str(&format!(
            "const ${number} = $all?.{export}; export {{ ${number} as {export} }};\n"
        ));
    }
    text
}

fn is_identifier(name: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '$';
    name.chars().all(is_part) && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}
