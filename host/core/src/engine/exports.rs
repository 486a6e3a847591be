//! What of a component is called: its tools, its functions, or its one command.
//!
//! In: linked code and the kind that it is used as. Out: where its exports are, and the definitions
//! that are known without running it.

use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre};
use wasmtime::{Engine, Store};

use super::bindings::{ToolboxWithGrants, ToolboxWithGrantsIndices};
use super::cell::Cell;
use super::command::{self, Streams};
use super::functions::{self, Function};
use crate::component_kind::{Command, ComponentKind};
use crate::definition::Definition;
use crate::error::Error;
use crate::handler::Invocation;

/// The exports that calls use.
pub(super) enum Exports {
    Tools(ToolboxWithGrantsIndices),
    Functions(Vec<Function>),
    Command { entry: ComponentExportIndex, command: Command },
}

impl Exports {
    /// Finds them.
    ///
    /// # Errors
    /// [`Error::is_component`] if they are missing; [`Error::is_definition`] for a function that
    /// cannot be a tool.
    pub(super) fn find(
        engine: &Engine,
        pre: &InstancePre<Cell>,
        kind: &ComponentKind,
    ) -> Result<Self, Error> {
        let component: &Component = pre.component();
        Ok(match kind {
            ComponentKind::Tools => {
                let indices = ToolboxWithGrantsIndices::new(pre);
                Self::Tools(indices.map_err(|error| Error::no_tools(format!("{error:#}"), None))?)
            }
            ComponentKind::Functions => Self::Functions(functions::functions(engine, component)?),
            ComponentKind::Command(command) => Self::Command {
                entry: command::entry(engine, component)?,
                command: command.clone(),
            },
        })
    }

    /// The definitions, where the component need not be asked.
    pub(super) fn definitions(&self) -> Option<Result<Vec<Definition>, Error>> {
        match self {
            Self::Tools(_) => None,
            Self::Functions(functions) => {
                Some(functions.iter().map(Function::definition).collect())
            }
            Self::Command { command, .. } => {
                Some(command.definition().map(|definition| vec![definition]))
            }
        }
    }

    /// What a command sees of a call; nothing for the others.
    pub(super) fn streams(&self, invocation: &Invocation) -> Option<Box<Streams>> {
        let Self::Command { command, .. } = self else { return None };
        Some(Box::new(Streams::new(command, invocation)))
    }

    /// The tools of an instance that describes them itself.
    pub(super) fn toolbox(
        &self,
        store: &mut Store<Cell>,
        instance: &Instance,
    ) -> wasmtime::Result<ToolboxWithGrants> {
        match self {
            Self::Tools(indices) => indices.load(store, instance),
            // Its definitions have no checks, and it is not asked for them.
            Self::Functions(_) | Self::Command { .. } => {
                Err(wasmtime::Error::msg("the component has no toolbox"))
            }
        }
    }
}
