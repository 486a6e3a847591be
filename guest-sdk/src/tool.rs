//! What `#[tool]` makes of a function, and what `tools!` makes of those: a table that answers every
//! call.
//!
//! Invariants: nothing here is for an author to name; `#[tool]` and `tools!` are the only callers.
//! A call of a name that is not in the table is an error of the outcome, never a trap.

use crate::context::Context;
use crate::convert::Arguments;
use crate::definition::Definition;
use crate::outcome::{Failure, Outcome};
use crate::schema;

/// A function with `#[tool]`, as a type of the same name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "there is no function `{Self}` with `#[tool]`",
    note = "write `#[tool]` above the function",
    note = "write the path of a function in another module: `tools![module::name]`"
)]
pub trait Tool {
    /// What `tools!` makes its table of.
    const ENTRY: Entry;
}

/// The typed side of one tool. Apart from [`Tool`] because a public function may take a private
/// type.
pub trait Handler {
    /// What the argument object is read as.
    type Arguments;

    /// Unique in its component.
    const NAME: &'static str;

    /// All but the schema of the arguments.
    fn definition() -> Definition;

    /// All that is wrong with these arguments beyond their schema.
    fn validate(_arguments: &Self::Arguments) -> Vec<String> {
        Vec::new()
    }

    /// Whether it is offered in this context.
    fn visible(_context: &Context) -> bool {
        true
    }

    /// The work.
    fn execute(arguments: Self::Arguments, context: Context) -> Outcome;
}

/// A [`Handler`] without its types.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// [`Handler::NAME`].
    pub name: &'static str,
    /// The whole definition.
    pub definition: fn() -> Definition,
    /// Of arguments as JSON text.
    pub validate: fn(&str) -> Vec<String>,
    /// In a context.
    pub visible: fn(&Context) -> bool,
    /// With arguments as JSON text.
    pub execute: fn(&str, Context) -> Outcome,
}

impl Entry {
    /// The row of this handler. The type of its arguments is said again for the compiler to point
    /// at.
    pub const fn of<H: Handler<Arguments = A>, A: Arguments>() -> Self {
        Self {
            name: H::NAME,
            definition: definition::<H>,
            validate: validate_text::<H>,
            visible: H::visible,
            execute: execute_text::<H>,
        }
    }

    /// What stands in for a function that the compiler has refused, so that it says so once.
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

/// Rarely fails, for the host has checked the text against the schema of the type.
fn read<T: Arguments>(arguments: &str) -> Result<T, Failure> {
    crate::json::read(arguments)
        .map_err(|error| Failure::new(format!("the arguments do not fit this tool: {error}")))
}

/// Whether each name is there once.
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

/// All definitions, in the order of `tools!`.
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
