//! What a package declares, function by function.

use std::path::Path;

use wit_parser::Resolve;

/// A function, as its interface and the component model name it: `types` and `[method]fields.get`,
/// for instance.
pub type Function = (String, String);

/// Every function of these packages (`wasi:io`, say), as the WIT in this folder has them.
///
/// # Panics
/// When there is no WIT in it.
#[must_use]
pub fn functions(wit: &Path, packages: &[&str]) -> Vec<Function> {
    let mut resolve = Resolve::default();
    resolve.push_path(wit).expect("WIT");
    let mut found = Vec::new();
    for (_, interface) in resolve.interfaces.iter() {
        let package = interface.package.map(|package| &resolve.packages[package].name);
        if package.is_some_and(|name| {
            packages.contains(&format!("{}:{}", name.namespace, name.name).as_str())
        }) {
            let module = interface.name.clone().unwrap_or_default();
            found.extend(
                interface.functions.keys().map(|function| (module.clone(), function.clone())),
            );
        }
    }
    found
}
