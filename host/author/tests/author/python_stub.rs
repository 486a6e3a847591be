//! The type stub of the Python SDK, which a new project gets for editors, matches the SDK exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toolcell_author::{Language, create};

const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python");
/// Members that only the SDK uses.
const INTERNAL: [&str; 1] = ["Response.__init__"];

/// For each name (`Class.member` for a member), the parameters of a function, or `=` for a field
/// with a default. An overload has several entries.
type Names = BTreeMap<String, Vec<String>>;

/// Returns the names of a Python module: its functions, its classes with their members, and its
/// variables.
fn names(text: &str) -> Names {
    let (mut found, mut class) = (Names::new(), None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let inner = line.trim_start();
        let depth = line.len() - inner.len();
        if let Some(rest) = line.strip_prefix("class ") {
            let name = rest.split(['(', ':']).next().unwrap_or_default();
            class = Some(name.to_owned());
            found.entry(name.to_owned()).or_default().push(String::new());
            continue;
        }
        if depth == 0 && !line.is_empty() && !line.starts_with(['#', '@', ')', '"']) {
            class = None;
        }
        let full = |name: &str| match &class {
            Some(class) if depth == 4 => Some(format!("{class}.{name}")),
            None if depth == 0 => Some(name.to_owned()),
            _ => None,
        };
        if let Some(rest) = inner.strip_prefix("async ").unwrap_or(inner).strip_prefix("def ") {
            let mut text = rest.to_owned();
            while text.matches('(').count() > text.matches(')').count() {
                text += lines.next().expect("the end of the parameters");
            }
            let (name, rest) = text.split_once('(').expect("parameters");
            if let Some(name) = full(name) {
                found.entry(name).or_default().push(parameters(rest));
            }
        } else if let Some(targets) =
            inner.strip_prefix("self.").and_then(|rest| rest.split(" = ").next())
        {
            // Assignments in `__init__` define fields too.
            if let Some(class) = class.as_ref().filter(|_| depth == 8 && inner.contains(" = ")) {
                for field in targets.split(", self.") {
                    found.entry(format!("{class}.{field}")).or_default().push(String::new());
                }
            }
        } else if let Some((name, default)) = field(inner)
            && let Some(name) = full(name)
        {
            found.entry(name).or_default().push(default.to_owned());
        }
    }
    found.retain(|name, _| !name.contains("._") || name.ends_with(".__init__"));
    found
}

/// Returns the name in `NAME: TYPE`, `NAME: TYPE = VALUE` or `NAME = VALUE`, and `=` if it has a
/// default.
fn field(line: &str) -> Option<(&str, &str)> {
    let end = line.find(|char: char| !char.is_alphanumeric() && char != '_')?;
    let (name, rest) = line.split_at(end);
    let is_field = rest.starts_with(": ") || rest.starts_with(" = ");
    (is_field && !name.is_empty())
        .then_some((name, if rest.starts_with(": ") && rest.contains(" = ") { "=" } else { "" }))
}

/// Returns the names of parameters, with `=` for those that have a default.
fn parameters(text: &str) -> String {
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0);
    for char in text.chars() {
        match char {
            '(' | '[' => depth += 1,
            ')' | ']' if depth == 0 => break,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(char);
    }
    parts.push(part);
    let name = |part: &String| {
        let name = part.trim().split([':', '=', ' ']).next().unwrap_or_default();
        format!("{name}{}", if part.contains('=') { "=" } else { "" })
    };
    parts.iter().filter(|part| !part.trim().is_empty()).map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the names of the parameters of all overloads, which together are those of the function.
fn together(signatures: &[String]) -> BTreeSet<&str> {
    let each = signatures.iter().flat_map(|signature| signature.split(", "));
    each.map(|name| name.trim_end_matches('='))
        .filter(|name| !["*", "/", ""].contains(name))
        .collect()
}

#[test]
fn python_editor_types_match_the_sdk() {
    let place = tempfile::tempdir().expect("a folder");
    let created = create(&place.path().join("greeter"), Language::Python).expect("a project");
    let path = "typings/toolcell/__init__.pyi";
    assert!(created.files.contains(&path.to_owned()), "{created:?}");
    let stub = names(&fs::read_to_string(created.directory.join(path)).expect("the types"));
    let page = fs::read_to_string(created.directory.join("README.md")).expect("a page");
    assert!(page.contains("`typings/toolcell`"), "{page}");

    let text = |file: &str| fs::read_to_string(format!("{SDK}/{file}")).expect("a file of the SDK");
    let mut sdk = Names::new();
    for file in ["_endings.py", "_host.py", "_tool.py"] {
        sdk.extend(names(&text(file)));
    }
    let exports = text("__init__.py");
    let (_, exports) = exports.split_once("__all__ = [").expect("the public names");
    let public: BTreeSet<_> = exports.split('"').skip(1).step_by(2).collect();
    let variables =
        BTreeMap::from([("secrets", "_SecretStore"), ("kv", "_KeyStore"), ("abort", "_Abort")]);
    for (name, class) in &variables {
        assert!(text("_host.py").contains(&format!("\n{name} = {class}()\n")), "{name}");
    }
    // A name that is reachable through a public name.
    let reached = |name: &str| {
        let first = name.split('.').next().unwrap_or_default();
        public.contains(first) || variables.values().any(|class| *class == first)
    };
    let is_public = |name: &&String| reached(name) && !INTERNAL.contains(&name.as_str());
    let expected: Vec<_> = sdk.keys().filter(is_public).collect();
    let shown: Vec<_> = stub.keys().filter(|name| *name != "_Function").collect();
    assert_eq!(shown, expected);
    assert!(public.iter().all(|name| stub.contains_key(*name)) && public.len() == 18, "{public:?}");
    for name in expected {
        let (known, told) = (&sdk[name], &stub[name]);
        if told.len() > 1 {
            assert_eq!(together(told), together(known), "{name}");
        } else {
            assert_eq!(told, known, "{name}");
        }
    }
}
