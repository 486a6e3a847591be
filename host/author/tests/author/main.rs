//! Tests of new projects, builds, and cases.

mod bindings;
mod case_run;
mod fuzz;
mod kit;
mod output;
mod packages;
mod platform;
mod projects;
mod python_stub;
