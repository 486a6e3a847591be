//! The types behind `#[tool]` and `tools!`: a table of tools that answers every call.
//!
//! Invariants: only the expansions of `#[tool]` and `tools!` use this module, never an author. A
//! call of a name that is not in the table gives an error as its outcome, never a trap.

pub(crate) mod convert;
pub(crate) mod definition;
mod exports;
pub mod wire;

use self::convert::Arguments;
use self::definition::Definition;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::schema;

/// A function with `#[tool]`, represented by a type of the same name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "there is no function `{Self}` with `#[tool]`",
    note = "write `#[tool]` above the function",
    note = "write the path of a function in another module: `tools![module::name]`"
)]
pub trait Tool {
    /// The tool's entry in the table of `tools!`.
    const ENTRY: Entry;
}

/// The typed side of one tool. Separate from [`Tool`], because a public function may take a private
/// type.
pub trait Handler {
    /// The type of the argument object.
    type Arguments;

    /// The name, unique in its component.
    const NAME: &'static str;

    /// Returns the definition without the schema of the arguments.
    fn definition() -> Definition;

    /// Returns everything that is wrong with the arguments beyond their schema.
    fn validate(_arguments: &Self::Arguments) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if the tool is visible in this context.
    fn visible(_context: &Context) -> bool {
        true
    }

    /// Calls the function.
    fn execute(arguments: Self::Arguments, context: Context) -> Outcome;
}

/// A [`Handler`] without its types.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// [`Handler::NAME`].
    pub name: &'static str,
    /// Returns the whole definition.
    pub definition: fn() -> Definition,
    /// Validates arguments in JSON text.
    pub validate: fn(&str) -> Vec<String>,
    /// Decides the visibility in a context.
    pub visible: fn(&Context) -> bool,
    /// Executes a call with arguments in JSON text.
    pub execute: fn(&str, Context) -> Outcome,
}

impl Entry {
    /// The entry of a handler. `A` repeats the type of the arguments, so that a compile error
    /// points at it.
    pub const fn of<H: Handler<Arguments = A>, A: Arguments>() -> Self {
        Self {
            name: H::NAME,
            definition: definition::<H>,
            validate: validate_text::<H>,
            visible: H::visible,
            execute: execute_text::<H>,
        }
    }

    /// The entry of a function with errors, so that the compiler reports only those.
    pub const fn refused(name: &'static str) -> Self {
        Self {
            name,
            definition: Definition::default,
            validate: |_| Vec::new(),
            visible: |_| false,
            execute: |_, _| Outcome::error("this tool was not compiled"),
        }
    }
}

fn definition<H: Handler<Arguments: Arguments>>() -> Definition {
    Definition {
        name: H::NAME,
        parameters: schema::of_arguments::<H::Arguments>(),
        ..H::definition()
    }
}

fn validate_text<H: Handler<Arguments: Arguments>>(arguments: &str) -> Vec<String> {
    match read(arguments) {
        Ok(arguments) => H::validate(&arguments),
        Err(failure) => vec![failure.message],
    }
}

fn execute_text<H: Handler<Arguments: Arguments>>(arguments: &str, context: Context) -> Outcome {
    match read(arguments) {
        Ok(arguments) => H::execute(arguments, context),
        Err(failure) => failure.into(),
    }
}

/// Rarely fails, because the host has checked the text against the schema of the type.
fn read<T: Arguments>(arguments: &str) -> Result<T, Failure> {
    crate::json::read(arguments)
        .map_err(|error| Failure::new(format!("the arguments do not fit this tool: {error}")))
}

/// Returns true if all names differ.
pub const fn unique(entries: &[Entry]) -> bool {
    let mut first = 0;
    while first < entries.len() {
        let mut second = first + 1;
        while second < entries.len() {
            if same(entries[first].name.as_bytes(), entries[second].name.as_bytes()) {
                return false;
            }
            second += 1;
        }
        first += 1;
    }
    true
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Returns all definitions, in the order of `tools!`.
pub(crate) fn describe(entries: &[Entry]) -> Vec<Definition> {
    entries.iter().map(|entry| (entry.definition)()).collect()
}

pub(crate) fn validate(entries: &[Entry], name: &str, arguments: &str) -> Vec<String> {
    match find(entries, name) {
        Ok(entry) => (entry.validate)(arguments),
        Err(failure) => vec![failure.message],
    }
}

pub(crate) fn visible(entries: &[Entry], name: &str, context: &Context) -> bool {
    find(entries, name).is_ok_and(|entry| (entry.visible)(context))
}

pub(crate) fn execute(entries: &[Entry], name: &str, arguments: &str, context: Context) -> Outcome {
    match find(entries, name) {
        Ok(entry) => (entry.execute)(arguments, context),
        Err(failure) => failure.into(),
    }
}

fn find<'a>(entries: &'a [Entry], name: &str) -> Result<&'a Entry, Failure> {
    entries
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| Failure::new(format!("this component has no tool named `{name}`")))
}
