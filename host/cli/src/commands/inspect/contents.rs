//! Describes a component's parts, and its abilities without any grant.
//!
//! `inspect` calls it with the library's analysis of a component file: its imports (`Inspection`),
//! and its sections, modules and producers (`Contents`; a producer is a program that made it). It
//! returns lines such as the sizes by kind of section, the languages and compilers, and "can
//! compute, log, read the clock". [`brought_by`] tells who brought an import: the author's own
//! module, another module, or a language runtime such as CPython, which imports everything that any
//! tool may use. Names from the file are escaped.

use toolcell::component::{Contents, Inspection, Producer};

use crate::print::{Size, clean};

/// The JavaScript runtime that `toolcell build` puts into a component.
const QUICKJS: &str = "QuickJS-ng";
/// The most producers that are shown.
const MAX_SHOWN: usize = 6;

/// The text for a component that cannot be called.
pub(super) const REFUSED: &str = "cannot be called";

/// Prefixes of imports, and the ability that each gives a tool without a grant.
const INERT: [(&str, &str); 5] = [
    ("toolcell:tool/log@", "log"),
    ("wasi:cli/stderr@", "log"),
    ("wasi:clocks/wall-clock@", "read the clock"),
    ("wasi:clocks/monotonic-clock@", "measure time"),
    ("wasi:random/random@", "draw random numbers"),
];

/// Returns the language runtime that the component contains, by its name among the producers. A
/// runtime has imports for everything that any tool may use.
pub(super) fn runtime(contents: &Contents) -> Option<&'static str> {
    let is_made_with = |name: &str| contents.producers.iter().any(|producer| producer.name == name);
    if contents.is_python() {
        Some("CPython")
    } else {
        Some(QUICKJS).filter(|name| is_made_with(name))
    }
}

/// Returns the producers, languages first. The language of a runtime is left out, because the tool
/// is not written in it.
pub(super) fn producers(contents: &Contents) -> Option<String> {
    let is_language = |producer: &&Producer| producer.role == "language";
    let (mut languages, others): (Vec<_>, Vec<_>) =
        contents.producers.iter().partition(is_language);
    if contents.is_python() {
        languages.retain(|language| language.name == "Python");
    }
    let all: Vec<_> = languages.into_iter().chain(others).collect();
    let mut names: Vec<_> =
        all.iter().take(MAX_SHOWN).map(|it| clean::escaped(producer_text(it).trim())).collect();
    if all.len() > MAX_SHOWN {
        names.push(format!("{} more", all.len() - MAX_SHOWN));
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// Returns name and version. Compilers write more about a version in parentheses, which is left
/// out.
fn producer_text(Producer { name, version, .. }: &Producer) -> String {
    format!("{name} {}", version.split(" (").next().unwrap_or_default())
}

/// Returns the size of the file, and the sizes by kind of section. A module of WASI preview 1 is
/// adapted first, and grows.
pub(super) fn sizes(size: u64, contents: &Contents) -> String {
    let whole: u64 = contents.sections.iter().map(|section| section.size).sum();
    let adapted = if whole > size {
        format!(", {} with the adapter", Size(whole).rounded())
    } else {
        String::new()
    };
    let one = |section: &toolcell::component::Section| {
        format!("{} {}", section.kind.replace('_', " "), Size(section.size).rounded())
    };
    let kinds = contents.sections.iter().map(one).collect::<Vec<_>>().join(", ");
    format!("{}{adapted}: {kinds}", Size(size).rounded())
}

/// Returns the component's abilities without grants, one word or phrase each. `None` if it cannot
/// be called.
pub(super) fn without_grants(
    examination: &Inspection,
    barred: &[String],
) -> Option<Vec<&'static str>> {
    if !barred.is_empty() {
        return None;
    }
    let mut can = vec!["compute"];
    for (start, what) in INERT {
        if examination.imports.iter().any(|(name, _)| name.starts_with(start))
            && !can.contains(&what)
        {
            can.push(what);
        }
    }
    Some(can)
}

/// Returns the abilities without grants as a sentence.
pub(super) fn without_grants_shown(examination: &Inspection, barred: &[String]) -> String {
    match without_grants(examination, barred) {
        Some(can) => {
            format!("can {}; files, variables, keys and the network are denied", can.join(", "))
        }
        None => REFUSED.to_owned(),
    }
}

/// Returns the origin of an import that is not the author's own: the language runtime, or the
/// modules that have it if the first module, the author's, does not.
pub(crate) fn brought_by(contents: &Contents, import: &str) -> Option<String> {
    if let Some(runtime) = runtime(contents) {
        return Some(format!("the runtime {runtime}"));
    }
    let callers: Vec<_> = contents.callers(import).collect();
    let named = |at: &usize| match contents.modules.get(*at).map(|module| &*module.name) {
        Some(name) if !name.is_empty() => clean::escaped(name),
        _ => format!("number {}", at + 1),
    };
    let is_other = !callers.is_empty() && !callers.contains(&0);
    is_other
        .then(|| format!("the module {}", callers.iter().map(named).collect::<Vec<_>>().join(", ")))
}
