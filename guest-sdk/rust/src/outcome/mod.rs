//! The outcome of a tool: success, failure, a question, or a halt.
//!
//! Invariants: building an outcome cannot fail; if a value in it cannot be written as JSON, it
//! becomes [`Outcome::Error`] when it leaves the tool.
//! Not here: traps, timeouts and refusals, which the host reports.

mod failure;
mod output;
mod part;
mod suspend;

use serde::Serialize;
use serde_json::Value;

pub use failure::Failure;
pub use output::Output;
pub use part::{Content, Link, Part};
pub use suspend::{Halt, Question};

/// The outcome of a tool at the end of a call.
///
/// Most tools never name this type: a returned value is `Ok`, the error of a `Result` is `Error`.
/// In a test, [`value`](Self::value), [`failure`](Self::failure), [`question`](Self::question) and
/// [`halt`](Self::halt) return the content of the four variants.
///
/// ```
/// use toolcell_guest::{Context, Outcome, Question, tool};
///
/// /// Deletes a note.
/// #[tool(destructive)]
/// fn delete(name: String, context: &Context) -> Outcome {
///     match context.answer::<bool>() {
///         None => Question::new(format!("Delete {name}?")).answer_schema::<bool>().into(),
///         Some(Ok(true)) => Outcome::ok("deleted"),
///         Some(_) => Outcome::error("the user did not agree"),
///     }
/// }
///
/// let asked = delete("a".into(), &Context::default());
/// assert_eq!(asked.question().map(Question::text), Some("Delete a?"));
/// let answered = delete("a".into(), &Context::default().with_answer(true));
/// assert_eq!(answered.value(), Some("deleted".into()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Success, with a value.
    Ok(Output),
    /// The tool reports a failure. It reaches the model unchanged.
    Error(Failure),
    /// A question to a person. The tool is called again with the answer.
    AskUser(Question),
    /// The end of the agent loop, with this result.
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

    /// A question to a person. A text becomes a [`Question`] without options.
    pub fn ask_user(question: impl Into<Question>) -> Self {
        Self::AskUser(question.into())
    }

    /// The value of `Ok`. `None` for the other variants.
    pub fn value(&self) -> Option<Value> {
        match self {
            Self::Ok(output) => output.value(),
            Self::Error(_) | Self::AskUser(_) | Self::Halt(_) => None,
        }
    }

    /// The failure of `Error`. `None` for the other variants.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Error(failure) => Some(failure),
            Self::Ok(_) | Self::AskUser(_) | Self::Halt(_) => None,
        }
    }

    /// The question of `AskUser`. `None` for the other variants.
    pub fn question(&self) -> Option<&Question> {
        match self {
            Self::AskUser(question) => Some(question),
            Self::Ok(_) | Self::Error(_) | Self::Halt(_) => None,
        }
    }

    /// The reason and the result of `Halt`. `None` for the other variants.
    pub fn halt(&self) -> Option<&Halt> {
        match self {
            Self::Halt(halt) => Some(halt),
            Self::Ok(_) | Self::Error(_) | Self::AskUser(_) => None,
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
