//! Finds the exports of a component that calls will use: its tools, its functions, or its one
//! command.
//!
//! When a component is loaded, [`Exports::find`] takes the linked code and the kind that it is used
//! as. It returns indices by which each call reaches the exports without a search by name, or an
//! error if they are missing. `definitions` returns the definitions of functions and commands,
//! which follow from types and settings; a component of tools has to be asked by a call of
//! `describe`.
//! Not here: running the exports (`engine/cell/invoke`, `engine/adapt`).

use toolcell_contract::{definition::Definition, error::Error};
use wasmtime::Engine;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre};

use super::{Cell, bindings::ToolboxWithGrantsIndices, output::captured::Streams};
use crate::engine::adapt::command;
use crate::engine::adapt::component_kind::{Command, ComponentKind};
use crate::engine::adapt::functions::{self, Function};
use crate::tool::handler::Invocation;

/// The exports that calls use.
pub(crate) enum Exports {
    Tools(ToolboxWithGrantsIndices),
    Functions(Vec<Function>),
    Command { entry: ComponentExportIndex, command: Command },
}

impl Exports {
    /// Finds the exports.
    ///
    /// # Errors
    /// [`Error::is_component`] if they are missing; [`Error::is_definition`] for a function that
    /// cannot be a tool.
    pub(crate) fn find(
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

    /// Returns the definitions; `None` if only the component's `describe` has them.
    pub(crate) fn definitions(&self) -> Option<Result<Vec<Definition>, Error>> {
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

    /// Returns the command line and the streams of a call of a command; `None` for other kinds.
    pub(crate) fn streams(&self, invocation: &Invocation) -> Option<Box<Streams>> {
        let Self::Command { command, .. } = self else { return None };
        Some(Box::new(Streams::new(command, invocation)))
    }
}
