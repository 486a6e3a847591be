//! Resolves and loads the author's modules by name.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Module, Result};
use serde::Deserialize;
use serde_json::json;

use crate::sdk;

/// The modules that the builder passes, with all imports resolved.
#[derive(Deserialize)]
pub(crate) struct Modules {
    /// The name of the entry module.
    pub(crate) entry: String,
    /// Sources by name, without the modules that are already compiled.
    modules: RefCell<HashMap<String, String>>,
    /// For each module, the names of the modules that its specifiers resolve to.
    pub(crate) imports: HashMap<String, HashMap<String, String>>,
    /// For each module that was written in TypeScript, the author's line for each line of its
    /// source.
    pub(crate) lines: HashMap<String, Vec<u32>>,
}

impl Modules {
    /// Removes and returns the source of a module.
    pub(crate) fn take(&self, name: &str) -> Option<String> {
        self.modules.borrow_mut().remove(name)
    }

    /// Removes and returns the name and the source of any remaining module.
    pub(crate) fn take_any(&self) -> Option<(String, String)> {
        let name = self.modules.borrow().keys().next().cloned()?;
        Some((name.clone(), self.take(&name)?))
    }
}

/// The end of the name of a module that exports another one again, for imports such as
/// `with { type: "json" }`: QuickJS takes one module with and without attributes for two.
const TYPED: &str = " with a type";

/// The resolver and loader of QuickJS for [`Modules`].
#[derive(Clone)]
pub(crate) struct Known(pub(crate) Rc<Modules>);

impl Resolver for Known {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if name == sdk::NAME || base.strip_suffix(TYPED) == Some(name) {
            return Ok(name.to_owned());
        }
        let target = self.0.imports.get(base).and_then(|imports| imports.get(name));
        let target = target.ok_or_else(|| Error::new_resolving(base, name))?;
        let has_type = attributes.is_some_and(|it| matches!(it.get_type(), Ok(Some(_))));
        Ok(if has_type { format!("{target}{TYPED}") } else { target.clone() })
    }
}

impl Loader for Known {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        if let Some(own) = name.strip_suffix(TYPED) {
            let source = format!("export {{ default }} from {};", json!(own));
            return Module::declare(ctx.clone(), name, source);
        }
        let source = self.0.take(name).ok_or_else(|| Error::new_loading(name))?;
        Module::declare(ctx.clone(), name, source)
    }
}
