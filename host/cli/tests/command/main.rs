//! The command as a person or a program uses it: what is typed, what comes out, and the exit status.

mod approval;
mod archives;
mod bad_input;
mod batch;
mod calls;
mod cordon;
mod escapes;
mod found;
mod grants;
mod help;
mod interrupt;
mod isolation;
mod keys;
mod limits;
mod looks;
mod place;
mod resume;
mod shared;
mod signatures;
mod single_tools;
mod typed;
mod unprivileged;
