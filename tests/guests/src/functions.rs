//! Lists the functions that WIT packages declare.

use std::path::Path;

use wit_parser::Resolve;

/// A function: the name of its interface and its name in the component model, for instance `types`
/// and `[method]fields.get`.
pub type Function = (String, String);

/// Returns every function of these packages (such as `wasi:io`) in the WIT of this folder.
pub fn functions(wit: &Path, packages: &[&str]) -> Vec<Function> {
    let mut resolve = Resolve::default();
    resolve.push_path(wit).expect("WIT");
    let mut found = Vec::new();
    for (_, interface) in resolve.interfaces.iter() {
        let package = interface.package.map(|package| &resolve.packages[package].name);
        let package = package.map(|name| format!("{}:{}", name.namespace, name.name));
        if package.is_some_and(|package| packages.contains(&package.as_str())) {
            let module = interface.name.clone().unwrap_or_default();
            let names = interface.functions.keys();
            found.extend(names.map(|function| (module.clone(), function.clone())));
        }
    }
    found
}
