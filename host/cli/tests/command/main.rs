//! The command as a person or a program uses it: command lines, their output, and their exit
//! statuses.

mod approvals;
mod authors;
mod grants;
mod place;
mod printing;
mod processes;
mod requests;
mod server;
mod serving;
mod sessions;
mod typed;
