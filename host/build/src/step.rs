//! The steps of a build that takes long, for a person who waits.

use std::fmt;

/// What a build begins to do. JavaScript and TypeScript are built at once, and cargo tells its own
/// steps.
///
/// # Shape
/// `Display` writes it as words without a capital letter and without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The program that builds is looked for.
    Find {
        /// Its name, and its version if only one is used.
        program: String,
    },
    /// The program makes the component.
    Run {
        /// Its name.
        program: &'static str,
        /// The first file of the tool.
        source: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Find { program } => write!(f, "looking for {program}"),
            Self::Run { program, source } => {
                write!(f, "{program} makes a component of `{source}`, which takes some seconds")
            }
        }
    }
}
