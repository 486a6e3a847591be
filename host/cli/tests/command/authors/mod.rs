//! The commands of an author, from an empty folder to a served tool.

mod author;
mod first_tool;
