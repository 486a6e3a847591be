//! The module tree of a crate: the names that each module binds, and the paths in its code.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::source::{Source, is};

/// Keywords before the name of an item.
const KINDS: [&str; 9] =
    ["const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union"];
/// Imports that are followed to resolve a name, at most: two globs may lead to each other.
const DEEPEST: usize = 16;

/// The segments of a path.
pub(super) type Path = Vec<String>;

/// A module without its submodules.
#[derive(Default)]
pub(super) struct Module {
    /// Names of the module's items.
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths that begin with `crate`, `self` or `super`.
    pub(super) paths: Vec<Path>,
}

/// A name that `use` binds; `*` for all names of a module.
struct Use {
    name: String,
    path: Path,
}

/// A crate without its tests.
#[derive(Default)]
pub(super) struct Crate {
    /// The file of the crate's root.
    pub(super) root: String,
    pub(super) files: BTreeSet<String>,
    /// The modules by their paths from the root, which has the empty path.
    pub(super) modules: BTreeMap<Path, Module>,
}

impl Crate {
    /// Reads a crate: follows the modules from the file `root`.
    pub(super) fn read(root: &str, sources: &BTreeMap<String, Source>) -> Result<Self> {
        let mut tree = Self { root: root.into(), ..Self::default() };
        let folder = tree.folder().to_owned();
        tree.file(root, &folder, Vec::new(), sources)?;
        Ok(tree)
    }

    /// Reads a crate from texts, the first of which is its root.
    #[cfg(test)]
    pub(super) fn of(texts: &[(&str, &str)]) -> Self {
        let sources = texts
            .iter()
            .map(|(file, text)| ((*file).to_owned(), Source::of((*text).to_owned()).unwrap()));
        Self::read(texts[0].0, &sources.collect()).unwrap()
    }

    /// Returns the folder of the root's file.
    pub(super) fn folder(&self) -> &str {
        self.root.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    fn file(
        &mut self,
        file: &str,
        below: &str,
        at: Path,
        sources: &BTreeMap<String, Source>,
    ) -> Result<()> {
        let source = sources.get(file).with_context(|| format!("{file} is not read"))?;
        self.files.insert(file.into());
        self.module(&source.code, below, at, sources)
    }

    /// Adds the module `at` from its tokens. Its submodules lie in the folder `below`.
    fn module(
        &mut self,
        tokens: &TokenStream,
        below: &str,
        at: Path,
        sources: &BTreeMap<String, Source>,
    ) -> Result<()> {
        let mut module = Module::default();
        let mut tokens: Vec<_> = tokens.clone().into_iter().collect();
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            let word =
                if let TokenTree::Ident(word) = token { word.to_string() } else { String::new() };
            let is_lifetime = index > 0 && is(&tokens[index - 1], '\'');
            index += 1;
            if word == "use" {
                let bind = |path, name| module.uses.push(Use { name, path });
                leaves(&tokens[index..], Vec::new(), &mut { bind });
            }
            let Some(TokenTree::Ident(name)) =
                tokens.get(index).filter(|_| KINDS.contains(&word.as_str()))
            else {
                continue;
            };
            let name = name.to_string();
            if is_lifetime || KINDS.contains(&name.as_str()) {
                continue;
            }
            module.items.insert(name.clone());
            if word == "mod" {
                let (folder, inside) =
                    (format!("{below}/{name}"), [at.clone(), vec![name]].concat());
                if let Some(TokenTree::Group(body)) = tokens.get(index + 1) {
                    self.module(&body.stream(), &folder, inside, sources)?;
                    tokens.remove(index + 1);
                } else if let Some(file) = ["", "/mod"]
                    .map(|end| format!("{folder}{end}.rs"))
                    .iter()
                    .find(|file| sources.contains_key(*file))
                {
                    self.file(file, &folder, inside, sources)?;
                }
            }
        }
        paths(&tokens, &mut module.paths);
        self.modules.insert(at, module);
        Ok(())
    }

    /// Returns the module that defines the name of `path`, seen from the module `from`, as far as
    /// the path leads through modules of this crate.
    pub(super) fn resolve(&self, from: &[String], path: &[String]) -> Path {
        self.follow(from, path, 0)
    }

    fn follow(&self, from: &[String], path: &[String], depth: usize) -> Path {
        let mut here = from.to_vec();
        for name in path {
            match name.as_str() {
                "crate" => here.clear(),
                "super" => drop(here.pop()),
                "self" => {}
                _ => {
                    let child = [here.clone(), vec![name.clone()]].concat();
                    let target = if self.modules.contains_key(&child) {
                        Some(child)
                    } else {
                        self.bound(&here, name, depth)
                    };
                    let Some(target) = target else { break };
                    here = target;
                }
            }
        }
        here
    }

    /// Returns the module that defines a name which `use` brings into the module `here`.
    fn bound(&self, here: &[String], name: &str, depth: usize) -> Option<Path> {
        let module = self
            .modules
            .get(here)
            .filter(|module| depth < DEEPEST && !module.items.contains(name))?;
        let named = module.uses.iter().find(|used| used.name == name);
        named.map(|used| self.follow(here, &used.path, depth + 1)).or_else(|| {
            let globs = module.uses.iter().filter(|used| used.name == "*");
            globs.map(|glob| self.follow(here, &glob.path, depth + 1)).find_map(|target| {
                let is_own = self.modules.get(&target)?.items.contains(name);
                if is_own { Some(target) } else { self.bound(&target, name, depth + 1) }
            })
        })
    }
}

/// Collects the paths that begin with `crate`, `self` or `super`.
fn paths(tokens: &[TokenTree], found: &mut Vec<Path>) {
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            paths(&group.stream().into_iter().collect::<Vec<_>>(), found);
        }
        let begins = matches!(token, TokenTree::Ident(name) if ["crate", "self", "super"].iter().any(|word| name == word));
        if begins && tokens.get(at + 1).is_some_and(|next| is(next, ':')) {
            leaves(&tokens[at..], Vec::new(), &mut |path, _| found.push(path));
        }
    }
}

/// Calls `leaf` with each leaf of a path or `use` tree, and with the name that it binds.
fn leaves(tokens: &[TokenTree], mut path: Path, leaf: &mut dyn FnMut(Path, String)) {
    match tokens {
        [TokenTree::Ident(name), one, other, rest @ ..] if is(one, ':') && is(other, ':') => {
            path.push(name.to_string());
            leaves(rest, path, leaf);
        }
        [TokenTree::Ident(name), rest @ ..] => {
            if name != "self" {
                path.push(name.to_string());
            }
            let bound = match rest {
                [TokenTree::Ident(word), TokenTree::Ident(bound), ..] if word == "as" => {
                    bound.to_string()
                }
                _ => path.last().cloned().unwrap_or_default(),
            };
            leaf(path, bound);
        }
        [TokenTree::Group(group), ..] if group.delimiter() == Delimiter::Brace => {
            let inner: Vec<_> = group.stream().into_iter().collect();
            inner.split(|token| is(token, ',')).for_each(|part| leaves(part, path.clone(), leaf));
        }
        [] => {}
        _ => leaf(path, "*".into()),
    }
}
