//! Traits for the types that a handler can take and return, and the conversion of a returned value.
//!
//! Each trait covers every type that works, and has the compiler message for a type that does not.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::outcome::{Failure, Halt, Outcome, Output, Question};

/// A type that can hold all arguments of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "needs `Deserialize` and `JsonSchema`",
    note = "write `#[derive(serde::Deserialize, schemars::JsonSchema)]` above it, and the same above the types in it",
    note = "a tool takes its arguments by value, so that they cannot borrow: `String` instead of `&str`"
)]
pub trait Arguments: DeserializeOwned + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Arguments for T {}

/// A type that can be one argument of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "needs `Deserialize` and `JsonSchema`",
    note = "write `#[derive(serde::Deserialize, schemars::JsonSchema)]` above it, and the same above the types in it"
)]
pub trait Argument: DeserializeOwned + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {}

/// Compiles only if the type can be one argument.
pub const fn argument<T: Argument>() {}

/// A type that a tool can return, alone or in a `Result`.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "neither a value with `Serialize` nor an outcome",
    note = "write `#[derive(serde::Serialize)]` above it, and the same above the types in it",
    note = "or return `Outcome`, `Output`, `Question`, `Halt`, or a `Result` of one of these"
)]
pub trait IntoOutcome {
    /// Converts the value to an outcome.
    fn into_outcome(self) -> Outcome;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> IntoOutcome for T {
    fn into_outcome(self) -> Outcome {
        Outcome::ok(self)
    }
}

macro_rules! already {
    ($($shape:ty),+) => {
        $(#[diagnostic::do_not_recommend]
        impl IntoOutcome for $shape {
            fn into_outcome(self) -> Outcome {
                self.into()
            }
        })+
    };
}

already!(Outcome, Output, Question, Halt, Failure);

/// An error that a tool can return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "not a `Display` error",
    note = "return an error that is `Display`, a `String` for instance, or `toolcell_guest::Failure`"
)]
pub trait IntoFailure {
    /// Converts the error to a failure.
    fn into_failure(self) -> Failure;
}

#[diagnostic::do_not_recommend]
impl<E: Into<Failure>> IntoFailure for E {
    fn into_failure(self) -> Failure {
        self.into()
    }
}

/// A type with the JSON Schema that the host checks a tool's value against.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    label = "needs `JsonSchema`",
    note = "write `#[derive(schemars::JsonSchema)]` above it, or leave out the option `output`"
)]
pub trait Described: JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> Described for T {}
