//! Tests of questions of tools to users: their forms, limits and rounds.

mod forms;
mod questions;
mod rounds;
