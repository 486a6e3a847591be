//! Reads `package.json` of an npm package, and looks up files with it.
//!
//! The resolver of imports reads each package once into a [`Package`], which returns the main
//! files, the target of an entry of `exports` or `imports`, and the file that replaces another in
//! browsers. Conditions are chosen as bundlers do for browsers, because a tool runs without Node;
//! [`Package::without_browser`] gives the view of Node. A member of an unexpected type counts as
//! absent. A file over 1 MiB or with invalid JSON is an error with file, line and column. A package
//! that needs native code of Node is recognised, so that it can be refused, unless it has a
//! replacement for browsers (the member `browser`).
//!
//! Not here: the search in `node_modules`, in `resolve.rs`.

use std::fs;
use std::path::Path;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{Error, Fault, Result};

/// Maximum bytes of one `package.json`.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum bytes of a specifier, and of the path in a package that it resolves to.
pub(super) const MAX_PATH: usize = 4096;

/// The kind of a module's request for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportKind {
    Import,
    Require,
}

impl ImportKind {
    /// Returns true if a condition of a package holds.
    pub(super) fn meets(self, condition: &str) -> bool {
        match condition {
            "worker" | "browser" | "module" | "production" | "default" => true,
            "import" => self == Self::Import,
            "require" => self == Self::Require,
            _ => false,
        }
    }
}

/// The members of a `package.json` that are used. A member of another type counts as absent, as in
/// Node.
#[derive(Default)]
pub(super) struct Package {
    main: Option<String>,
    module: Option<String>,
    browser: Option<Browser>,
    pub(super) exports: Option<Target>,
    imports: IndexMap<String, Target>,
    /// True if it needs an addon of Node and has no alternative for browsers.
    pub(super) is_native: bool,
}

/// Members of a package that builds or downloads an addon. Source: npm, `package.json`;
/// node-pre-gyp; node-gyp-build.
const NATIVE: [&str; 2] = ["gypfile", "binary"];
/// Dependencies that load an addon.
const LOADERS: [&str; 5] =
    ["bindings", "node-addon-api", "node-gyp-build", "@mapbox/node-pre-gyp", "prebuild-install"];

/// The member `browser`: replaces the main file, or some files.
#[derive(Deserialize)]
#[serde(untagged)]
enum Browser {
    Main(String),
    Files(IndexMap<String, Replacement>),
    Other(serde::de::IgnoredAny),
}

/// `false` excludes the file.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Replacement {
    File(String),
    Without(serde::de::IgnoredAny),
}

/// A value in `exports` and `imports`. The conditions of an object are tried in their order.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Target {
    File(String),
    Any(Vec<Self>),
    Conditions(IndexMap<String, Self>),
    Other(serde::de::IgnoredAny),
}

impl Package {
    /// Reads the file. `name` is used in errors. Returns `None` if the file does not exist.
    pub(super) fn read(path: &Path, name: &str) -> Result<Option<Self>> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        let Some(found) = found else { return Ok(None) };
        if found.len() > MAX_BYTES {
            let (file, message) =
                (name.to_owned(), format!("the file is larger than {MAX_BYTES} bytes"));
            return Err(Error::faults(vec![Fault { file, line: 1, column: 1, message }]));
        }
        let text = fs::read_to_string(path).map_err(Error::file("read", path))?;
        let members: IndexMap<String, &RawValue> =
            serde_json::from_str(text.trim_start_matches('\u{feff}'))
                .map_err(|error| Error::faults(vec![fault(name, &error)]))?;
        let exports =
            member(&members, "exports").filter(|exports| !matches!(exports, Target::Other(_)));
        Ok(Some(Self {
            main: member(&members, "main"),
            module: member(&members, "module"),
            browser: member(&members, "browser"),
            exports,
            imports: member(&members, "imports").unwrap_or_default(),
            is_native: !members.contains_key("browser") && is_native(&members),
        }))
    }

    /// Returns the package as Node sees it, without its files for browsers and bundlers.
    pub(super) fn without_browser(mut self) -> Self {
        (self.browser, self.module) = (None, None);
        self.exports.iter_mut().chain(self.imports.values_mut()).for_each(Target::forget_browser);
        self
    }

    /// Returns the file that `exports` has for `.` or `./path`.
    pub(super) fn export_target(&self, subpath: &str, wanted: ImportKind) -> Option<String> {
        let exports = self.exports.as_ref()?;
        if let Target::Conditions(paths) = exports
            && paths.keys().any(|key| key.starts_with('.'))
        {
            return mapped(paths, subpath, wanted);
        }
        if subpath == "." { exports.chosen("", wanted) } else { None }
    }

    /// Returns the target in `imports` for `#name`: a file, or another package.
    pub(super) fn imported(&self, specifier: &str, wanted: ImportKind) -> Option<String> {
        mapped(&self.imports, specifier, wanted)
    }

    /// Returns the main files, the preferred one first. `require` prefers a CommonJS module,
    /// because it returns the value that was assigned to `exports`.
    pub(super) fn main_files(&self, wanted: ImportKind) -> impl Iterator<Item = &str> {
        let browser = if let Some(Browser::Main(main)) = &self.browser { Some(main) } else { None };
        let [first, second] = match wanted {
            ImportKind::Import => [&self.module, &self.main],
            ImportKind::Require => [&self.main, &self.module],
        };
        [browser, first.as_ref(), second.as_ref()].into_iter().flatten().map(String::as_str)
    }

    /// Returns the replacement in browsers of a file, `./path`, or of a package.
    pub(super) fn replaced(&self, name: &str) -> Option<&Replacement> {
        let Some(Browser::Files(files)) = &self.browser else { return None };
        files.get(name).or_else(|| files.get(name.strip_suffix(".js")?))
    }
}

impl Target {
    /// Returns the first file whose conditions hold. `star` replaces `*`.
    fn chosen(&self, star: &str, wanted: ImportKind) -> Option<String> {
        match self {
            Self::File(file) => {
                let length = file.len() + file.matches('*').count().saturating_mul(star.len());
                (length <= MAX_PATH).then(|| file.replace('*', star))
            }
            Self::Any(targets) => targets.iter().find_map(|target| target.chosen(star, wanted)),
            Self::Conditions(conditions) => {
                let mut hold = conditions.iter().filter(|(condition, _)| wanted.meets(condition));
                hold.find_map(|(_, target)| target.chosen(star, wanted))
            }
            Self::Other(_) => None,
        }
    }

    fn forget_browser(&mut self) {
        match self {
            Self::Any(targets) => targets.iter_mut().for_each(Self::forget_browser),
            Self::Conditions(conditions) => {
                conditions
                    .retain(|condition, _| !["browser", "module"].contains(&condition.as_str()));
                conditions.values_mut().for_each(Self::forget_browser);
            }
            Self::File(_) | Self::Other(_) => {}
        }
    }
}

/// Returns the target of the matching key: the equal one, or the one with the longest text before
/// its `*`.
fn mapped(targets: &IndexMap<String, Target>, key: &str, wanted: ImportKind) -> Option<String> {
    if let Some(target) = targets.get(key) {
        return target.chosen("", wanted);
    }
    let fitting = targets.iter().filter_map(|(pattern, target)| {
        let (before, after) = pattern.split_once('*')?;
        let star = key.strip_prefix(before)?.strip_suffix(after)?;
        (!star.is_empty()).then_some((before.len(), star, target))
    });
    let (_, star, target) = fitting.max_by_key(|(length, ..)| *length)?;
    target.chosen(star, wanted)
}

fn is_native(members: &IndexMap<String, &RawValue>) -> bool {
    let needs: IndexMap<String, serde::de::IgnoredAny> =
        member(members, "dependencies").unwrap_or_default();
    NATIVE.iter().any(|name| members.contains_key(*name))
        || LOADERS.iter().any(|name| needs.contains_key(*name))
}

/// Returns a member, if it has the expected type.
fn member<T: DeserializeOwned>(members: &IndexMap<String, &RawValue>, name: &str) -> Option<T> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// Returns the fault for invalid JSON.
pub(super) fn fault(name: &str, error: &serde_json::Error) -> Fault {
    let place = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).max(1);
    Fault {
        file: name.to_owned(),
        line: place(error.line()),
        column: place(error.column()),
        message: format!("this is not the JSON that is expected here: {error}"),
    }
}
