//! What a handler says: exactly one of four shapes.
//!
//! Invariants: building any of them cannot fail; a value that cannot be written as JSON becomes [`Outcome::Error`] when
//! the outcome leaves the tool.
//! Not here: what the host says of a tool that trapped, ran too long or was refused. A guest has no words for that.

mod failure;
mod output;
mod part;
mod suspend;

use serde::Serialize;
use serde_json::Value;

pub use failure::Failure;
pub use output::Output;
pub use part::{Link, Part};
pub use suspend::{Halt, Question};

/// What a handler says at the end of a call.
///
/// Most tools never name this type: a returned value is `Ok`, the error of a `Result` is `Error`.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Success, with a value.
    Ok(Output),
    /// The handler reports failure. It reaches the model unchanged.
    Error(Failure),
    /// Suspend the loop and ask a person. The tool is called again with the answer.
    AskUser(Question),
    /// Stop the loop with this result.
    Halt(Halt),
}

impl Outcome {
    /// Success with this value.
    pub fn ok(value: impl Serialize) -> Self {
        Output::new(value).into()
    }

    /// Failure with this message.
    pub fn error(message: impl Into<String>) -> Self {
        Failure::new(message).into()
    }

    /// Asks a person. A text is a [`Question`] without options.
    pub fn ask_user(question: impl Into<Question>) -> Self {
        Self::AskUser(question.into())
    }

    /// Stops the loop. `reason` is any word but the host's own: see [`Halt::new`].
    pub fn halt(reason: impl Into<String>, result: impl Serialize) -> Self {
        Self::Halt(Halt::new(reason, result))
    }

    /// The value of `Ok`, None for the other shapes. For tests.
    pub fn value(&self) -> Option<Value> {
        match self {
            Self::Ok(output) => output.value(),
            Self::Error(_) | Self::AskUser(_) | Self::Halt(_) => None,
        }
    }

    /// The failure of `Error`, None for the other shapes. For tests.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Error(failure) => Some(failure),
            Self::Ok(_) | Self::AskUser(_) | Self::Halt(_) => None,
        }
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        match output.problem() {
            None => Self::Ok(output),
            Some(problem) => Self::Error(Failure::unwritable("result", problem)),
        }
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Error(failure)
    }
}

impl From<Question> for Outcome {
    fn from(question: Question) -> Self {
        Self::AskUser(question)
    }
}

impl From<Halt> for Outcome {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}
