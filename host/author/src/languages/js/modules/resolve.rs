//! Resolves the specifier of a JavaScript import to a file of the project, or of a package in
//! `node_modules`.
//!
//! A specifier is the text in `import … from "…"`. The collector of modules calls
//! [`Resolver::resolve`] with the importing file and the specifier. It returns the path of a file
//! in the project, [`EMPTY`] for a module that its package excludes in browsers, or an error with a
//! hint: for a missing file, a module of Node.js, or a package with native code. Packages are
//! resolved as bundlers do for browsers, except for given ones whose browser files need a page.
//! The resolved file is in the project's folder, with links followed. Redirections from one
//! specifier to another are bounded, so that a cycle is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use toolcell::names;

use super::SDK;
use super::package::{ImportKind, MAX_PATH, Package, Replacement};
use crate::{Error, Result};

/// The name of an empty module.
pub(super) const EMPTY: &str = "//empty";
/// The folder of packages.
const PACKAGES: &str = "node_modules";
/// Extensions that an import in the project may omit, or that may stand for `.ts`.
const ENDINGS: [&str; 3] = [".ts", ".js", ".mjs"];
/// Extensions that an import in a package may omit.
const PACKAGE_ENDINGS: [&str; 4] = [".js", ".mjs", ".cjs", ".json"];
/// Maximum number of redirections from one specifier to another.
const MAX_STEPS: u32 = 16;
/// Built-in modules of Node, without those that are also packages.
const NODE: &str = "assert async_hooks buffer child_process cluster console crypto dgram dns
    events fs http http2 https module net os path perf_hooks process querystring
    readline stream timers tls tty url util v8 vm worker_threads zlib";

/// The reason why a package with compiled code cannot be used.
const ADDON: &str = "native code for Node.js, and a tool runs WebAssembly";
const NO_ADDON: &str = "use a package that is written in JavaScript alone";
/// Packages with native code, and alternatives without it.
const PURE: [(&str, &str); 8] = [
    ("argon2", "the package `hash-wasm` in another tool, or `crypto.subtle`"),
    ("bcrypt", "the package `bcryptjs`"),
    ("better-sqlite3", "`kv` of toolcell"),
    ("canvas", "SVG as text"),
    ("node-sass", "CSS as text"),
    ("re2", "a regular expression"),
    ("sharp", "the package `jimp`"),
    ("sqlite3", "`kv` of toolcell"),
];

/// Resolves the specifiers of one project.
pub(super) struct Resolver<'p> {
    root: &'p Path,
    /// Packages whose browser files are not used.
    pages: &'p BTreeSet<String>,
    /// Manifests by folder in the project.
    packages: BTreeMap<String, Option<Rc<Package>>>,
}

/// An import to resolve: a specifier in the file `from`. At most `steps` redirections follow.
#[derive(Clone, Copy)]
struct Request<'a> {
    from: &'a str,
    specifier: &'a str,
    wanted: ImportKind,
    steps: u32,
}

/// Returns true if a file is in a package.
pub(super) fn is_of_package(name: &str) -> bool {
    name.split('/').any(|part| part == PACKAGES)
}

/// Returns the name of the package that contains the file. Empty for a file of the project.
pub(super) fn package_of(file: &str) -> &str {
    file.rsplit_once(&format!("{PACKAGES}/")).map_or("", |(_, inner)| split_name(inner).0)
}

/// Splits a path after the name of the package with which it begins: `name` or `@scope/name`.
fn split_name(path: &str) -> (&str, &str) {
    let slash = usize::from(path.starts_with('@'));
    path.split_at(path.match_indices('/').nth(slash).map_or(path.len(), |(at, _)| at))
}

impl<'p> Resolver<'p> {
    pub(super) fn new(root: &'p Path, pages: &'p BTreeSet<String>) -> Self {
        Self { root, pages, packages: BTreeMap::new() }
    }

    /// Returns the file that `specifier` resolves to in the file `from`, as a path in the project,
    /// or [`EMPTY`].
    pub(super) fn resolve(
        &mut self,
        from: &str,
        specifier: &str,
        wanted: ImportKind,
    ) -> Result<String> {
        self.step(Request { from, specifier, wanted, steps: MAX_STEPS })
    }

    fn step(&mut self, request: Request<'_>) -> Result<String> {
        let Request { from, specifier, wanted, steps } = request;
        if specifier.ends_with(".node") {
            return request.refused(ADDON, NO_ADDON);
        }
        if specifier.len() > MAX_PATH {
            let start: String = specifier.chars().take(80).collect();
            let message =
                format!("cannot import `{start}…`: the name has more than {MAX_PATH} bytes");
            return request.fault(&message, "import a file by a shorter path");
        }
        if steps == 0 {
            let message = format!(
                "`{specifier}` leads to itself through `imports` or `browser` in `package.json`"
            );
            let hint = "install another version of the package, or correct its `package.json`";
            return request.fault(&message, hint);
        }
        let is_path = specifier.starts_with("./")
            || specifier.starts_with("../")
            || [".", ".."].contains(&specifier);
        if is_path && !is_of_package(from) {
            return self.project_file(request);
        }
        if is_path {
            let Some(path) = plain(&folder(from).join(specifier)) else {
                return request.outside();
            };
            return match self.package_file(&path, wanted)? {
                Some(found) => self.in_browser(request, &found),
                None => request.no_file(&path, "install the package again"),
            };
        }
        if let Some((home, package)) = self.package_of(from)? {
            if specifier.starts_with('#') {
                return match package.imported(specifier, wanted) {
                    Some(target) => self.redirected(request, &home, &target),
                    None => request.refused(
                        &format!("{home}/package.json has no such entry in `imports`"),
                        "install the package again",
                    ),
                };
            }
            match package.replaced(specifier) {
                Some(Replacement::Without(_)) => return Ok(EMPTY.to_owned()),
                Some(Replacement::File(file)) if file != specifier => {
                    return self.redirected(request, &home, file);
                }
                _ => {}
            }
        }
        self.package(request)
    }

    /// Resolves the specifier by which the package in the folder `home` replaces the requested one.
    fn redirected(&mut self, request: Request<'_>, home: &str, specifier: &str) -> Result<String> {
        let from = format!("{home}/package.json");
        self.step(Request { from: &from, specifier, steps: request.steps - 1, ..request })
    }

    /// Resolves the path of a file of the project.
    fn project_file(&self, request: Request<'_>) -> Result<String> {
        let Some(wanted) = plain(&folder(request.from).join(request.specifier)) else {
            return request.outside();
        };
        let stem = wanted.strip_suffix(".js").or(wanted.strip_suffix(".mjs")).unwrap_or(&wanted);
        let others = ENDINGS
            .iter()
            .flat_map(|ending| [format!("{stem}{ending}"), format!("{wanted}/index{ending}")]);
        let found = std::iter::once(wanted.clone())
            .chain(others)
            .find(|name| self.root.join(name).is_file());
        match found {
            // A file of the project keeps the name by which it is imported, links included.
            Some(name) if self.real(&name).is_some() => Ok(name),
            Some(_) => request.outside(),
            None => request.no_file(&wanted, "correct the path, or write the file"),
        }
    }

    /// Resolves a file of a package by the package's name.
    fn package(&mut self, request: Request<'_>) -> Result<String> {
        let Request { from, specifier, wanted, .. } = request;
        let Some((name, subpath)) = split(specifier) else {
            let hint = "import files of the project by path, `./name.js` for instance, and packages by name";
            return request.refused("it is not a path or the name of a package", hint);
        };
        let from_folder = folder(from);
        let mut homes = from_folder
            .ancestors()
            .filter_map(Path::to_str)
            .filter(|place| !place.ends_with(PACKAGES))
            .map(|place| join(place, &format!("{PACKAGES}/{name}")));
        let home = homes.find(|home| self.root.join(home).is_dir());
        let Some(home) = home.filter(|_| !specifier.starts_with("node:")) else {
            return self.no_package(request, name);
        };
        let package = self.manifest(&home)?.unwrap_or_default();
        if package.is_native {
            let other = PURE.iter().find(|(native, _)| *native == name);
            let hint = other.map_or_else(|| NO_ADDON.to_owned(), |(_, pure)| format!("use {pure}"));
            return request.refused(&format!("the package `{name}` is {ADDON}"), &hint);
        }
        let found = if package.exports.is_some() {
            let Some(file) = package.export_target(&subpath, wanted) else {
                return request.refused(
                    &format!("the package `{name}` does not export it"),
                    &format!("look at `exports` in {home}/package.json"),
                );
            };
            let path = file.strip_prefix("./").and_then(|file| plain(&Path::new(&home).join(file)));
            path.filter(|path| self.root.join(path).is_file()).and_then(|path| self.real(&path))
        } else if let Some(file) = subpath.strip_prefix("./") {
            self.package_file(&join(&home, file), wanted)?
        } else {
            self.package_file(&home, wanted)?
        };
        match found {
            Some(found) => self.in_browser(request, &found),
            None => request.refused(
                &format!("its file in the package `{name}` is missing or outside of the project"),
                "install the package again, into the project's folder",
            ),
        }
    }

    /// Returns the error for a package that is not in the project.
    fn no_package(&self, request: Request<'_>, name: &str) -> Result<String> {
        let builtin = request.specifier.strip_prefix("node:");
        if builtin.is_some() || NODE.split_whitespace().any(|known| known == name) {
            let hint =
                "use what the module `toolcell` exports, or a package that is written for browsers";
            let why = "it is a module of Node.js, and a tool does not run in Node.js";
            return request.refused(why, hint);
        }
        let above = self.root.ancestors().skip(1).map(|folder| folder.join(PACKAGES));
        if let Some(shared) = above.into_iter().find(|packages| packages.join(name).is_dir()) {
            let why = format!(
                "the package `{name}` is in `{}`, and only packages in the project's \
                 folder are read",
                shared.display()
            );
            let hint = format!(
                "install it into the project's folder: `npm install --no-workspaces {name}`"
            );
            return request.refused(&why, &hint);
        }
        // Suggesting to install a package with a mistyped name would be dangerous.
        let hint = names::did_you_mean(name, [SDK], || {
            format!(
                "run `npm install {name}`, or import a file of the project by path: `./{name}.js`"
            )
        });
        request.refused(&format!("{PACKAGES} has no package `{name}`"), &hint)
    }

    /// Resolves `path` to a file of a package: the file itself, the file with an extension, or the
    /// main file of a folder.
    fn package_file(&mut self, path: &str, wanted: ImportKind) -> Result<Option<String>> {
        if let Some(found) = self.with_ending(path) {
            return Ok(Some(found));
        }
        if !self.root.join(path).is_dir() {
            return Ok(None);
        }
        let package = self.manifest(path)?.unwrap_or_default();
        let mut mains: Vec<_> = package
            .main_files(wanted)
            .filter_map(|main| plain(&Path::new(path).join(main)))
            .collect();
        mains.push(path.to_owned());
        let mut candidates = mains.iter().flat_map(|main| [main.clone(), format!("{main}/index")]);
        Ok(candidates.find_map(|main| self.with_ending(&main)))
    }

    fn with_ending(&self, path: &str) -> Option<String> {
        let endings = std::iter::once("").chain(PACKAGE_ENDINGS);
        let found = endings
            .map(|ending| format!("{path}{ending}"))
            .find(|name| self.root.join(name).is_file())?;
        self.real(&found)
    }

    /// Returns the file that replaces `found` in browsers, or `found`.
    fn in_browser(&mut self, request: Request<'_>, found: &str) -> Result<String> {
        let Some((home, package)) = self.package_of(found)? else { return Ok(found.to_owned()) };
        let Some(path) = found.strip_prefix(&home) else { return Ok(found.to_owned()) };
        match package.replaced(&format!(".{path}")) {
            Some(Replacement::Without(_)) => Ok(EMPTY.to_owned()),
            Some(Replacement::File(file)) if *file != format!(".{path}") => {
                self.redirected(request, &home, file)
            }
            _ => Ok(found.to_owned()),
        }
    }

    /// Returns the package that a file is in, and its folder.
    fn package_of(&mut self, file: &str) -> Result<Option<(String, Rc<Package>)>> {
        for place in folder(file).ancestors().take_while(|place| !place.ends_with(PACKAGES)) {
            let home = place.to_string_lossy().into_owned();
            if !is_of_package(&home) {
                break;
            }
            if let Some(package) = self.manifest(&home)? {
                return Ok(Some((home, package)));
            }
        }
        Ok(None)
    }

    fn manifest(&mut self, home: &str) -> Result<Option<Rc<Package>>> {
        if let Some(known) = self.packages.get(home) {
            return Ok(known.clone());
        }
        let name = format!("{home}/package.json");
        let read = match self.real(&name) {
            Some(_) => Package::read(&self.root.join(&name), &name)?,
            None => None,
        };
        let is_page = self.pages.contains(package_of(&name));
        let read =
            read.map(|package| Rc::new(if is_page { package.without_browser() } else { package }));
        self.packages.insert(home.to_owned(), read.clone());
        Ok(read)
    }

    /// Returns the path in the project with links followed. Returns `None` if it leads out of the
    /// project.
    fn real(&self, name: &str) -> Option<String> {
        let real = self.root.join(name).canonicalize().ok()?;
        real.strip_prefix(self.root).ok()?.to_str().map(str::to_owned)
    }
}

impl Request<'_> {
    fn fault(self, message: &str, hint: &str) -> Result<String> {
        Err(Error::source(format!("{}: {message}", self.from), hint))
    }

    /// Returns the error for a specifier that cannot be imported for this reason.
    fn refused(self, why: &str, hint: &str) -> Result<String> {
        self.fault(&format!("cannot import `{}`: {why}", self.specifier), hint)
    }

    fn no_file(self, path: &str, hint: &str) -> Result<String> {
        self.refused(&format!("there is no file `{path}`"), hint)
    }

    fn outside(self) -> Result<String> {
        let message = format!("`{}` is outside of the project", self.specifier);
        self.fault(&message, "copy the file into the project's folder")
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(name).parent().unwrap_or(Path::new("")).to_owned()
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Splits a specifier into the name of the package and `.` or `./path`. Returns `None` if it is not
/// the name of a package.
fn split(specifier: &str) -> Option<(&str, String)> {
    let (name, rest) = split_name(specifier);
    let is_name =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', ':', '%']);
    let is_valid = specifier.starts_with("node:")
        || (name.starts_with('@') == name.contains('/') && name.split('/').all(is_name));
    is_valid.then(|| (name, format!(".{rest}")))
}

/// Resolves `.` and `..` in the path. Returns `None` if it leaves the project.
fn plain(path: &Path) -> Option<String> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    plain.to_str().map(str::to_owned)
}
