//! Output at a terminal, to a program and to a closed pipe.

mod calls;
mod escapes;
mod help;
mod looks;
mod terminal;
