//! The steps of a slow build, for progress messages.
//!
//! The builds of C and Python pass a [`Step`] to a callback of their caller when they start to
//! search a compiler and when they start to run it. The command prints its `Display` text, such as
//! "looking for a C compiler". Builds of JavaScript and TypeScript take no time worth reporting,
//! and cargo reports its own steps.

use std::fmt;

/// A step that a build starts. JavaScript and TypeScript builds take no time worth reporting, and
/// cargo reports its own steps.
///
/// # Shape
/// `Display` writes it in words, without a capital letter and without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The search for the program that builds.
    Find {
        /// The program's name, and its version if only one is accepted.
        program: String,
    },
    /// The run of the program that makes the component.
    Run {
        /// The program's name.
        program: &'static str,
        /// The main file of the tool.
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
