//! The tools that an embedder offers, by name.
//!
//! An embedder (the program that uses this library) adds, replaces and removes tools in a
//! [`Registry`], also while calls run. Runs, steps and servers take a [`Toolbox`], an immutable
//! snapshot, so that a change never affects a run that has started. The registry lists definitions
//! for a model, finds the tools that are visible in a context, calls a tool by name, and returns
//! statistics. Names are unique, tools keep the order of their registration, and each change is
//! atomic. An unknown name is an error with the nearest name as a hint.
//!
//! Not here: the counting of calls, which each tool does ([`Tool::statistics`]).
//!
//! Source: docs/contract.md, sections 4 and 5.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use indexmap::IndexMap;
use parking_lot::RwLock;
use toolcell_contract::call::{CallContext, Completion, ToolCall};
use toolcell_contract::definition::Definition;
use toolcell_contract::error::Error;
use toolcell_contract::names;

use crate::executor::Executor;
use crate::tool::statistics::{LastError, Statistics};
use crate::tool::{Tool, handler::options::CallOptions};

/// The number of tools whose visibility is checked at the same time, so that one slow check does
/// not hold up the list.
const ASKED_AT_ONCE: usize = 32;

/// Tools by name, in the order of their registration. Cheap to clone; clones share the tools. Tools
/// can be added and removed while calls run.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::{Value, json};
/// use toolcell::{CallOptions, Definition, Executor, Registry, Tool, ToolCall};
///
/// let registry = Registry::new();
/// registry.register(Tool::native(Definition::new("now", "Tells the time.")?, async |_: Value| json!("noon"))?)?;
/// assert!(registry.is_registered("now"));
///
/// let call = ToolCall::new("call-1", "now", "{}");
/// let completion = registry.call(&Executor::new(), call, CallOptions::default()).await?;
/// assert_eq!(completion.result.value().map(|value| value.as_str()), Some("\"noon\""));
///
/// // A name that no tool has is an error with a hint.
/// let unknown = ToolCall::new("call-2", "nwo", "{}");
/// let error = registry.call(&Executor::new(), unknown, CallOptions::default()).await.unwrap_err();
/// assert_eq!(error.hint(), "did you mean `now`?");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Registry(Arc<RwLock<Toolbox>>);

/// A snapshot of the tools of a registry. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Toolbox(Arc<IndexMap<String, Tool>>);

impl Registry {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool after the others.
    ///
    /// # Errors
    /// [`Error::is_duplicate`] if a tool with this name is registered. Use
    /// [`replace`](Self::replace) to replace it.
    pub fn register(&self, tool: Tool) -> Result<(), Error> {
        self.register_all([tool])
    }

    /// Adds all of these tools or none. For many tools this is far cheaper than one by one.
    ///
    /// # Errors
    /// [`Error::is_duplicate`] with the first name that is registered already or appears twice.
    pub fn register_all(&self, tools: impl IntoIterator<Item = Tool>) -> Result<(), Error> {
        // Collected before the lock is taken: the iterator is the embedder's code and may use this
        // registry.
        let tools: Vec<_> = tools.into_iter().collect();
        let mut toolbox = self.0.write();
        let mut names = BTreeSet::new();
        let mut asked = tools.iter().map(|tool| &tool.definition().name);
        if let Some(name) = asked.find(|name| toolbox.0.contains_key(*name) || !names.insert(*name))
        {
            // The refused tools are dropped after the lock is released: their handlers are the
            // embedder's code.
            drop(toolbox);
            return Err(Error::duplicate_tool(name));
        }
        let named = tools.into_iter().map(|tool| (tool.definition().name.clone(), tool));
        Arc::make_mut(&mut toolbox.0).extend(named);
        Ok(())
    }

    /// Replaces the tool of the same name in one step, and returns the old one. The new tool
    /// continues its statistics. Runs that have started keep the old tool. If no tool has this
    /// name, the tool is added.
    pub fn replace(&self, tool: Tool) -> Option<Tool> {
        let mut toolbox = self.0.write();
        let name = tool.definition().name.clone();
        let tool = match toolbox.get(&name) {
            Some(old) => tool.counting_with(old),
            None => tool,
        };
        Arc::make_mut(&mut toolbox.0).insert(name, tool)
    }

    /// Removes a tool and returns it. Runs that have started keep it to their end.
    pub fn unregister(&self, name: &str) -> Option<Tool> {
        Arc::make_mut(&mut self.0.write().0).shift_remove(name)
    }

    /// Removes every tool.
    pub fn clear(&self) {
        // The tools are dropped after the lock is released: their handlers are the embedder's code.
        let _all = std::mem::take(&mut *self.0.write());
    }

    /// Returns a snapshot of the tools.
    #[must_use]
    pub fn toolbox(&self) -> Toolbox {
        self.0.read().clone()
    }

    /// Returns the tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Tool> {
        self.toolbox().get(name).cloned()
    }

    /// Returns true if a tool of this name is registered.
    #[must_use]
    pub fn is_registered(&self, name: &str) -> bool {
        self.toolbox().get(name).is_some()
    }

    /// Returns every definition, in the order of registration.
    #[must_use]
    pub fn list(&self) -> Vec<Definition> {
        self.toolbox().tools().map(|tool| tool.definition().clone()).collect()
    }

    /// Calls the tool that the call names. A failed call is part of the completion, and every call
    /// is counted.
    ///
    /// # Errors
    /// [`Error::is_unknown_tool`] if no tool has this name. [`unknown_tool`](Error::unknown_tool)
    /// returns the name.
    ///
    /// # Cancel safety
    /// As [`Executor::call`].
    pub async fn call(
        &self,
        executor: &Executor,
        call: ToolCall,
        options: CallOptions,
    ) -> Result<Completion, Error> {
        let tool = self.toolbox().resolve(&call.name)?.clone();
        Ok(executor.call(&tool, call, options).await)
    }

    /// Returns the tools that are offered in this context, in the order of registration, as
    /// [`Executor::is_visible`] decides. For a tool with its own visibility check, the check is run;
    /// a component runs it in a cell of its own. If the check fails, the tool is not offered.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn visible_tools(&self, executor: &Executor, context: &CallContext) -> Vec<Tool> {
        let tools: Vec<_> = self.toolbox().tools().cloned().collect();
        let asked = tools.into_iter().map(|tool| async move {
            (executor.is_visible(&tool, None, context).await == Some(true)).then_some(tool)
        });
        stream::iter(asked).buffered(ASKED_AT_ONCE).filter_map(std::future::ready).collect().await
    }

    /// Resets the statistics of every tool.
    pub fn clear_statistics(&self) {
        self.toolbox().tools().for_each(Tool::clear_statistics);
    }

    /// Returns the statistics of a tool, wherever its calls were made: see [`Tool::statistics`].
    /// `None` for a name that is not registered.
    #[must_use]
    pub fn statistics(&self, name: &str) -> Option<Statistics> {
        self.toolbox().get(name).map(Tool::statistics)
    }

    /// Returns the last failure that a tool's statistics count. `None` if there was none, or if the
    /// name is not registered.
    #[must_use]
    pub fn last_error(&self, name: &str) -> Option<LastError> {
        self.toolbox().get(name).and_then(Tool::last_error)
    }
}

impl Toolbox {
    /// Returns the tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.0.get(name)
    }

    /// Returns every tool, in the order of registration.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.0.values()
    }

    /// Returns the tool of this name.
    ///
    /// # Errors
    /// [`Error::is_unknown_tool`], with the nearest name as a hint.
    pub fn resolve(&self, name: &str) -> Result<&Tool, Error> {
        self.get(name).ok_or_else(|| {
            Error::no_such_tool(name, self.names().into_iter().map(str::to_owned).collect())
        })
    }

    /// Returns the names in their own order. Of equally near names the first is suggested, so the
    /// hint does not depend on the order of registration.
    fn names(&self) -> BTreeSet<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// Returns the text that tells a model that no tool has this name. It suggests the nearest
    /// name, if `is_allowed` accepts that name and its tool is offered in this context.
    pub(crate) async fn no_such_tool(
        &self,
        name: &str,
        (executor, context): (&Executor, &CallContext),
        is_allowed: impl Fn(&str) -> bool,
    ) -> String {
        let allowed = self.names().into_iter().filter(|name| is_allowed(name));
        let near = names::nearest(name, allowed).and_then(|near| self.get(near));
        let hint = match near {
            Some(tool) if executor.is_visible(tool, None, context).await == Some(true) => {
                format!("; did you mean `{}`?", tool.definition().name)
            }
            Some(_) | None => String::new(),
        };
        format!("{}{hint}", Error::no_such_tool(name, Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use toolcell_contract::panic_guard::guarded;

    use super::*;
    use crate::tool::handler::{Handler, HandlerFuture, Invocation};

    fn tool(name: &str) -> Tool {
        Tool::manual(Definition::new(name, "").unwrap()).unwrap()
    }

    #[test]
    fn names_are_unique_and_changes_are_atomic() {
        let registry = Registry::new();
        registry.register(tool("b")).unwrap();
        let before = registry.toolbox();
        assert!(registry.register_all([tool("a"), tool("b")]).unwrap_err().is_duplicate());
        assert!(registry.register_all([tool("c"), tool("c")]).unwrap_err().is_duplicate());
        assert_eq!(registry.list().len(), 1, "all or none");
        registry.register_all([tool("c"), tool("a")]).unwrap();
        let names: Vec<_> = registry.list().into_iter().map(|definition| definition.name).collect();
        assert_eq!(names, ["b", "c", "a"], "in the order of registration");
        assert!(registry.unregister("b").is_some() && registry.unregister("b").is_none());
        assert!(registry.is_registered("a") && !registry.is_registered("b"));
        let toolbox = registry.toolbox();
        let names: Vec<_> = toolbox.tools().map(|tool| tool.definition().name.as_str()).collect();
        assert_eq!(names, ["c", "a"]);
        assert_eq!(registry.get("a").unwrap().definition().name, "a");
        assert_eq!(before.tools().count(), 1, "a toolbox stays as it was taken");
        let unknown = before.resolve("bb").unwrap_err();
        assert!(before.resolve("b").is_ok() && unknown.hint().contains('b'));
        assert_eq!(unknown.unknown_tool(), Some("bb"));
        for asked in ["functions.b", "default_api:b", "mcp__calc__b", "b<|channel|>commentary"] {
            assert_eq!(before.resolve(asked).unwrap_err().hint(), "did you mean `b`?", "{asked}");
        }
        registry.clear();
        assert!(registry.list().is_empty() && registry.statistics("a").is_none());
    }

    #[test]
    fn hint_ignores_the_order_of_registration() {
        let registry = Registry::new();
        registry.register_all([tool("size_b"), tool("size_a")]).unwrap();
        let unknown = registry.toolbox().resolve("size_c").unwrap_err();
        assert_eq!(unknown.hint(), "did you mean `size_a`?");
    }

    /// A handler that locks the registry when it is dropped, and then panics.
    struct LockingHandler(Registry);

    impl Handler for LockingHandler {
        fn call(&self, _invocation: Arc<Invocation>) -> HandlerFuture<'_> {
            Box::pin(std::future::pending())
        }
    }

    impl Drop for LockingHandler {
        fn drop(&mut self) {
            assert!(self.0.0.try_write().is_none(), "a handler of an embedder's own");
        }
    }

    /// Fails without: dropping the tools after the lock is released.
    #[test]
    fn dropped_handler_may_use_the_registry_and_panic() {
        let table: [fn(&Registry, Tool); 4] = [
            |registry, leaving| {
                registry.register(leaving).unwrap();
                registry.clear();
            },
            |registry, leaving| {
                registry.register(leaving).unwrap();
                drop(registry.unregister("a"));
            },
            |registry, leaving| {
                registry.register(leaving).unwrap();
                let replaced = registry.replace(tool("a"));
                registry.clear();
                drop(replaced);
            },
            // Refused, because another name appears twice.
            |registry, leaving| drop(registry.register_all([leaving, tool("b"), tool("b")])),
        ];
        for leaves in table {
            let registry = Registry::new();
            let leaving = LockingHandler(registry.clone());
            let leaving = Tool::with_handler(Definition::new("a", "").unwrap(), leaving).unwrap();
            let left = guarded(|| leaves(&registry, leaving));
            assert!(left.is_none(), "it could look, and panicked");
            assert!(registry.list().is_empty());
            registry.register(tool("a")).unwrap();
        }
    }

    #[test]
    fn iterator_may_use_the_registry_it_fills() {
        let registry = Registry::new();
        let tools = ["a", "b"].into_iter().map(|name| {
            assert!(registry.0.try_write().is_some(), "not locked while tools are made");
            tool(name)
        });
        registry.register_all(tools).unwrap();
        assert_eq!(registry.list().len(), 2);
    }
}
