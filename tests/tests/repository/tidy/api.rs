//! Lists the public names of the library crates, so that each change of them is reviewed.
//!
//! In: the sources, parsed by `syn`. Out: `tests/api/*.txt`, one line for each public path and each
//! member of a type.
//! Invariants: a re-export is followed to its definition, also into a part of `toolcell`; the
//! members of a type stand below its shortest path. Items behind `#[cfg(test)]` and `#[doc(hidden)]` are left out; any other `cfg`
//! counts as set.
//! Not here: items that a macro defines, implementations of traits, signatures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use syn::{Attribute, Ident, ImplItem, Item, TraitItem, Type, UseTree, Visibility};
use toolcell_test_guests::rows;

use super::repository::{File, files_of, named, repository};

/// The crates whose names are listed, each with the folder of its sources.
const CRATES: [(&str, &str); 4] = [
    ("toolcell", "host/core/src"),
    ("toolcell-author", "host/author/src"),
    ("toolcell-config", "host/config/src"),
    ("toolcell-server", "host/server/src"),
];
/// Crates that `toolcell` re-exports, each with the folder of its sources.
const PARTS: [(&str, &str); 2] =
    [("toolcell_contract", "host/contract/src"), ("toolcell_provider", "host/provider/src")];
/// Imports that are followed to resolve a name, and modules in modules, at most.
const DEEPEST: usize = 8;

/// The segments of a path from the root of the crate.
type Path = Vec<String>;

struct Definition {
    kind: &'static str,
    is_public: bool,
    /// Each with its kind: `new(): fn`.
    members: BTreeSet<String>,
}

/// A name that `use` binds; `*` for all names of a module.
struct Use {
    name: String,
    path: Path,
    is_public: bool,
}

/// A crate with its parts: crates of this repository that it may re-export. The paths of a part
/// begin with the part's name.
#[derive(Default)]
struct Crate {
    parts: Vec<String>,
    /// A module and a function can have the same path.
    definitions: BTreeMap<Path, Vec<Definition>>,
    /// The imports of each module.
    uses: BTreeMap<Path, Vec<Use>>,
    /// Members of types: the module of the `impl`, the type as it names it, and the members.
    impls: Vec<(Path, Path, BTreeSet<String>)>,
}

impl Crate {
    /// Reads the crate whose sources lie in `folder`, and its parts.
    fn read(files: &[File], folder: &str, parts: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        tree.file(files, &format!("{folder}/lib.rs"), &[], folder);
        for (name, folder) in parts {
            tree.file(files, &format!("{folder}/lib.rs"), &[(*name).to_owned()], folder);
            tree.parts.push((*name).to_owned());
        }
        for (module, of, members) in std::mem::take(&mut tree.impls) {
            for target in tree.resolve(&module, &of, 0) {
                let types = tree.definitions.get_mut(&target).into_iter().flatten();
                types
                    .filter(|one| !["fn", "mod"].contains(&one.kind))
                    .for_each(|one| one.members.extend(members.iter().cloned()));
            }
        }
        tree
    }

    fn file(&mut self, files: &[File], path: &str, at: &[String], below: &str) {
        let file = named(files, path).unwrap_or_else(|| panic!("there is no {path}"));
        let parsed = syn::parse_file(&file.text).unwrap_or_else(|error| panic!("{path}: {error}"));
        self.module(files, &parsed.items, at, below);
    }

    /// Adds the module `at`. The files of its submodules lie in the folder `below`.
    fn module(&mut self, files: &[File], items: &[Item], at: &[String], below: &str) {
        for item in items {
            if let Item::Use(used) = item
                && !has(&used.attrs, "cfg", "test")
            {
                let is_public = is_public(&used.vis) && is_shown(&used.attrs);
                let uses = self.uses.entry(at.to_vec()).or_default();
                leaves(&used.tree, Vec::new(), &mut |name, path| {
                    uses.push(Use { name, path, is_public });
                });
            } else if let Item::Impl(block) = item
                && let (None, Type::Path(of)) = (&block.trait_, &*block.self_ty)
                && is_shown(&block.attrs)
            {
                let segments = of.path.segments.iter().map(|part| part.ident.to_string());
                self.impls.push((at.to_vec(), segments.collect(), members(item)));
            }
            let Some((kind, name, is_public, attributes)) = header(item) else { continue };
            if has(attributes, "cfg", "test") {
                continue;
            }
            // An exported macro belongs to the root.
            let path = join(if kind == "macro" { &[] } else { at }, &name.to_string());
            let is_public = is_public && is_shown(attributes);
            let definition = Definition { kind, is_public, members: members(item) };
            self.definitions.entry(path.clone()).or_default().push(definition);
            if let Item::Mod(module) = item {
                let folder = format!("{below}/{name}");
                let file = format!("{folder}.rs");
                if let Some((_, items)) = &module.content {
                    self.module(files, items, &path, &folder);
                } else if named(files, &file).is_some() {
                    self.file(files, &file, &path, &folder);
                } else {
                    self.file(files, &format!("{folder}/mod.rs"), &path, &folder);
                }
            }
        }
    }

    /// Returns the paths of the definitions that `path` means in the module `from`; none for a name
    /// of another crate.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> BTreeSet<Path> {
        let root = from.first().filter(|first| self.parts.contains(first));
        let root = Vec::from_iter(root.cloned());
        let mut found = BTreeSet::from([from.to_vec()]);
        for (at, name) in path.iter().enumerate() {
            let next = found.iter().flat_map(|place| match name.as_str() {
                "crate" => vec![root.clone()],
                _ if at == 0 && self.parts.contains(name) => vec![vec![name.clone()]],
                "self" => vec![place.clone()],
                "super" => vec![place[..place.len().saturating_sub(1)].to_vec()],
                _ => self.bound(place, name, depth),
            });
            found = next.collect();
        }
        found
    }

    fn bound(&self, module: &[String], name: &str, depth: usize) -> Vec<Path> {
        let own = join(module, name);
        let mut found = Vec::from_iter(self.definitions.contains_key(&own).then_some(own));
        for used in self.uses.get(module).into_iter().flatten().filter(|_| depth < DEEPEST) {
            if used.name == name {
                found.extend(self.resolve(module, &used.path, depth + 1));
            } else if used.name == "*" {
                let targets = self.resolve(module, &used.path, depth + 1);
                found.extend(targets.iter().flat_map(|target| self.bound(target, name, depth + 1)));
            }
        }
        found
    }

    /// Collects the names that the module offers under the path `public`, each with the path of its
    /// definition.
    fn walk(&self, module: &[String], public: &[String], found: &mut BTreeSet<(Path, Path)>) {
        let is_child = |path: &&Path| path.split_last().is_some_and(|(_, above)| above == module);
        let own = self.definitions.keys().filter(is_child);
        let mut names: Vec<_> =
            own.filter_map(|path| Some((path.last()?.clone(), path.clone()))).collect();
        for used in self.uses.get(module).into_iter().flatten().filter(|used| used.is_public) {
            let targets = self.resolve(module, &used.path, 0);
            if targets.is_empty() {
                found.insert((join(public, &used.name), used.path.clone()));
            }
            for target in targets {
                if used.name == "*" {
                    self.walk(&target, public, found);
                } else {
                    names.push((used.name.clone(), target));
                }
            }
        }
        for (name, target) in names {
            let path = join(public, &name);
            let offered = self.definitions.get(&target).into_iter().flatten();
            let kinds: Vec<_> = offered.filter(|one| one.is_public).map(|one| one.kind).collect();
            let is_new = !kinds.is_empty() && found.insert((path.clone(), target.clone()));
            if is_new && kinds.contains(&"mod") && path.len() < DEEPEST {
                self.walk(&target, &path, found);
            }
        }
    }

    /// Returns a line for each public path, and for each member of a type.
    fn names(&self) -> BTreeSet<String> {
        let (mut found, mut lines) = (BTreeSet::new(), BTreeSet::new());
        self.walk(&[], &[], &mut found);
        let mut shortest = BTreeMap::new();
        for (public, target) in &found {
            let one = shortest.entry(target).or_insert(public);
            if public.len() < one.len() {
                *one = public;
            }
        }
        for (public, target) in &found {
            let (text, first) = (public.join("::"), shortest[target]);
            let Some(definitions) = self.definitions.get(target) else {
                lines.insert(format!("{text}: from {}", target.join("::")));
                continue;
            };
            for Definition { kind, members, .. } in definitions.iter().filter(|one| one.is_public) {
                let call = if *kind == "fn" { "()" } else { "" };
                if first == public {
                    lines.insert(format!("{text}{call}: {kind}"));
                    lines.extend(members.iter().map(|member| format!("{text}::{member}")));
                } else {
                    lines.insert(format!("{text}{call}: {kind}, the same as {}", first.join("::")));
                }
            }
        }
        lines
    }
}

/// Returns the kind of an item, its name, true if it is public, and its attributes.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others define no name by themselves")]
fn header(item: &Item) -> Option<(&'static str, &Ident, bool, &Vec<Attribute>)> {
    Some(match item {
        Item::Const(item) => ("const", &item.ident, is_public(&item.vis), &item.attrs),
        Item::Enum(item) => ("enum", &item.ident, is_public(&item.vis), &item.attrs),
        Item::Fn(item) => ("fn", &item.sig.ident, is_public(&item.vis), &item.attrs),
        Item::Macro(item) => {
            let is_export = |attribute: &Attribute| attribute.path().is_ident("macro_export");
            ("macro", item.ident.as_ref()?, item.attrs.iter().any(is_export), &item.attrs)
        }
        Item::Mod(item) => ("mod", &item.ident, is_public(&item.vis), &item.attrs),
        Item::Static(item) => ("static", &item.ident, is_public(&item.vis), &item.attrs),
        Item::Struct(item) => ("struct", &item.ident, is_public(&item.vis), &item.attrs),
        Item::Trait(item) => ("trait", &item.ident, is_public(&item.vis), &item.attrs),
        Item::Type(item) => ("type", &item.ident, is_public(&item.vis), &item.attrs),
        _ => return None,
    })
}

/// Returns the public members of a type, a trait or an `impl`, each with its kind.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others have no named members")]
fn members(item: &Item) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |name: String, kind: &str, attributes: &[Attribute]| {
        found.extend(is_shown(attributes).then(|| format!("{name}: {kind}")));
    };
    match item {
        Item::Struct(item) => {
            let fields = item.fields.iter().enumerate();
            for (at, field) in fields.filter(|(_, field)| is_public(&field.vis)) {
                let name = field.ident.as_ref().map_or_else(|| at.to_string(), Ident::to_string);
                add(name, "field", &field.attrs);
            }
        }
        Item::Enum(item) => {
            for variant in item.variants.iter().filter(|variant| is_shown(&variant.attrs)) {
                add(variant.ident.to_string(), "variant", &variant.attrs);
                for (name, field) in
                    variant.fields.iter().filter_map(|field| Some((field.ident.as_ref()?, field)))
                {
                    add(format!("{}::{name}", variant.ident), "field", &field.attrs);
                }
            }
        }
        Item::Trait(item) => item.items.iter().for_each(|item| match item {
            TraitItem::Const(item) => add(item.ident.to_string(), "const", &item.attrs),
            TraitItem::Fn(item) => add(format!("{}()", item.sig.ident), "fn", &item.attrs),
            TraitItem::Type(item) => add(item.ident.to_string(), "type", &item.attrs),
            _ => {}
        }),
        Item::Impl(item) => item.items.iter().for_each(|item| match item {
            ImplItem::Const(item) if is_public(&item.vis) => {
                add(item.ident.to_string(), "const", &item.attrs);
            }
            ImplItem::Fn(item) if is_public(&item.vis) => {
                add(format!("{}()", item.sig.ident), "fn", &item.attrs);
            }
            _ => {}
        }),
        _ => {}
    }
    found
}

/// Calls `leaf` with each name that a `use` tree binds, and with its path.
fn leaves(tree: &UseTree, mut path: Path, leaf: &mut dyn FnMut(String, Path)) {
    match tree {
        UseTree::Path(part) => leaves(&part.tree, join(&path, &part.ident.to_string()), leaf),
        UseTree::Glob(_) => leaf("*".into(), path),
        UseTree::Group(group) => {
            for part in &group.items {
                leaves(part, path.clone(), leaf);
            }
        }
        UseTree::Name(name) => {
            path.extend((name.ident != "self").then(|| name.ident.to_string()));
            leaf(path.last().cloned().unwrap_or_default(), path);
        }
        UseTree::Rename(name) => {
            path.extend((name.ident != "self").then(|| name.ident.to_string()));
            leaf(name.rename.to_string(), path);
        }
    }
}

fn join(path: &[String], name: &str) -> Path {
    [path, &[name.to_owned()]].concat()
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_shown(attributes: &[Attribute]) -> bool {
    !has(attributes, "cfg", "test") && !has(attributes, "doc", "hidden")
}

/// Returns true if there is the attribute `#[name(content)]`.
fn has(attributes: &[Attribute], name: &str, content: &str) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident(name)).any(|attribute| {
        attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == content)
    })
}

/// Returns the lines that are gone, after `-`, and the new ones, after `+`, in order.
fn changes(snapshot: &str, names: &BTreeSet<String>) -> Vec<String> {
    let before: BTreeSet<_> = snapshot.lines().map(str::to_owned).collect();
    let changed = before.symmetric_difference(names);
    changed.map(|line| format!("{} {line}", if names.contains(line) { '+' } else { '-' })).collect()
}

/// `UPDATE=1` writes the snapshots.
#[test]
fn public_names_match_the_snapshots() {
    let files = repository();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("api");
    let mut found = Vec::new();
    for (name, sources) in CRATES {
        let names = Crate::read(&files, sources, &PARTS).names();
        assert!(names.len() > 10, "{name}: these are not all names: {names:?}");
        let snapshot = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            let text: String = names.iter().map(|line| format!("{line}\n")).collect();
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(&snapshot, text).expect("the snapshot is written");
        }
        let before = fs::read_to_string(&snapshot).unwrap_or_default();
        found.extend(changes(&before, &names).iter().map(|line| format!("{name} {line}")));
    }
    assert!(
        found.is_empty(),
        "\n{}\npublic names differ from tests/api; if that is intended, \
         `UPDATE=1 cargo test --workspace --test repository tidy::api` writes them",
        found.join("\n")
    );
}

/// Returns the public names of the parts that the crate does not re-export.
fn further_names(tree: &Crate) -> Vec<String> {
    let mut own = BTreeSet::new();
    tree.walk(&[], &[], &mut own);
    let own: BTreeSet<_> = own.into_iter().map(|(_, target)| target).collect();
    let mut offered = BTreeSet::new();
    for part in &tree.parts {
        tree.walk(std::slice::from_ref(part), std::slice::from_ref(part), &mut offered);
    }
    let is_module = |target: &Path| {
        tree.definitions.get(target).is_some_and(|all| all.iter().all(|one| one.kind == "mod"))
    };
    let further =
        offered.into_iter().filter(|(_, target)| !own.contains(target) && !is_module(target));
    further.map(|(public, _)| public.join("::")).collect()
}

#[test]
fn parts_of_toolcell_offer_only_its_names() {
    let (_, sources) = CRATES[0];
    let further = further_names(&Crate::read(&repository(), sources, &PARTS));
    assert!(further.is_empty(), "`toolcell` does not re-export these: {further:?}");
}

#[test]
fn removed_and_added_names_are_reported() {
    let files = files_of(rows::<(&str, &str)>("repository/api", "sources"));
    let tree = Crate::read(&files, "src", &[("part", "part")]);
    assert_eq!(further_names(&tree), ["part::c::Other"]);
    let mut names = tree.names();
    let expected = rows::<&str>("repository/api", "removed_and_added_names_are_reported");
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let snapshot = expected.join("\n");
    assert!(changes(&snapshot, &names).is_empty());
    names.remove("b::N: const");
    names.insert("b::O: const".into());
    assert_eq!(changes(&snapshot, &names), ["- b::N: const", "+ b::O: const"]);
}
