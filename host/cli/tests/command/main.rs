//! The command as a person or a program uses it: what is typed, what comes out, and the exit status.

mod bad_input;
mod batch;
mod calls;
mod grants;
mod help;
mod looks;
mod resume;
mod typed;
