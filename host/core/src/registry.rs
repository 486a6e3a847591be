//! The tools that an embedder offers, by name.
//!
//! In: tools. Out: tools, definitions, statistics.
//! Invariants: a name stands once; a change is seen whole or not at all, and whoever took a [`Toolbox`] keeps what it held.
//! Source: contract, sections 4 and 5.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use parking_lot::RwLock;

use crate::call::{CallContext, ToolCall};
use crate::definition::Definition;
use crate::error::Error;
use crate::statistics::{Counters, Statistics};
use crate::tool::Tool;

/// Tools that are asked at once whether they are offered: one that hangs at it does not hold up the list.
const ASKED_AT_ONCE: usize = 32;

/// Tools by name, to be changed while runs go on. Cheap to clone; clones share the tools.
#[derive(Debug, Clone, Default)]
pub struct Registry(Arc<RwLock<Toolbox>>);

/// The tools of a registry at one moment. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Toolbox(Arc<BTreeMap<String, Arc<Entry>>>);

/// A tool and how it has fared.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) tool: Tool,
    pub(crate) counters: Counters,
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool under its name.
    ///
    /// # Errors
    /// [`Error::is_duplicate`] when there is one of that name; nothing changes then.
    pub fn register(&self, tool: Tool) -> Result<(), Error> {
        self.register_all([tool])
    }

    /// Adds tools, all or none. For many at once this is far cheaper than one by one.
    ///
    /// # Errors
    /// [`Error::is_duplicate`], naming the first that is there already or stands twice.
    pub fn register_all(&self, tools: impl IntoIterator<Item = Tool>) -> Result<(), Error> {
        // Before the lock: the iterator is somebody else's and may look at this registry.
        let tools: Vec<_> = tools.into_iter().collect();
        let mut toolbox = self.0.write();
        let mut names = BTreeSet::new();
        let mut asked = tools.iter().map(|tool| &tool.definition().name);
        if let Some(name) = asked.find(|name| toolbox.0.contains_key(*name) || !names.insert(*name)) {
            // All that is refused goes when the lock is not held any more: there is others' code in the handlers.
            drop(toolbox);
            return Err(Error::duplicate_tool(name));
        }
        let mut entries = (*toolbox.0).clone();
        entries.extend(tools.into_iter().map(|tool| {
            let name = tool.definition().name.clone();
            (name, Arc::new(Entry { tool, counters: Counters::default() }))
        }));
        *toolbox = Toolbox(Arc::new(entries));
        Ok(())
    }

    /// Removes a tool. Runs that have started keep it to their end.
    pub fn unregister(&self, name: &str) -> Option<Tool> {
        let mut toolbox = self.0.write();
        let mut entries = (*toolbox.0).clone();
        let removed = entries.remove(name)?;
        *toolbox = Toolbox(Arc::new(entries));
        Some(removed.tool.clone())
    }

    /// Removes every tool, and their statistics with them.
    pub fn clear(&self) {
        // The tools go when the lock is not held any more: there is others' code in their handlers.
        let _all = std::mem::take(&mut *self.0.write());
    }

    /// The tools as they are now.
    #[must_use]
    pub fn toolbox(&self) -> Toolbox {
        self.0.read().clone()
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Tool> {
        self.toolbox().get(name).cloned()
    }

    /// Whether there is a tool of this name.
    #[must_use]
    pub fn is_registered(&self, name: &str) -> bool {
        self.toolbox().get(name).is_some()
    }

    /// Every definition, by name.
    #[must_use]
    pub fn list(&self) -> Vec<Definition> {
        self.toolbox().tools().map(|tool| tool.definition().clone()).collect()
    }

    /// The tools that are offered in this context. Those that decide by themselves are asked, components in a cell of their
    /// own: one that fails at it is not offered.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub async fn visible_tools(&self, context: &CallContext) -> Vec<Tool> {
        let tools: Vec<_> = self.toolbox().tools().cloned().collect();
        let asked = tools.into_iter().map(|tool| async move { tool.is_visible(context).await.then_some(tool) });
        stream::iter(asked).buffered(ASKED_AT_ONCE).filter_map(std::future::ready).collect().await
    }

    /// Whether some tool takes this call.
    #[must_use]
    pub fn can_execute(&self, call: &ToolCall) -> bool {
        self.toolbox().get(&call.name).is_some_and(|tool| tool.can_execute(call))
    }

    /// Forgets how every tool has fared.
    pub fn clear_statistics(&self) {
        self.toolbox().0.values().for_each(|entry| entry.counters.clear());
    }

    /// How a tool has fared in runs and steps; none for a name that is not registered.
    #[must_use]
    pub fn statistics(&self, name: &str) -> Option<Statistics> {
        self.toolbox().0.get(name).map(|entry| entry.counters.read())
    }
}

impl Toolbox {
    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.0.get(name).map(|entry| &entry.tool)
    }

    /// Every tool, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.0.values().map(|entry| &entry.tool)
    }

    /// The tool of this name.
    ///
    /// # Errors
    /// [`Error::is_unknown_tool`], with the nearest name as a hint.
    pub fn resolve(&self, name: &str) -> Result<&Tool, Error> {
        self.entry(name).map(|entry| &entry.tool)
    }

    pub(crate) fn entry(&self, name: &str) -> Result<&Arc<Entry>, Error> {
        self.0.get(name).ok_or_else(|| Error::unknown_tool(name, self.0.keys().cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::fenced;
    use crate::handler::{Handler, HandlerFuture, Invocation};

    fn tool(name: &str) -> Tool {
        Tool::manual(Definition::new(name, "").unwrap()).unwrap()
    }

    #[test]
    fn a_name_stands_once_and_changes_are_whole() {
        let registry = Registry::new();
        registry.register(tool("b")).unwrap();
        let before = registry.toolbox();
        assert!(registry.register_all([tool("a"), tool("b")]).unwrap_err().is_duplicate());
        assert!(registry.register_all([tool("c"), tool("c")]).unwrap_err().is_duplicate());
        assert_eq!(registry.list().len(), 1, "all or none");
        registry.register_all([tool("c"), tool("a")]).unwrap();
        let names: Vec<_> = registry.list().into_iter().map(|definition| definition.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(registry.unregister("b").is_some() && registry.unregister("b").is_none());
        assert!(registry.is_registered("a") && !registry.is_registered("b"));
        assert_eq!(before.tools().count(), 1, "whoever took it keeps it");
        assert!(before.resolve("b").is_ok() && before.resolve("bb").unwrap_err().hint().contains('b'));
        registry.clear();
        assert!(registry.list().is_empty() && registry.statistics("a").is_none());
    }

    /// Looks at the registry as it goes, and then panics.
    struct Leaving(Registry);

    impl Handler for Leaving {
        fn call(&self, _invocation: Arc<Invocation>) -> HandlerFuture<'_> {
            Box::pin(std::future::pending())
        }
    }

    impl Drop for Leaving {
        fn drop(&mut self) {
            assert!(self.0.0.try_write().is_none(), "a handler of an embedder's own");
        }
    }

    /// Seen to fail with the tools dropped under the lock.
    #[test]
    fn a_handler_may_look_at_the_registry_that_it_leaves_and_panic() {
        let table: [fn(&Registry, Tool); 3] = [
            |registry, leaving| {
                registry.register(leaving).unwrap();
                registry.clear();
            },
            |registry, leaving| {
                registry.register(leaving).unwrap();
                drop(registry.unregister("a"));
            },
            // Refused, since another name stands twice.
            |registry, leaving| drop(registry.register_all([leaving, tool("b"), tool("b")])),
        ];
        for leaves in table {
            let registry = Registry::new();
            let leaving = Leaving(registry.clone());
            let leaving = Tool::with_handler(Definition::new("a", "").unwrap(), leaving).unwrap();
            assert!(fenced(|| leaves(&registry, leaving)).is_none(), "it could look, and panicked");
            assert!(registry.list().is_empty());
            registry.register(tool("a")).unwrap();
        }
    }

    #[test]
    fn an_iterator_may_look_at_the_registry_that_it_fills() {
        let registry = Registry::new();
        let tools = ["a", "b"].into_iter().map(|name| {
            assert!(registry.0.try_write().is_some(), "whoever makes tools is not kept waiting");
            tool(name)
        });
        registry.register_all(tools).unwrap();
        assert_eq!(registry.list().len(), 2);
    }
}
